#include "support/memory/wired_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using Next = ServerConnection::Next;
using test::reply;
using test::WiredConnection;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ListenerConnection, AnswersARequestAndKeepsTheConnection) {
    WiredConnection wire;
    wire.send(
        "POST /a?b=c HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello");

    ASSERT_EQ(wire.handler.asked.size(), 1U);
    auto const& request = wire.handler.asked[0].request;
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/a?b=c");
    EXPECT_EQ(RequestBody{request.body}.join(), "hello");
    EXPECT_EQ(*request.headers.find("x-one"), "1");
    reply(*wire.handler.asked[0].answer, "bye");
    wire.settle();
    EXPECT_THAT(wire.take(),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\nDate: Fri, 15 Jan 2027 08:00:00 GMT\r\n"),
                      HasSubstr("\r\nContent-Length: 3\r\n"), EndsWith("\r\n\r\nbye"),
                      Not(HasSubstr("Connection:"))));
    EXPECT_EQ(wire.next(), Next::go_on);
}

TEST(ListenerConnection, ReadsARequestHoweverItIsCut) {
    std::string const text =
        "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: no\r\n\r\n"
        "GET /y HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "POST /z HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    for (std::size_t piece = 1; piece < text.size(); ++piece) {
        WiredConnection wire;
        std::string seen;
        wire.handler.act = [&](ServerRequest& request, std::shared_ptr<Answer> answer) {
            seen += request.target + "=" + std::move(request.body).join() + ";";
            EXPECT_FALSE(request.headers.contains("Trailer"));
            reply(*answer, "");
        };
        for (std::size_t at = 0; at < text.size(); at += piece) {
            wire.send(std::string_view{text}.substr(at, piece));
        }
        ASSERT_EQ(seen, "/x=abcd;/y=;/z=;") << piece;
    }
}

TEST(ListenerConnection, AnswersPipelinedRequestsInTheirOrder) {
    WiredConnection wire;
    wire.send(
        "GET /1 HTTP/1.1\r\nHost: a.localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: [::1]:80\r\n\r\nGE");

    // The second waits until the first is answered.
    ASSERT_EQ(wire.handler.asked.size(), 1U);
    reply(*wire.handler.asked[0].answer, "one");
    EXPECT_EQ(wire.handler.asked.size(), 1U) << "not inside the handler's own call";
    wire.settle();
    ASSERT_EQ(wire.handler.asked.size(), 2U);
    reply(*wire.handler.asked[1].answer, "two");
    wire.send("T /3 HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    EXPECT_EQ(wire.handler.asked.size(), 3U);
    auto const sent = wire.take();
    EXPECT_LT(sent.find("one"), sent.find("two"));
}

TEST(ListenerConnection, StreamsAnAnswerOfUnknownLengthInChunks) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.head(200, {}, std::nullopt);
    answer.data("data: one\n\n");
    wire.settle();
    EXPECT_THAT(wire.take(), AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"),
                                   EndsWith("\r\n\r\nb\r\ndata: one\n\n\r\n")));
    answer.data("");
    answer.data(std::string(20, 'x'));
    answer.done();
    wire.settle();
    EXPECT_EQ(wire.take(), "14\r\n" + std::string(20, 'x') + "\r\n0\r\n\r\n");
}

TEST(ListenerConnection, EndsAnAnswerOfUnknownLengthToOldClientsWithTheConnection) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.head(200, {}, std::nullopt);
    answer.data("all");
    answer.done();
    wire.settle();
    EXPECT_THAT(wire.take(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("\r\n\r\nall")));
    EXPECT_EQ(wire.next(), Next::linger);
}

