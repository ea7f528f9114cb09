#include "base/loop/event_loop.hpp"

#include "base/loop/socket_events.hpp"
#include "support/test_timer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::base {
namespace {

using namespace std::chrono_literals;
using support::TestTimer;
constexpr auto forever = std::chrono::nanoseconds::max();

class Flush final : public TurnEnd {
public:
    explicit Flush(std::function<void()> fn) : fn_{std::move(fn)} {}
    void on_turn_end() override { fn_(); }

private:
    std::function<void()> fn_;
};

class SocketCall final : public SocketWatch {
public:
    explicit SocketCall(std::function<void()> fn) : fn_{std::move(fn)} {}
    void on_events(std::uint32_t) override { fn_(); }

private:
    std::function<void()> fn_;
};

TEST(EventLoop, RunsPostedTasksInOrderAndNeverInline) {
    EventLoop loop;
    std::vector<int> order;
    loop.post([&] {
        order.push_back(1);
        loop.post([&] { order.push_back(3); });
        order.push_back(2);
    });
    EXPECT_TRUE(order.empty());

    while (order.size() < 3) EXPECT_TRUE(loop.turn(0ns));
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
    EXPECT_FALSE(loop.turn(0ns));
}

TEST(EventLoop, WakesUpForAPostFromAnotherThread) {
    EventLoop loop;
    bool ran = false;
    std::thread other{[&] { loop.post([&] { ran = true; }); }};
    while (!ran) loop.turn(forever);  // hangs if the wake-up is lost
    other.join();
}

TEST(EventLoop, WakesUpForATimer) {
    EventLoop loop;
    loop.turn(0ns);
    for (auto const precision : {Precision::exact, Precision::coarse}) {
        bool rang = false;
        auto const when = loop.now() + 3ms;
        TestTimer alarm{[&] {
            rang = true;
            EXPECT_GE(loop.now(), when);
        }};
        loop.arm(alarm, when, precision);
        while (!rang) EXPECT_TRUE(loop.turn(forever));
    }
}

TEST(EventLoop, GivesUpWaitingAtTheLimit) {
    EventLoop loop;
    loop.turn(0ns);
    auto const before = loop.now();
    EXPECT_FALSE(loop.turn(2ms));
    EXPECT_GE(loop.now(), before + 2ms);
}

TEST(EventLoop, FreezesTheClockWithinATurn) {  // R-CONV-01
    EventLoop loop;
    TimePoint first{};
    TimePoint second{};
    loop.post([&] { first = loop.now(); });
    loop.post([&] {
        while (std::chrono::steady_clock::now() <= first) {
        }
        second = loop.now();
    });
    loop.turn(0ns);
    EXPECT_EQ(first, second);
    loop.turn(0ns);
    EXPECT_GT(loop.now(), first);
}

TEST(EventLoop, KnowsWhoIsOnIt) {
    EventLoop loop;
    EventLoop other;
    EXPECT_FALSE(loop.on_loop());
    bool checked = false;
    loop.post([&] {
        EXPECT_TRUE(loop.on_loop());
        EXPECT_FALSE(other.on_loop());
        std::thread{[&] { EXPECT_FALSE(loop.on_loop()); }}.join();
        other.post([&] {
            EXPECT_TRUE(loop.on_loop());
            EXPECT_TRUE(other.on_loop());
            checked = true;
        });
        other.turn(0ns);
        EXPECT_FALSE(other.on_loop());
    });
    loop.turn(0ns);
    EXPECT_TRUE(checked);
    EXPECT_FALSE(loop.on_loop());
}

TEST(EventLoop, RunsTurnEndWorkOnceAfterTheTasksOfTheTurn) {
    EventLoop loop;
    std::vector<std::string> order;
    int again = 0;
    Flush flush{[&] {
        order.emplace_back("flush");
        if (again++ == 0) loop.at_turn_end(flush);
    }};
    loop.post([&] {
        order.emplace_back("a");
        loop.at_turn_end(flush);
    });
    loop.post([&] {
        order.emplace_back("b");
        loop.at_turn_end(flush);
    });
    loop.turn(0ns);
    EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "flush", "flush"}));
}

TEST(EventLoop, ForgetsTurnEndWorkThatIsDestroyed) {
    EventLoop loop;
    bool ran = false;
    auto first = std::make_unique<Flush>([] {});
    auto gone = std::make_unique<Flush>([&] { ran = true; });
    Flush killer{[&] { gone.reset(); }};
    loop.post([&] {
        loop.at_turn_end(*first);
        loop.at_turn_end(killer);
        loop.at_turn_end(*gone);
        first.reset();
    });
    loop.turn(0ns);
    EXPECT_FALSE(ran);
}

