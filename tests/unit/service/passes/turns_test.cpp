// The order in which the requests of one model are submitted.
#include "service/passes/turns.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include "service/passes/chunk_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Notes when its turn has come.
struct Waiting final : TurnWaiter {
    explicit Waiting(std::vector<std::int64_t>& notes) : told{notes} {}
    void on_turn() override {
        told.push_back(range.first);
        if (then) then();
    }
    std::vector<std::int64_t>& told;
    TurnRange range{};
    std::function<void()> then{};
};

class TurnsTest : public ::testing::Test {
protected:
    /// Whether it may go on at once.
    bool enter(std::int64_t first, std::int64_t count = 1, std::string who = "step") {
        auto& made = waiting.emplace_back(std::make_unique<Waiting>(told));
        made->range = {first, count};
        return turns.enter(made->range, *made, std::move(who));
    }
    Turns turns;
    std::vector<std::int64_t> told{};
    std::vector<std::unique_ptr<Waiting>> waiting{};
};

TEST_F(TurnsTest, TheFirstGoesAtOnceAndTheOthersInTheOrderOfTheirIds) {  // R-TRAIN-11
    EXPECT_FALSE(enter(2));
    EXPECT_TRUE(enter(0));
    EXPECT_FALSE(enter(1));
    EXPECT_EQ(turns.waiting(), 2U);
    turns.ended({0, 1});
    EXPECT_THAT(told, ElementsAre(1));
    turns.ended({1, 1});
    EXPECT_THAT(told, ElementsAre(1, 2));
    EXPECT_EQ(turns.turn(), 2);
}

TEST_F(TurnsTest, NobodyGetsAheadOfAnIdThatIsYetToCome) {  // R-TRAIN-11
    EXPECT_FALSE(enter(1));
    turns.give_up({1, 1});
    EXPECT_FALSE(enter(2));
    EXPECT_EQ(turns.turn(), 0);
    EXPECT_TRUE(enter(0));
    turns.ended({0, 1});
    EXPECT_THAT(told, ElementsAre(2));
}

TEST_F(TurnsTest, TheNextBeginsOnceTheWholeRangeHasEnded) {  // R-TRAIN-12
    EXPECT_TRUE(enter(0, 3, "forward_backward"));
    EXPECT_FALSE(enter(3));
    EXPECT_EQ(turns.holder(), "forward_backward");
    turns.ended({0, 3});
    EXPECT_EQ(turns.turn(), 1) << "each submit that ends adds one";
    turns.ended({0, 3});
    EXPECT_EQ(turns.turn(), 2);
    EXPECT_THAT(told, IsEmpty());
    turns.ended({0, 3});
    EXPECT_THAT(told, ElementsAre(3));
    EXPECT_EQ(turns.turn(), 3);
}

TEST_F(TurnsTest, WhoGivesUpIsPassedOver) {  // R-TRAIN-13
    EXPECT_TRUE(enter(0));
    EXPECT_FALSE(enter(1, 2));
    EXPECT_FALSE(enter(3));
    turns.give_up({1, 2});
    EXPECT_EQ(turns.waiting(), 1U);
    turns.ended({0, 1});
    EXPECT_THAT(told, ElementsAre(3)) << "not 1";
}

TEST_F(TurnsTest, WhoGivesUpInTheMiddleOfItsTurnYieldsIt) {  // R-TRAIN-13
    EXPECT_TRUE(enter(0, 3));
    EXPECT_FALSE(enter(3));
    turns.ended({0, 3});
    turns.give_up({0, 3});
    EXPECT_THAT(told, ElementsAre(3));
    turns.ended({0, 3});  // too late
    turns.give_up({0, 3});
    EXPECT_EQ(turns.turn(), 3);
}

TEST_F(TurnsTest, AThousandWhoGiveUpInsideTheirTurnDoNotNest) {  // R-TRAIN-13
    EXPECT_TRUE(enter(0));
    int depth = 0;
    int deepest = 0;
    for (std::int64_t i = 1; i <= 1000; ++i) {
        EXPECT_FALSE(enter(i));
        waiting.back()->then = [&, i] {
            deepest = std::max(deepest, ++depth);
            turns.give_up({i, 1});
            --depth;
        };
    }
    turns.ended({0, 1});
    EXPECT_EQ(turns.turn(), 1001);
    EXPECT_EQ(deepest, 1);
}

