// HTTP/2: servers that break the protocol, or stretch it.
#include "socket/transport/http2_fixture.hpp"

#include <gmock/gmock.h>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Http2Breach : public Http2Test {};

struct Breach {
    std::string name{};
    std::string (*bytes)(Http2Peer&, std::uint32_t stream){};
    FailureKind kind{FailureKind::protocol};
};

class Http2Breaches : public testing::TestWithParam<Breach> {};

INSTANTIATE_TEST_SUITE_P(
    , Http2Breaches,
    testing::Values(
        Breach{"Garbage", [](Http2Peer&, std::uint32_t) { return std::string(100, '\xfe'); }},
        Breach{"OversizedFrame",
               [](Http2Peer& peer, std::uint32_t stream) {
                   return peer.head(stream, {}, false) +
                          h2::data(stream, std::string(100'000, 'x'), true);
               }},
        Breach{"OversizedSettings",
               [](Http2Peer&, std::uint32_t) {
                   return Frame{.type = NGHTTP2_SETTINGS, .payload = "12345"}.bytes();
               }},
        Breach{"PingOfTheWrongSize",
               [](Http2Peer&, std::uint32_t) { return h2::ping("123", false); }},
        Breach{"DataBeforeHeaders",
               [](Http2Peer&, std::uint32_t stream) { return h2::data(stream, "x", true); },
               FailureKind::protocol},
        Breach{"DataOnAStreamThatWasNeverOpened",
               [](Http2Peer&, std::uint32_t) { return h2::data(101, "x", true); }},
        Breach{"HeadersOnStreamZero",
               [](Http2Peer& peer, std::uint32_t) { return peer.head(0, {}, true); }},
        Breach{"HeaderBlockThatCannotBeRead",
               [](Http2Peer&, std::uint32_t stream) {
                   return Frame{.type = NGHTTP2_HEADERS,
                                .flags = h2::end_headers,
                                .stream = stream,
                                .payload = std::string(20, '\xff')}
                       .bytes();
               }},
        Breach{"WindowOverflow",
               [](Http2Peer&, std::uint32_t) {
                   return h2::window_update(0, 0x7fffffff) + h2::window_update(0, 0x7fffffff);
               }},
        Breach{"PushedStream",
               [](Http2Peer& peer, std::uint32_t stream) {
                   return Frame{.type = NGHTTP2_PUSH_PROMISE,
                                .flags = h2::end_headers,
                                .stream = stream,
                                .payload = std::string("\0\0\0\2", 4) +
                                           peer.header_block({{":method", "GET"},
                                                              {":scheme", "http"},
                                                              {":authority", "a"},
                                                              {":path", "/"}})}
                       .bytes();
               }},
        Breach{"ContinuationOutOfPlace",
               [](Http2Peer&, std::uint32_t stream) {
                   return Frame{.type = NGHTTP2_CONTINUATION, .stream = stream, .payload = "x"}
                       .bytes();
               }},
        Breach{"NoStatus",
               [](Http2Peer& peer, std::uint32_t stream) {
                   return Frame{
                       .type = NGHTTP2_HEADERS,
                       .flags = static_cast<std::uint8_t>(h2::end_headers | h2::end_stream),
                       .stream = stream,
                       .payload = peer.header_block({{"x-a", "1"}})}
                       .bytes();
               }},
        Breach{"LengthThatIsNotTrue",
               [](Http2Peer& peer, std::uint32_t stream) {
                   return peer.answer(stream,
                                      {.headers = {{"content-length", "5"}}, .body = "too long"});
               }}),
    [](auto const& each) { return each.param.name; });

TEST_P(Http2Breaches, EndTheRequestAtOnceWithAReason) {
    ScriptServer server{{[&](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             std::uint32_t stream = 0;
                             (void)peer.receive_request(stream);
                             peer.send(GetParam().bytes(peer, stream));
                             serve_echo(peer);
                         },
                         echo_script}};
    HttpDriver driver{net_options(http2_cleartext)};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, GetParam().kind) << outcome.text();
    EXPECT_NE(outcome.failure->seen, Seen::no) << outcome.text();
    EXPECT_THAT(outcome.failure->message, HasSubstr("127.0.0.1"));
    // The next request goes through: elsewhere if the whole connection was broken.
    auto const next = driver.post(server.url(), "next");
    EXPECT_EQ(next.body, "next") << next.text();
}

TEST_F(Http2Breach, AFloodOfContinuationsIsCutOff) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request(stream);
        Frame frame{.type = NGHTTP2_HEADERS,
                    .stream = stream,
                    .payload = peer.header_block({{":status", "200"}})};
        peer.send(frame.bytes());
        frame.type = NGHTTP2_CONTINUATION;
        for (int i = 0;; ++i) {
            frame.payload = peer.header_block({{"x-" + std::to_string(i), std::string(2000, 'c')}});
            peer.send(frame.bytes());
        }
    }};
    auto const before = peak_memory();
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST_F(Http2Breach, AHeaderBombFailsAtTheLimit) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            auto const request = peer.receive_request(stream);
            if (request.body == "fine") {
                peer.send(peer.answer(stream, {.body = "fine"}));
                continue;
            }
            // One entry of the table, named over and over: a few KB become megabytes.
            ScriptedAnswer bomb;
            for (int i = 0; i < 3000; ++i) bomb.headers.add("x-bomb", std::string(3000, 'b'));
            Headers lines{{":status", "200"}};
            for (auto const& [name, value] : bomb.headers) lines.add(name, value);
            auto const block = peer.header_block(lines);
            EXPECT_LT(block.size(), 16'000U);
            peer.send(Frame{.type = NGHTTP2_HEADERS,
                            .flags = static_cast<std::uint8_t>(h2::end_headers | h2::end_stream),
                            .stream = stream,
                            .payload = block}
                          .bytes());
        }
    }};
    auto const before = peak_memory();
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large) << outcome.text();
    EXPECT_LT(peak_memory() - before, 32U << 20U);
    EXPECT_EQ(driver.post(server.url(), "fine").body, "fine");
}

