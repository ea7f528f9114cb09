// HTTP/2: limits, windows, and peers that are no longer there.
#include "socket/transport/http2_fixture.hpp"

#include <gmock/gmock.h>

#include <atomic>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Http2Limits : public Http2Test {};

TEST_F(Http2Limits, ALimitOfOneStreamIsRespected) {
    HttpServerOptions options;
    options.max_streams = 1;
    HttpServer server{echo, options};
    NetOptions one = net_options(http2_cleartext);
    one.max_connections = 1;
    HttpDriver narrow{one};
    std::vector<Request> const requests(50, post_request(server.url(), pattern(5000)));
    for (auto* const call : narrow.start_all(requests)) {
        EXPECT_EQ(call->wait().status(), 200) << call->wait().text();
    }
    EXPECT_EQ(server.counts().most_streams, 1);
    EXPECT_EQ(server.counts().connections, 1);
}

TEST_F(Http2Limits, ALimitOfZeroStreamsHoldsRequestsBackUntilItIsRaised) {
    Gate raise_limit;
    Gate settled;
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0}});
        auto const next = peer.receive_frame_of(NGHTTP2_SETTINGS);  // theirs
        (void)peer.receive_frame_of(NGHTTP2_SETTINGS);              // the acknowledgement
        settled.open();
        wire.wait(raise_limit);
        peer.send(h2::settings({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2}}));
        serve_echo(peer);
    }};
    auto& exchange = driver.start(post_request(server.url(), "let in"));
    ASSERT_TRUE(settled.wait_until_open());
    driver.on_loop([] {});
    EXPECT_FALSE(exchange.ended());
    raise_limit.open();
    EXPECT_EQ(exchange.wait().body, "let in") << exchange.wait().text();
    EXPECT_EQ(server.connections(), 1);
}

TEST_F(Http2Limits, ALimitOfZeroStreamsForEverEndsByThePoolTimeout) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0}});
        wire.drain();
    }};
    auto request = post_request(server.url(), "x");
    request.timeouts.pool = 80ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::pool_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
}

TEST_F(Http2Limits, ALoweredLimitIsRespectedByWhatFollows) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 10}});
        std::uint32_t stream = 0;
        (void)peer.receive_request(stream);
        peer.send(h2::settings({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2}}) +
                  peer.answer(stream, {.body = "first"}));
        (void)peer.receive_frame_of(NGHTTP2_SETTINGS);
        serve_echo(peer);
    }};
    auto options = net_options(http2_cleartext);
    options.max_connections = 1;
    HttpDriver narrow{options};
    EXPECT_EQ(narrow.post(server.url(), "x").body, "first");
    std::vector<Request> const requests(20, post_request(server.url(), "y"));
    for (auto* const call : narrow.start_all(requests)) {
        EXPECT_EQ(call->wait().body, "y") << call->wait().text();
    }
}

TEST_F(Http2Limits, ABodyFollowsTheWindowHoweverSlowlyItOpens) {
    auto const body = pattern(3000, 3);
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.give_windows = false;
        peer.handshake({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
        std::uint32_t stream = 0;
        auto request = peer.receive_request_head(stream);
        std::string got;
        while (got.size() < body.size()) {
            peer.send(h2::window_update(stream, 7));
            for (std::size_t window = 7; window > 0 && got.size() < body.size();) {
                auto const frame = peer.receive_frame_of(NGHTTP2_DATA);
                EXPECT_LE(frame.payload.size(), window);
                got += frame.payload;
                window -= frame.payload.size();
            }
        }
        peer.send(peer.answer(stream, {.body = got}));
        wire.drain();
    }};
    auto const outcome = driver.post(server.url(), body);
    EXPECT_TRUE(outcome.body == body) << outcome.text();
}

