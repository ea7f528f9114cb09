// The listener of the local server over real sockets, on a loop that the test turns itself.
#include "base/loop/event_loop.hpp"
#include "local/listen/listener.hpp"
#include "support/memory/wired_connection.hpp"
#include "support/sockets/sockets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using test::Family;
using test::Fd;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

class ListenerOnSockets : public ::testing::Test {
protected:
    void open(ListenerOptions options = {}) {
        auto bound = BoundSockets::bind(options.host, options.port);
        ASSERT_TRUE(bound) << bound.error().what();
        port = bound->port();
        loop.post([&, sockets = std::make_shared<BoundSockets>(std::move(*bound)), options] {
            listener = std::make_unique<Listener>(loop, handler, std::move(*sockets), options);
        });
        until([&] { return listener != nullptr; });
    }
    ~ListenerOnSockets() override {
        loop.post([&] { listener.reset(); });
        until([&] { return listener == nullptr; });
    }
    /// Turns the loop until something has come about.
    void until(std::function<bool()> const& condition) {
        auto const deadline = std::chrono::steady_clock::now() + 60s;
        while (!condition()) {
            ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it does not come about";
            loop.turn(1s);
        }
    }
    void on_loop(std::function<void()> fn) {
        bool done = false;
        loop.post([&] {
            fn();
            done = true;
        });
        until([&] { return done; });
    }
    Fd connect(std::string_view request = {}) const {
        auto socket = test::connect_to_loopback(Family::ipv4, port);
        EXPECT_TRUE(socket);
        send(socket, request);
        return socket;
    }
    static void send(Fd const& socket, std::string_view bytes) {
        EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    /// What has come so far, and whether more may come.
    static bool receive(Fd const& socket, std::string& into) {
        std::array<char, 65536> buffer{};
        for (;;) {
            auto const got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got <= 0) return got < 0 && errno == EAGAIN;
            into.append(buffer.data(), static_cast<std::size_t>(got));
        }
    }
    /// All until the server closes.
    std::string rest_of(Fd const& socket) {
        std::string all;
        until([&] { return !receive(socket, all); });
        return all;
    }

    base::EventLoop loop{1};
    test::KeepingHandler handler{};
    std::unique_ptr<Listener> listener{};
    std::uint16_t port{0};
};

