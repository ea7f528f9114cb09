// What a peer can make a connection hold, and for how long.
#include "support/memory/wired_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using Next = ServerConnection::Next;
using test::reply;
using test::WiredConnection;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::size_t kib = 1024;

/// What a connection holds at most, beside the body of a request and the answer that it was given
/// last.
std::size_t bound(ListenerLimits const& limits) {
    auto const kept =
        limits.max_header_bytes + std::max(limits.max_kept_bytes, std::size_t{64} * kib);
    auto const head = limits.max_header_bytes + limits.max_header_lines * 2 * sizeof(Header);
    return kept + head + limits.max_unsent_bytes + 64;
}

std::string get_number(int number) {
    return "GET /" + std::to_string(number) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
        ++count;
    }
    return count;
}

/// Another connection of the same listener, whose peer takes nothing.
class Other final : public ServerConnection::Carrier {
public:
    explicit Other(ConnectionShare& share)
        : connection{std::make_unique<ServerConnection>(share, *this)} {}
    void send(std::string_view bytes) {
        connection->received(std::span{bytes.data(), bytes.size()});
    }
    std::unique_ptr<ServerConnection> connection;

private:
    void on_change() override {}
};

// --- answers ------------------------------------------------------------------------------------

TEST(ListenerTurns, AFloodOfSmallRequestsLeavesTurnsToOthers) {
    WiredConnection wire;
    wire.handler.act = [](auto&, auto answer) { reply(*answer, "x"); };
    int served = 0;
    wire.share.on_request = [&](auto const&) { ++served; };
    std::string flood;
    for (int i = 0; i < 100; ++i) flood += "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    auto& connection = *wire.connection;
    connection.next_turn();
    connection.received(std::span{flood.data(), flood.size()});
    connection.proceed();
    EXPECT_EQ(served, 2);
    EXPECT_TRUE(connection.wants_turn());
    connection.proceed();
    EXPECT_EQ(served, 2);
    connection.next_turn();
    connection.proceed();
    EXPECT_EQ(served, 4);
    wire.settle();
    EXPECT_EQ(served, 100);
    EXPECT_FALSE(connection.wants_turn());
}

TEST(ListenerBounds, TenThousandPipelinedRequestsOfAPeerThatDoesNotReadStayWithinTheBound) {
    constexpr int requests = 10'000;
    ListenerLimits const limits;
    EXPECT_LE(bound(limits), 512 * kib);
    WiredConnection wire{limits};
    wire.write_room = 0;
    int handled = 0;
    wire.handler.act = [&](ServerRequest& request, std::shared_ptr<Answer> const& answer) {
        ++handled;
        reply(*answer, "[" + request.target + "]" + std::string(2000, 'x'));
    };
    std::string all;
    for (int i = 0; i < requests; ++i) all += get_number(i);

    auto at = wire.offer(all);
    EXPECT_LT(at, 256 * kib) << "the rest stays in the socket";
    EXPECT_LT(handled, 256);
    EXPECT_EQ(wire.connection->input_room(), 0U);
    EXPECT_LE(wire.most_held, bound(limits) + 3000);

    // Once it reads, it gets every answer in turn.
    while (at < all.size() || wire.connection->unsent() > 0) {
        wire.write_room = 100'000;
        wire.settle();
        at += wire.offer(std::string_view{all}.substr(at));
    }
    EXPECT_EQ(handled, requests);
    EXPECT_LE(wire.most_held, bound(limits) + 3000);
    std::size_t place = 0;
    for (int i = 0; i < requests; ++i) {
        place = wire.sent.find("[/" + std::to_string(i) + "]", place);
        ASSERT_NE(place, std::string::npos) << i;
    }
    EXPECT_EQ(count_of(wire.sent, "HTTP/1.1 200 OK\r\n"), static_cast<std::size_t>(requests));
    EXPECT_EQ(wire.share.sending, 0U);
    EXPECT_EQ(wire.share.receiving, 0U);
}