TEST(EventLoop, OutlivesWhatItsTasksTimersAndHandlersThrow) {
    EventLoop loop;
    std::vector<std::string> seen;
    loop.on_exception([&](std::exception_ptr error) {
        try {
            std::rethrow_exception(error);
        } catch (std::exception const& e) {
            seen.emplace_back(e.what());
        }
    });
    int after = 0;
    TestTimer bad{[] { throw std::runtime_error{"timer"}; }};
    TestTimer good{[&] { ++after; }};
    Flush flush{[] { throw std::runtime_error{"flush"}; }};
    SocketCall bad_socket{[] { throw std::runtime_error{"handler"}; }};
    SocketCall good_socket{[&] { ++after; }};
    loop.post([] { throw std::runtime_error{"task"}; });
    loop.post([&] {
        loop.arm(bad, loop.now(), Precision::exact);
        loop.arm(good, loop.now(), Precision::exact);
        loop.at_turn_end(flush);
        loop.sockets().again(bad_socket);
        loop.sockets().again(good_socket);
    });
    while (after < 2) loop.turn(0ns);
    EXPECT_EQ(seen, (std::vector<std::string>{"task", "timer", "flush", "handler"}));
}

TEST(EventLoop, LetsTimersHaveTheirTurnDuringABurstOfTasks) {
    EventLoop loop;
    int ran = 0;
    int ran_before_timer = -1;
    constexpr int tasks = 50;
    TestTimer alarm{[&] { ran_before_timer = ran; }};
    loop.post([&] { loop.arm(alarm, loop.now(), Precision::exact); });
    for (int i = 0; i < 64 * tasks; ++i) {
        loop.post([&] {
            // Each takes a while of the only clock that such a loop has.
            auto const until = std::chrono::steady_clock::now() + 50us;
            while (std::chrono::steady_clock::now() < until) {
            }
            ++ran;
        });
    }
    while (ran < 64 * tasks) loop.turn(0ns);
    EXPECT_GE(ran_before_timer, 0);
    EXPECT_LT(ran_before_timer, 64 * tasks / 2);
}

TEST(EventLoop, DestroysUnrunWhatABurstHadNotComeTo) {
    auto const token = std::make_shared<int>(0);
    EventLoop loop;
    for (int i = 0; i < 1000; ++i) {
        loop.post([token] {
            auto const until = std::chrono::steady_clock::now() + 50us;
            while (std::chrono::steady_clock::now() < until) {
            }
        });
    }
    loop.turn(0ns);
    EXPECT_GT(token.use_count(), 1);
    loop.close();
    EXPECT_EQ(token.use_count(), 1);
}

TEST(EventLoop, DestroysUnrunWhatIsPostedToAClosedLoop) {
    auto const token = std::make_shared<int>(0);
    EventLoop loop;
    bool ran = false;
    loop.post([token, &ran] { ran = true; });
    EXPECT_EQ(token.use_count(), 2);
    loop.close();
    EXPECT_EQ(token.use_count(), 1);
    loop.post([token, &ran] { ran = true; });
    EXPECT_EQ(token.use_count(), 1);
    loop.turn(0ns);
    EXPECT_FALSE(ran);
}

TEST(EventLoop, CountsTheTimeInWhichItHadNothingToDo) {
    EventLoop loop;
    loop.post([] {});
    loop.turn(1h);  // there is something, so it does not sleep
    loop.turn(0ns);
    EXPECT_EQ(loop.slept(), 0ns);
    loop.turn(2ms);
    EXPECT_GE(loop.slept(), 2ms);
}

TEST(EventLoop, DrawsTheSameChanceFromTheSameSeed) {  // R-CONV-02
    EventLoop one{7};
    EventLoop two{7};
    EventLoop other{8};
    auto const a = one.entropy("retry");
    EXPECT_EQ(a, two.entropy("retry"));
    EXPECT_NE(a, other.entropy("retry"));
    // A stream does not notice draws from another.
    (void)one.entropy("poll");
    EXPECT_EQ(one.entropy("retry"), two.entropy("retry"));
    EXPECT_NE(one.entropy("retry"), a);
}

TEST(EventLoop, DrawsDifferentChanceWithoutASeed) {
    EventLoop one;
    EventLoop two;
    EXPECT_NE(one.entropy("x"), two.entropy("x"));
}

}  // namespace
}  // namespace tinkxx::base
