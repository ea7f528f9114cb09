// HTTP/2: answers cut and stalled, servers that leave, refuse and reset.
#include "socket/transport/http2_fixture.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <atomic>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Http2Streams : public Http2Test {};

/// What a server sends before it has seen the request, and after.
std::string good_beginning() {
    return h2::settings({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 50}});
}
std::string good_rest(Http2Peer& peer) {
    return h2::settings_ack() + h2::ping("01234567", false) + h2::window_update(0, 1000) +
           peer.answer(1, {.headers = {{"x-a", "1"}}, .body = "hello frames"});
}

/// Sends a good answer in pieces, and only the first `cut` bytes of it.
void send_good(Http2Peer& peer, std::size_t piece, std::size_t cut) {
    peer.receive_preface();
    peer.answer_settings = false;
    auto const beginning = good_beginning();
    peer.wire().send_in_pieces(std::string_view{beginning}.substr(0, cut), piece);
    if (cut < beginning.size()) return;
    std::uint32_t stream = 0;
    (void)peer.receive_request(stream);
    auto const rest = good_rest(peer);
    peer.wire().send_in_pieces(std::string_view{rest}.substr(0, cut - beginning.size()), piece);
}

std::size_t good_size() {
    // Header compression gives the same bytes on every new connection; measured once.
    std::size_t size = 0;
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        size = good_beginning().size() + good_rest(peer).size();
        wire.send("x");
        wire.drain();
    }};
    auto const client = connect_to_loopback(Family::ipv4, server.port());
    char byte = 0;
    EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 1);
    return size;
}

TEST_F(Http2Streams, AnAnswerIsUnderstoodHoweverItIsCutIntoPieces) {
    for (std::size_t piece = 1; piece < 40; piece += 3) {
        ScriptServer server{[&](Wire& wire) {
            Http2Peer peer{wire};
            send_good(peer, piece, SIZE_MAX);
            serve_echo(peer);
        }};
        auto const outcome = driver.post(server.url(), "question");
        EXPECT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.body, "hello frames");
    }
}

TEST_F(Http2Streams, AnAnswerCutAtEveryByteEndsOnceAndNeverAsSuccess) {
    // Every position at once, each with an origin of its own.
    auto const size = good_size();
    ASSERT_GT(size, 80U);
    for (bool const hard : {false, true}) {
        std::vector<std::unique_ptr<ScriptServer>> servers;
        std::vector<Request> requests;
        for (std::size_t cut = 0; cut < size; ++cut) {
            servers.push_back(std::make_unique<ScriptServer>([cut, hard](Wire& wire) {
                Http2Peer peer{wire};
                send_good(peer, SIZE_MAX, cut);
                if (hard) {
                    wire.reset();
                } else {
                    wire.finish();
                    wire.drain();
                }
            }));
            requests.push_back(post_request(servers.back()->url(), "question"));
        }
        auto const calls = driver.start_all(requests);
        for (std::size_t cut = 0; cut < size; ++cut) {
            auto const& outcome = calls[cut]->wait();
            ASSERT_TRUE(outcome.failure) << "after " << cut << ": " << outcome.text();
            EXPECT_EQ(outcome.failure->kind, FailureKind::reset) << outcome.text();
            if (cut < good_beginning().size()) {
                EXPECT_EQ(outcome.failure->seen, Seen::no) << cut << ": " << outcome.text();
                EXPECT_EQ(servers[cut]->connections(), 4) << "once and three repeats";
            } else {
                EXPECT_EQ(outcome.failure->seen, Seen::maybe) << cut << ": " << outcome.text();
                EXPECT_EQ(servers[cut]->connections(), 1)
                    << "a request that the server saw was sent again";
            }
        }
    }
}

