#include "support/memory/fake_http2_server.hpp"
#include "support/memory/fake_network.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace tinkxx::test {
namespace {

NetOptions http2_options() {
    NetOptions options;
    options.http_version = HttpVersion::http2;
    return options;
}

/// A network whose peers are well-behaved HTTP/2 servers.
struct Http2Connection : testing::Test {
    explicit Http2Connection(NetOptions options = http2_options()) : net{std::move(options)} {
        net.greet = [this](FakePeer& peer) { servers.emplace_back(peer, max_streams); };
    }
    void pump() {
        for (auto& server : servers) server.pump();
        net.settle();
        for (auto& server : servers) server.pump();
        net.settle();
    }
    Record& get(std::string url = "http://host/") {
        auto& call = net.get(std::move(url));
        pump();
        return call;
    }
    Record& post(std::string body) {
        auto& call = net.start(request_to("http://host/", "POST", std::move(body)));
        pump();
        return call;
    }

    std::uint32_t max_streams{100};
    std::deque<FakeHttp2Server> servers;
    FakeNetwork net;
};

TEST_F(Http2Connection, CarriesARequestAndItsAnswer) {
    auto request = request_to("http://host/a?b", "POST", std::string(50'000, 'x'));
    request.body.head = std::make_shared<std::string const>("head");
    request.common_headers = std::make_shared<Headers>(Headers{{"User-Agent", "me"}});
    request.headers = {{"X-Own", "1"}, {"Connection", "close"}};
    auto& call = net.start(std::move(request));
    pump();
    auto& stream = servers[0].streams()[1];
    EXPECT_TRUE(stream.ended);
    EXPECT_EQ(stream.headers[":path"], "/a?b");
    EXPECT_EQ(stream.headers[":authority"], "host");
    EXPECT_EQ(stream.headers["user-agent"], "me");
    EXPECT_EQ(stream.headers["x-own"], "1");
    EXPECT_EQ(stream.headers["content-length"], "50004");
    EXPECT_FALSE(stream.headers.contains("connection"));
    EXPECT_EQ(stream.body, "head" + std::string(50'000, 'x'));
    servers[0].answer(1, 201, "made");
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.head->status, 201);
    EXPECT_EQ(call.head->http_version, 20);
    EXPECT_EQ(call.body, "made");
}

TEST_F(Http2Connection, SendsNothingBeforeTheServersSettings) {
    net.greet = {};
    auto& call = net.get();
    FakeHttp2Server server{net.peer(0), 100};
    EXPECT_FALSE(server.streams().contains(1));
    net.settle();
    server.pump();
    EXPECT_TRUE(server.streams()[1].ended);
    server.answer(1, 200);
    net.settle();
    EXPECT_TRUE(call.done);
}

TEST_F(Http2Connection, OpensConnectionsOnlyWhenStreamsRunOut) {  // R-CONF-50
    std::vector<Record*> calls;
    for (int i = 0; i < 400; ++i) calls.push_back(&net.get());
    for (int i = 0; i < 10; ++i) pump();
    EXPECT_EQ(net.peers().size(), 4U);
    EXPECT_EQ(net.stats().active, 400U);
    for (auto& server : servers) {
        EXPECT_EQ(server.streams().size(), 100U);
        for (auto& [id, stream] : server.streams()) server.answer(id, 200);
    }
    pump();
    for (auto* call : calls) EXPECT_TRUE(call->done);
}

TEST_F(Http2Connection, RespectsALowerLimitOfTheServer) {  // R-CONF-50
    max_streams = 7;
    for (int i = 0; i < 20; ++i) net.get();
    for (int i = 0; i < 10; ++i) pump();
    EXPECT_EQ(net.peers().size(), 3U);
    for (auto& server : servers) EXPECT_LE(server.streams().size(), 7U);
}

TEST_F(Http2Connection, OpensMoreThanAFewConnectionsOnlyIfTheLoopHasTime) {
    max_streams = 10;
    for (int i = 0; i < 200; ++i) net.get();
    for (int i = 0; i < 10; ++i) pump();  // it never sleeps meanwhile
    EXPECT_EQ(net.peers().size(), 8U);
    EXPECT_EQ(net.stats().active, 80U);
    net.wait_until([this] {
        for (auto& server : servers) server.pump();
        return net.stats().active == 200U;
    });
    EXPECT_EQ(net.peers().size(), 20U);
}

TEST_F(Http2Connection, WaitsForAServerThatAllowsNoStreamsForNow) {
    max_streams = 0;
    auto& call = get();
    for (int i = 0; i < 5; ++i) pump();
    EXPECT_EQ(net.peers().size(), 1U);
    EXPECT_FALSE(call.ended());
    servers[0].allow_streams(10);
    pump();
    servers[0].answer(1, 200);
    net.settle();
    EXPECT_TRUE(call.done);
}

TEST_F(Http2Connection, TrainingGetsAConnectionForEachRequest) {  // R-CONF-50
    for (int i = 0; i < 3; ++i) {
        auto request = request_to("http://host/");
        request.purpose = Purpose::train;
        net.start(std::move(request));
    }
    for (int i = 0; i < 6; ++i) pump();
    EXPECT_EQ(net.peers().size(), 3U);
    for (auto& server : servers) EXPECT_EQ(server.streams().size(), 1U);
}

TEST_F(Http2Connection, PurposesOfDifferentGroupsDoNotShareConnections) {  // R-CONF-50
    for (auto const purpose : {Purpose::sample, Purpose::retrieve, Purpose::rest, Purpose::auth,
                               Purpose::session, Purpose::completion_poll}) {
        auto request = request_to("http://host/");
        request.purpose = purpose;
        net.start(std::move(request));
        pump();
    }
    EXPECT_EQ(net.peers().size(), 4U);
}

TEST_F(Http2Connection, SendsARefusedRequestAgain) {
    auto& call = get();
    servers[0].refuse(1, NGHTTP2_REFUSED_STREAM);
    net.wait_until([&] {
        pump();
        return servers[0].streams().contains(3);
    });
    servers[0].answer(3, 200, "second");
    net.settle();
    EXPECT_EQ(call.body, "second");
    EXPECT_EQ(net.peers().size(), 1U);
}

TEST_F(Http2Connection, GivesUpOnAServerThatAlwaysRefuses) {
    auto& call = get();
    std::int32_t next = 1;
    net.wait_until([&] {
        pump();
        if (servers[0].streams().contains(next)) {
            servers[0].refuse(next, NGHTTP2_REFUSED_STREAM);
            next += 2;
        }
        net.settle();
        return call.ended();
    });
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->seen, Seen::no);
    EXPECT_EQ(next, 9);  // four tries
}

TEST_F(Http2Connection, ReportsAResetWithItsReason) {
    auto& call = get();
    servers[0].refuse(1, NGHTTP2_INTERNAL_ERROR);
    net.settle();
    ASSERT_TRUE(call.failure);
    EXPECT_EQ(call.failure->kind, FailureKind::reset);
    EXPECT_EQ(call.failure->seen, Seen::maybe);
    EXPECT_NE(call.failure->message.find("INTERNAL_ERROR"), std::string::npos);
    EXPECT_FALSE(net.peer(0).client_closed());
}

TEST_F(Http2Connection, AfterGoAwayFinishesOldStreamsAndMovesNewOnes) {
    auto& first = get();
    auto& second = get();
    servers[0].go_away(1);
    net.settle();
    pump();
    // The second was never processed: it moves to a new connection without anybody noticing.
    ASSERT_EQ(net.peers().size(), 2U);
    servers[1].answer(1, 200, "moved");
    servers[0].answer(1, 200, "stayed");
    pump();
    EXPECT_EQ(first.body, "stayed");
    EXPECT_EQ(second.body, "moved");
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST_F(Http2Connection, AWarningGoAwayOnlyStopsNewStreams) {
    auto& first = get();
    servers[0].go_away(INT32_MAX);
    net.settle();
    EXPECT_FALSE(first.ended());
    auto& second = get();
    pump();
    ASSERT_EQ(net.peers().size(), 2U);
    servers[0].answer(1, 200);
    servers[1].answer(1, 200);
    pump();
    EXPECT_TRUE(first.done);
    EXPECT_TRUE(second.done);
}

TEST_F(Http2Connection, TellsWhatTheServerCanHaveSeenWhenTheConnectionBreaks) {
    // Three requests: all sent, half sent, and not sent at all.
    auto& whole = get();
    net.peer(0).write_room = 20'000;
    auto& part = net.start(request_to("http://host/", "POST", std::string(60'000, 'x')));
    auto& none = net.get();
    net.refuse = "refused";
    net.peer(0).reset();
    net.settle();
    net.wait_until([&] { return none.ended(); });
    ASSERT_TRUE(whole.failure && part.failure && none.failure);
    EXPECT_EQ(whole.failure->seen, Seen::maybe);
    EXPECT_EQ(part.failure->seen, Seen::partly);
    EXPECT_EQ(none.failure->seen, Seen::no);
    EXPECT_EQ(none.failure->kind, FailureKind::connect);
}

TEST_F(Http2Connection, AnEarlyAnswerIsAnAnswer) {
    net.get();
    pump();
    net.peer(0).write_room = 1000;
    auto& call = net.start(request_to("http://host/", "POST", std::string(100'000, 'x')));
    servers[0].pump();
    servers[0].answer(3, 413, "too large");
    servers[0].refuse(3, NGHTTP2_NO_ERROR);
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.head->status, 413);
    EXPECT_EQ(call.body, "too large");
}

TEST_F(Http2Connection, MovesAMisdirectedRequestToAnotherConnectionOnce) {
    auto& call = get();
    servers[0].answer(1, 421);
    net.settle();
    pump();
    ASSERT_EQ(net.peers().size(), 2U);
    servers[1].answer(1, 421, "still");
    net.settle();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.head->status, 421);
}

TEST_F(Http2Connection, ADiscardedConnectionTakesNoMoreRequests) {  // R-RETRY-75
    auto& first = get();
    auto& other = get();
    first.when_head = [&](Record& record) { net.transport().discard(record.call); };
    servers[0].answer(1, 400);
    net.settle();
    EXPECT_TRUE(first.done);
    auto& next = get();
    pump();
    ASSERT_EQ(net.peers().size(), 2U);
    EXPECT_FALSE(net.peer(0).client_closed());  // the other one may finish
    servers[0].answer(3, 200);
    servers[1].answer(1, 200);
    pump();
    EXPECT_TRUE(other.done);
    EXPECT_TRUE(next.done);
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST_F(Http2Connection, CancelResetsTheStreamAndKeepsTheConnection) {
    auto& call = post(std::string(10, 'x'));
    net.cancel(call);
    servers[0].pump();
    EXPECT_EQ(servers[0].streams()[1].reset, static_cast<std::uint32_t>(NGHTTP2_CANCEL));
    EXPECT_FALSE(net.peer(0).client_closed());
    EXPECT_EQ(call.ends, 0);
}

TEST_F(Http2Connection, APausedAnswerStopsTheServer) {
    auto& call = get();
    call.when_head = [&](Record& record) { net.transport().pause(record.call, true); };
    servers[0].answer(1, 200, std::string(10'000'000, 'y'));
    for (int i = 0; i < 50; ++i) pump();
    EXPECT_EQ(call.body.size(), 0U);
    // No more than the stream's window left the server.
    EXPECT_GE(servers[0].streams()[1].answer.size(), 10'000'000U - 4U * 1024 * 1024);
    auto& other = get();
    servers[0].answer(3, 200, "not held up");
    net.settle();
    EXPECT_TRUE(other.done);
    net.on_loop([&] { net.transport().pause(call.call, false); });
    for (int i = 0; i < 50; ++i) pump();
    EXPECT_TRUE(call.done);
    EXPECT_EQ(call.body.size(), 10'000'000U);
}

TEST_F(Http2Connection, RefusesAHeadWithoutEnd) {
    net.greet = {};
    auto& call = net.get();
    auto& peer = net.peer(0);
    peer.send(std::string{"\0\0\0\4\0\0\0\0\0", 9});  // SETTINGS
    net.settle();
    // HEADERS without END_HEADERS, then CONTINUATION frames for ever.
    std::string const junk(16'000, '\x40');
    auto const frame = [&](char type) {
        return std::string{'\0', '\x3e', '\x80', type, '\0', '\0', '\0', '\0', '\1'} + junk;
    };
    peer.send(frame(1));
    for (int i = 0; i < 200 && !call.ended(); ++i) {
        peer.send(frame(9));
        net.settle();
    }
    ASSERT_TRUE(call.failure);
    EXPECT_NE(call.failure->kind, FailureKind::connect);
}

struct Http2Liveness : Http2Connection {
    static NetOptions impatient() {
        auto options = http2_options();
        options.ping_interval = std::chrono::milliseconds{40};
        options.ping_timeout = std::chrono::milliseconds{60};
        return options;
    }
    Http2Liveness() : Http2Connection{impatient()} {}
};

TEST_F(Http2Liveness, AsksASilentServerAndGivesADeadOneUp) {
    auto& call = get();
    net.wait_until([&] { return call.ended(); });
    servers[0].pump();
    EXPECT_GE(servers[0].pings(), 1);
    EXPECT_NE(call.failure->message.find("PING"), std::string::npos);
    EXPECT_TRUE(net.peer(0).client_closed());
}

TEST_F(Http2Liveness, KeepsAServerThatAnswersItsPings) {
    auto& call = get();
    net.wait_until([&] {
        pump();
        return servers[0].pings() >= 3;
    });
    EXPECT_FALSE(call.ended());
    servers[0].answer(1, 200);
    net.settle();
    EXPECT_TRUE(call.done);
}

}  // namespace
}  // namespace tinkxx::test
