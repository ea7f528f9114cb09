#pragma once

#include <tinkxx/scheduler.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::testing {

/// An answer of a `FakeTransport`.
///
///     Reply{.body = R"({"status":"ok"})"}                  200, at once
///     Reply{.status = 503, .headers = {{"retry-after", "2"}}}
///     Reply{.body = text, .pieces = 3, .piece_delay = 10ms}
///     failing(FailureKind::reset, Seen::maybe)
struct Reply {
    /// 0 with a `failure`: no answer, only the failure.
    int status{200};
    /// A Content-Length is added unless there is one, or a Transfer-Encoding.
    Headers headers{};
    std::string body{};
    /// The number of pieces in which the body is delivered.
    std::size_t pieces{1};
    /// The delay before the head, and between the pieces of the body.
    std::chrono::nanoseconds delay{0};
    std::chrono::nanoseconds piece_delay{0};
    /// Replaces the end of the answer: reported after the body, or with `status = 0` instead of an
    /// answer.
    std::optional<Failure> failure{};
    int http_version{11};
};

/// A reply that is a failure without an answer.
[[nodiscard]] Reply failing(FailureKind kind, Seen seen = Seen::maybe);

/// A request that reached a `FakeTransport`.
struct SentRequest {
    Call call{};
    std::string method{};
    std::string url{};
    /// The path and the query of the URL.
    std::string path{};
    std::string query{};
    /// All headers, in the order of sending.
    Headers headers{};
    std::string body{};
    Purpose purpose{Purpose::rest};
    Timeouts timeouts{};
    Redirects redirects{Redirects::follow};
    TimePoint at{};
    bool cancelled{false};
    /// Whether its answer has ended, successfully or not.
    bool ended{false};
    /// Whether `discard` was called for it.
    bool discarded{false};

    /// The value of the first header with this name, or empty.
    [[nodiscard]] std::string header(std::string_view name) const;
};

/// A `Transport` that answers from a script, for tests without a server.
///
///     auto clock = std::make_shared<testing::ManualClock>();
///     auto fake = std::make_shared<testing::FakeTransport>(*clock);
///     fake->on("GET", "/api/v1/healthz").reply({.status = 503}).always({.body = "{}"});
///     HttpClient client{{.transport = fake, .runtime = Runtime{{.threads = 0, .scheduler =
///     clock}}}}; … EXPECT_EQ(fake->sent().at(0).method, "GET");
///
/// A request is answered by the first of these that applies: the rules in the order in which they
/// were made, the replies given to `push`, the handler given to `otherwise`. If none applies, it
/// fails with `FailureKind::invalid_request` and a message that lists the script.
///
/// The time limits of a request (`read`, `total`) and its `max_response_bytes` apply, so a held
/// answer times out when the clock is advanced.
///
/// `start`, `cancel`, `pause` and `drain` may only be called on the loop thread, as with any
/// transport; all other members on any thread. It must outlive its calls, and the scheduler must
/// outlive it.
class FakeTransport final : public Transport {
public:
    /// Returns the answer to a request; called on the loop thread. An empty result holds the answer
    /// back until `release` or `fail`.
    using Handler = std::function<std::optional<Reply>(SentRequest const&)>;

    /// Answers requests with one method and path. Valid as long as the transport.
    class Rule {
    public:
        /// Answers the next `times` matching requests.
        Rule& reply(Reply reply, int times = 1);
        /// Holds back the answer to the next matching request until `release` or `fail`.
        Rule& hold();
        /// Answers all further matching requests.
        void always(Reply reply);
        void handle(Handler handler);

    private:
        friend class FakeTransport;
        struct Data;
        Rule(FakeTransport& transport, Data& data) noexcept
            : transport_{&transport}, data_{&data} {}
        FakeTransport* transport_;
        Data* data_;
    };

    explicit FakeTransport(Scheduler& scheduler);
    ~FakeTransport() override;

    /// Adds a rule for `method` (or `*`) and `path`, which is the path of the URL as sent, or its
    /// beginning if it ends in `*`.
    Rule on(std::string method, std::string path);
    /// Answers the next request that no rule answers.
    void push(Reply reply);
    /// Answers requests that neither a rule nor `push` answers.
    void otherwise(Handler handler);

    /// Delivers a held answer. Returns false if this call is not held, or no longer held.
    bool release(Call call, Reply reply);
    bool fail(Call call, Failure failure);
    /// As above, for the answer that was held first.
    bool release_next(Reply reply);
    bool fail_next(Failure failure);

    /// Everything sent so far, in order.
    [[nodiscard]] std::vector<SentRequest> sent() const;
    [[nodiscard]] std::vector<SentRequest> sent(std::string_view path) const;
    [[nodiscard]] std::size_t sent_count() const;
    /// The number of calls whose answer has not ended.
    [[nodiscard]] std::size_t open_count() const;
    /// The calls whose answers are held back, oldest first.
    [[nodiscard]] std::vector<Call> held() const;
    [[nodiscard]] std::size_t cancelled_count() const;
    [[nodiscard]] bool paused(Call call) const;
    [[nodiscard]] bool draining() const;

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    /// The failure of a call that is to fail.
    [[nodiscard]] Seen seen(Call call) const noexcept override;
    void pause(Call call, bool on) noexcept override;
    void discard(Call call) noexcept override;
    void drain(TimePoint deadline) noexcept override;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;  // shared with tasks that are still to run
};

}  // namespace tinkxx::testing