TEST_F(Http2Streams, AnAnswerStalledAtEveryByteEndsByATimeout) {
    auto const size = good_size();
    std::vector<std::unique_ptr<ScriptServer>> servers;
    std::vector<Request> requests;
    for (std::size_t cut = 0; cut < size; ++cut) {
        servers.push_back(std::make_unique<ScriptServer>([cut](Wire& wire) {
            Http2Peer peer{wire};
            send_good(peer, SIZE_MAX, cut);
            wire.drain();
        }));
        requests.push_back(post_request(servers.back()->url(), "question"));
        requests.back().timeouts.read = 200ms;
        requests.back().timeouts.connect = 200ms;
    }
    auto const calls = driver.start_all(requests);
    for (std::size_t cut = 0; cut < size; ++cut) {
        auto const& outcome = calls[cut]->wait();
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_EQ(outcome.failure->kind, cut < good_beginning().size()
                                             ? FailureKind::connect_timeout
                                             : FailureKind::read_timeout)
            << cut << ": " << outcome.text();
    }
}

TEST_F(Http2Streams, RequestsAboveTheLastStreamOfAGoawayAreSentAgainElsewhere) {
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             std::uint32_t first = 0;
                             auto const request = peer.receive_request(first);
                             std::uint32_t second = 0;
                             (void)peer.receive_request(second);
                             (void)peer.receive_request(second);
                             peer.send(h2::goaway(first, NGHTTP2_NO_ERROR));
                             peer.send(peer.answer(first, {.body = "old " + request.body}));
                             wire.drain();
                         },
                         [](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             for (;;) {
                                 std::uint32_t stream = 0;
                                 auto const request = peer.receive_request(stream);
                                 peer.send(peer.answer(stream, {.body = "new " + request.body}));
                             }
                         }}};
    auto const calls =
        driver.start_all({post_request(server.url(), "a"), post_request(server.url(), "b"),
                          post_request(server.url(), "c")});
    EXPECT_EQ(calls[0]->wait().body, "old a") << calls[0]->wait().text();
    EXPECT_EQ(calls[1]->wait().body, "new b") << calls[1]->wait().text();
    EXPECT_EQ(calls[2]->wait().body, "new c") << calls[2]->wait().text();
    EXPECT_EQ(server.connections(), 2);
}

TEST_F(Http2Streams, AGoawayOfTheHighestIdOnlyStopsNewStreams) {
    Gate said;
    ScriptServer server{{[&](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             std::uint32_t stream = 0;
                             auto const request = peer.receive_request(stream);
                             peer.send(h2::goaway(0x7fffffff, NGHTTP2_NO_ERROR) +
                                       h2::ping("shutdown", false));
                             // The answer to the PING shows that the GOAWAY was seen.
                             (void)peer.receive_frame_of(NGHTTP2_PING);
                             said.open();
                             (void)wire.receive_some();
                             peer.send(peer.answer(stream, {.body = "old " + request.body}));
                             peer.send(h2::goaway(stream, NGHTTP2_NO_ERROR));
                             wire.drain();
                         },
                         [&](Wire& wire) { echo_script(wire); }}};
    auto& first = driver.start(post_request(server.url(), "a"));
    ASSERT_TRUE(said.wait_until_open());
    EXPECT_EQ(driver.post(server.url(), "b").body, "b");
    EXPECT_EQ(server.connections(), 2);
    EXPECT_FALSE(first.ended());
    driver.on_loop([] {});
    first.cancel();  // a frame that lets the script go on
}

TEST_F(Http2Streams, ASecondGoawayWithALowerIdRefusesWhatLiesAbove) {
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             std::uint32_t first = 0;
                             std::uint32_t second = 0;
                             (void)peer.receive_request(first);
                             (void)peer.receive_request(second);
                             peer.send(h2::goaway(0x7fffffff, NGHTTP2_NO_ERROR));
                             peer.send(h2::goaway(first, NGHTTP2_NO_ERROR));
                             peer.send(peer.answer(first, {.body = "old"}));
                             wire.drain();
                         },
                         echo_script}};
    auto const calls =
        driver.start_all({post_request(server.url(), "a"), post_request(server.url(), "b")});
    EXPECT_EQ(calls[0]->wait().body, "old") << calls[0]->wait().text();
    EXPECT_EQ(calls[1]->wait().body, "b") << calls[1]->wait().text();
}