TEST(ListenerConnection, SendsNoBodyWhereThereIsNone) {
    WiredConnection wire;
    wire.handler.act = [](ServerRequest& request, std::shared_ptr<Answer> answer) {
        reply(*answer, "body", request.target == "/none" ? 204 : 200);
    };
    wire.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(wire.take(), AllOf(HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\n")));
    wire.send("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(wire.take(), AllOf(StartsWith("HTTP/1.1 204 No Content"), EndsWith("\r\n\r\n"),
                                   Not(HasSubstr("Content-Length"))));
    EXPECT_EQ(wire.next(), Next::go_on);
}

TEST(ListenerConnection, SaysContinueToThoseWhoWaitForIt) {
    WiredConnection wire;
    wire.send(
        "PUT / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(wire.take(), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_TRUE(wire.handler.asked.empty());
    wire.send("ok");
    EXPECT_EQ(RequestBody{wire.handler.asked.at(0).request.body}.join(), "ok");
}

TEST(ListenerConnection, RefusesBeforeItReadsTheBody) {
    WiredConnection wire;
    wire.share.admit = [](ServerRequest const& head) -> std::optional<Refusal> {
        if (head.headers.contains("X-API-Key")) return std::nullopt;
        return Refusal{.status = 401, .detail = "set \"TINKER_API_KEY\""};
    };
    wire.send("PUT / HTTP/1.1\r\nHost: a\r\nX-API-Key: b\r\nContent-Length: 1\r\n\r\nx");
    ASSERT_EQ(wire.handler.asked.size(), 1U);
    reply(*wire.handler.asked[0].answer, "");
    wire.settle();
    (void)wire.take();
    wire.send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_THAT(wire.take(), AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"),
                                   EndsWith("{\"detail\":\"set \\\"TINKER_API_KEY\\\"\"}")));
    EXPECT_EQ(wire.next(), Next::linger);
}

struct Bad {
    char const* bytes;
    int status;
    char const* words;
};

TEST(ListenerConnection, RefusesWhatItCannotReadAndSaysWhy) {
    for (auto const& [bytes, status, words] : {
             Bad{"GET / HTTP/1.1\r\n\r\n", 400, "one Host line; this one has 0"},
             Bad{"GET / HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n", 400, "this one has 2"},
             Bad{"GET x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "x is none"},
             Bad{"CONNECT h:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "h:1 is none"},
             Bad{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "speaks HTTP/1.1"},
             Bad{"\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03 and more\r\n\r\n", 400,
                 "no HTTP request"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n", 413,
                 "10 bytes"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nxxx",
                 413, "10 bytes"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: "
                 "2\r\n\r\n",
                 400, "no HTTP request"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: "
                 "chunked\r\n\r\n",
                 400, "no HTTP request"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                 501, "gzip, chunked"},
             Bad{"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 501,
                 "chunked"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n",
                 417, "tea"},
             Bad{"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                 "chunked\r\n\r\nxyzxyz\r\n",
                 400, "no HTTP request"},
         }) {
        WiredConnection wire{{.max_request_bytes = 10}};
        wire.send(bytes);
        auto const sent = wire.take();
        EXPECT_THAT(sent, StartsWith("HTTP/1.1 " + std::to_string(status) + " ")) << bytes;
        EXPECT_THAT(sent, AllOf(HasSubstr(words), HasSubstr("Connection: close\r\n"),
                                HasSubstr("{\"detail\":\"")))
            << bytes;
        EXPECT_TRUE(wire.handler.asked.empty()) << bytes;
        EXPECT_EQ(wire.next(), Next::linger) << bytes;
        ASSERT_EQ(wire.records.size(), 1U) << bytes;
        EXPECT_EQ(wire.records[0].status, status);
    }
}

TEST(ListenerConnection, LimitsAHeadThatComesInOnePieceOrLineByLine) {
    for (bool const by_line : {false, true}) {
        WiredConnection wire{{.max_header_bytes = 1000}};
        std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
        for (int i = 0; i < 100; ++i) head += "X-Line: 0123456789\r\n";
        if (by_line) {
            for (std::size_t at = 0; at < head.size(); at += 20) wire.send(head.substr(at, 20));
        } else {
            wire.send(head);
        }
        EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 431 ")) << by_line;
    }
}

TEST(ListenerConnection, LimitsWhatFollowsAChunkedBody) {
    WiredConnection wire{{.max_header_bytes = 1000}};
    wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ");
    for (int i = 0; i < 20; ++i) wire.send(std::string(100, 'x'));
    EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 431 "));
}

TEST(ListenerConnection, TakesAWholeUrlAsTarget) {
    WiredConnection wire;
    wire.send("GET http://127.0.0.1:80/a?b HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(wire.handler.asked.at(0).request.target, "/a?b");
    EXPECT_EQ(*wire.handler.asked.at(0).request.headers.find("Host"), "127.0.0.1:80");
}

// --- time ---------------------------------------------------------------------------------------

TEST(ListenerConnection, GivesASlowHeadUpAtItsTime) {
    WiredConnection wire{{.header_timeout = 20s}};
    wire.advance(10s);
    wire.send("GET / HT");
    wire.advance(19999ms);
    wire.send("TP/1.1\r\n");  // a byte now and then buys no time
    EXPECT_EQ(wire.take(), "");
    wire.advance(1ms);
    EXPECT_THAT(wire.take(), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("too slowly")));
}

TEST(ListenerConnection, ClosesAConnectionOnWhichNothingComesWithoutAWord) {
    WiredConnection wire{{.header_timeout = 20s, .idle_timeout = 5min}};
    wire.advance(20s);
    EXPECT_EQ(wire.next(), Next::linger);
    EXPECT_EQ(wire.take(), "");

    WiredConnection used{{.header_timeout = 20s, .idle_timeout = 5min}};
    used.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    used.advance(1h);  // a long poll may take its time
    reply(*used.handler.asked.at(0).answer, "");
    used.settle();
    (void)used.take();
    used.advance(299999ms);
    EXPECT_EQ(used.next(), Next::go_on);
    used.advance(1ms);
    EXPECT_EQ(used.next(), Next::linger);
}

TEST(ListenerConnection, GivesABodyUpThatComesTooSlowly) {
    WiredConnection wire{{.body_timeout = 30s, .min_body_bytes = 100}};
    wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
    wire.send(std::string(100, 'x'));
    wire.advance(30s);
    EXPECT_EQ(wire.take(), "");
    wire.send(std::string(99, 'x'));
    wire.advance(30s);
    EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 408 "));
}

TEST(ListenerConnection, GivesThePeerTimeToReadTheLastAnswer) {
    WiredConnection wire{{.linger = 2s}};
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    reply(*wire.handler.asked.at(0).answer, "");
    wire.settle();
    EXPECT_EQ(wire.next(), Next::linger);
    wire.send("more, of no use");
    wire.advance(1999ms);
    EXPECT_EQ(wire.next(), Next::linger);
    wire.advance(1ms);
    EXPECT_EQ(wire.next(), Next::close);
}

// --- ends ---------------------------------------------------------------------------------------

TEST(ListenerConnection, TellsTheHandlerOnceThatThePeerIsGone) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    int gone = 0;
    wire.handler.asked.at(0).answer->on_gone([&] {
        ++gone;
        wire.handler.asked.clear();  // drops the answer from inside
    });
    wire.connection->peer_ended();
    wire.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(wire.next(), Next::close);
}

TEST(ListenerConnection, TellsAHandlerThatAsksTooLate) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wire.connection->lost();
    int gone = 0;
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.on_gone([&] { ++gone; });
    EXPECT_EQ(gone, 0) << "not inside the call";
    wire.settle();
    EXPECT_EQ(gone, 1);
    reply(answer, "nobody reads this");
    EXPECT_EQ(answer.pending(), 0U);
}

TEST(ListenerConnection, AnswersAPeerThatOnlyClosedItsOwnSide) {
    WiredConnection wire;
    wire.send(
        "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wire.connection->peer_ended();
    reply(*wire.handler.asked.at(0).answer, "still");
    wire.settle();
    EXPECT_THAT(wire.take(), EndsWith("still"));
    EXPECT_EQ(wire.next(), Next::go_on) << "it asked for more before";
    reply(*wire.handler.asked.at(1).answer, "the last");
    wire.settle();
    EXPECT_THAT(wire.take(), EndsWith("the last"));
    EXPECT_EQ(wire.next(), Next::close);
}

TEST(ListenerConnection, ClosesTheConnectionOfAnAnswerThatIsDropped) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wire.handler.asked.clear();
    wire.settle();
    EXPECT_EQ(wire.next(), Next::close);
    EXPECT_EQ(wire.take(), "");
    EXPECT_EQ(wire.records.at(0).note, "given up by the server");
}

TEST(ListenerConnection, EndsAfterAnAnswerThatIsNotAsLongAsAnnounced) {
    for (std::string const body : {"ab", "abcd"}) {
        WiredConnection wire;
        wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        auto& answer = *wire.handler.asked.at(0).answer;
        answer.head(200, {}, 3);
        answer.data(body);
        answer.done();
        wire.settle();
        EXPECT_THAT(wire.take(), EndsWith("\r\n\r\n" + body.substr(0, 3)));
        EXPECT_EQ(wire.next(), Next::linger);
    }
}

TEST(ListenerConnection, TellsAStreamWhenThePeerHasTakenAll) {
    WiredConnection wire;
    wire.write_room = 0;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.head(200, {}, 1000);
    answer.data(std::string(1000, 'x'));
    EXPECT_GT(answer.pending(), 1000U);
    int drained = 0;
    answer.on_drained([&] { ++drained; });
    wire.write_room = answer.pending() - 1;
    wire.settle();
    EXPECT_EQ(drained, 0);
    EXPECT_EQ(answer.pending(), 1U);
    wire.write_room = 1;
    wire.settle();
    EXPECT_EQ(drained, 1);
    answer.on_drained([&] { ++drained; });
    wire.settle();
    EXPECT_EQ(drained, 2) << "at once, if nothing is pending";
}

TEST(ListenerConnection, TurnsAnExceptionIntoAnAnswer) {
    WiredConnection wire;
    wire.handler.act = [](ServerRequest&, std::shared_ptr<Answer> const&) {
        throw std::runtime_error{"the \"disk\" is full"};
    };
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(wire.take(),
                AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("the \\\"disk\\\" is full")));
    EXPECT_EQ(wire.next(), Next::go_on);
}

