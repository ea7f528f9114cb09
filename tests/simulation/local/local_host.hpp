#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/transport.hpp>

#include "local/api/handler.hpp"
#include "service/common/random.hpp"
#include "simulation/common/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::local {
class Core;
class InProcessTransport;
}  // namespace tinkxx::local

namespace tinkxx::simulation {

/// A folder that goes with its owner.
class ScratchFolder {
public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(ScratchFolder const&) = delete;
    ScratchFolder& operator=(ScratchFolder const&) = delete;

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Tokens that the model below knows.
inline constexpr std::int64_t local_vocabulary = 29;
inline constexpr char const* local_model = "sim/tiny";

/// A server of one model as small as can be, which computes on the loop and in virtual time.
[[nodiscard]] local::ServerOptions local_server_options(std::filesystem::path home);

/// A request as it came to the server, and what the server said to it.
struct Served {
    /// Of the server: 1, and one more for each restart.
    int life{0};
    std::string path{};
    /// Decompressed.
    std::string body{};
    std::string content_type{};
    std::string accept{};
    std::string idempotency_key{};
    /// Names the call of a user.
    std::string mark{};
    int status{0};
    std::string answer{};
    std::string answer_type{};
};

/// Sees what the server does at the moment when it does it, whatever the network makes of it.
class ServerWatch {
public:
    /// A request has come in; there is no answer yet.
    virtual void on_asked(Served const& served) = 0;
    /// The answer is complete, and on its way.
    virtual void on_served(Served const& served) = 0;
    /// The server has stopped in time: all that it had taken on is done.
    virtual void on_clean_stop(int life) = 0;

protected:
    ~ServerWatch() = default;
};

/// The machine on which a server runs, dies and is started again. To clients it is a transport:
/// what is under way when the server dies fails, and so does all that comes while there is none.
///
/// A crash can come before any timer and any task of the server. It leaves on the disk what was
/// committed until then and nothing else; files that no row speaks of may be damaged, as if the
/// crash had come while they were written. Loop thread only.
class LocalHost final : public Transport {
public:
    using Note = std::function<void(std::string)>;

    LocalHost(std::uint64_t seed, testing::ManualClock& clock, local::ServerOptions options,
              ServerWatch& watch, Tally& tally, Note note);
    ~LocalHost() override;

    void start_server();
    /// Dies at once.
    void crash();
    /// Dies before the task or timer of this number, counted from now.
    void crash_after(std::int64_t events) { events_left_ = events; }
    void stop_crashing() { events_left_.reset(); }
    /// Stops as an operator would; then there is no server.
    void stop(std::chrono::nanoseconds limit);
    /// For the end: there is no server, and nothing of it is left in any queue.
    void power_off();

    [[nodiscard]] bool running() const noexcept { return core_ != nullptr; }
    [[nodiscard]] int life() const noexcept { return life_; }
    /// How many times longer than usual this machine computes.
    [[nodiscard]] int slowness() const noexcept;
    [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }
    /// What to do when the server is gone, by crash or by stop.
    std::function<void()> on_down{};
    /// The server itself, for questions that nothing may disturb.
    [[nodiscard]] local::Handler& handler();

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    void pause(Call call, bool on) noexcept override;
    void drain(TimePoint deadline) noexcept override;

private:
    class Clockwork;
    class Door;
    struct Passing;

    /// One more task or timer of the server; false if it died of it.
    [[nodiscard]] bool event();
    void end_life();
    void fail_open();
    void tear_unknown_folders();
    bool chance(double probability) { return random_.unit() < probability; }

    service::Random random_;
    testing::ManualClock& clock_;
    local::ServerOptions options_;
    ServerWatch& watch_;
    Tally& tally_;
    Note note_;
    std::unique_ptr<Clockwork> clockwork_;
    std::map<std::uint64_t, std::shared_ptr<Passing>> open_{};
    std::uint64_t last_{0};
    int life_{0};
    std::optional<std::int64_t> events_left_{};
    std::shared_ptr<local::Core> core_{};
    std::unique_ptr<local::InProcessTransport> inner_{};
};

/// An answer to a question that was put to a server directly.
struct ServerReply {
    int status{0};
    std::string type{};
    std::string body{};
};
/// Asks and lets time pass until the answer is there, but ten minutes at most.
[[nodiscard]] ServerReply ask_server(local::Handler& server, testing::ManualClock& clock,
                                     local::ServerRequest request);

}  // namespace tinkxx::simulation
