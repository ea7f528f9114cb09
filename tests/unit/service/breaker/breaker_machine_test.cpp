#include "service/breaker/breaker_machine.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TimePoint const start{1h};

void fail_times(BreakerMachine& machine, int times, TimePoint now) {
    for (int i = 0; i < times; ++i) {
        auto const period = machine.admit(now);
        ASSERT_TRUE(period);
        machine.on_failure(*period, now);
    }
}

TEST(BreakerMachine, OpensAfterFiveFailuresInARow) {  // R-EXT-01
    BreakerMachine machine{{}};
    fail_times(machine, 4, start);
    EXPECT_EQ(machine.status(start).state, CircuitState::closed);
    EXPECT_EQ(machine.status(start).failures, 4);
    fail_times(machine, 1, start);
    EXPECT_EQ(machine.status(start).state, CircuitState::open);
    EXPECT_EQ(machine.status(start + 1s).open_for, 29s);
    EXPECT_FALSE(machine.admit(start));
}

TEST(BreakerMachine, CountsAnewAfterASuccess) {  // R-EXT-01
    BreakerMachine machine{{}};
    fail_times(machine, 4, start);
    machine.on_success(machine.admit(start).value());
    EXPECT_EQ(machine.status(start).failures, 0);
    fail_times(machine, 4, start);
    EXPECT_EQ(machine.status(start).state, CircuitState::closed);
}

TEST(BreakerMachine, TriesOneCallAfterThirtySeconds) {  // R-EXT-01
    BreakerMachine machine{{}};
    fail_times(machine, 5, start);
    EXPECT_FALSE(machine.admit(start + 30s - 1ns));
    EXPECT_EQ(machine.status(start + 30s - 1ns).state, CircuitState::open);
    EXPECT_EQ(machine.status(start + 30s).state, CircuitState::half_open);
    EXPECT_TRUE(machine.admit(start + 30s));
    EXPECT_EQ(machine.status(start + 30s).trials, 1);
}

TEST(BreakerMachine, CountsTrialsWhenTheyBegin) {  // R-EXT-02
    BreakerMachine machine{{.trial_calls = 2}};
    fail_times(machine, 5, start);
    EXPECT_TRUE(machine.admit(start + 30s));
    EXPECT_TRUE(machine.admit(start + 30s));
    EXPECT_FALSE(machine.admit(start + 30s)) << "although none of them has ended";
}

TEST(BreakerMachine, ClosesAfterASuccessfulTrial) {  // R-EXT-01
    BreakerMachine machine{{}};
    fail_times(machine, 5, start);
    machine.on_success(machine.admit(start + 30s).value());
    EXPECT_EQ(machine.status(start + 30s), (CircuitStatus{.state = CircuitState::closed}));
    fail_times(machine, 4, start + 30s);
    EXPECT_EQ(machine.status(start + 30s).state, CircuitState::closed);
}

TEST(BreakerMachine, OpensAgainAfterAFailedTrialAndStartsTheTimeAnew) {  // R-EXT-01
    BreakerMachine machine{{}};
    fail_times(machine, 5, start);
    auto const trial = machine.admit(start + 40s);
    machine.on_failure(trial.value(), start + 50s);
    EXPECT_FALSE(machine.admit(start + 80s - 1ns));
    EXPECT_TRUE(machine.admit(start + 80s));
}

TEST(BreakerMachine, LendsATrialThatWasNeverMadeToAnother) {  // R-EXT-02
    BreakerMachine machine{{}};
    fail_times(machine, 5, start);
    auto const trial = machine.admit(start + 30s);
    EXPECT_FALSE(machine.admit(start + 30s));
    machine.on_abandoned(trial.value());
    EXPECT_TRUE(machine.admit(start + 30s));
}

TEST(BreakerMachine, IgnoresCallsFromBeforeItOpened) {  // R-EXT-01
    BreakerMachine machine{{}};
    auto const slow = machine.admit(start).value();
    auto const slower = machine.admit(start).value();
    fail_times(machine, 5, start);
    machine.on_success(slow);
    EXPECT_EQ(machine.status(start).state, CircuitState::open);
    auto const trial = machine.admit(start + 30s);
    machine.on_failure(slower, start + 30s);
    EXPECT_EQ(machine.status(start + 30s).state, CircuitState::half_open);
    machine.on_abandoned(slower);
    EXPECT_EQ(machine.status(start + 30s).trials, 1);
    machine.on_success(trial.value());
    EXPECT_EQ(machine.status(start + 30s).state, CircuitState::closed);
}

TEST(BreakerMachine, IsClosedByAReset) {  // R-EXT-02
    BreakerMachine machine{{}};
    fail_times(machine, 5, start);
    machine.reset();
    EXPECT_EQ(machine.status(start).state, CircuitState::closed);
    EXPECT_TRUE(machine.admit(start));
    fail_times(machine, 3, start);
    machine.reset();
    EXPECT_EQ(machine.status(start).failures, 0);
}

RC_GTEST_PROP(BreakerMachineProperty, NeverHasMoreTrialsThanAllowed, ()) {  // R-EXT-02
    auto const most = *rc::gen::inRange(1, 4);
    BreakerMachine machine{{.failure_threshold = 2, .open_duration = 10s, .trial_calls = most}};
    auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
    std::vector<std::uint64_t> running;
    auto now = start;
    for (auto const step : steps) {
        if (step == 0) {
            now += 6s;
        } else if (step == 1) {
            auto const before = machine.status(now);
            auto const period = machine.admit(now);
            RC_ASSERT(period.has_value() ==
                      (before.state == CircuitState::closed ||
                       (before.state == CircuitState::half_open && before.trials < most)));
            if (period) running.push_back(*period);
        } else if (!running.empty()) {
            auto const period = running.back();
            running.pop_back();
            if (step == 2) machine.on_success(period);
            if (step == 3) machine.on_failure(period, now);
            if (step == 4) machine.on_abandoned(period);
        }
        auto const status = machine.status(now);
        RC_ASSERT(status.trials >= 0 && status.trials <= most);
        RC_ASSERT(status.failures >= 0 && status.failures < 2);
    }
}

}  // namespace
}  // namespace tinkxx::service