TEST_F(Http2Streams, AServerThatOnlyEverSaysGoawayIsGivenUpAfterAFewTries) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request(stream);
        peer.send(h2::goaway(0, NGHTTP2_ENHANCE_YOUR_CALM, "too many"));
        wire.finish();
        wire.drain();
    }};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no) << outcome.text();
    EXPECT_EQ(server.connections(), 4) << "once and three repeats";
}

TEST_F(Http2Streams, AGoawayBeforeTheFirstRequestLeadsToAnotherConnection) {
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             peer.send(h2::goaway(0, NGHTTP2_NO_ERROR));
                             wire.finish();
                             wire.drain();
                         },
                         echo_script}};
    EXPECT_EQ(driver.post(server.url(), "x").body, "x");
}

TEST_F(Http2Streams, AServerThatLeavesBeforeEveryRequestIsGivenUpAfterAFewTries) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        peer.send(h2::goaway(0, NGHTTP2_NO_ERROR));
        wire.finish();
        wire.drain();
    }};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::reset) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_EQ(server.connections(), 4) << "once and three repeats";
}

TEST_F(Http2Streams, ACloseWithoutGoawayIsReportedNotRepeated) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        std::uint32_t stream = 0;
        for (int i = 0; i < 3; ++i) (void)peer.receive_request(stream);
        wire.close();
    }};
    std::vector<Request> const requests(3, post_request(server.url(), "x"));
    for (auto* const call : driver.start_all(requests)) {
        ASSERT_TRUE(call->wait().failure) << call->wait().text();
        EXPECT_EQ(call->wait().failure->kind, FailureKind::reset);
        EXPECT_EQ(call->wait().failure->seen, Seen::maybe);
    }
    EXPECT_EQ(server.connections(), 1);
}

TEST_F(Http2Streams, ARefusedStreamIsSentAgain) {
    std::atomic<int> tries{0};
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            auto const request = peer.receive_request(stream);
            if (++tries <= 3) {
                peer.send(h2::rst_stream(stream, NGHTTP2_REFUSED_STREAM));
            } else {
                peer.send(peer.answer(stream, {.body = request.body}));
            }
        }
    }};
    EXPECT_EQ(driver.post(server.url(), "patience").body, "patience");
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(server.connections(), 1) << "one refused stream cost the connection";
}

TEST_F(Http2Streams, AStreamRefusedForEverFailsAfterThreeRepeats) {
    std::atomic<int> tries{0};
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            (void)peer.receive_request(stream);
            ++tries;
            peer.send(h2::rst_stream(stream, NGHTTP2_REFUSED_STREAM));
        }
    }};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_EQ(tries, 4);
}

TEST_F(Http2Streams, AStreamResetWithAnotherCodeFailsAndTheConnectionStays) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            auto const request = peer.receive_request(stream);
            if (request.body == "fine") {
                peer.send(peer.answer(stream, {.body = "fine"}));
            } else {
                peer.send(
                    h2::rst_stream(stream, static_cast<std::uint32_t>(std::stoul(request.body))));
            }
        }
    }};
    for (auto const code : {NGHTTP2_NO_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_INTERNAL_ERROR,
                            NGHTTP2_STREAM_CLOSED, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM}) {
        auto const outcome = driver.post(server.url(), std::to_string(code));
        ASSERT_TRUE(outcome.failure) << code << ": " << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::reset) << outcome.text();
        EXPECT_EQ(outcome.failure->seen, Seen::maybe) << outcome.text();
        EXPECT_EQ(driver.post(server.url(), "fine").body, "fine");
    }
    EXPECT_EQ(server.connections(), 1);
}