TEST(ListenerBounds, ReadsTheNextRequestWhenThePeerHasTakenEnough) {
    WiredConnection wire{{.max_unsent_bytes = 1000}};
    wire.write_room = 0;
    wire.send(std::string{get} + std::string{get});
    ASSERT_THAT(wire.handler.asked, SizeIs(1));
    reply(*wire.handler.asked[0].answer, std::string(2000, 'x'));
    wire.settle();
    EXPECT_THAT(wire.handler.asked, SizeIs(1));
    EXPECT_TRUE(wire.connection->wants_input()) << "a little is kept";

    wire.write_room = wire.connection->unsent() - 1;  // all is in one piece of memory
    wire.settle();
    EXPECT_THAT(wire.handler.asked, SizeIs(1));
    wire.write_room = 1;
    wire.settle();
    EXPECT_THAT(wire.handler.asked, SizeIs(2));
}

TEST(ListenerBounds, EveryKindOfPipelinedRequestStaysWithinTheBound) {
    std::string const line(60 * kib, 'a');
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += "X-" + std::to_string(i) + ": y\r\n";
    for (std::string const& request : {
             std::string{"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
             std::string{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"},
             std::string{"PUT / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                         "Content-Length: 1\r\n\r\nx"},
             std::string{"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "1;name=value\r\nx\r\n0\r\nTrailer: 1\r\n\r\n"},
             "GET /" + line + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n",
         }) {
        for (bool const later : {false, true}) {
            ListenerLimits const limits;
            WiredConnection wire{limits};
            wire.write_room = 0;
            std::vector<std::shared_ptr<Answer>> answers;
            wire.handler.act = [&](ServerRequest&, std::shared_ptr<Answer> answer) {
                if (later) return answers.push_back(std::move(answer));
                reply(*answer, std::string(5000, 'x'));
            };
            std::string all;
            while (all.size() < 8000 * kib) all += request;
            std::size_t at = 0;
            for (int round = 0; round < 20'000; ++round) {
                at += wire.offer(std::string_view{all}.substr(at));
                ASSERT_LE(answers.size(), 1U) << "one at a time";
                for (auto const& answer : std::exchange(answers, {})) {
                    reply(*answer, std::string(5000, 'x'));
                }
                wire.settle();
            }
            EXPECT_LT(at, all.size()) << request.substr(0, 80);
            EXPECT_EQ(wire.connection->input_room(), 0U) << request.substr(0, 80);
            EXPECT_LE(wire.most_held, bound(limits) + 6000) << request.substr(0, 80);
            EXPECT_EQ(wire.next(), Next::go_on) << request.substr(0, 80);
        }
    }
}

TEST(ListenerBounds, CutsAPeerThatTakesItsAnswerByteByByte) {
    WiredConnection wire{{.write_timeout = 60s, .min_answer_bytes = 100}};
    wire.write_room = 0;
    wire.send(get);
    int gone = 0;
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.on_gone([&] { ++gone; });
    answer.head(200, {}, std::nullopt);
    answer.data(std::string(1000, 'x'));
    // As much as it must, and each time the next minute begins.
    for (int minute = 0; minute < 2; ++minute) {
        wire.write_room = 100;
        wire.settle();
        wire.advance(30s);
        EXPECT_EQ(wire.stalls, minute + 1) << "the carrier may try once more";
        wire.advance(30s);
        EXPECT_EQ(wire.next(), Next::go_on);
    }
    for (int second = 0; second < 59; ++second) {
        wire.write_room = 1;
        wire.advance(1s);
    }
    EXPECT_EQ(wire.next(), Next::go_on);
    wire.advance(1s);
    EXPECT_EQ(wire.next(), Next::close);
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(wire.share.sending, 0U);
    ASSERT_THAT(wire.records, SizeIs(1));
    EXPECT_EQ(wire.records[0].note, "cut: the peer took its answer too slowly");
}

TEST(ListenerBounds, LetsAPeerWaitForTheNextPartOfAStreamAsLongAsItTakes) {
    WiredConnection wire{{.write_timeout = 60s, .min_answer_bytes = 100}};
    wire.send(get);
    auto& answer = *wire.handler.asked.at(0).answer;
    answer.head(200, {}, std::nullopt);
    for (int i = 0; i < 10; ++i) {
        answer.data("x");
        wire.settle();
        wire.advance(59s);
        EXPECT_EQ(wire.next(), Next::go_on);
    }
}

TEST(ListenerBounds, GivesAPeerNoTimeToReadForMoreRequests) {
    WiredConnection wire{{.write_timeout = 60s}};
    wire.handler.act = [](ServerRequest&, std::shared_ptr<Answer> const& answer) {
        reply(*answer, "ok");
    };
    wire.write_room = 0;
    for (int i = 0; i < 6; ++i) {
        wire.send(get);
        EXPECT_EQ(wire.next(), Next::go_on);
        wire.advance(10s);
    }
    EXPECT_EQ(wire.next(), Next::close);
    // Six that were answered, and the last once more.
    ASSERT_THAT(wire.records, SizeIs(7));
    EXPECT_EQ(wire.records[5].note, "");
    EXPECT_THAT(wire.records[6].note, HasSubstr("too slowly"));
}

TEST(ListenerBounds, CutsWhoTookSomethingLongestAgoWhenAllTogetherHaveTooMuchUnsent) {
    WiredConnection wire{{.max_sending_bytes = 10'000}};
    wire.write_room = 0;
    Other idle{wire.share};
    Other first{wire.share};
    Other second{wire.share};
    auto const give = [&](std::size_t bytes) {
        reply(*std::exchange(wire.handler.asked, {}).at(0).answer, std::string(bytes, 'x'));
    };
    first.send(get);
    give(3000);
    second.send(get);
    give(3000);
    first.connection->wrote(1);  // so the second waits for longer
    wire.send(get);
    give(3000);
    EXPECT_THAT(wire.troubles, IsEmpty());
    EXPECT_LE(wire.share.sending, 10'000U);

    wire.records.clear();
    wire.settle();
    wire.send(get);
    give(2000);
    EXPECT_EQ(second.connection->next(), Next::close);
    EXPECT_EQ(first.connection->next(), Next::go_on);
    EXPECT_EQ(idle.connection->next(), Next::go_on);
    EXPECT_EQ(wire.next(), Next::go_on);
    EXPECT_LE(wire.share.sending, 10'000U);
    EXPECT_EQ(wire.share.cut, 1U);
    EXPECT_THAT(wire.troubles, ElementsAre(HasSubstr("wait for clients to read them")));
    ASSERT_THAT(wire.records, SizeIs(2));
    EXPECT_THAT(wire.records[0].note, StartsWith("cut: more than 9 KiB of answers were unsent"));
    EXPECT_EQ(wire.records[1].note, "");

    // Many are cut, and the log has a line now and then.
    wire.send(get);
    give(6000);
    EXPECT_EQ(first.connection->next(), Next::close);
    EXPECT_THAT(wire.troubles, SizeIs(1));
}

TEST(ListenerBounds, TellsAHandlerThatItsAnswerIsCutAfterItsOwnCall) {
    WiredConnection wire{{.max_sending_bytes = 10'000}};
    wire.write_room = 0;
    wire.send(get);
    auto& answer = *wire.handler.asked.at(0).answer;
    int gone = 0;
    int drained = 0;
    answer.on_gone([&] {
        ++gone;
        wire.handler.asked.clear();
    });
    answer.on_drained([&] { ++drained; });
    answer.head(200, {}, std::nullopt);
    answer.data(std::string(20'000, 'x'));
    EXPECT_EQ(gone, 0) << "not inside the call";
    EXPECT_EQ(answer.pending(), 0U);
    answer.data("more, which is dropped");
    EXPECT_EQ(wire.share.sending, 0U);
    wire.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(drained, 1) << "nothing was pending when it asked";
    EXPECT_EQ(wire.next(), Next::close);
    ASSERT_THAT(wire.records, SizeIs(1));
    EXPECT_THAT(wire.records[0].note, StartsWith("cut: more than"));

    // One that ends its answer in that call is not told.
    WiredConnection ends{{.max_sending_bytes = 10'000}};
    ends.send(get);
    ends.handler.asked.at(0).answer->on_gone([&] { ++gone; });
    reply(*ends.handler.asked.at(0).answer, std::string(20'000, 'x'));
    ends.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(ends.next(), Next::close);
    EXPECT_THAT(ends.records, SizeIs(1));
}

// --- requests -----------------------------------------------------------------------------------

TEST(ListenerBounds, KeepsAFewPipelinedBytesAndNoMore) {
    WiredConnection wire;
    wire.send(get);
    EXPECT_EQ(wire.connection->input_room(), 64 * kib);
    wire.send(std::string(60 * kib, 'x'));
    EXPECT_EQ(wire.connection->input_room(), 4 * kib);
    wire.send(std::string(4 * kib, 'x'));
    EXPECT_FALSE(wire.connection->wants_input());
    EXPECT_LE(wire.connection->held(), 129 * kib);
}

TEST(ListenerBounds, CountsTheMemoryOfBodiesAsTheyCome) {
    WiredConnection wire;
    wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n");
    EXPECT_LT(wire.share.receiving, 1000U) << "nothing is taken for an announcement";
    wire.send(std::string(10'000, 'x'));
    EXPECT_GE(wire.share.receiving, 10'000U);
    wire.send(std::string(1000, 'x'));
    EXPECT_GE(wire.share.receiving, 20'000U) << "room to grow counts as well";
    wire.connection->lost();
    EXPECT_EQ(wire.share.receiving, 0U);

    WiredConnection chunked;
    chunked.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; ++i) chunked.send("a\r\n0123456789\r\n");
    EXPECT_GE(chunked.share.receiving, 1000U);
    chunked.send("0\r\n\r\n");
    EXPECT_EQ(chunked.handler.asked.at(0).request.body.size(), 1000U);
    EXPECT_EQ(chunked.share.receiving, 0U) << "it is the handler's now";

    // A body takes no more than was announced, however it grows.
    WiredConnection exact;
    exact.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n");
    for (int i = 0; i < 7; ++i) exact.send(std::string(10'000, 'x'));
    EXPECT_EQ(std::move(exact.handler.asked.at(0).request.body).join().capacity(), 70'000U);
}

TEST(ListenerBounds, LimitsTheBodiesThatAreOnTheirWay) {
    WiredConnection wire{{.max_receiving_bytes = 100'000}};
    wire.share.receiving = 60'000;  // of others
    wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40001\r\n\r\n");
    EXPECT_THAT(wire.take(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("retry-after-ms: 1000")));
    EXPECT_EQ(wire.share.receiving, 60'000U);

    for (std::string const how :
         {"Transfer-Encoding: chunked\r\n\r\nffff\r\n", "Content-Length: 39999\r\n\r\n"}) {
        WiredConnection grows{{.max_receiving_bytes = 100'000}};
        grows.share.receiving = 60'000;
        grows.send("POST / HTTP/1.1\r\nHost: localhost\r\n" + how + std::string(15'000, 'x'));
        EXPECT_EQ(grows.take(), "");
        EXPECT_GE(grows.share.receiving, 75'000U);
        grows.share.receiving += 20'000;  // others came between
        grows.send(std::string(10'000, 'x'));
        EXPECT_THAT(grows.take(), StartsWith("HTTP/1.1 503 "));
        EXPECT_EQ(grows.share.receiving, 80'000U);
        EXPECT_EQ(grows.connection->held(), 0U) << "and nothing is held while it lingers";
    }
}

TEST(ListenerBounds, CountsWhatIsKeptBehindARequest) {
    WiredConnection wire{{.max_receiving_bytes = 100'000}};
    wire.send(get);
    wire.share.receiving = 60'000;
    wire.send(std::string(30'000, 'x'));
    EXPECT_GE(wire.share.receiving, 90'000U);
    // Beyond the limit it is dropped, and the answer under way is the last.
    wire.send(std::string(30'000, 'x'));
    EXPECT_EQ(wire.share.receiving, 60'000U);
    reply(*wire.handler.asked.at(0).answer, "last");
    wire.settle();
    EXPECT_THAT(wire.take(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("last")));
    EXPECT_EQ(wire.next(), Next::linger);

    // The same behind answers that are not taken.
    WiredConnection full{{.max_receiving_bytes = 100'000, .max_unsent_bytes = 1000}};
    full.write_room = 0;
    full.send(get);
    reply(*full.handler.asked.at(0).answer, std::string(2000, 'x'));
    full.share.receiving = 90'000;
    full.send(std::string(20'000, 'x'));
    EXPECT_EQ(full.share.receiving, 90'000U);
    full.write_room = SIZE_MAX;
    full.settle();
    EXPECT_EQ(full.next(), Next::linger);

    // Who holds nothing is left alone.
    WiredConnection idle{{.max_receiving_bytes = 100'000}};
    idle.share.receiving = 100'001;
    idle.settle();
    EXPECT_EQ(idle.next(), Next::go_on);
}

TEST(ListenerBounds, LengthsOfBodiesAreReadWithoutLosingAPart) {
    struct Case {
        char const* text;
        int status;
    };
    std::string const post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
    for (auto const& [length, status] : {
             Case{"11", 413},
             Case{"9223372036854775807", 413},
             Case{"18446744073709551615", 413},
             Case{"18446744073709551616", 400},  // 0, were the upper bits lost
             Case{"18446744073709551626", 400},
             Case{"340282366920938463463374607431768211456", 400},
             Case{"-1", 400},
             Case{"+1", 400},
             Case{"0x1", 400},
             Case{"1e1", 400},
             Case{"1.0", 400},
             Case{"1, 2", 400},
             Case{"", 400},
         }) {
        WiredConnection wire{{.max_request_bytes = 10}};
        wire.send(post + "Content-Length: " + length + "\r\n\r\n");
        EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 " + std::to_string(status) + " ")) << length;
        EXPECT_THAT(wire.handler.asked, IsEmpty()) << length;
        EXPECT_EQ(wire.share.receiving, 0U) << length;
    }
    for (auto const& [size, status] : {
             Case{"b", 413},
             Case{"7fffffffffffffff", 413},
             Case{"ffffffffffffffff", 413},
             Case{"10000000000000000", 400},
             Case{"1000000000000000a", 400},
             Case{"-1", 400},
             Case{"+1", 400},
             Case{"0x1", 400},
             Case{"g", 400},
         }) {
        WiredConnection wire{{.max_request_bytes = 10}};
        wire.send(post + "Transfer-Encoding: chunked\r\n\r\n" + size +
                  "\r\n0123456789abcdef\r\n\r\n");
        EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 " + std::to_string(status) + " ")) << size;
        EXPECT_THAT(wire.handler.asked, IsEmpty()) << size;
    }
    // Chunks that are small each, and more than the limit together.
    WiredConnection many{{.max_request_bytes = 10}};
    many.send(post + "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n");
    EXPECT_THAT(many.take(), StartsWith("HTTP/1.1 413 "));
    // Without a limit of its own, that of all requests holds.
    WiredConnection open{{.max_request_bytes = SIZE_MAX}};
    open.share.receiving = 100;
    open.send(post + "Content-Length: 18446744073709551615\r\n\r\n");
    EXPECT_THAT(open.take(), StartsWith("HTTP/1.1 503 "));
}

TEST(ListenerBounds, LimitsHowManyHeaderLinesThereAre) {
    for (int const lines : {255, 256}) {
        WiredConnection wire;
        std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
        for (int i = 0; i < lines; ++i) head += "a:b\r\n";
        wire.offer(head + "\r\n");
        if (lines == 255) {
            EXPECT_THAT(wire.handler.asked, SizeIs(1));
        } else {
            EXPECT_THAT(wire.take(), AllOf(StartsWith("HTTP/1.1 431 "),
                                           HasSubstr("more than 256 header lines")));
        }
    }
}

TEST(ListenerBounds, LimitsWhatIsReadAndWhatIsKeptOfAHeadTogether) {
    WiredConnection wire{{.max_header_bytes = 1000}};
    wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 25; ++i) wire.send("X-Line: 0123456789abcdef\r\n");
    EXPECT_EQ(wire.take(), "");
    wire.send("X-Long: " + std::string(400, 'x'));
    EXPECT_THAT(wire.take(), StartsWith("HTTP/1.1 431 "));
}

// --- ends ---------------------------------------------------------------------------------------

TEST(ListenerBounds, AnswersAllThatAPeerAskedBeforeItClosedItsSide) {
    WiredConnection wire{{.max_unsent_bytes = 5000}};
    wire.write_room = 0;
    int handled = 0;
    wire.handler.act = [&](ServerRequest&, std::shared_ptr<Answer> const& answer) {
        ++handled;
        reply(*answer, std::string(1000, 'x'));
    };
    std::string all;
    for (int i = 0; i < 100; ++i) all += get;
    ASSERT_EQ(wire.offer(all), all.size());
    EXPECT_LT(handled, 10);
    wire.connection->peer_ended();
    wire.settle();
    EXPECT_EQ(wire.next(), Next::go_on);
    wire.write_room = SIZE_MAX;
    wire.settle();
    EXPECT_EQ(handled, 100);
    EXPECT_EQ(count_of(wire.sent, "HTTP/1.1 200 OK\r\n"), 100U);
    EXPECT_EQ(wire.next(), Next::close);

    // Half a request behind them is none.
    WiredConnection half{{.max_unsent_bytes = 100}};
    half.write_room = 0;
    half.send(std::string{get} + "GET /");
    reply(*half.handler.asked.at(0).answer, std::string(1000, 'x'));
    half.settle();
    half.connection->peer_ended();
    half.write_room = SIZE_MAX;
    half.settle();
    EXPECT_EQ(half.next(), Next::close);
}

TEST(ListenerBounds, TellsWhoAnswersThatThePeerClosesThoughMoreIsToBeRead) {
    WiredConnection wire;
    wire.send(get);
    int gone = 0;
    wire.handler.asked.at(0).answer->on_gone([&] { ++gone; });
    wire.send(std::string(64 * kib, 'x'));
    wire.connection->peer_closes();
    wire.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(wire.next(), Next::go_on) << "it may still read";
}

TEST(ListenerBounds, RecordsARequestOnceWhenItsConnectionDies) {
    WiredConnection answering;
    answering.send(get);
    answering.connection->lost();
    answering.connection->lost();
    answering.handler.asked.clear();
    ASSERT_THAT(answering.records, SizeIs(1));
    EXPECT_EQ(answering.records[0].note, "the peer is gone");
    EXPECT_EQ(answering.records[0].status, 0);

    for (bool const ends : {false, true}) {
        WiredConnection sending;
        sending.send("PUT /big HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
        ends ? sending.connection->peer_ended() : sending.connection->lost();
        sending.settle();
        ASSERT_THAT(sending.records, SizeIs(1)) << ends;
        EXPECT_EQ(sending.records[0].path, "/big");
        EXPECT_EQ(sending.records[0].note, "the peer is gone");
        EXPECT_EQ(sending.next(), Next::close);
    }

    WiredConnection idle;
    idle.send(get);
    reply(*idle.handler.asked.at(0).answer, "ok");
    idle.settle();
    idle.connection->lost();
    EXPECT_THAT(idle.records, SizeIs(1));
}

TEST(ListenerBounds, AnIdleConnectionHoldsNothing) {
    WiredConnection wire;
    for (int i = 0; i < 3; ++i) {
        wire.send(std::string{get} + "GET /" + std::string(30 * kib, 'x'));
        reply(*wire.handler.asked.back().answer, std::string(100 * kib, 'x'));
        wire.settle();
        wire.send(" HTTP/1.1\r\nHost: localhost\r\n\r\n");
        reply(*wire.handler.asked.back().answer, "ok");
        wire.settle();
        EXPECT_EQ(wire.connection->held(), 0U);
    }
}

}  // namespace
}  // namespace tinkxx::local
