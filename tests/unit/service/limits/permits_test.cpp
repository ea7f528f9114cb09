#include "service/limits/permits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

using ::testing::ElementsAre;

struct Waiter final : PermitWaiter {
    explicit Waiter(std::function<void()> after = {}) : then{std::move(after)} {}
    void on_permit() override {
        ++granted;
        if (then) then();
    }
    int granted{0};
    std::function<void()> then;
};

TEST(ByteBudget, AdmitsWhileTheBalanceIsNotNegative) {  // R-SAMP-23
    ByteBudget budget{100};
    Waiter waiter;
    EXPECT_TRUE(budget.acquire(waiter, 60));
    EXPECT_EQ(budget.free(), 40);
    EXPECT_TRUE(budget.acquire(waiter, 40));
    EXPECT_TRUE(budget.acquire(waiter, 1)) << "a balance of zero still admits one";
    EXPECT_EQ(budget.free(), -1);
    EXPECT_FALSE(budget.acquire(waiter, 0));
    EXPECT_EQ(budget.waiting(), 1U);
    EXPECT_EQ(waiter.granted, 0);
}

TEST(ByteBudget, AdmitsAloneWhatIsLargerThanAllOfIt) {  // R-SAMP-23
    ByteBudget budget{10};
    Waiter large;
    Waiter small;
    EXPECT_TRUE(budget.acquire(large, 1000));
    EXPECT_EQ(budget.free(), -990);
    EXPECT_FALSE(budget.acquire(small, 1));
    budget.release(1000);
    EXPECT_EQ(small.granted, 1);
    EXPECT_EQ(budget.free(), 9);
}

TEST(ByteBudget, ServesInTheOrderOfArrival) {  // R-SAMP-23
    ByteBudget budget{10};
    std::vector<std::string> order;
    Waiter first{[&] { order.emplace_back("first"); }};
    Waiter second{[&] { order.emplace_back("second"); }};
    Waiter third{[&] { order.emplace_back("third"); }};
    Waiter holder;
    ASSERT_TRUE(budget.acquire(holder, 11));
    ASSERT_FALSE(budget.acquire(first, 20));
    ASSERT_FALSE(budget.acquire(second, 1));
    ASSERT_FALSE(budget.acquire(third, 1));

    budget.release(11);
    EXPECT_THAT(order, ElementsAre("first")) << "the small ones do not overtake the large one";
    budget.release(20);
    EXPECT_THAT(order, ElementsAre("first", "second", "third"));
    EXPECT_EQ(budget.free(), 8);
}

TEST(ByteBudget, TakesAnyCostThatAServerCanName) {  // R-FUT-40
    ByteBudget budget{10};
    Waiter waiter;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    ASSERT_TRUE(budget.acquire(waiter, -5));
    EXPECT_EQ(budget.free(), 10);
    ASSERT_TRUE(budget.acquire(waiter, most));
    budget.release(most);
    budget.release(-5);
    EXPECT_EQ(budget.free(), 10);
}

TEST(CountLimit, AdmitsAsManyAsItsSize) {
    CountLimit limit{2};
    Waiter waiter;
    EXPECT_TRUE(limit.acquire(waiter));
    EXPECT_TRUE(limit.acquire(waiter));
    EXPECT_FALSE(limit.acquire(waiter));
    EXPECT_EQ(limit.in_use(), 2);
    EXPECT_EQ(limit.free(), 0);
    limit.release();
    EXPECT_EQ(waiter.granted, 1);
    EXPECT_EQ(limit.in_use(), 2);
    EXPECT_EQ(limit.waiting(), 0U);
}

TEST(CountLimit, WithoutASizeAdmitsEveryone) {
    CountLimit limit{std::nullopt};
    Waiter waiter;
    for (int i = 0; i < 5000; ++i) ASSERT_TRUE(limit.acquire(waiter));
    EXPECT_EQ(limit.in_use(), 5000);
    EXPECT_EQ(limit.free(), std::nullopt);
    for (int i = 0; i < 5000; ++i) limit.release();
    EXPECT_EQ(limit.in_use(), 0);
}

