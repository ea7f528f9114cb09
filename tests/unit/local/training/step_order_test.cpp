// The order of the training requests of one model, without a server.
#include "local/training/step_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Steps : public ::testing::Test {
protected:
    void add(std::optional<std::int64_t> seq, std::string const& id) {
        order.add(seq, {.request_id = id}, [this](std::string const& due) { done.push_back(due); });
    }
    /// Carries out all that is due.
    std::vector<std::string> run() {
        done.clear();
        while (auto due = order.next(now)) due->step(due->request_id);
        return done;
    }

    StepOrder order{};
    TimePoint now{};
    std::vector<std::string> done{};
};

TEST_F(Steps, WaitForThoseBeforeThem) {
    add(3, "c");
    add(2, "b");
    EXPECT_THAT(run(), IsEmpty());
    EXPECT_EQ(order.waits_for(3), 1);
    EXPECT_TRUE(order.awaited(1));
    add(1, "a");
    EXPECT_THAT(run(), ElementsAre("a", "b", "c"));
    EXPECT_FALSE(order.waits_for(3));
    EXPECT_FALSE(order.gap_since());
}

TEST_F(Steps, WithoutANumberFollowAtOnce) {
    add(2, "b");
    add(std::nullopt, "n");
    EXPECT_THAT(run(), ElementsAre("n"));
}

TEST_F(Steps, DoNotWaitForOneThatWasRefused) {
    add(2, "b");
    EXPECT_THAT(run(), IsEmpty());
    order.refuse(1);
    EXPECT_THAT(run(), ElementsAre("b"));
    // It may come again in another form, and is not too late.
    EXPECT_FALSE(order.too_late(1));
    add(1, "a");
    EXPECT_THAT(run(), ElementsAre("a"));
    EXPECT_TRUE(order.too_late(1));
}

TEST_F(Steps, AreNotHeldUpByARefusalFarAhead) {
    order.refuse(1'000'000);
    add(1, "a");
    EXPECT_THAT(run(), ElementsAre("a"));
    EXPECT_EQ(order.seen(1)->request_id, "a");
    EXPECT_EQ(order.seen(2), nullptr);
}

TEST_F(Steps, WaitWhileTheyAreHeld) {
    order.hold(true);
    add(1, "a");
    add(std::nullopt, "n");
    EXPECT_THAT(run(), IsEmpty());
    EXPECT_THAT(order.waiting(), ElementsAre("n", "a"));
    order.hold(false);
    EXPECT_THAT(run(), ElementsAre("n", "a"));
    EXPECT_THAT(order.waiting(), IsEmpty());
}

TEST_F(Steps, GoOnWithoutThoseThatNeverCame) {
    now += 1s;
    add(4, "d");
    EXPECT_THAT(run(), IsEmpty());
    EXPECT_EQ(order.gap_since(), now);
    now += 1s;
    EXPECT_THAT(run(), IsEmpty());
    EXPECT_EQ(order.gap_since(), now - 1s);
    auto const gap = order.skip_gap();
    EXPECT_EQ(gap.first, 1);
    EXPECT_EQ(gap.last, 3);
    EXPECT_THAT(run(), ElementsAre("d"));
    EXPECT_TRUE(order.too_late(3));
}

TEST_F(Steps, AreForgottenWhenThousandsHaveFollowed) {
    for (std::int64_t i = 1; i <= 10'002; ++i) add(i, "x");
    EXPECT_EQ(run().size(), 10'002U);
    EXPECT_EQ(order.seen(1), nullptr);
    EXPECT_NE(order.seen(10'002), nullptr);
}

}  // namespace
}  // namespace tinkxx::local