TEST_F(Http2Streams, AStormOfResetsEndsEveryRequestOnce) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            auto const request = peer.receive_request_head(stream);
            // Each twice, and some answered half, before the body is read.
            if (stream % 4 == 1) peer.send(peer.head(stream, {.status = 200}, false));
            peer.send(h2::rst_stream(stream, NGHTTP2_INTERNAL_ERROR) +
                      h2::rst_stream(stream, NGHTTP2_INTERNAL_ERROR));
        }
    }};
    std::vector<Request> const requests(300, post_request(server.url(), pattern(20'000)));
    for (auto* const call : driver.start_all(requests)) {
        EXPECT_TRUE(call->wait().failure) << call->wait().text();
    }
}

TEST_F(Http2Streams, ACompleteAnswerBeforeTheWholeRequestCountsEvenIfAResetFollows) {
    ScriptServer server{[&](Wire& wire) {
        Http2Peer peer{wire};
        peer.give_windows = false;
        peer.handshake();
        std::uint32_t stream = 0;
        (void)peer.receive_request_head(stream);
        peer.send(peer.answer(stream, {.status = 413, .body = "too large for us"}) +
                  h2::rst_stream(stream, NGHTTP2_NO_ERROR));
        peer.give_windows = true;
        serve_echo(peer);
    }};
    auto const outcome = driver.post(server.url(), pattern(1'000'000));
    EXPECT_EQ(outcome.status(), 413) << outcome.text();
    EXPECT_EQ(outcome.body, "too large for us");
    EXPECT_EQ(driver.post(server.url(), "next").body, "next");
    EXPECT_EQ(server.connections(), 1);
}

TEST_F(Http2Streams, Http11RequiredIsObeyed) {
    // With ALPN only: on a connection in the clear the caller has asked for HTTP/2.
    std::atomic<int> http1_requests{0};
    ScriptServer server{[&](Wire& wire) {
                            unsigned char const* name = nullptr;
                            unsigned size = 0;
                            SSL_get0_alpn_selected(wire.tls(), &name, &size);
                            std::string const alpn{reinterpret_cast<char const*>(name), size};
                            if (alpn != "h2") {
                                while (read_request(wire)) {
                                    ++http1_requests;
                                    wire.send(http1_answer({.body = "by HTTP/1.1"}));
                                }
                                return;
                            }
                            Http2Peer peer{wire};
                            peer.handshake();
                            for (;;) {
                                std::uint32_t stream = 0;
                                (void)peer.receive_request(stream);
                                peer.send(h2::rst_stream(stream, NGHTTP2_HTTP_1_1_REQUIRED));
                            }
                        },
                        ScriptServerOptions{.tls = tls_server()}};
    auto options = net_options(http2_tls);
    options.http_version = HttpVersion::automatic;
    HttpDriver automatic{options};
    auto const outcome = automatic.post(server.url(), "x");
    EXPECT_EQ(outcome.body, "by HTTP/1.1") << outcome.text();
    EXPECT_EQ(automatic.post(server.url(), "x").body, "by HTTP/1.1");
    EXPECT_EQ(http1_requests, 2);
}

TEST_F(Http2Streams, AMisdirectedRequestIsSentAgainOnAnotherConnectionOnce) {
    ScriptServer server{{[](Wire& wire) {
                             Http2Peer peer{wire};
                             peer.handshake();
                             for (;;) {
                                 std::uint32_t stream = 0;
                                 (void)peer.receive_request(stream);
                                 peer.send(peer.answer(stream, {.status = 421}));
                             }
                         },
                         echo_script}};
    EXPECT_EQ(driver.post(server.url(), "found").body, "found");
    EXPECT_EQ(server.connections(), 2);
}

TEST_F(Http2Streams, AServerThatMisdirectsAlwaysIsAnsweringThat) {
    ScriptServer server{[](Wire& wire) {
        Http2Peer peer{wire};
        peer.handshake();
        for (;;) {
            std::uint32_t stream = 0;
            (void)peer.receive_request(stream);
            peer.send(peer.answer(stream, {.status = 421}));
        }
    }};
    EXPECT_EQ(driver.post(server.url(), "x").status(), 421);
    EXPECT_EQ(server.connections(), 2);
}

}  // namespace
}  // namespace tinkxx::test
