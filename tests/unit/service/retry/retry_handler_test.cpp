#include "service/retry/retry_handler.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

Error error_of(ErrorKind kind, std::optional<int> status = std::nullopt) {
    return Error{{.kind = kind, .message = "it failed", .http_status = status}};
}

/// A call that notes what happens to it.
class Probe final : public HandledCall {
public:
    explicit Probe(bool logs = false) : logs_{logs} {}
    ~Probe() override { leave(false); }

    bool start(std::shared_ptr<RetryHandler> const& handler, RetryConfig config = {},
               bool stuck_detection = true) {
        return enter(handler, std::make_shared<RetryConfig const>(std::move(config)),
                     stuck_detection);
    }

    bool entered{false};
    std::optional<std::chrono::milliseconds> stuck{};
    /// What else happens when it is found stuck.
    std::function<void()> also{};
    std::vector<std::string> lines{};

private:
    void on_entered() override { entered = true; }
    void on_stuck(std::chrono::milliseconds timeout) override {
        stuck = timeout;
        leave(false);
        if (also) also();
    }
    void log_progress(std::string line) override { lines.push_back(std::move(line)); }
    bool logs_progress() const noexcept override { return logs_; }
    bool logs_;
};

class RetryHandlerTest : public ::testing::Test {
protected:
    std::shared_ptr<RetryHandler> make(std::optional<std::int64_t> limit = std::nullopt,
                                       RetryConfig const& config = {}) {
        return std::make_shared<RetryHandler>(
            "sampler", config, limit ? std::make_shared<CountLimit>(*limit) : nullptr, clock_);
    }

    testing::ManualClock clock_{};
};

TEST_F(RetryHandlerTest, NoConfigRepeatsWhatCannotHeal) {
    RetryConfig config;
    config.retryable_errors = {ErrorKind::connection, ErrorKind::timeout};
    config.retry_if = std::make_shared<std::function<bool(Error const&)> const>(
        [](Error const&) { return true; });
    for (auto const kind : {ErrorKind::connection, ErrorKind::timeout}) {
        ErrorDetails details{.kind = kind, .message = "no", .stopped = RetryEnd::permanent};
        EXPECT_FALSE(RetryHandler::retryable(config, Error{details}));
        details.retryable = true;
        EXPECT_TRUE(RetryHandler::retryable(config, Error{details}));
        details.retryable = false;
        details.stopped = RetryEnd::attempts_spent;
        EXPECT_TRUE(RetryHandler::retryable(config, Error{details}));
    }
}

TEST_F(RetryHandlerTest, LetsInAsManyAsItsLimitInTheOrderOfTheirComing) {  // R-RETRY-10, R-RETRY-22
    auto const handler = make(2);
    Probe a;
    Probe b;
    Probe c;
    Probe d;
    EXPECT_TRUE(a.start(handler));
    EXPECT_TRUE(b.start(handler));
    EXPECT_FALSE(c.start(handler));
    EXPECT_FALSE(d.start(handler));
    EXPECT_EQ(handler->stats().waiting, 2);
    EXPECT_EQ(handler->stats().in_retry_loop, 2);

    a.leave(true);
    EXPECT_TRUE(c.entered);
    EXPECT_FALSE(d.entered);
    b.leave(false);
    EXPECT_TRUE(d.entered);
    EXPECT_EQ(handler->stats().waiting, 0);
    EXPECT_EQ(handler->stats().processed, 1);
}

TEST_F(RetryHandlerTest, AWaiterThatGivesUpLeavesNothingBehind) {  // R-RETRY-18
    auto const handler = make(1);
    Probe a;
    Probe c;
    EXPECT_TRUE(a.start(handler));
    {
        Probe b;
        EXPECT_FALSE(b.start(handler));
        EXPECT_FALSE(c.start(handler));
    }
    EXPECT_EQ(handler->stats().waiting, 1);
    a.leave(false);
    EXPECT_TRUE(c.entered);
}

TEST_F(RetryHandlerTest, CallsOfAnIdleHandlerStartTheWatchAnew) {  // R-RETRY-11
    auto const handler = make();
    {
        Probe early;
        EXPECT_TRUE(early.start(handler, {.progress_timeout = 10s}));
    }
    clock_.advance(1h);
    Probe late;
    EXPECT_TRUE(late.start(handler, {.progress_timeout = 10s}));
    clock_.advance(9999ms);
    EXPECT_FALSE(late.stuck);
    clock_.advance(1ms);
    EXPECT_EQ(late.stuck, 10s);
}

