#pragma once

#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::test {

/// How one call went.
struct ExchangeOutcome {
    std::optional<Head> head{};
    std::string body{};
    std::optional<Failure> failure{};
    bool done{false};
    Timing timing{};

    /// The status of a complete answer; 0 if there is none.
    [[nodiscard]] int status() const noexcept { return done && head ? head->status : 0; }
    [[nodiscard]] std::string header(std::string_view name) const;
    /// For messages of failed checks.
    [[nodiscard]] std::string text() const;
};

class HttpDriver;

/// One call, started by `HttpDriver::start`. Checks that its sink is treated as promised, and
/// reports a breach as a test failure.
class DrivenExchange final : public ReplySink {
public:
    /// Blocks until the call has ended. A call that does not end is a test failure.
    ExchangeOutcome const& wait();
    [[nodiscard]] bool ended() const;
    /// Blocks until that much of the body has come, or the call has ended.
    void wait_for_bytes(std::size_t count);
    void wait_for_head() { wait_for_bytes(0); }
    [[nodiscard]] std::size_t received() const;
    /// How the call went so far.
    [[nodiscard]] ExchangeOutcome so_far() const;

    /// Through the loop; returns once it is done.
    void cancel();
    void pause(bool on);

private:
    friend class HttpDriver;
    explicit DrivenExchange(HttpDriver& driver) : driver_{driver} {}

    void on_head(Head head) override;
    void on_data(std::span<char const> data) override;
    void on_done(Timing const& timing) override;
    void on_failure(Failure failure) override;
    void end();

    HttpDriver& driver_;
    // Loop thread only.
    Call call_{};
    bool starting_{false};
    bool cancelled_{false};
    std::function<void(DrivenExchange&)> on_each_head_{};
    std::size_t pause_after_{SIZE_MAX};

    mutable std::mutex mutex_;  ///< guards the members below
    std::condition_variable changed_;
    ExchangeOutcome outcome_;
    int endings_{0};
};

/// A network transport on a runtime of its own, for tests that want to wait.
class HttpDriver {
public:
    HttpDriver();
    explicit HttpDriver(NetOptions options);
    /// Checks that every call that was not cancelled has ended exactly once.
    ~HttpDriver();
    HttpDriver(HttpDriver const&) = delete;
    HttpDriver& operator=(HttpDriver const&) = delete;

    DrivenExchange& start(Request request);
    /// As `start`, and pauses the call from inside `on_data` once `bytes` have come.
    DrivenExchange& start_and_pause_after(Request request, std::size_t bytes);
    /// As `start`, and runs `fn` inside `on_head`.
    DrivenExchange& start_with_head_hook(Request request, std::function<void(DrivenExchange&)> fn);
    /// Starts all of them in one turn of the loop.
    std::vector<DrivenExchange*> start_all(std::vector<Request> requests);

    /// Starts it and waits for its end.
    ExchangeOutcome run(Request request);
    ExchangeOutcome get(std::string url);
    ExchangeOutcome post(std::string url, std::string body);

    /// Runs `fn` on the loop and waits for it.
    void on_loop(std::function<void()> fn);
    /// Lets that much real time pass, by a timer of the loop. Only where time is the subject.
    void let_pass(std::chrono::milliseconds time);
    [[nodiscard]] Transport& transport() noexcept { return *transport_; }
    [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
    /// Lets go of the transport, as a client does that is destroyed.
    void release_transport() { transport_.reset(); }

private:
    friend class DrivenExchange;

    DrivenExchange& add();
    void start_on_loop(DrivenExchange& exchange, Request request);

    Runtime runtime_;
    std::shared_ptr<Transport> transport_;
    std::vector<std::unique_ptr<DrivenExchange>> exchanges_;
};

[[nodiscard]] Request get_request(std::string url);
[[nodiscard]] Request post_request(std::string url, std::string body);
/// With a header `x-request-id` that no other request of this process has.
[[nodiscard]] Request with_id(Request request);

}  // namespace tinkxx::test
