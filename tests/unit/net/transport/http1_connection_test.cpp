#include "support/memory/fake_network.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tinkxx::test {
namespace {

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A call for each size of the pieces in which its answer comes; `check` looks at those that ended.
template <class Check>
void in_pieces_of_each_size(std::string const& answer, Check check) {
    for (std::size_t piece = 1; piece <= answer.size(); ++piece) {
        FakeNetwork net;
        auto& call = net.get();
        net.peer(0).piece = piece;
        net.peer(0).send(answer);
        net.settle();
        ASSERT_TRUE(call.done) << piece;
        check(net, call);
    }
}

TEST(Http1Connection, SendsTheRequestInTheOrderItWasGiven) {
    FakeNetwork net;
    auto request = request_to("http://host:81/a?b=c#part", "POST", "body");
    request.common_headers = std::make_shared<Headers>(Headers{{"User-Agent", "me"}});
    request.headers = {{"X-One", "1"}, {"Host", "other"}};
    request.decode_content = false;
    auto& call = net.start(std::move(request));
    ASSERT_EQ(net.peers().size(), 1U);
    EXPECT_EQ(net.peer(0).received,
              "POST /a?b=c HTTP/1.1\r\nHost: host:81\r\nUser-Agent: me\r\nX-One: 1\r\n"
              "Content-Length: 4\r\n\r\nbody");
    net.peer(0).send(ok);
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.body, "hello");
    EXPECT_EQ(call.head->status, 200);
    EXPECT_EQ(call.head->http_version, 11);
}

TEST(Http1Connection, ReadsAnAnswerHoweverItIsCut) {
    std::string const answer =
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
        "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
    in_pieces_of_each_size(answer, [](FakeNetwork& net, Record const& call) {
        EXPECT_EQ(call.body, "hello world");
        EXPECT_EQ(*call.head->headers.find("x-a"), "b");
        EXPECT_FALSE(net.peer(0).client_closed());
    });
}

TEST(Http1Connection, ReadsAnAnswerWithoutHeadersHoweverItIsCut) {
    in_pieces_of_each_size("HTTP/1.1 204 No Content\r\n\r\n",
                           [](FakeNetwork&, Record const& call) { EXPECT_EQ(call.body, ""); });
}

TEST(Http1Connection, ReadsAnEmptyChunkedAnswerByteByByte) {
    FakeNetwork net;
    for (int i = 0; i < 2; ++i) {
        auto& call = net.get();
        net.peer(0).piece = 1;
        net.peer(0).send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        net.settle();
        EXPECT_TRUE(call.done);
        EXPECT_EQ(call.body, "");
    }
    EXPECT_EQ(net.peers().size(), 1U);
}

TEST(Http1Connection, ReusesAConnectionThatIsKeptAlive) {
    FakeNetwork net;
    for (int i = 0; i < 3; ++i) {
        auto& call = net.get();
        net.peer(0).send(ok);
        net.settle();
        EXPECT_TRUE(call.done);
    }
    EXPECT_EQ(net.peers().size(), 1U);
    EXPECT_EQ(net.stats().connections, 1U);
}

// Who waits for a connection gets it in the order of asking, at once when it is free.
TEST(Http1Connection, ServesThoseWhoWaitInOrder) {  // R-EXT-91
    NetOptions options;
    options.max_http1_connections = 1;
    FakeNetwork net{std::move(options)};
    std::vector<Record*> calls;
    for (auto const* path : {"/1", "/2", "/3"}) {
        calls.push_back(&net.get("http://host" + std::string{path}));
    }
    EXPECT_EQ(net.stats().waiting, 2U);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        auto const sent = net.peer(0).take();
        EXPECT_TRUE(sent.starts_with("GET /" + std::to_string(i + 1) + " ")) << sent;
        net.peer(0).send(ok);
        net.settle();
        EXPECT_TRUE(calls[i]->done);
    }
    EXPECT_EQ(net.peers().size(), 1U);
}

TEST(Http1Connection, ClosesWhenTheServerSaysSo) {
    FakeNetwork net;
    auto& call = net.get();
    net.peer(0).send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST(Http1Connection, ADiscardedConnectionIsNotUsedAgain) {  // R-RETRY-75
    FakeNetwork net;
    auto& call = net.get();
    call.when_head = [&](Record& record) { net.transport().discard(record.call); };
    net.peer(0).send(ok);
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST(Http1Connection, TakesTheEndOfTheConnectionForTheEndOfABodyWithoutLength) {
    FakeNetwork net;
    auto& call = net.get();
    net.peer(0).send("HTTP/1.1 200 OK\r\n\r\nall of it");
    net.settle();
    EXPECT_FALSE(call.ended());
    net.peer(0).close();
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.body, "all of it");
}

TEST(Http1Connection, GivesNoBodyToAHeadRequest) {
    FakeNetwork net;
    auto& call = net.start(request_to("http://host/", "HEAD"));
    net.peer(0).send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.body, "");
}

TEST(Http1Connection, ReportsAnAnswerThatIsCutShort) {
    FakeNetwork net;
    auto& call = net.get();
    net.peer(0).send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
    net.peer(0).close();
    net.settle();
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->kind, FailureKind::reset);
    EXPECT_EQ(call.failure->seen, Seen::maybe);
    EXPECT_NE(call.failure->message.find("in the middle"), std::string::npos);
}