TEST(TurnDesk, NumbersRequestsFromZeroAndTheWireFromOne) {  // R-TRAIN-10
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    Ticket const one{desk, desk->take(1)};
    Ticket const three{desk, desk->take(3)};
    EXPECT_EQ(one.range(), (TurnRange{0, 1}));
    EXPECT_EQ(one.seq_id(0), 1);
    EXPECT_EQ(three.range(), (TurnRange{1, 3}));
    EXPECT_EQ(three.seq_id(0), 2);
    EXPECT_EQ(three.seq_id(2), 4);
    EXPECT_EQ(desk->taken(), 4);
}

TEST(TurnDesk, GivesEachThreadIdsOfItsOwn) {  // R-TRAIN-10
    testing::ManualClock clock;
    TurnDesk desk{clock};
    std::vector<std::vector<std::int64_t>> taken(4);
    {
        std::vector<std::jthread> threads;
        for (auto& mine : taken) {
            threads.emplace_back([&desk, &mine] {
                for (int i = 0; i < 1000; ++i) mine.push_back(desk.take(1).first);
            });
        }
    }
    std::set<std::int64_t> all;
    for (auto const& mine : taken) all.insert(mine.begin(), mine.end());
    EXPECT_EQ(all.size(), 4000U);
    EXPECT_EQ(*all.rbegin(), 3999);
}

TEST(Ticket, ThatIsLostOnAnyThreadYieldsItsTurn) {  // R-TRAIN-13
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    std::vector<std::int64_t> told;
    Waiting next{told};
    next.range = {2, 1};
    Ticket last;
    {
        Ticket const lost{desk, desk->take(2)};
        last = Ticket{desk, desk->take(1)};
        EXPECT_FALSE(last.enter(next, "step"));
    }
    EXPECT_THAT(told, IsEmpty()) << "turns belong to the loop";
    clock.run_ready();
    EXPECT_THAT(told, ElementsAre(2));
}

TEST(Ticket, IsUsedUpByItsLastSubmit) {  // R-TRAIN-12
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    std::vector<std::int64_t> told;
    Waiting mine{told};
    Ticket ticket{desk, desk->take(2)};
    EXPECT_TRUE(ticket.enter(mine, "step"));
    ticket.begin();
    ticket.ended(1);
    EXPECT_TRUE(ticket);
    ticket.ended(0);
    EXPECT_FALSE(ticket);
    EXPECT_EQ(desk->turns().turn(), 2);
}

TEST(Ticket, ThatNeverBeganUsesNoNumber) {  // R-TRAIN-10, R-TRAIN-13
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    std::vector<std::int64_t> told;
    Waiting mine{told};
    Ticket next;
    {
        Ticket const lost{desk, desk->take(2)};
        next = Ticket{desk, desk->take(1)};
        EXPECT_EQ(next.seq_id(0), 3) << "as far as can be foreseen";
    }
    clock.run_ready();
    EXPECT_EQ(next.seq_id(0), 1);
    EXPECT_EQ((Ticket{desk, desk->take(1)}.seq_id(0)), 2);
    EXPECT_TRUE(next.enter(mine, "step"));
    next.begin();
    EXPECT_EQ(next.seq_id(0), 1);
}

TEST(Ticket, IsNotMovedUpByThoseBehindIt) {  // R-TRAIN-10
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    Ticket const first{desk, desk->take(2)};
    Ticket lost{desk, desk->take(3)};
    Ticket const last{desk, desk->take(1)};
    lost.reset();
    clock.run_ready();
    EXPECT_EQ(first.seq_id(1), 2);
    EXPECT_EQ(last.seq_id(0), 3);
}

TEST(Ticket, GivesBackTheNumbersThatItDidNotUse) {  // R-TRAIN-10, R-TRAIN-32
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    std::vector<std::int64_t> told;
    Waiting mine{told};
    Ticket chunks{desk, desk->take(4)};
    EXPECT_TRUE(chunks.enter(mine, "forward_backward"));
    chunks.begin();
    chunks.ended(1);
    chunks.use(3);
    chunks.reset();
    clock.run_ready();
    Ticket more{desk, desk->take(3)};
    EXPECT_TRUE(more.enter(mine, "forward_backward"));
    more.begin();
    EXPECT_THAT((std::vector{more.seq_id(0), more.seq_id(1), more.seq_id(2)}),
                ElementsAre(1, 3, 5));
    EXPECT_EQ((Ticket{desk, desk->take(1)}.seq_id(0)), 6);
}

