#include "service/sampling/sample_dispatch.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using Action = SampleDispatch::Action;

class Waiter final : public PermitWaiter {
public:
    void on_permit() override { told = true; }
    bool told{false};
};

class SampleDispatchTest : public ::testing::Test {
protected:
    [[nodiscard]] Action next(TimePoint now = TimePoint{}) {
        return dispatch_.next(path_, waiter_, &permits_, 100, now);
    }
    /// Up to the gate.
    void reach_gate(TimePoint now = TimePoint{}) {
        ASSERT_EQ(next(now), Action::hold);
        permits_.count = Permit{count_};
        ASSERT_EQ(next(now), Action::encode);
        dispatch_.encoded();
    }

    CountLimit count_{1};
    CountLimit throttled_{1};
    ByteBudget bytes_{1000};
    BackoffGate gate_{};
    DispatchPath const path_{count_, throttled_, bytes_, gate_};
    DispatchPermits permits_{};
    Waiter waiter_{};
    SampleDispatch dispatch_{};
};

TEST_F(SampleDispatchTest, TakesPermitsThenWritesThenSubmits) {  // R-SAMP-10
    reach_gate();
    EXPECT_EQ(next(), Action::submit);
    EXPECT_EQ(count_.free(), 0);
    EXPECT_EQ(throttled_.free(), 1) << "only after a refusal";
    EXPECT_EQ(bytes_.free(), 900);
}

TEST_F(SampleDispatchTest, GivesAllPermitsBack) {  // R-SAMP-11
    reach_gate();
    permits_.release();
    EXPECT_EQ(count_.free(), 1);
    EXPECT_EQ(bytes_.free(), 1000);
}

TEST_F(SampleDispatchTest, WaitsForTheFirstPermitAndGoesOnWhenItComes) {  // R-SAMP-10
    Waiter other;
    ASSERT_TRUE(count_.acquire(other));
    Permit held{count_};
    EXPECT_EQ(dispatch_.next(path_, waiter_, nullptr, 100, TimePoint{}), Action::wait_for_count);
    held.release();
    ASSERT_TRUE(waiter_.told);
    ASSERT_TRUE(dispatch_.granted(path_, nullptr)) << "it has to be held";
    permits_.count = Permit{count_};
    EXPECT_EQ(next(), Action::encode);
}

TEST_F(SampleDispatchTest, WaitsForBytes) {  // R-SAMP-23
    Waiter other;
    ASSERT_TRUE(bytes_.acquire(other, 1001));
    Permit held{bytes_, 1001};
    ASSERT_EQ(next(), Action::hold);
    permits_.count = Permit{count_};
    EXPECT_EQ(next(), Action::wait_for_bytes);
    held.release();
    ASSERT_TRUE(waiter_.told);
    EXPECT_FALSE(dispatch_.granted(path_, &permits_));
    EXPECT_EQ(bytes_.free(), 900);
    EXPECT_EQ(next(), Action::encode);
}

TEST_F(SampleDispatchTest, TakesCareAfterARefusal) {  // R-SAMP-24, R-SAMP-25
    TimePoint const refused{};
    gate_.close(refused, 1s);
    auto const later = refused + 2s;
    reach_gate(later);
    EXPECT_EQ(throttled_.free(), 0);
    EXPECT_EQ(permits_.byte_cost, 2000);
    EXPECT_EQ(next(later), Action::submit);
}

TEST_F(SampleDispatchTest, WaitsAtTheGateWithItsPermits) {  // R-SAMP-10, R-SAMP-30
    TimePoint const start{};
    reach_gate(start);
    ASSERT_EQ(next(start), Action::submit);
    gate_.close(start, 1s);
    dispatch_.pass_gate_again();
    EXPECT_EQ(next(start + 1s - 1ns), Action::wait_for_gate);
    EXPECT_EQ(count_.free(), 0);
    EXPECT_EQ(next(start + 1s), Action::submit);
}

TEST_F(SampleDispatchTest, WritesAgainWithoutNewPermits) {  // R-WIRE-10
    reach_gate();
    ASSERT_EQ(next(), Action::submit);
    dispatch_.encode_again();
    EXPECT_TRUE(dispatch_.encodes());
    EXPECT_EQ(next(), Action::encode);
    dispatch_.encoded();
    EXPECT_EQ(next(), Action::submit);
    EXPECT_EQ(bytes_.free(), 900);
}

}  // namespace
}  // namespace tinkxx::service