TEST(PermitLimit, ForgetsOneWhoGivesUpAndKeepsTheOthersInOrder) {  // R-FUT-22
    CountLimit limit{1};
    std::vector<int> order;
    Waiter a{[&] { order.push_back(1); }};
    Waiter b{[&] { order.push_back(2); }};
    auto c = std::make_unique<Waiter>([&] { order.push_back(3); });
    Waiter d{[&] { order.push_back(4); }};
    Waiter holder;
    ASSERT_TRUE(limit.acquire(holder));
    for (auto* waiter : {&a, &b, c.get(), &d}) ASSERT_FALSE(limit.acquire(*waiter));

    limit.forget(b);
    limit.forget(b);
    EXPECT_FALSE(b.waits());
    c.reset();
    EXPECT_EQ(limit.waiting(), 2U);
    for (int i = 0; i < 3; ++i) limit.release();
    EXPECT_THAT(order, ElementsAre(1, 4));
    EXPECT_EQ(limit.free(), 1);
}

TEST(PermitLimit, ForgetsNobodyWhoWaitsElsewhere) {
    CountLimit here{0};
    CountLimit there{0};
    Waiter waiter;
    ASSERT_FALSE(there.acquire(waiter));
    here.forget(waiter);
    EXPECT_TRUE(waiter.waits());
    EXPECT_EQ(there.waiting(), 1U);
}

TEST(PermitLimit, WorksOffAReleaseFromInsideAGrantWithoutNesting) {
    CountLimit limit{1};
    int depth = 0;
    int deepest = 0;
    std::vector<std::unique_ptr<Waiter>> waiters;
    Waiter holder;
    ASSERT_TRUE(limit.acquire(holder));
    for (int i = 0; i < 1000; ++i) {
        waiters.push_back(std::make_unique<Waiter>([&] {
            deepest = std::max(deepest, ++depth);
            limit.release();
            --depth;
        }));
        ASSERT_FALSE(limit.acquire(*waiters.back()));
    }

    limit.release();
    EXPECT_EQ(deepest, 1);
    for (auto const& waiter : waiters) EXPECT_EQ(waiter->granted, 1);
    EXPECT_EQ(limit.free(), 1);
}

TEST(PermitLimit, LetsNobodyOvertakeFromInsideAGrant) {  // R-SAMP-23
    CountLimit limit{2};
    std::vector<std::string> order;
    Waiter holder;
    Waiter newcomer{[&] { order.emplace_back("newcomer"); }};
    Waiter first{[&] {
        order.emplace_back("first");
        limit.release();
        EXPECT_EQ(limit.free(), 1);
        EXPECT_FALSE(limit.acquire(newcomer)) << "the second was there before";
    }};
    Waiter second{[&] { order.emplace_back("second"); }};
    ASSERT_TRUE(limit.acquire(holder));
    ASSERT_TRUE(limit.acquire(holder));
    ASSERT_FALSE(limit.acquire(first));
    ASSERT_FALSE(limit.acquire(second));

    limit.release();
    EXPECT_THAT(order, ElementsAre("first", "second"));
    limit.release();
    EXPECT_THAT(order, ElementsAre("first", "second", "newcomer"));
}

TEST(PermitLimit, MayBeDestroyedFromInsideAGrant) {
    auto limit = std::make_unique<CountLimit>(1);
    Waiter holder;
    Waiter first{[&] { limit.reset(); }};
    Waiter second;
    ASSERT_TRUE(limit->acquire(holder));
    ASSERT_FALSE(limit->acquire(first));
    ASSERT_FALSE(limit->acquire(second));
    limit->release();
    EXPECT_EQ(first.granted, 1);
    EXPECT_EQ(second.granted, 0);
    EXPECT_FALSE(second.waits());
}

TEST(PermitLimit, LetsAWaiterDestroyItselfInItsGrant) {
    CountLimit limit{1};
    Waiter holder;
    auto waiter = std::make_unique<Waiter>();
    waiter->then = [&] {
        Permit const permit{limit};
        waiter.reset();
    };
    ASSERT_TRUE(limit.acquire(holder));
    ASSERT_FALSE(limit.acquire(*waiter));
    limit.release();
    EXPECT_EQ(limit.free(), 1);
}

