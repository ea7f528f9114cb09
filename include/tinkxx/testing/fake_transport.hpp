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

/// What a `FakeTransport` answers.
///
///     Reply{.body = R"({"status":"ok"})"}                  200, at once
///     Reply{.status = 503, .headers = {{"retry-after", "2"}}}
///     Reply{.body = text, .pieces = 3, .piece_delay = 10ms}
///     failing(FailureKind::reset, Seen::maybe)
struct Reply {
    /// 0 with a `failure`: no answer at all, just the failure.
    int status{200};
    /// A Content-Length is added, as a server would, unless there is one or a Transfer-Encoding.
    Headers headers{};
    std::string body{};
    /// Into how many pieces the body is cut.
    std::size_t pieces{1};
    /// Before the head, and between the pieces of the body.
    std::chrono::nanoseconds delay{0};
    std::chrono::nanoseconds piece_delay{0};
    /// Comes in place of the end: after the body, or with `status = 0` in place of everything.
    std::optional<Failure> failure{};
    int http_version{11};
};

/// A reply that is no answer but a failure.
[[nodiscard]] Reply failing(FailureKind kind, Seen seen = Seen::maybe);

/// A request as it reached a `FakeTransport`.
struct SentRequest {
    Call call{};
    std::string method{};
    std::string url{};
    /// The part of the URL between authority and `?`, and the part after it.
    std::string path{};
    std::string query{};
    /// Common lines and lines of the request, in the order of sending.
    Headers headers{};
    std::string body{};
    Purpose purpose{Purpose::rest};
    Timeouts timeouts{};
    Redirects redirects{Redirects::follow};
    TimePoint at{};
    bool cancelled{false};
    /// Whether its answer has ended, with success or failure.
    bool ended{false};
    /// Whether `discard` was called for it.
    bool discarded{false};

    /// The value of the first line of that name, or empty.
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
/// A request is answered by the first of these that has something left: the rules in the order
/// of their making, the replies given to `push`, the handler given to `otherwise`. A request that
/// nothing answers fails with `FailureKind::invalid_request` and a message that lists the script.
///
/// Time limits of a request (`read`, `total`) and its `max_response_bytes` are honoured, so a
/// held answer times out when the clock is advanced.
///
/// `start`, `cancel`, `pause` and `drain` are for the loop thread, as with any transport; all
/// other members may be called from any thread. Outlives its calls; the scheduler outlives it.
class FakeTransport final : public Transport {
public:
    /// Makes the answer to a request, on the loop thread. Empty: the answer is held back until
    /// `release` or `fail`.
    using Handler = std::function<std::optional<Reply>(SentRequest const&)>;

    /// Answers requests of one method and path. Valid as long as the transport.
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

    /// A rule for `method` (or `*`) and `path`: the path of the URL as sent, or its beginning if
    /// `path` ends in `*`.
    Rule on(std::string method, std::string path);
    /// Answers the next request that no rule answers.
    void push(Reply reply);
    /// Answers requests that neither a rule nor `push` answers.
    void otherwise(Handler handler);

    /// Ends the waiting of a held answer. False if that call is not held (any more).
    bool release(Call call, Reply reply);
    bool fail(Call call, Failure failure);
    /// As above, for the answer that was held first.
    bool release_next(Reply reply);
    bool fail_next(Failure failure);

    /// Everything sent so far, in order.
    [[nodiscard]] std::vector<SentRequest> sent() const;
    [[nodiscard]] std::vector<SentRequest> sent(std::string_view path) const;
    [[nodiscard]] std::size_t sent_count() const;
    /// Calls whose answer has not ended.
    [[nodiscard]] std::size_t open_count() const;
    /// Calls whose answer is held back, oldest first.
    [[nodiscard]] std::vector<Call> held() const;
    [[nodiscard]] std::size_t cancelled_count() const;
    [[nodiscard]] bool paused(Call call) const;
    [[nodiscard]] bool draining() const;

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    /// Of a call that is to fail: what the failure says.
    [[nodiscard]] Seen seen(Call call) const noexcept override;
    void pause(Call call, bool on) noexcept override;
    void discard(Call call) noexcept override;
    void drain(TimePoint deadline) noexcept override;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;  // shared with tasks that are still to run
};

}  // namespace tinkxx::testing