TEST_F(RetryHandlerTest, FindsAllCallsStuckTwoHoursAfterTheLastSuccess) {  // R-RETRY-33, R-RETRY-34
    auto const handler = make();
    Probe slow;
    Probe other;
    EXPECT_TRUE(slow.start(handler));
    EXPECT_TRUE(other.start(handler));
    clock_.advance(90min);
    {
        Probe quick;
        EXPECT_TRUE(quick.start(handler));
        quick.leave(true);  // a sibling's success moves the deadline of all
    }
    clock_.advance(120min - 1ms);
    EXPECT_FALSE(slow.stuck);
    clock_.advance(1ms);
    EXPECT_EQ(slow.stuck, 120min);
    EXPECT_EQ(other.stuck, 120min);
    EXPECT_EQ(handler->stats().in_retry_loop, 0);
    EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST_F(RetryHandlerTest, AStuckCallMayTakeOthersWithIt) {  // R-RETRY-34
    auto const handler = make();
    Probe first;
    auto second = std::make_unique<Probe>();
    Probe third;
    for (auto* const each : {&first, second.get(), &third}) EXPECT_TRUE(each->start(handler));
    first.also = [&] { second.reset(); };
    clock_.advance(120min);
    EXPECT_TRUE(first.stuck);
    EXPECT_TRUE(third.stuck);
    EXPECT_EQ(handler->stats().in_retry_loop, 0);
    EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST_F(RetryHandlerTest, FailuresDoNotMoveTheDeadline) {  // R-RETRY-15, R-RETRY-33
    auto const handler = make();
    Probe slow;
    EXPECT_TRUE(slow.start(handler, {.progress_timeout = 10s}));
    for (int i = 0; i < 9; ++i) {
        clock_.advance(1s);
        Probe failing;
        EXPECT_TRUE(failing.start(handler, {.progress_timeout = 10s}));
        (void)handler->judge({}, error_of(ErrorKind::connection), {.attempt = 1, .requests = 1},
                             0.5);
        failing.leave(false);
    }
    clock_.advance(1s);
    EXPECT_TRUE(slow.stuck);
}

TEST_F(RetryHandlerTest, TheWatchSleepsUntilTheDeadlineAndLooksAgain) {  // R-RETRY-36
    auto const handler = make();
    Probe slow;
    EXPECT_TRUE(slow.start(handler, {.progress_timeout = 10s}));
    EXPECT_EQ(clock_.pending_timers(), 1U);
    EXPECT_EQ(clock_.next_due(), clock_.now() + 10s);
    clock_.advance(4s);
    {
        Probe quick;
        EXPECT_TRUE(quick.start(handler, {.progress_timeout = 10s}));
        quick.leave(true);
    }
    clock_.advance(6s);
    EXPECT_FALSE(slow.stuck);
    EXPECT_EQ(clock_.next_due(), clock_.now() + 4s);
}

TEST_F(RetryHandlerTest, WithoutStuckDetectionCallsWaitForEver) {  // R-RETRY-12, R-RETRY-37
    auto const handler = make();
    Probe by_config;
    Probe by_server;
    EXPECT_TRUE(by_config.start(handler, {.enable_stuck_detection = false}));
    EXPECT_TRUE(by_server.start(handler, {}, false));
    EXPECT_EQ(clock_.pending_timers(), 0U);
    clock_.advance(240h);
    EXPECT_FALSE(by_config.stuck);
    EXPECT_FALSE(by_server.stuck);
}

TEST_F(RetryHandlerTest, RepeatsExactlyWhatItsSettingsCallRetryable) {  // R-RETRY-20
    RetryConfig const config;
    auto const retries = [&](Error const& error) { return RetryHandler::retryable(config, error); };
    EXPECT_TRUE(retries(error_of(ErrorKind::timeout)));
    EXPECT_TRUE(retries(error_of(ErrorKind::connection)));
    EXPECT_TRUE(retries(error_of(ErrorKind::promise_lost)));
    for (int const status : {408, 409, 429, 500, 599}) {
        EXPECT_TRUE(retries(error_of(ErrorKind::status, status))) << status;
    }
    for (int const status : {400, 401, 403, 404, 422}) {
        EXPECT_FALSE(retries(error_of(ErrorKind::status, status))) << status;
    }
    EXPECT_FALSE(retries(error_of(ErrorKind::billing, 402)));
    EXPECT_FALSE(retries(error_of(ErrorKind::request_failed)));
    EXPECT_FALSE(retries(error_of(ErrorKind::validation)));
    EXPECT_FALSE(retries(error_of(ErrorKind::cancelled)));
    EXPECT_FALSE(retries(error_of(ErrorKind::circuit_open)));
}

TEST_F(RetryHandlerTest, APredicateAddsToTheRulesButNotForFinalErrors) {  // R-RETRY-20
    RetryConfig const config{.retryable_errors = {ErrorKind::circuit_open},
                             .retryable_statuses = {418},
                             .retry_if = std::make_shared<std::function<bool(Error const&)> const>(
                                 [](Error const& error) { return error.http_status() != 404; })};
    EXPECT_TRUE(RetryHandler::retryable(config, error_of(ErrorKind::circuit_open)));
    EXPECT_TRUE(RetryHandler::retryable(config, error_of(ErrorKind::status, 418)));
    EXPECT_TRUE(RetryHandler::retryable(config, error_of(ErrorKind::status, 500)));
    EXPECT_FALSE(RetryHandler::retryable(config, error_of(ErrorKind::status, 404)));
    EXPECT_FALSE(RetryHandler::retryable(config, error_of(ErrorKind::validation)));
    EXPECT_FALSE(RetryHandler::retryable(config, error_of(ErrorKind::request_failed)));
}

TEST_F(RetryHandlerTest, APredicateThatThrowsMakesTheErrorFinal) {  // R-RETRY-20
    auto const handler = make();
    auto const throwing = [](auto what) {
        return RetryConfig{.retryable_statuses = {},
                           .retry_if = std::make_shared<std::function<bool(Error const&)> const>(
                               [what](Error const&) -> bool { throw what; })};
    };
    auto const refused = error_of(ErrorKind::status, 500);
    auto const verdict = handler->judge(throwing(std::runtime_error{"ouch"}), refused, {}, 0.5);
    EXPECT_FALSE(verdict.retry);
    EXPECT_EQ(verdict.end, RetryEnd::permanent);
    EXPECT_EQ(verdict.note, "RetryConfig::retry_if threw: ouch");
    EXPECT_FALSE(handler->judge(throwing(7), refused, {}, 0.5).retry);
}

TEST_F(RetryHandlerTest, StopsAfterTheAllowedRetries) {  // R-RETRY-17
    auto const handler = make();
    RetryConfig const config{.max_retries = 2};
    auto const lost = error_of(ErrorKind::connection);
    EXPECT_TRUE(handler->judge(config, lost, {.attempt = 1, .requests = 1}, 0.5).retry);
    EXPECT_TRUE(handler->judge(config, lost, {.attempt = 2, .requests = 2}, 0.5).retry);
    auto const last = handler->judge(config, lost, {.attempt = 3, .requests = 3}, 0.5);
    EXPECT_FALSE(last.retry);
    EXPECT_EQ(last.end, RetryEnd::attempts_spent);
    EXPECT_NE(last.note.find("3 requests"), std::string::npos);
    EXPECT_EQ(handler->stats().retries, 2);
}

TEST_F(RetryHandlerTest, WithoutALimitRetriesNeverEnd) {  // R-RETRY-05
    auto const handler = make();
    EXPECT_TRUE(handler
                    ->judge({}, error_of(ErrorKind::connection),
                            {.attempt = 1'000'000, .requests = 1'000'000}, 0.5)
                    .retry);
}

TEST_F(RetryHandlerTest, WaitsByTheFormula) {  // R-RETRY-14, R-RETRY-30
    auto const handler = make();
    EXPECT_EQ(
        handler->judge({}, error_of(ErrorKind::connection), {.attempt = 1, .requests = 1}, 0.5)
            .delay,
        500ms);
    EXPECT_EQ(
        handler->judge({}, error_of(ErrorKind::connection), {.attempt = 3, .requests = 3}, 0.5)
            .delay,
        2s);
}

TEST_F(RetryHandlerTest, ASpentBudgetMakesErrorsFinal) {  // R-RETRY-23
    RetryConfig const config{.retry_budget = RetryBudget{.capacity = 2}};
    auto const handler = make(std::nullopt, config);
    auto const lost = error_of(ErrorKind::connection);
    EXPECT_TRUE(handler->judge(config, lost, {}, 0.5).retry);
    EXPECT_TRUE(handler->judge(config, lost, {}, 0.5).retry);
    auto const last = handler->judge(config, lost, {}, 0.5);
    EXPECT_FALSE(last.retry);
    EXPECT_NE(last.note.find("budget"), std::string::npos);
}

TEST_F(RetryHandlerTest, CountsErrorsByKindAndText) {  // R-RETRY-14, R-RETRY-26
    auto const handler = make();
    Probe probe;
    EXPECT_TRUE(probe.start(handler));
    handler->count(error_of(ErrorKind::connection));
    handler->count(error_of(ErrorKind::connection));
    handler->count(Error{{.kind = ErrorKind::validation}});
    auto const errors = handler->stats().errors;
    EXPECT_EQ(errors.at("connection: it failed"), 2);
    EXPECT_EQ(errors.at("validation: no message"), 1);
}

TEST_F(RetryHandlerTest, TellsItsProgressEveryTwoSecondsAndWhenIdle) {  // R-RETRY-50
    auto const handler = make();
    Probe probe{true};
    EXPECT_TRUE(probe.start(handler));
    EXPECT_TRUE(probe.lines.empty());
    for (auto const kind : {ErrorKind::connection, ErrorKind::timeout, ErrorKind::timeout}) {
        handler->count(error_of(kind));
        (void)handler->judge({}, error_of(kind), {}, 0.5);
    }
    clock_.advance(2s);
    handler->progress(probe);
    EXPECT_TRUE(probe.lines.empty());
    clock_.advance(1ms);
    handler->progress(probe);
    ASSERT_EQ(probe.lines.size(), 1U);
    EXPECT_EQ(probe.lines[0],
              "sampler: 0 waiting, 1 in progress, 0 completed, 3 retries; errors: 2 x timeout: it "
              "failed; 1 x connection: it failed;");
    probe.leave(true);  // idle: at once, and the histogram is empty again
    ASSERT_EQ(probe.lines.size(), 2U);
    EXPECT_EQ(probe.lines[1], "sampler: 0 waiting, 0 in progress, 1 completed");
}

TEST_F(RetryHandlerTest, RegistrySharesHandlersOfEqualNameAndSettings) {  // R-RETRY-25
    RetryHandlers handlers;
    auto const a = handlers.get(0, "s", {}, 5, nullptr, clock_);
    EXPECT_EQ(handlers.get(0, "s", {}, 5, nullptr, clock_), a);
    EXPECT_NE(handlers.get(0, "t", {}, 5, nullptr, clock_), a);
    EXPECT_NE(handlers.get(0, "s", {.max_retries = 1}, 5, nullptr, clock_), a);
    int sink = 0;
    EXPECT_NE(handlers.get(0, "s", {}, 5, &sink, clock_), a);
    EXPECT_NE(handlers.get(1, "s", {}, 5, nullptr, clock_), a);
}

TEST_F(RetryHandlerTest, RegistryForgetsTheOneThatWasUnusedLongest) {  // R-RETRY-25
    RetryHandlers handlers;
    auto const kept = handlers.get(0, "kept", {}, 1, nullptr, clock_);
    auto const lost = handlers.get(0, "lost", {}, 1, nullptr, clock_);
    for (int i = 0; i < 99; ++i) {
        EXPECT_EQ(handlers.get(0, "kept", {}, 1, nullptr, clock_), kept);
        (void)handlers.get(0, std::to_string(i), {}, 1, nullptr, clock_);
    }
    EXPECT_EQ(handlers.size(), 100U);
    EXPECT_EQ(handlers.get(0, "kept", {}, 1, nullptr, clock_), kept);
    EXPECT_NE(handlers.get(0, "lost", {}, 1, nullptr, clock_), lost);
}

TEST_F(RetryHandlerTest, ASemaphoreKeyJoinsSamplersAndEqualLimitsAloneDoNot) {  // R-RETRY-22
    RetryHandlers handlers;
    RetryConfig const keyed{.semaphore_key = "shared"};
    Probe a;
    Probe b;
    Probe c;
    Probe d;
    EXPECT_TRUE(a.start(handlers.get(0, "s", keyed, 1, nullptr, clock_)));
    EXPECT_FALSE(b.start(handlers.get(0, "t", keyed, 1, nullptr, clock_)));
    EXPECT_TRUE(c.start(handlers.get(0, "s", {}, 1, nullptr, clock_)));
    EXPECT_TRUE(d.start(handlers.get(0, "t", {}, 1, nullptr, clock_)));
    a.leave(true);
    EXPECT_TRUE(b.entered);
}

RC_GTEST_PROP(RetryHandlerProperty, NeverMoreInsideThanTheLimitAndAllGetIn,
              ()) {  // R-TEST-03, R-RETRY-16
    testing::ManualClock clock;
    auto const limit = *rc::gen::inRange<std::int64_t>(1, 5);
    auto const handler = std::make_shared<RetryHandler>("s", RetryConfig{},
                                                        std::make_shared<CountLimit>(limit), clock);
    std::vector<std::unique_ptr<Probe>> probes;
    Random random{*rc::gen::arbitrary<std::uint64_t>()};
    for (int i = 0; i < 200; ++i) {
        if (random.next() % 2 == 0 || probes.empty()) {
            probes.push_back(std::make_unique<Probe>());
            (void)probes.back()->start(handler);
        } else {
            auto const at = static_cast<std::ptrdiff_t>(random.next() % probes.size());
            probes.erase(probes.begin() + at);
        }
        auto const stats = handler->stats();
        RC_ASSERT(stats.in_retry_loop <= limit);
        RC_ASSERT(stats.in_retry_loop + stats.waiting == static_cast<std::int64_t>(probes.size()));
        RC_ASSERT(stats.waiting == 0 || stats.in_retry_loop == limit);
    }
    probes.clear();
    RC_ASSERT(handler->stats().in_retry_loop == 0);
    RC_ASSERT(handler->stats().waiting == 0);
}

}  // namespace
}  // namespace tinkxx::service