TEST_F(Http2Breach, AFloodOfPingsAndSettingsIsBounded) {
    Gate flooded;
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        auto const request = peer.receive_request(stream);
        std::string flood;
        for (int i = 0; i < 2000; ++i) flood += h2::ping("flooding", false) + h2::settings({});
        try {
            for (int i = 0; i < 50; ++i) peer.send(flood);  // and never reads an answer
            peer.send(peer.answer(stream, {.body = request.body}));
        } catch (PeerGone const&) {
        }
        wire.drain();
    }};
    auto const before = peak_memory();
    auto request = post_request(server.url(), "x");
    request.timeouts.total = 20s;
    auto const outcome = driver.run(request);
    if (outcome.failure) {
        EXPECT_NE(outcome.failure->kind, FailureKind::total_timeout) << outcome.text();
    } else {
        EXPECT_EQ(outcome.body, "x");
    }
    EXPECT_LT(peak_memory() - before, 64U << 20U);
}

TEST_F(Http2Breach, DataOnAStreamThatWeCancelledIsIgnored) {
    Gate cancelled;
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request(stream);
        peer.send(peer.head(stream, {}, false));
        (void)peer.receive_frame_of(NGHTTP2_RST_STREAM);
        // As if it had been on its way already.
        for (int i = 0; i < 20; ++i) peer.send(h2::data(stream, std::string(10'000, 'l'), i == 19));
        serve_echo(peer);
    }};
    auto& exchange = driver.start(post_request(server.url(), "x"));
    exchange.wait_for_head();
    exchange.cancel();
    EXPECT_EQ(driver.post(server.url(), "after").body, "after");
    EXPECT_EQ(server.connections(), 1);
}

TEST_F(Http2Breach, InterimAnswersAndTrailersAreNotTheAnswer) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request(stream);
        peer.send(peer.head(stream, {.status = 103, .headers = {{"link", "</x>"}}}, false));
        peer.send(peer.head(stream, {.status = 201, .headers = {{"x-a", "1"}}}, false));
        peer.send(h2::data(stream, "body", false));
        peer.send(Frame{.type = NGHTTP2_HEADERS,
                        .flags = static_cast<std::uint8_t>(h2::end_headers | h2::end_stream),
                        .stream = stream,
                        .payload = peer.header_block({{"x-sum", "4"}})}
                      .bytes());
        serve_echo(peer);
    }};
    auto const outcome = driver.post(server.url(), "x");
    EXPECT_EQ(outcome.status(), 201) << outcome.text();
    EXPECT_EQ(outcome.body, "body");
    EXPECT_EQ(outcome.header("x-a"), "1");
    EXPECT_EQ(outcome.header("link"), "");
}

TEST_F(Http2Breach, AServerThatSpeaksHttp1IsNamed) {
    ScriptServer server{[](Wire& wire) {
        wire.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        wire.finish();
        wire.drain();
    }};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::protocol) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
}

}  // namespace
}  // namespace tinkxx::test