TEST(Http1Connection, DoesNotRepeatWhatTheServerMayHaveSeen) {
    FakeNetwork net;
    auto& call = net.get();
    net.peer(0).close();
    net.settle();
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->seen, Seen::maybe);
    EXPECT_EQ(net.peers().size(), 1U);
}

TEST(Http1Connection, KnowsThatARequestWentOutOnlyPartly) {
    FakeNetwork net;
    net.greet = [](FakePeer& peer) { peer.write_room = 30; };
    auto& call = net.start(request_to("http://host/", "POST", std::string(1000, 'x')));
    EXPECT_EQ(net.peer(0).received.size(), 30U);
    net.peer(0).reset();
    net.settle();
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->seen, Seen::partly);
}

TEST(Http1Connection, SendsAgainWhatCouldNotBeSentAtAll) {
    FakeNetwork net;
    bool first = true;
    net.greet = [&](FakePeer& peer) { peer.write_breaks = std::exchange(first, false); };
    auto& call = net.get();
    ASSERT_EQ(net.peers().size(), 2U);
    net.peer(1).send(ok);
    net.settle();
    EXPECT_TRUE(call.done);
}

TEST(Http1Connection, GivesUpAfterThreeRepeats) {
    FakeNetwork net;
    net.greet = [](FakePeer& peer) { peer.write_breaks = true; };
    auto& call = net.get();
    net.wait_until([&] { return call.ended(); });
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->seen, Seen::no);
    EXPECT_EQ(net.peers().size(), 4U);
}

TEST(Http1Connection, DistrustsAnAnswerThatCameBeforeTheRequest) {
    FakeNetwork net;
    bool first = true;
    net.greet = [&](FakePeer& peer) {
        if (std::exchange(first, false)) peer.send(ok);
    };
    auto& call = net.get();
    EXPECT_EQ(net.peer(0).received, "");
    EXPECT_TRUE(net.peer(0).client_closed());
    ASSERT_EQ(net.peers().size(), 2U);
    net.peer(1).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nreal");
    net.settle();
    EXPECT_EQ(call.body, "real");
}

TEST(Http1Connection, DropsAnIdleConnectionThatSpeaksUnasked) {
    FakeNetwork net;
    net.get();
    net.peer(0).send(ok);
    net.settle();
    net.peer(0).send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    net.settle();
    EXPECT_TRUE(net.peer(0).client_closed());
    auto& next = net.get();
    EXPECT_EQ(net.peers().size(), 2U);
    EXPECT_FALSE(next.ended());
}

TEST(Http1Connection, TakesAnEarlyAnswerAndClosesTheConnection) {
    FakeNetwork net;
    net.greet = [](FakePeer& peer) { peer.write_room = 100; };
    auto& call = net.start(request_to("http://host/", "POST", std::string(10'000, 'x')));
    net.peer(0).send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.head->status, 413);
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST(Http1Connection, RefusesBadAnswersWithAClearError) {
    struct Case {
        std::string answer;
        FailureKind kind;
    };
    for (auto const& [answer, kind] : {
             Case{"garbage\r\n\r\n", FailureKind::protocol},
             Case{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", FailureKind::protocol},
             Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                  FailureKind::protocol},
             Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                  FailureKind::protocol},
             Case{"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", FailureKind::protocol},
             Case{"HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x'), FailureKind::too_large},
             Case{"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n", FailureKind::too_large},
         }) {
        FakeNetwork net;
        auto& call = net.get();
        net.peer(0).send(answer);
        net.settle();
        ASSERT_TRUE(call.failure) << answer.substr(0, 60);
        EXPECT_EQ(call.failure->kind, kind) << call.failure->message;
        EXPECT_FALSE(call.failure->message.empty());
        EXPECT_TRUE(net.peer(0).client_closed());
    }
}

TEST(Http1Connection, HoldsTheBodyBackWhilePaused) {
    FakeNetwork net;
    auto& call = net.get();
    call.when_data = [&](Record& record) { net.transport().pause(record.call, true); };
    net.peer(0).send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhell");
    net.settle();
    EXPECT_EQ(call.body, "hell");
    net.peer(0).send("o yo");
    net.settle();
    EXPECT_EQ(call.body, "hell");
    call.when_data = {};
    net.on_loop([&] { net.transport().pause(call.call, false); });
    EXPECT_EQ(call.body, "hello yo");
    EXPECT_TRUE(call.done);
}

TEST(Http1Connection, CanBeCancelledFromEveryCallback) {
    for (int step = 0; step < 4; ++step) {
        FakeNetwork net;
        auto& call = net.get();
        auto const cancel = [&](Record& record) { net.transport().cancel(record.call); };
        if (step == 0) net.cancel(call);
        if (step == 1) call.when_head = cancel;
        if (step == 2) call.when_data = cancel;
        if (step == 3) call.when_ended = cancel;
        net.peer(0).send(ok);
        net.settle();
        EXPECT_EQ(call.ends, step == 3 ? 1 : 0);
        EXPECT_EQ(net.stats().active, 0U);
        EXPECT_EQ(net.peer(0).client_closed(), step != 3);
    }
}

}  // namespace
}  // namespace tinkxx::test