TEST_F(ListenerOnSockets, HoldsTwoThousandLongPollsOnOneThread) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    constexpr std::size_t polls = 2000;
    if (files.rlim_cur < 2 * polls + 100) GTEST_SKIP() << "too few files may be open (ulimit -n)";
    open();

    std::vector<Fd> clients;
    for (std::size_t i = 0; i < polls; ++i) {
        clients.push_back(
            connect("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        if (i % 100 == 0) loop.turn(0s);
    }
    until([&] { return handler.asked.size() == polls; });
    EXPECT_EQ(listener->stats().connections, polls);

    // Twice, so that each connection is used again.
    for (int round = 0; round < 2; ++round) {
        on_loop([&] {
            for (auto& [request, answer] : std::exchange(handler.asked, {})) {
                test::reply(*answer, "result of " + request.target);
            }
        });
        for (std::size_t i = 0; i < polls; ++i) {
            std::string answer;
            until([&] { return receive(clients[i], answer) && answer.find("result") != SIZE_MAX; });
            ASSERT_THAT(answer, EndsWith("result of /" + std::to_string(i)));
            if (round == 0) {
                send(clients[i],
                     "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
        }
        if (round == 0) until([&] { return handler.asked.size() == polls; });
    }
    clients.clear();
    until([&] { return listener->stats().connections == 0; });
}

TEST_F(ListenerOnSockets, TakesALargeBodyAndGivesALargeAnswer) {
    open();
    std::string const body(8U << 20U, 'b');
    auto const client = connect("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n");
    std::size_t at = 0;
    until([&] {
        auto const sent =
            ::send(client.get(), body.data() + at, body.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at += static_cast<std::size_t>(sent);
        if (at < body.size()) loop.turn(0s);
        return !handler.asked.empty();
    });
    EXPECT_EQ(local::RequestBody{handler.asked[0].request.body}.join(), body);
    on_loop([&] { test::reply(*handler.asked[0].answer, std::string(8U << 20U, 'a')); });
    EXPECT_THAT(rest_of(client), EndsWith("\r\n\r\n" + std::string(8U << 20U, 'a')));
}

TEST_F(ListenerOnSockets, StreamsNoFasterThanThePeerReads) {
    open();
    auto const client = connect(get);
    until([&] { return !handler.asked.empty(); });
    auto& answer = *handler.asked[0].answer;
    constexpr std::size_t piece = 1U << 20U;
    std::size_t given = 0;
    std::function<void()> const give = [&] {
        if (given == 32) return answer.done();
        ++given;
        answer.data(std::string(piece, 'x'));
        answer.on_drained([&] { give(); });
    };
    on_loop([&] {
        answer.head(200, {}, 32 * piece);
        give();
    });
    for (int i = 0; i < 20; ++i) loop.turn(0s);
    EXPECT_LT(given, 32U) << "the kernel keeps some, but not all of it";
    std::string all;
    until([&] {
        receive(client, all);
        return all.size() > 32 * piece;
    });
    EXPECT_EQ(given, 32U);
}

TEST_F(ListenerOnSockets, HoldsTenThousandPipelinedRequestsOfAPeerThatDoesNotReadToTheBound) {
    constexpr int requests = 10'000;
    constexpr std::size_t answer_bytes = 20'000;
    open();
    int handled = 0;
    handler.act = [&](ServerRequest& request, std::shared_ptr<Answer> const& answer) {
        ++handled;
        auto body = "[" + request.target + "]";
        body.resize(answer_bytes, 'x');
        test::reply(*answer, std::move(body));
    };
    std::string all;
    for (int i = 0; i < requests; ++i) {
        all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    }
    auto const client = connect();
    std::size_t at = 0;
    std::size_t most = 0;
    auto const send_more = [&] {
        auto const sent = ::send(client.get(), all.data() + at, std::min(all.size() - at, 65536UL),
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at += static_cast<std::size_t>(sent);
        loop.turn(0s);
        auto const stats = listener->stats();
        most = std::max(most, stats.receiving_bytes + stats.sending_bytes);
        return sent > 0;
    };
    // As much as the sockets of both ends take, and until nothing happens any more.
    for (int quiet = 0, before = 0; quiet < 1000; ++quiet) {
        if (send_more() || handled > before) quiet = 0;
        before = handled;
    }
    EXPECT_LT(handled, requests);
    EXPECT_LE(most, (512U << 10U) + 2 * answer_bytes);

    std::string answers;
    int expected = 0;
    until([&] {
        send_more();
        receive(client, answers);
        for (;;) {
            auto const mark = "[/" + std::to_string(expected) + "]";
            auto const place = answers.find("[/");
            if (place == std::string::npos || answers.size() < place + answer_bytes) break;
            EXPECT_EQ(answers.substr(place, mark.size()), mark);
            answers.erase(0, place + answer_bytes);
            ++expected;
        }
        return expected == requests;
    });
    EXPECT_EQ(handled, requests);
    EXPECT_LE(most, (512U << 10U) + 2 * answer_bytes);
    until([&] { return listener->stats().sending_bytes == 0; });
    EXPECT_EQ(listener->stats().receiving_bytes, 0U);
    EXPECT_EQ(listener->stats().connections, 1U);
}

TEST_F(ListenerOnSockets, ReadsOnWhatWasLeftInTheSocketWhenAnAnswerComesLater) {
    // More than is kept behind a request, in one go: the system tells of it only once.
    std::string all;
    std::size_t requests = 0;
    for (; all.size() < std::size_t{200} << 10U; ++requests) all += get;
    open();
    auto const client = connect(all);
    std::string answers;
    for (std::size_t handled = 0; handled < requests; ++handled) {
        until([&] { return !handler.asked.empty(); });
        ASSERT_FALSE(handler.asked.empty()) << "what was left is not read";
        on_loop([&] { test::reply(*std::exchange(handler.asked, {}).at(0).answer, "ok"); });
        receive(client, answers);
    }
    EXPECT_EQ(listener->stats().receiving_bytes, 0U);
}

TEST_F(ListenerOnSockets, AnswersAllThatAPeerAskedBeforeItClosedItsSide) {
    constexpr int requests = 2000;
    open();
    handler.act = [](ServerRequest&, std::shared_ptr<Answer> const& answer) {
        test::reply(*answer, std::string(10'000, 'x'));
    };
    std::string all;
    for (int i = 0; i < requests; ++i) all += get;
    auto const client = connect();
    std::size_t at = 0;
    until([&] {
        auto const sent =
            ::send(client.get(), all.data() + at, all.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at += static_cast<std::size_t>(sent);
        loop.turn(0s);
        return at == all.size();
    });
    ::shutdown(client.get(), SHUT_WR);
    for (int i = 0; i < 20; ++i) loop.turn(0s);
    auto const answers = rest_of(client);
    int answered = 0;
    for (auto place = answers.find("HTTP/1.1 200 OK"); place != std::string::npos;
         place = answers.find("HTTP/1.1 200 OK", place + 1)) {
        ++answered;
    }
    EXPECT_EQ(answered, requests);
    until([&] { return listener->stats().connections == 0; });
}

TEST_F(ListenerOnSockets, CutsConnectionsWhenAllTogetherHaveTooMuchUnsent) {
    std::vector<std::string> troubles;
    open({.limits = {.max_sending_bytes = 4U << 20U},
          .on_trouble = [&](std::string line) { troubles.push_back(std::move(line)); }});
    handler.act = [](ServerRequest&, std::shared_ptr<Answer> const& answer) {
        test::reply(*answer, std::string(1U << 20U, 'x'));
    };
    // Each has as much as the sockets of both ends take, and one answer more.
    std::vector<Fd> clients;
    std::string const many = [] {
        std::string all;
        for (int i = 0; i < 50; ++i) all += get;
        return all;
    }();
    std::size_t most = 0;
    for (int i = 0; i < 12; ++i) {
        clients.push_back(connect(many));
        for (int turn = 0; turn < 50; ++turn) {
            loop.turn(0s);
            most = std::max(most, listener->stats().sending_bytes);
        }
    }
    until([&] { return listener->stats().cut > 0; });
    EXPECT_LE(most, 4U << 20U);
    EXPECT_FALSE(troubles.empty());
    until([&] { return listener->stats().connections < clients.size(); });
}

TEST_F(ListenerOnSockets, NoticesThatAPeerIsGone) {
    open();
    auto closing = connect(get);
    auto resetting = connect(get);
    until([&] { return handler.asked.size() == 2; });
    int gone = 0;
    on_loop([&] {
        for (auto& one : handler.asked) one.answer->on_gone([&] { ++gone; });
    });
    closing.reset();
    test::reset_on_close(resetting.get());
    resetting.reset();
    until([&] { return gone == 2; });
    on_loop([&] { handler.asked.clear(); });
    until([&] { return listener->stats().connections == 0; });
}

TEST_F(ListenerOnSockets, RefusesAConnectionTooMany) {
    open({.limits = {.max_connections = 2}});
    auto const first = connect(get);
    auto const second = connect(get);
    until([&] { return handler.asked.size() == 2; });
    auto const third = connect(get);
    EXPECT_THAT(rest_of(third), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_EQ(listener->stats().refused, 1U);
}

TEST_F(ListenerOnSockets, ClosesConnectionsFarTooManyWithoutAWord) {
    open({.limits = {.max_connections = 2}});
    std::vector<Fd> clients;
    for (std::size_t i = 0; i < 300; ++i) {
        clients.push_back(connect());
        until([&] { return listener->stats().accepted == clients.size(); });
    }
    EXPECT_LE(listener->stats().connections, 258U);
    EXPECT_EQ(listener->stats().refused, 298U);
    EXPECT_THAT(rest_of(clients[2]), StartsWith("HTTP/1.1 503 "));
    EXPECT_EQ(rest_of(clients.back()), "");
}

TEST_F(ListenerOnSockets, LetsAPeerThatStillSendsReadItsRefusal) {
    open({.limits = {.max_request_bytes = 1000}});
    auto const client =
        connect("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    send(client, std::string(100'000, 'x'));
    EXPECT_THAT(rest_of(client), StartsWith("HTTP/1.1 413 "));
    EXPECT_EQ(::send(client.get(), "x", 1, MSG_NOSIGNAL), 1) << "not reset";
}

TEST_F(ListenerOnSockets, StopsWithTheLastAnswer) {
    open();
    auto const idle = connect(std::string{get});
    auto const busy = connect(get);
    until([&] { return handler.asked.size() == 2; });
    bool stopped = false;
    on_loop([&] {
        test::reply(*handler.asked[0].answer, "first");
        listener->stop(loop.now() + 1h, [&] { stopped = true; });
    });
    EXPECT_FALSE(test::connect_to_loopback(Family::ipv4, port)) << "nobody is accepted any more";
    EXPECT_FALSE(stopped);
    on_loop([&] { test::reply(*handler.asked[1].answer, "second"); });
    for (auto const* client : {&idle, &busy}) {
        auto const all = rest_of(*client);
        EXPECT_TRUE(all.ends_with("first") || all.ends_with("second")) << all;
        ::shutdown(client->get(), SHUT_WR);
    }
    until([&] { return stopped; });
}

TEST_F(ListenerOnSockets, CutsWhatIsLeftAtItsDeadline) {
    open();
    auto const busy = connect(get);
    until([&] { return handler.asked.size() == 1; });
    bool stopped = false;
    bool gone = false;
    on_loop([&] {
        handler.asked[0].answer->on_gone([&] { gone = true; });
        listener->stop(loop.now() + 1ms, [&] { stopped = true; });
    });
    until([&] { return stopped; });
    EXPECT_TRUE(gone);
    EXPECT_EQ(rest_of(busy), "");
}

TEST_F(ListenerOnSockets, TellsEveryoneWhoStopsIt) {
    open();
    auto const busy = connect(get);
    until([&] { return handler.asked.size() == 1; });
    int told = 0;
    on_loop([&] {
        listener->stop(loop.now() + 1h, [&] { ++told; });
        listener->stop(loop.now() + 1ms, [&] { ++told; });  // who is in a hurry decides
        listener->stop(loop.now() + 1h, [&] { ++told; });
    });
    until([&] { return told == 3; });
    on_loop([&] { listener->stop(loop.now() + 1h, [&] { ++told; }); });
    until([&] { return told == 4; });
    EXPECT_EQ(rest_of(busy), "");
}

TEST(BoundSockets, ListensOnAllAddressesOfAName) {
    auto bound = BoundSockets::bind("localhost", 0);
    ASSERT_TRUE(bound) << bound.error().what();
    EXPECT_TRUE(bound->loopback_only());
    EXPECT_TRUE(test::connect_to_loopback(Family::ipv4, bound->port()));
    auto const everywhere = BoundSockets::bind("0.0.0.0", 0);
    ASSERT_TRUE(everywhere);
    EXPECT_FALSE(everywhere->loopback_only());
}

TEST(BoundSockets, SaysWhyItCannotListen) {
    auto const taken = test::listen_on_loopback(Family::ipv4, 0);
    auto const port = test::port_of(taken);
    auto const second = BoundSockets::bind("127.0.0.1", port);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().field(), "port");
    EXPECT_THAT(second.error().what(),
                HasSubstr("another program listens on 127.0.0.1:" + std::to_string(port)));
    auto const foreign = BoundSockets::bind("192.0.2.1", 0);
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().field(), "host");
    EXPECT_THAT(foreign.error().what(), HasSubstr("has no address 192.0.2.1"));
    auto const unknown = BoundSockets::bind("no such host", 0);
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().what(), HasSubstr("no address is known for the host"));
}

}  // namespace
}  // namespace tinkxx::local