TEST(Permit, ReleasesOnceHoweverItMoves) {
    ByteBudget budget{100};
    Waiter waiter;
    ASSERT_TRUE(budget.acquire(waiter, 30));
    {
        Permit first{budget, 30};
        Permit second{std::move(first)};
        EXPECT_TRUE(second);
        Permit third;
        EXPECT_FALSE(third);
        third = std::move(second);
        EXPECT_EQ(budget.free(), 70);
    }
    EXPECT_EQ(budget.free(), 100);

    ASSERT_TRUE(budget.acquire(waiter, 30));
    Permit early{budget, 30};
    early.release();
    early.release();
    EXPECT_EQ(budget.free(), 100);
}

TEST(Permit, ReleasesWhatItHeldBeforeItIsAssigned) {
    CountLimit limit{2};
    Waiter waiter;
    ASSERT_TRUE(limit.acquire(waiter));
    ASSERT_TRUE(limit.acquire(waiter));
    Permit one{limit};
    one = Permit{limit};
    EXPECT_EQ(limit.free(), 1);
}

/// A client of a limit that is at any time idle, waiting or the holder of a permit.
struct Client final : PermitWaiter {
    void on_permit() override { got(); }
    void got() {
        permit = make();
        ++grants;
        // Some finish at once, from inside the grant.
        if (fleeting) permit.release();
    }
    std::function<Permit()> make{};
    Permit permit{};
    int grants{0};
    bool fleeting{false};
};

TEST(Permits, NeverLeakOrOverrunUnderRandomUse) {  // R-TEST-03
    EXPECT_TRUE(rc::check("count", [] {
        auto const size = *rc::gen::inRange<std::int64_t>(1, 5);
        CountLimit limit{size};
        std::vector<std::unique_ptr<Client>> clients(8);
        for (auto& client : clients) {
            client = std::make_unique<Client>();
            client->make = [&] { return Permit{limit}; };
        }
        auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8 * 4));
        for (int const step : steps) {
            auto& client = *clients[static_cast<std::size_t>(step / 4)];
            if (step % 4 == 0) {
                limit.forget(client);
            } else if (step % 4 == 1) {
                client.permit.release();
            } else if (!client.waits() && !client.permit) {
                client.fleeting = step % 4 == 3;
                if (limit.acquire(client)) client.got();
            }
            std::int64_t held = 0;
            std::size_t waiting = 0;
            for (auto const& other : clients) {
                held += other->permit ? 1 : 0;
                waiting += other->waits() ? 1U : 0U;
            }
            RC_ASSERT(held <= size);
            RC_ASSERT(limit.in_use() == held);
            RC_ASSERT(limit.waiting() == waiting);
            RC_ASSERT(waiting == 0U || held == size);
        }
        clients.clear();
        RC_ASSERT(limit.free() == size);
        RC_ASSERT(limit.waiting() == 0U);
    }));
    EXPECT_TRUE(rc::check("bytes", [] {
        auto const budget_bytes = *rc::gen::inRange<std::int64_t>(0, 100);
        ByteBudget budget{budget_bytes};
        std::vector<std::unique_ptr<Client>> clients(8);
        std::vector<std::int64_t> costs;
        for (auto& client : clients) {
            auto const cost = *rc::gen::inRange<std::int64_t>(0, 200);
            costs.push_back(cost);
            client = std::make_unique<Client>();
            client->make = [&budget, cost] { return Permit{budget, cost}; };
        }
        auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8 * 4));
        for (int const step : steps) {
            auto const index = static_cast<std::size_t>(step / 4);
            auto& client = *clients[index];
            if (step % 4 == 0) {
                budget.forget(client);
            } else if (step % 4 == 1) {
                client.permit.release();
            } else if (!client.waits() && !client.permit) {
                client.fleeting = step % 4 == 3;
                auto const before = budget.free();
                auto const granted = budget.acquire(client, costs[index]);
                RC_ASSERT(granted == (before >= 0));
                if (granted) client.got();
            }
            std::int64_t held = 0;
            std::size_t waiting = 0;
            for (std::size_t i = 0; i < clients.size(); ++i) {
                held += clients[i]->permit ? costs[i] : 0;
                waiting += clients[i]->waits() ? 1U : 0U;
            }
            RC_ASSERT(budget.free() == budget_bytes - held);
            RC_ASSERT(budget.waiting() == waiting);
            RC_ASSERT(waiting == 0U || budget.free() < 0);
        }
        clients.clear();
        RC_ASSERT(budget.free() == budget_bytes);
    }));
}

}  // namespace
}  // namespace tinkxx::service