TEST(ListenerConnection, WritesNoLineThatAValueCouldEnd) {
    WiredConnection wire;
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.head(200, {{"X-Echo", "a\r\nSet-Cookie: b"}, {"Connection", "upgrade"}}, 0);
    answer.done();
    wire.settle();
    EXPECT_THAT(wire.take(),
                AllOf(HasSubstr("X-Echo: a  Set-Cookie: b\r\n"), Not(HasSubstr("upgrade"))));
}

TEST(ListenerConnection, RetiresAtOnceIfIdleAndElseWithTheAnswer) {
    WiredConnection idle;
    idle.connection->retire();
    idle.settle();
    EXPECT_EQ(idle.next(), Next::linger);

    WiredConnection busy;
    busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    busy.connection->retire();
    EXPECT_EQ(busy.next(), Next::go_on);
    reply(*busy.handler.asked.at(0).answer, "last");
    busy.settle();
    EXPECT_THAT(busy.take(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("last")));
    EXPECT_EQ(busy.next(), Next::linger);
}

TEST(ListenerConnection, RecordsRequestsWithoutTheirQueries) {
    WiredConnection wire;
    wire.send("POST /d?token=secret HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
    wire.clock.advance(7ms);
    reply(*wire.handler.asked.at(0).answer, "four", 404);
    ASSERT_EQ(wire.records.size(), 1U);
    auto const& record = wire.records[0];
    EXPECT_EQ(record.method, "POST");
    EXPECT_EQ(record.path, "/d");
    EXPECT_EQ(record.status, 404);
    EXPECT_EQ(record.request_bytes, 2U);
    EXPECT_EQ(record.answer_bytes, 4U);
    EXPECT_EQ(record.time, 7ms);
    EXPECT_EQ(record.note, "");
}

}  // namespace
}  // namespace tinkxx::local