TEST_F(Http2Limits, AWindowThatNeverOpensEndsByTheWriteTimeoutAndHurtsNobodyElse) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.give_windows = false;
        peer.handshake({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
        for (;;) {
            std::uint32_t stream = 0;
            auto const request = peer.receive_request_head(stream);
            if (request.method == "GET") peer.send(peer.answer(stream, {.body = "through"}));
        }
    }};
    auto request = post_request(server.url(), "stuck");
    request.timeouts.write = 100ms;
    auto& stuck = driver.start(request);
    EXPECT_EQ(driver.get(server.url()).body, "through");
    auto const& outcome = stuck.wait();
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::write_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::partly);
    EXPECT_EQ(driver.get(server.url()).body, "through");
}

TEST_F(Http2Limits, AShrunkenInitialWindowIsRespectedByOpenStreams) {
    auto const body = pattern(100'000, 9);
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.give_windows = false;
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request_head(stream);
        std::string got;
        while (got.size() < 65535) got += peer.receive_frame_of(NGHTTP2_DATA).payload;
        // The window is used up; now it goes negative, and then comes back.
        peer.send(h2::settings({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000}}) +
                  h2::window_update(0, 200'000) + h2::window_update(stream, 200'000));
        while (got.size() < body.size()) got += peer.receive_frame_of(NGHTTP2_DATA).payload;
        peer.send(peer.answer(stream, {.body = got}));
        wire.drain();
    }};
    EXPECT_TRUE(driver.post(server.url(), body).body == body);
}

TEST_F(Http2Limits, APeerThatAnswersNoPingIsGivenUpAndOthersGoElsewhere) {
    auto options = net_options(http2_cleartext);
    options.ping_interval = 60ms;
    options.ping_timeout = 60ms;
    HttpDriver watchful{options};
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.answer_pings = false;
                             peer.handshake();
                             for (;;) (void)peer.receive_frame_of(NGHTTP2_PING);
                         },
                         echo_script}};
    auto const outcome = watchful.post(server.url(), "lost");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::reset);
    EXPECT_EQ(outcome.failure->seen, Seen::maybe);
    EXPECT_THAT(outcome.failure->message, HasSubstr("PING"));
    EXPECT_EQ(watchful.post(server.url(), "found").body, "found");
}

TEST_F(Http2Limits, APeerThatAnswersPingsIsGivenTime) {
    auto options = net_options(http2_cleartext);
    options.ping_interval = 20ms;
    options.ping_timeout = 200ms;
    HttpDriver watchful{options};
    std::atomic<int> pings{0};
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        auto const request = peer.receive_request(stream);
        for (; pings < 3; ++pings) (void)peer.receive_frame_of(NGHTTP2_PING);
        peer.send(peer.answer(stream, {.body = request.body}));
        serve_echo(peer);
    }};
    EXPECT_EQ(watchful.post(server.url(), "slow").body, "slow");
    EXPECT_GE(pings, 3);
}

TEST_F(Http2Limits, AfterATimedOutRequestTheConnectionIsTestedBeforeItIsUsedAgain) {
    // The first connection hears everything and says nothing: half-open, as after a lost NAT.
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             wire.stall();
                         },
                         echo_script}};
    auto options = net_options(http2_cleartext);
    options.ping_timeout = 100ms;
    HttpDriver watchful{options};
    auto request = post_request(server.url(), "x");
    request.timeouts.read = 200ms;
    auto const lost = watchful.run(request);
    ASSERT_TRUE(lost.failure) << lost.text();
    EXPECT_EQ(lost.failure->kind, FailureKind::read_timeout);

    auto const next = watchful.run(request);

    EXPECT_EQ(next.body, "x") << next.text();
    EXPECT_EQ(server.connections(), 2);
}

TEST_F(Http2Limits, AConnectionClosedWhileIdleIsReplacedUnnoticed) {
    HttpServer server{echo};
    for (int i = 0; i < 10; ++i) {
        auto const outcome = driver.run(with_id(post_request(server.url(), "x")));
        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        server.say_goodbye();
        ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
        driver.on_loop([] {});
    }
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

}  // namespace
}  // namespace tinkxx::test
