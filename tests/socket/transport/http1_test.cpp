// HTTP/1.1 on the level of bytes: answers cut, split, stalled and malformed.
#include "socket/modes.hpp"

#include <gmock/gmock.h>

#include <csignal>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Answers as a server might, and what the client should make of them.
struct Good {
    std::string name{};
    std::string bytes{};
    int status{200};
    std::string body{};
    bool ends_with_close{false};  ///< only the end of the connection says where the body ends
};

std::vector<Good> good_answers() {
    return {
        {"Length", http1_answer({.headers = {{"X-A", "1"}}, .body = "hello world"}), 200,
         "hello world"},
        {"Chunked", http1_chunked_answer({.body = "hello chunked world"}, 7), 200,
         "hello chunked world"},
        {"ChunkExtensionsAndTrailers",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n"
         "5;name=value\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n",
         200, "hello"},
        {"ChunkedAndEmpty", http1_chunked_answer({}, 7), 200, ""},
        {"Interim",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
             http1_answer({.status = 404, .body = "not here"}),
         404, "not here"},
        {"NoContent", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"NoReason", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
        {"UntilClose", "HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end", true},
        {"Http10", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", 200, "old", true},
    };
}

class GoodAnswers : public testing::TestWithParam<Good> {};
INSTANTIATE_TEST_SUITE_P(, GoodAnswers, testing::ValuesIn(good_answers()),
                         [](auto const& each) { return each.param.name; });

TEST_P(GoodAnswers, AreUnderstoodHoweverTheyAreCutIntoPieces) {
    auto const& good = GetParam();
    std::size_t piece = 1;
    ScriptServer server{[&](Wire& wire) {
        while (read_request(wire)) {
            wire.send_in_pieces(good.bytes, piece);
            if (good.ends_with_close) return;
        }
    }};
    HttpDriver driver;
    for (piece = 1; piece <= good.bytes.size(); piece += 1 + piece / 3) {
        auto const outcome = driver.get(server.url());
        EXPECT_EQ(outcome.status(), good.status) << outcome.text();
        EXPECT_EQ(outcome.body, good.body);
    }
}

TEST_P(GoodAnswers, CutAtEveryByteEndOnceAndNeverAsSuccess) {
    auto const& good = GetParam();
    for (auto const how : {"close", "reset"}) {
        std::atomic<std::size_t> cut{0};
        ScriptServer server{[&](Wire& wire) {
            if (!read_request(wire)) return;
            wire.send(std::string_view{good.bytes}.substr(0, cut));
            if (how == std::string_view{"reset"}) {
                wire.reset();
            } else {
                wire.close();
            }
        }};
        HttpDriver driver;
        auto const body_begins = good.bytes.rfind(good.body);
        for (cut = 0; cut < good.bytes.size(); ++cut) {
            auto const outcome = driver.post(server.url(), "question");
            // Without a length the end of the connection ends the body, wherever it comes.
            if (good.name == "UntilClose" && cut >= body_begins &&
                how == std::string_view{"close"}) {
                EXPECT_EQ(outcome.status(), 200) << outcome.text();
                continue;
            }
            ASSERT_TRUE(outcome.failure) << how << " after " << cut << ": " << outcome.text();
            EXPECT_EQ(outcome.failure->kind, FailureKind::reset) << outcome.text();
            EXPECT_EQ(outcome.failure->seen, Seen::maybe) << outcome.text();
            EXPECT_THAT(outcome.failure->message, HasSubstr("127.0.0.1"));
        }
        EXPECT_EQ(server.connections(), static_cast<int>(good.bytes.size()))
            << "a request that the server saw was sent again";
    }
}

TEST_P(GoodAnswers, StalledAtEveryByteEndByTheReadTimeout) {
    // All positions at once, each on its own connection: the wait is real and paid once.
    auto const& good = GetParam();
    ScriptServer server{[&](Wire& wire) {
        auto const request = read_request(wire);
        if (!request) return;
        wire.send(std::string_view{good.bytes}.substr(0, std::stoul(request->body)));
        wire.stall();
    }};
    HttpDriver driver;
    std::vector<Request> requests;
    for (std::size_t cut = 0; cut < good.bytes.size(); ++cut) {
        requests.push_back(post_request(server.url(), std::to_string(cut)));
        requests.back().timeouts.read = 100ms;
    }
    for (auto* const call : driver.start_all(requests)) {
        auto const& outcome = call->wait();
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::read_timeout) << outcome.text();
        EXPECT_EQ(outcome.failure->seen, Seen::maybe);
    }
}

struct Bad {
    std::string name{};
    std::string bytes{};
    FailureKind kind{FailureKind::protocol};
};

class BadAnswers : public testing::TestWithParam<Bad> {};

INSTANTIATE_TEST_SUITE_P(
    , BadAnswers,
    testing::Values(
        Bad{"NotHttp", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
        Bad{"Http2Settings", std::string("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 9)},
        Bad{"ChunkSizeNotANumber",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"},
        Bad{"ChunkSizeNegative",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n"},
        Bad{"ChunkSizeTooBig",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"},
        Bad{"ChunkWithoutItsEnd",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n"},
        Bad{"LengthNotANumber", "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello"},
        Bad{"LengthNegative", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello"},
        Bad{"LengthsThatDisagree",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"},
        Bad{"LengthTooBigForANumber",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello"},
        Bad{"HeaderWithoutAName", "HTTP/1.1 200 OK\r\n: value\r\nContent-Length: 0\r\n\r\n"},
        Bad{"ControlCharacterInAHeader",
            std::string{"HTTP/1.1 200 OK\r\nX-A: a\x01z\r\nContent-Length: 0\r\n\r\n"}},
        Bad{"StatusNotANumber", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"},
        Bad{"UnaskedUpgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n"}),
    [](auto const& each) { return each.param.name; });

TEST_P(BadAnswers, FailAtOnceWithAReason) {
    ScriptServer server{[&](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send(GetParam().bytes);
        wire.stall();
    }};
    HttpDriver driver;

    auto const outcome = driver.post(server.url(), "question");

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, GetParam().kind) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::maybe);
    EXPECT_THAT(outcome.failure->message, HasSubstr("127.0.0.1"));
}

TEST(Http1, HeadersWithoutEndFailAtTheLimit) {
    ScriptServer server{[](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\n");
        for (;;) wire.send("X-Bomb: " + std::string(1000, 'b') + "\r\n");
    }};
    HttpDriver driver;
    auto const before = peak_memory();

    auto const outcome = driver.get(server.url());

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large);
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST(Http1, OneHeaderLineWithoutEndFailsAtTheLimit) {
    ScriptServer server{[](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\nX-Bomb: ");
        for (;;) wire.send(std::string(10'000, 'b'));
    }};
    HttpDriver driver;
    auto const before = peak_memory();

    auto const outcome = driver.get(server.url());

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large);
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST(Http1, InterimAnswersWithoutEndAreNotFollowedForEver) {
    std::string flood;
    for (int i = 0; i < 10'000; ++i) flood += "HTTP/1.1 100 Continue\r\n\r\n";
    ScriptServer server{[&](Wire& wire) {
        if (!read_request(wire)) return;
        for (;;) wire.send(flood);
    }};
    HttpDriver driver;
    auto const outcome = driver.get(server.url());
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::protocol) << outcome.text();
}

TEST(Http1, AServerThatNeverStopsDoesNotKeepOthersWaiting) {
    // It sends as fast as it can, and all of it is dropped; a neighbour is served meanwhile.
    std::string const piece(1'000'000, 'x');
    ScriptServer server{[&](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\n\r\n");
        for (;;) wire.send(piece);
    }};
    HttpServer neighbour{echo};
    HttpDriver driver;
    struct Drop final : ReplySink {
        void on_head(Head) override {}
        void on_data(std::span<char const>) override {}
        void on_done(Timing const&) override { ADD_FAILURE(); }
        void on_failure(Failure failure) override { ADD_FAILURE() << failure.message; }
    } drop;
    Call call;
    driver.on_loop([&] {
        auto request = get_request(server.url());
        request.max_response_bytes = UINT64_MAX;
        call = driver.transport().start(std::move(request), drop);
    });
    for (int i = 0; i < 20; ++i) EXPECT_EQ(driver.post(neighbour.url(), "x").body, "x");
    driver.on_loop([&] { driver.transport().cancel(call); });
}

TEST(Http1, AChunkExtensionWithoutEndIsBounded) {
    ScriptServer server{[](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;");
        for (;;) wire.send(std::string(10'000, 'e'));
    }};
    HttpDriver driver;
    auto request = get_request(server.url());
    request.timeouts.total = 2s;
    auto const before = peak_memory();

    auto const outcome = driver.run(request);

    EXPECT_TRUE(outcome.failure) << outcome.text();
    EXPECT_NE(outcome.failure->kind, FailureKind::total_timeout) << "read for ever";
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST(Http1, TwoGigabytesAnnouncedAreRefusedAndCostNothing) {
    ScriptServer server{[](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n");
        wire.stall();
    }};
    HttpDriver driver;
    auto const before = peak_memory();

    auto const outcome = driver.get(server.url());

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large);
    EXPECT_THAT(outcome.failure->message, HasSubstr("2147483648"));
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST(Http1, TwoGigabytesAllowedButNotSentCostNothing) {
    ScriptServer server{[](Wire& wire) {
        if (!read_request(wire)) return;
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\nabc");
        wire.close();
    }};
    HttpDriver driver;
    auto request = get_request(server.url());
    request.max_response_bytes = std::uint64_t{4} << 30U;
    auto const before = peak_memory();

    auto const outcome = driver.run(request);

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::reset);
    EXPECT_EQ(outcome.body, "abc");
    EXPECT_LT(peak_memory() - before, 32U << 20U);
}

TEST(Http1, AnAnswerBeforeTheRequestIsNotTakenForItsAnswer) {
    // Behind a proxy's reply to CONNECT, so that it is there for certain before we say a word.
    ScriptServer proxy{{[&](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("HTTP/1.1 200 Connected\r\n\r\n" +
                                      http1_answer({.body = "meant for somebody else"}));
                            wire.drain();
                        },
                        [&](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("HTTP/1.1 200 Connected\r\n\r\n");
                            while (read_request(wire)) wire.send(http1_answer({.body = "right"}));
                        }}};
    NetOptions options;
    options.proxy.url = proxy.url("");
    HttpDriver driver{options};

    auto const outcome = driver.post("http://origin.invalid/", "question");

    EXPECT_EQ(outcome.body, "right") << outcome.text();
    EXPECT_EQ(proxy.connections(), 2);
}

TEST(Http1, AServerThatAlwaysAnswersFirstIsGivenUp) {
    ScriptServer proxy{[&](Wire& wire) {
        (void)wire.receive_until("\r\n\r\n");
        wire.send("HTTP/1.1 200 Connected\r\n\r\n" + http1_answer({.body = "too early"}));
        wire.drain();
    }};
    NetOptions options;
    options.proxy.url = proxy.url("");
    HttpDriver driver{options};

    auto const outcome = driver.post("http://origin.invalid/", "question");

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::protocol) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_THAT(outcome.failure->message, HasSubstr("before the request"));
    EXPECT_EQ(proxy.connections(), 4) << "once and three repeats";
}

TEST(Http1, DataBetweenRequestsEndsTheConnection) {
    ScriptServer server{{[](Wire& wire) {
                             if (!read_request(wire)) return;
                             wire.send(http1_answer({.body = "first"}) +
                                       http1_answer({.body = "nobody asked for this"}));
                             wire.stall();
                         },
                         always_answer(http1_answer({.body = "second"}))}};
    HttpDriver driver;
    EXPECT_EQ(driver.post(server.url(), "1").body, "first");
    EXPECT_EQ(driver.post(server.url(), "2").body, "second");
    EXPECT_EQ(server.connections(), 2);
}

TEST(Http1, AnEarlyAnswerToALargeBodyIsDelivered) {
    // The server refuses after the head and reads no further, as servers do with 413.
    ScriptServer server{[](Wire& wire) {
        (void)wire.receive_until("\r\n\r\n");
        wire.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nstop");
        wire.finish();
        wire.drain();
    }};
    HttpDriver driver;
    auto const outcome = driver.post(server.url(), pattern(20'000'000));
    EXPECT_EQ(outcome.status(), 413) << outcome.text();
    EXPECT_EQ(outcome.body, "stop");
}

TEST(Http1, ConnectionCloseIsHonoured) {
    HttpServer server{[](ReceivedRequest const& request) {
        auto reaction = echo(request);
        reaction.close = true;
        return reaction;
    }};
    HttpDriver driver;
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(driver.post(server.url(), "x").status(), 200);
    }
    EXPECT_EQ(server.counts().connections, 5);
}

TEST(Http1, AConnectionTheServerClosedWhileIdleIsReplacedUnnoticed) {
    HttpServer server{echo};
    HttpDriver driver;
    for (int i = 0; i < 10; ++i) {
        auto const outcome = driver.run(with_id(post_request(server.url(), "x")));
        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        server.close_idle();
        ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
        // Our own loop has to turn once to notice: the next request may still come first.
        driver.on_loop([] {});
    }
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

TEST(Http1, TooMuchAtOnceWaitsForAFreeConnection) {  // R-CONF-51
    HttpServer server{[](ReceivedRequest const& request) {
        auto reaction = echo(request);
        reaction.hold = true;
        return reaction;
    }};
    NetOptions options;
    options.max_http1_connections = 8;
    HttpDriver driver{options};
    std::vector<Request> requests(50, post_request(server.url(), "x"));
    for (auto& request : requests) request.purpose = Purpose::sample;
    auto const calls = driver.start_all(requests);
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 8; }));
    server.release();
    for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200) << call->wait().text();
    EXPECT_EQ(server.counts().connections, 8);
}

TEST(Http1, SigpipeIsNeverRaised) {
    // Default disposition: a SIGPIPE would end this process.
    struct sigaction action {};
    ::sigaction(SIGPIPE, nullptr, &action);
    ASSERT_EQ(action.sa_handler, SIG_DFL);
    for (bool const tls : {false, true}) {
        ScriptServer server{[](Wire& wire) {
                                (void)wire.receive_until("\r\n\r\n");
                                wire.reset();
                            },
                            script_options({HttpVersion::http1, tls})};
        HttpDriver driver{net_options({HttpVersion::http1, tls})};
        std::vector<Request> requests(20, post_request(server.url(), pattern(4'000'000)));
        for (auto* const call : driver.start_all(requests)) {
            auto const& outcome = call->wait();
            ASSERT_TRUE(outcome.failure) << outcome.text();
            EXPECT_EQ(outcome.failure->kind, FailureKind::reset) << outcome.text();
        }
    }
}

}  // namespace
}  // namespace tinkxx::test