TEST(Ticket, WithoutNumbersLeavesThemToOthers) {  // R-TRAIN-65
    testing::ManualClock clock;
    auto const desk = std::make_shared<TurnDesk>(clock);
    std::vector<std::int64_t> told;
    Waiting mine{told};
    Ticket unload{desk, desk->take(1), Ticket::Numbers::none};
    EXPECT_TRUE(unload.enter(mine, "unload"));
    unload.begin();
    unload.ended(0);
    EXPECT_EQ((Ticket{desk, desk->take(1)}.seq_id(0)), 1);
}

/// Whatever becomes of operations, in whatever order they come to the loop, all that are not given
/// up have their turn, in the order of their ids, and one at a time.
RC_GTEST_PROP(Turns, EveryRangeHasItsTurnInOrder, ()) {  // R-TRAIN-11, R-TRAIN-12, R-TRAIN-13
    auto const counts = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 4)));
    std::vector<TurnRange> ranges;
    std::int64_t next = 0;
    for (auto const count : counts) {
        ranges.push_back({next, count});
        next += count;
    }
    auto const given_up =
        *rc::gen::container<std::vector<int>>(ranges.size(), rc::gen::inRange(0, 2));
    auto const keys =
        *rc::gen::container<std::vector<int>>(ranges.size(), rc::gen::inRange(0, 1000));
    std::vector<std::size_t> order(ranges.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&keys](std::size_t i) { return keys[i]; });

    Turns turns;
    std::vector<std::int64_t> told;
    std::vector<std::unique_ptr<Waiting>> waiting;
    std::vector<std::int64_t> submitting;
    auto const begin = [&](TurnRange range) {
        RC_ASSERT(submitting.empty());
        submitting.assign(static_cast<std::size_t>(range.count), range.first);
    };
    for (auto const i : order) {
        if (given_up[i] != 0) {
            turns.give_up(ranges[i]);
        } else {
            auto& made = waiting.emplace_back(std::make_unique<Waiting>(told));
            made->range = ranges[i];
            made->then = [&begin, range = ranges[i]] { begin(range); };
            if (turns.enter(ranges[i], *made, "")) {
                told.push_back(ranges[i].first);
                begin(ranges[i]);
            }
        }
        while (!submitting.empty()) {
            auto const first = submitting.back();
            submitting.pop_back();
            auto const range = *std::ranges::find(ranges, first, &TurnRange::first);
            turns.ended(range);
        }
    }
    RC_ASSERT(turns.turn() == next);
    RC_ASSERT(std::ranges::is_sorted(told));
    RC_ASSERT(told.size() == waiting.size());
}

TEST(ChunkOrder, SubmitsTheFirstChunkLast) {  // R-TRAIN-32
    ChunkOrder order{4, true};
    EXPECT_EQ(order.begin().first, 1U);
    EXPECT_EQ(order.begin().count, 3U);
    EXPECT_FALSE(order.on_accepted());
    EXPECT_FALSE(order.on_accepted());
    EXPECT_EQ(order.on_accepted(), 0U);
    EXPECT_FALSE(order.complete());
    EXPECT_FALSE(order.on_accepted());
    EXPECT_TRUE(order.complete());
}

TEST(ChunkOrder, SubmitsOneAfterTheOtherIfTheServerWantsThat) {  // R-TRAIN-32
    ChunkOrder order{3, false};
    EXPECT_EQ(order.begin().first, 0U);
    EXPECT_EQ(order.begin().count, 1U);
    EXPECT_EQ(order.on_accepted(), 1U);
    EXPECT_EQ(order.on_accepted(), 2U);
    EXPECT_FALSE(order.on_accepted());
    EXPECT_TRUE(order.complete());
}

TEST(ChunkOrder, HasNothingToReorderInASingleChunk) {  // R-TRAIN-32
    ChunkOrder order{1, true};
    EXPECT_EQ(order.begin().first, 0U);
    EXPECT_EQ(order.begin().count, 1U);
    EXPECT_FALSE(order.on_accepted());
    EXPECT_TRUE(order.complete());
}

}  // namespace
}  // namespace tinkxx::service
