// HTTP/2 on the level of frames: servers that leave, refuse, reset, dawdle and misbehave.
#include "socket/modes.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Answers every request with its own body until the peer leaves.
void serve_echo(Http2Peer& peer) {
    for (;;) {
        std::uint32_t stream = 0;
        auto const request = peer.receive_request(stream);
        peer.send(peer.answer(stream, {.body = request.body}));
    }
}

void echo_script(Wire& wire) {
    Http2Peer peer{wire};
    peer.handshake();
    serve_echo(peer);
}

class Http2 : public testing::Test {
protected:
    HttpDriver driver{net_options(http2_cleartext)};
};

std::size_t peak_memory() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

// --- cut and stalled ----------------------------------------------------------------------------

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

TEST_F(Http2, AnAnswerIsUnderstoodHoweverItIsCutIntoPieces) {
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

TEST_F(Http2, AnAnswerCutAtEveryByteEndsOnceAndNeverAsSuccess) {
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

TEST_F(Http2, AnAnswerStalledAtEveryByteEndsByATimeout) {
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

// --- GOAWAY -------------------------------------------------------------------------------------

TEST_F(Http2, RequestsAboveTheLastStreamOfAGoawayAreSentAgainElsewhere) {
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

TEST_F(Http2, AGoawayOfTheHighestIdOnlyStopsNewStreams) {
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

TEST_F(Http2, ASecondGoawayWithALowerIdRefusesWhatLiesAbove) {
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

TEST_F(Http2, AServerThatOnlyEverSaysGoawayIsGivenUpAfterAFewTries) {
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

TEST_F(Http2, AGoawayBeforeTheFirstRequestLeadsToAnotherConnection) {
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

TEST_F(Http2, AServerThatLeavesBeforeEveryRequestIsGivenUpAfterAFewTries) {
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

TEST_F(Http2, ACloseWithoutGoawayIsReportedNotRepeated) {
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

// --- RST_STREAM ---------------------------------------------------------------------------------

TEST_F(Http2, ARefusedStreamIsSentAgain) {
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

TEST_F(Http2, AStreamRefusedForEverFailsAfterThreeRepeats) {
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

TEST_F(Http2, AStreamResetWithAnotherCodeFailsAndTheConnectionStays) {
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

TEST_F(Http2, AStormOfResetsEndsEveryRequestOnce) {
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

TEST_F(Http2, ACompleteAnswerBeforeTheWholeRequestCountsEvenIfAResetFollows) {
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

TEST_F(Http2, Http11RequiredIsObeyed) {
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

// --- 421 ----------------------------------------------------------------------------------------

TEST_F(Http2, AMisdirectedRequestIsSentAgainOnAnotherConnectionOnce) {
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

TEST_F(Http2, AServerThatMisdirectsAlwaysIsAnsweringThat) {
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

// --- limits and windows
// ---------------------------------------------------------------------------

TEST_F(Http2, ALimitOfOneStreamIsRespected) {
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

TEST_F(Http2, ALimitOfZeroStreamsHoldsRequestsBackUntilItIsRaised) {
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

TEST_F(Http2, ALimitOfZeroStreamsForEverEndsByThePoolTimeout) {
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

TEST_F(Http2, ALoweredLimitIsRespectedByWhatFollows) {
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

TEST_F(Http2, ABodyFollowsTheWindowHoweverSlowlyItOpens) {
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

TEST_F(Http2, AWindowThatNeverOpensEndsByTheWriteTimeoutAndHurtsNobodyElse) {
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

TEST_F(Http2, AShrunkenInitialWindowIsRespectedByOpenStreams) {
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

// --- liveness
// -------------------------------------------------------------------------------------

TEST_F(Http2, APeerThatAnswersNoPingIsGivenUpAndOthersGoElsewhere) {
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

TEST_F(Http2, APeerThatAnswersPingsIsGivenTime) {
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

TEST_F(Http2, AfterATimedOutRequestTheConnectionIsTestedBeforeItIsUsedAgain) {
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

TEST_F(Http2, AConnectionClosedWhileIdleIsReplacedUnnoticed) {
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

// --- servers that break the protocol
// ----------------------------------------------------------------

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

TEST_F(Http2, AFloodOfContinuationsIsCutOff) {
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

TEST_F(Http2, AHeaderBombFailsAtTheLimit) {
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
            Answer bomb;
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

TEST_F(Http2, AFloodOfPingsAndSettingsIsBounded) {
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

TEST_F(Http2, DataOnAStreamThatWeCancelledIsIgnored) {
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

TEST_F(Http2, InterimAnswersAndTrailersAreNotTheAnswer) {
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

TEST_F(Http2, AServerThatSpeaksHttp1IsNamed) {
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
