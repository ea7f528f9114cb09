#include "base/loop/socket_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tinkxx::base {
namespace {

using namespace std::chrono_literals;
constexpr auto no_limit = std::chrono::nanoseconds::max();

/// One end of a pair of sockets that is watched, and the other.
class Pair final : public SocketWatch {
public:
    explicit Pair(SocketEvents& events) : events_{events} {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
        EXPECT_EQ(events_.add(ends_[0], *this), 0);
    }
    ~Pair() override {
        leave();
        if (ends_[1] >= 0) ::close(ends_[1]);
    }
    void on_events(std::uint32_t events) override {
        seen.push_back(events);
        if (then) then();
    }
    void send(std::string_view text) {
        EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    std::string read() {
        std::array<char, 64> buffer{};
        auto const got = ::read(ends_[0], buffer.data(), buffer.size());
        return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    }
    void close_other() { ::close(std::exchange(ends_[1], -1)); }
    void leave() {
        if (ends_[0] < 0) return;
        events_.remove(ends_[0], *this);
        ::close(std::exchange(ends_[0], -1));
    }

    std::vector<std::uint32_t> seen{};
    std::function<void()> then{};

private:
    SocketEvents& events_;
    std::array<int, 2> ends_{-1, -1};
};

TEST(SocketEvents, TellsEachThingOnce) {
    SocketEvents events;
    Pair pair{events};
    EXPECT_TRUE(events.tell(no_limit));  // it can be written to
    ASSERT_EQ(pair.seen.size(), 1U);
    EXPECT_NE(pair.seen[0] & EPOLLOUT, 0U);
    EXPECT_EQ(pair.seen[0] & EPOLLIN, 0U);

    EXPECT_FALSE(events.tell(no_limit));
    pair.send("a");
    EXPECT_TRUE(events.tell(no_limit));
    EXPECT_NE(pair.seen.back() & EPOLLIN, 0U);
    EXPECT_FALSE(events.tell(no_limit)) << "unread, but told already";

    pair.send("b");
    EXPECT_TRUE(events.tell(no_limit)) << "more is news";
    EXPECT_EQ(pair.read(), "ab");
}

TEST(SocketEvents, TellsTheEnd) {
    SocketEvents events;
    Pair pair{events};
    pair.close_other();
    EXPECT_TRUE(events.tell(no_limit));
    EXPECT_NE(pair.seen.back() & (EPOLLRDHUP | EPOLLHUP), 0U);
}

TEST(SocketEvents, DoesNotTellWhoLeftWhileOthersWereTold) {
    SocketEvents events;
    auto first = std::make_unique<Pair>(events);
    auto second = std::make_unique<Pair>(events);
    first->then = [&] { second.reset(); };
    second->then = [&] { first.reset(); };
    EXPECT_TRUE(events.tell(no_limit));
    EXPECT_TRUE((first == nullptr) != (second == nullptr));
}

TEST(SocketEvents, CallsAgainWhoAsksForIt) {
    SocketEvents events;
    Pair pair{events};
    events.tell(no_limit);
    pair.seen.clear();
    events.again(pair);
    events.again(pair);
    EXPECT_TRUE(events.wait(std::nullopt)) << "there is something to tell";
    pair.then = [&] { events.again(pair); };
    EXPECT_TRUE(events.tell(no_limit));
    EXPECT_THAT(pair.seen, ::testing::ElementsAre(0U)) << "once at a time";
    pair.then = {};
    EXPECT_TRUE(events.tell(no_limit));
    EXPECT_THAT(pair.seen, ::testing::ElementsAre(0U, 0U));
    EXPECT_FALSE(events.tell(no_limit));
}

TEST(SocketEvents, GoesOnLaterWithWhatItHadNoTimeFor) {
    SocketEvents events;
    Pair first{events};
    Pair second{events};
    EXPECT_TRUE(events.tell(0ns));
    EXPECT_EQ(first.seen.size() + second.seen.size(), 1U);
    EXPECT_TRUE(events.wait(std::nullopt)) << "there is something to tell";
    EXPECT_TRUE(events.tell(0ns));
    EXPECT_EQ(first.seen.size() + second.seen.size(), 2U);
}

TEST(SocketEvents, TellsNewsHoweverMuchThereIsToDoAgain) {
    SocketEvents events;
    Pair busy{events};
    Pair other{events};
    Pair caller{events};
    events.tell(no_limit);
    for (auto* const pair : {&busy, &other}) {
        pair->seen.clear();
        pair->then = [&events, pair] { events.again(*pair); };
        events.again(*pair);
    }
    caller.seen.clear();
    caller.send("a");
    EXPECT_TRUE(events.tell(0ns));
    EXPECT_EQ(caller.seen.size(), 1U);
    EXPECT_EQ(busy.seen.size() + other.seen.size(), 1U) << "there was no time for both";
    EXPECT_TRUE(events.tell(0ns));
    EXPECT_EQ(busy.seen.size(), 1U);
    EXPECT_EQ(other.seen.size(), 1U);
}

TEST(SocketEvents, TellsNewsHoweverManyPeersLeave) {
    SocketEvents events;
    std::vector<std::unique_ptr<Pair>> leaving;
    for (int i = 0; i < 300; ++i) leaving.push_back(std::make_unique<Pair>(events));
    Pair caller{events};
    while (events.tell(no_limit)) {
    }
    for (auto const& pair : leaving) {
        pair->seen.clear();
        pair->close_other();
    }
    caller.seen.clear();
    caller.send("a");
    EXPECT_TRUE(events.tell(0ns));
    EXPECT_EQ(caller.seen.size(), 1U);
    std::size_t told = 0;
    for (auto const& pair : leaving) told += pair->seen.size();
    EXPECT_EQ(told, 1U) << "there was no time for more";
    EXPECT_TRUE(events.wait(std::nullopt)) << "there is something to tell";
    while (events.tell(0ns)) {
    }
    for (auto const& pair : leaving) EXPECT_EQ(pair->seen.size(), 1U);
}

TEST(SocketEvents, IsWokenFromAnotherThreadAndBeforehand) {
    SocketEvents events;
    EXPECT_FALSE(events.wait(0ns));
    std::thread waker{[&] { events.wake(); }};
    EXPECT_TRUE(events.wait(std::nullopt));
    waker.join();
    EXPECT_FALSE(events.tell(no_limit));
    EXPECT_FALSE(events.wait(0ns)) << "one wake-up is one";
    events.wake();
    EXPECT_TRUE(events.wait(std::nullopt));
}

}  // namespace
}  // namespace tinkxx::base
