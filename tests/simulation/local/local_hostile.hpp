#pragma once

#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/transport.hpp>

#include "service/common/random.hpp"
#include "simulation/common/outcome.hpp"
#include "simulation/local/local_host.hpp"
#include "support/test_timer.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::simulation {

/// Clients that ask for too much, say what is not so, and do not wait for answers. They send plain
/// requests beside those of the users, over a network without faults, and touch nothing of others:
/// they only read it, which anybody may.
///
/// What must hold of the server, whatever they send:
///
/// - No answer to them is a 500: what is refused is refused with a reason (4xx), or for now (503).
/// - Samples that are small and come from somebody else are done soon, however much is queued.
///
/// What users must not notice is the judge's affair. Chance is of a stream of its own, so that
/// users do in a world with hostile clients what they would do without them. Loop thread only.
class HostileClients {
public:
    using Say = std::function<void(std::string)>;

    HostileClients(std::uint64_t seed, testing::ManualClock& clock, LocalHost& host, Tally& tally,
                   Say note, Say problem);
    ~HostileClients();
    HostileClients(HostileClients const&) = delete;
    HostileClients& operator=(HostileClients const&) = delete;

    /// Whether the world of this seed has such clients.
    [[nodiscard]] static bool visit(std::uint64_t seed);
    /// Makes a server small enough for them to fill it.
    static void tighten(local::ServerOptions& options);
    [[nodiscard]] static bool sent(Served const& served);

    /// Plans what they do from now until `storm` is over.
    void begin(std::chrono::nanoseconds storm);
    /// Hogs are still to come, or it is not known yet what others got beside them.
    [[nodiscard]] bool busy() const { return work_.use_count() > 1; }
    /// They go, and give up whatever they wait for.
    void end();

    /// An answer to one of them.
    void on_served(Served const& served);
    /// An answer to somebody else, of which they learn names.
    void overhear(Served const& served);
    /// The server may be computing what they have asked for, so that others wait.
    [[nodiscard]] bool crowded();

private:
    /// Held by all that has to come to an end before the world does.
    using Work = std::shared_ptr<int>;
    struct Asking;
    using Then = std::function<void(ServerReply const&)>;
    struct Question {
        std::string kind{};
        std::string method{"POST"};
        /// Below `/api/v1/`.
        std::string path{};
        std::string body{};
        Headers headers{};
        /// Whoever asks goes away after so long.
        std::optional<std::chrono::nanoseconds> patience{};
    };

    void at(std::chrono::nanoseconds after, std::function<void()> action);
    /// Sends it, if there is a server and nobody has sent them away. `then` gets the answer, if
    /// there is one.
    void ask(Question question, Then then = {});
    void with_session(std::string const& kind, std::function<void(std::string)> then);
    void with_sampler(std::string const& kind, std::function<void(std::string)> then);

    // What they do.
    void arrive();
    void act();
    void huge_cursor();
    void huge_sample();
    void huge_step();
    void huge_name();
    void huge_page();
    void abandon_poll();
    void large_body();
    void packed_body();
    void garbage();
    void unknown_name();
    void read_others();
    void hog(Work const& work);
    void crowd(std::int64_t tokens);
    void be_silent();
    void probe(Work const& work);
    void await_probe(Work const& work, std::string const& id, TimePoint accepted, int life);
    void judge_probe(TimePoint accepted);

    // Chance.
    [[nodiscard]] double unit() { return random_.unit(); }
    [[nodiscard]] std::int64_t below(std::uint64_t bound) {
        return static_cast<std::int64_t>(random_.next() % bound);
    }
    [[nodiscard]] std::chrono::nanoseconds span(std::chrono::nanoseconds most) {
        return std::chrono::nanoseconds{below(static_cast<std::uint64_t>(most.count()))};
    }
    [[nodiscard]] std::string number();
    [[nodiscard]] std::string noise(std::size_t bytes);
    [[nodiscard]] std::string known_sampler();
    /// How long the server takes for so many tokens, if it does nothing else.
    [[nodiscard]] std::chrono::nanoseconds time_of(std::int64_t tokens) const;

    service::Random random_;
    testing::ManualClock& clock_;
    LocalHost& host_;
    Tally& tally_;
    Say note_;
    Say problem_;
    std::deque<support::TestTimer> alarms_{};
    std::map<std::uint64_t, std::shared_ptr<Asking>> asking_{};
    std::uint64_t last_{0};
    bool gone_{false};
    Work work_{std::make_shared<int>()};
    // What they have of their own.
    std::string session_{};
    std::string sampler_{};
    std::string model_{};
    std::int64_t next_{0};
    /// Samplers of users.
    std::vector<std::string> others_{};
    std::int64_t queued_tokens_{0};
    int crowded_life_{0};
    TimePoint crowded_until_{};
};

}  // namespace tinkxx::simulation
