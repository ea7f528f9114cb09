// Requests and answers of every size, over both protocols, with and without TLS.
#include "socket/modes.hpp"

#include <gmock/gmock.h>

#include <set>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;

class Exchanges : public testing::TestWithParam<Mode> {
protected:
    HttpDriver driver{net_options(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(, Exchanges, all_modes(), mode_name);

TEST_P(Exchanges, BodiesOfEverySizeComeBackAsTheyWere) {
    HttpServer server{echo, server_options(GetParam())};
    for (std::size_t const size : {0UL, 1UL, 100UL, 16383UL, 16384UL, 16385UL, 65535UL, 65536UL,
                                   200'000UL, 1'000'003UL, 5'000'000UL}) {
        auto const body = pattern(size, static_cast<unsigned>(size));

        auto const outcome = driver.post(server.url("/echo"), body);

        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.head->http_version, GetParam().http2() ? 20 : 11);
        EXPECT_TRUE(outcome.body == body) << "the body of " << size << " bytes was changed";
    }
}

TEST_P(Exchanges, BothPiecesOfABodyAreSentInOrder) {
    HttpServer server{echo, server_options(GetParam())};
    auto const head = pattern(70'000, 1);
    auto const tail = pattern(90'000, 2);
    auto request = post_request(server.url(), tail);
    request.body.head = std::make_shared<std::string const>(head);

    auto const outcome = driver.run(request);

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    EXPECT_TRUE(outcome.body == head + tail);
}

TEST_P(Exchanges, HeadersOfTheRequestAndOfManyRequestsArrive) {
    ReceivedRequest seen;
    HttpServer server{[&](ReceivedRequest const& request) {
                          seen = request;
                          return Reaction{.answer = {.headers = {{"x-one", "1"}, {"x-two", "2"}}}};
                      },
                      server_options(GetParam())};
    auto request = post_request(server.url("/a/b?c=d&e=%20"), "body");
    request.common_headers = std::make_shared<Headers>(Headers{{"x-common", "every"}});
    request.headers.add("X-Mixed-Case", "kept");
    request.headers.add("x-empty", "");

    auto const outcome = driver.run(request);

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    EXPECT_EQ(outcome.header("X-One"), "1");
    EXPECT_EQ(outcome.header("x-two"), "2");
    EXPECT_EQ(seen.method, "POST");
    EXPECT_EQ(seen.target, "/a/b?c=d&e=%20");
    EXPECT_EQ(seen.header("x-common"), "every");
    EXPECT_EQ(seen.header("x-mixed-case"), "kept");
    EXPECT_TRUE(seen.headers.contains("x-empty"));
    EXPECT_EQ(seen.header("content-length"), "4");
}

TEST_P(Exchanges, EveryStatusIsAnAnswer) {
    HttpServer server{[](ReceivedRequest const& request) {
                          return Reaction{.answer = {.status = std::stoi(request.target.substr(1)),
                                                     .body = "said"}};
                      },
                      server_options(GetParam())};
    for (int const status : {200, 201, 299, 400, 401, 404, 408, 409, 418, 429, 500, 503, 599}) {
        auto const outcome = driver.get(server.url("/" + std::to_string(status)));
        EXPECT_EQ(outcome.status(), status) << outcome.text();
        EXPECT_EQ(outcome.body, "said");
    }
}

TEST_P(Exchanges, AnswersWithoutABodyEnd) {
    HttpServer server{
        [](ReceivedRequest const& request) {
            return Reaction{.answer = {.status = std::stoi(request.target.substr(1))}};
        },
        server_options(GetParam())};
    for (int const status : {200, 204, 304}) {
        auto const outcome = driver.get(server.url("/" + std::to_string(status)));
        EXPECT_EQ(outcome.status(), status) << outcome.text();
        EXPECT_EQ(outcome.body, "");
    }
    EXPECT_EQ(server.counts().connections, 1);
}

TEST_P(Exchanges, ConnectionsAreUsedAgain) {
    HttpServer server{echo, server_options(GetParam())};
    for (int i = 0; i < 20; ++i) {
        auto const outcome = driver.post(server.url(), "x");
        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.timing.new_connection, i == 0);
    }
    EXPECT_EQ(server.counts().connections, 1);
}

TEST_P(Exchanges, TimingNamesTheStepsInOrder) {
    HttpServer server{echo, server_options(GetParam())};

    auto const outcome = driver.post(server.url(), pattern(1000));

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    auto const& timing = outcome.timing;
    EXPECT_LE(timing.started, timing.connected);
    EXPECT_LE(timing.connected, timing.sent);
    EXPECT_LE(timing.sent, timing.first_byte);
    EXPECT_LE(timing.first_byte, timing.finished);
    EXPECT_NE(timing.started, TimePoint{});
    EXPECT_EQ(timing.bytes_received, 1000U);
}

TEST_P(Exchanges, APausedAnswerWaitsAndTheServerIsHeldBack) {
    auto const body = pattern(48'000'000);
    HttpServer server{[&](ReceivedRequest const& request) {
                          return Reaction{.answer = {.body = request.target == "/big" ? body : ""}};
                      },
                      server_options(GetParam())};
    auto& big = driver.start_and_pause_after(get_request(server.url("/big")), 10'000);
    big.wait_for_bytes(10'000);
    driver.on_loop([] {});
    auto const received = big.received();

    // The server sends until all buffers on the way are full; small requests meanwhile go
    // through, and once many of them saw no further byte sent, it is held back.
    std::uint64_t before = 0;
    for (int quiet = 0; quiet < 20; ++quiet) {
        ASSERT_EQ(driver.get(server.url("/small")).status(), 200);
        auto const now = server.counts().bytes_sent;
        if (now > before + 2000) quiet = 0;
        before = now;
    }
    EXPECT_LT(before, body.size() / 2) << "the server was not held back";
    EXPECT_EQ(big.received(), received) << "data came while paused";

    big.pause(false);
    auto const outcome = big.wait();
    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    EXPECT_TRUE(outcome.body == body);
}

TEST_P(Exchanges, PausingAgainAndAgainLosesNothing) {
    auto const body = pattern(3'000'000, 7);
    HttpServer server{[&](ReceivedRequest const&) { return Reaction{.answer = {.body = body}}; },
                      server_options(GetParam())};
    auto& exchange = driver.start(get_request(server.url()));
    for (std::size_t part = 1; part < 20; ++part) {
        exchange.wait_for_bytes(part * 100'000);
        exchange.pause(true);
        exchange.pause(false);
    }
    EXPECT_TRUE(exchange.wait().body == body) << exchange.wait().text();
}

TEST_P(Exchanges, APauseDoesNotCountAsSilenceOfTheServer) {
    auto const body = pattern(2'000'000);
    HttpServer server{[&](ReceivedRequest const&) { return Reaction{.answer = {.body = body}}; },
                      server_options(GetParam())};
    auto request = get_request(server.url());
    request.timeouts.read = 200ms;
    auto& paused = driver.start_and_pause_after(request, 1);
    paused.wait_for_bytes(1);

    driver.let_pass(300ms);

    EXPECT_FALSE(paused.ended());
    paused.pause(false);
    EXPECT_TRUE(paused.wait().body == body) << paused.wait().text();
}

TEST_P(Exchanges, CancelBeforeTheConnectionIsMadeEndsQuietly) {
    HttpServer server{echo, server_options(GetParam())};
    driver.on_loop([&] {
        struct Never final : ReplySink {
            void on_head(Head) override { ADD_FAILURE(); }
            void on_data(std::span<char const>) override { ADD_FAILURE(); }
            void on_done(Timing const&) override { ADD_FAILURE(); }
            void on_failure(Failure) override { ADD_FAILURE(); }
        } never;
        auto const call = driver.transport().start(post_request(server.url(), "x"), never);
        driver.transport().cancel(call);
        driver.transport().cancel(call);
    });
    EXPECT_EQ(driver.post(server.url(), "y").body, "y");
    EXPECT_EQ(server.counts().requests, 1);
}

TEST_P(Exchanges, CancelWhileTheAnswerIsAwaitedFreesTheServer) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.hold = request.target == "/held";
                          return reaction;
                      },
                      server_options(GetParam())};
    auto& exchange = driver.start(post_request(server.url("/held"), "x"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));

    exchange.cancel();

    if (GetParam().http2()) {
        EXPECT_TRUE(server.wait_for([](auto const& seen) { return seen.resets == 1; }));
        EXPECT_EQ(driver.post(server.url(), "y").body, "y");
        EXPECT_EQ(server.counts().connections, 1) << "one cancelled stream cost the connection";
    } else {
        EXPECT_TRUE(server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
        EXPECT_EQ(driver.post(server.url(), "y").body, "y");
    }
}

TEST_P(Exchanges, CancelInsideTheHeadAndInTheMiddleOfABodyEndsQuietly) {
    auto const body = pattern(3'000'000);
    HttpServer server{[&](ReceivedRequest const&) { return Reaction{.answer = {.body = body}}; },
                      server_options(GetParam())};
    for (int i = 0; i < 5; ++i) {
        auto& in_body = driver.start_and_pause_after(get_request(server.url()), 1);
        in_body.wait_for_bytes(1);
        in_body.cancel();
    }
    EXPECT_TRUE(driver.get(server.url()).body == body);
}

TEST_P(Exchanges, CancelFromInsideOnHeadIsObeyedAtOnce) {
    HttpServer server{
        [](ReceivedRequest const&) { return Reaction{.answer = {.body = pattern(100'000)}}; },
        server_options(GetParam())};
    struct Hasty final : ReplySink {
        void on_head(Head) override { transport->cancel(call); }
        void on_data(std::span<char const>) override { ADD_FAILURE() << "data after cancel"; }
        void on_done(Timing const&) override { ADD_FAILURE() << "done after cancel"; }
        void on_failure(Failure) override { ADD_FAILURE() << "failure after cancel"; }
        Transport* transport{};
        Call call{};
    } hasty;
    driver.on_loop([&] {
        hasty.transport = &driver.transport();
        hasty.call = driver.transport().start(get_request(server.url()), hasty);
    });
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));
    EXPECT_EQ(driver.get(server.url()).body.size(), 100'000U);
    driver.on_loop([&] { driver.transport().cancel(hasty.call); });
}

TEST_P(Exchanges, ManyCancelledAmongManyAnsweredLeaveTheOthersAlone) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.hold = true;
                          return reaction;
                      },
                      server_options(GetParam())};
    std::vector<Request> requests;
    for (unsigned i = 0; i < 200; ++i) {
        requests.push_back(with_id(post_request(server.url(), pattern(1000 + i * 50, i))));
    }
    auto const calls = driver.start_all(requests);
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests >= 100; }));
    for (std::size_t i = 0; i < calls.size(); i += 2) calls[i]->cancel();
    server.release();
    for (std::size_t i = 1; i < calls.size(); i += 2) {
        auto const& outcome = calls[i]->wait();
        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_TRUE(outcome.body == *requests[i].body.tail);
    }
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

TEST_P(Exchanges, ASinkMayStartTheNextRequestFromInsideItsEnd) {
    HttpServer server{echo, server_options(GetParam())};
    struct Chain final : ReplySink {
        void on_head(Head head) override { EXPECT_EQ(head.status, 200); }
        void on_data(std::span<char const>) override {}
        void on_done(Timing const&) override {
            if (--left > 0) {
                transport->start(request, *this);
            } else {
                finished.open();
            }
        }
        void on_failure(Failure failure) override {
            ADD_FAILURE() << failure.message;
            finished.open();
        }
        Transport* transport{};
        Request request{};
        int left{100};
        Gate finished{};
    } chain;
    chain.request = post_request(server.url(), "again");
    driver.on_loop([&] {
        chain.transport = &driver.transport();
        chain.transport->start(chain.request, chain);
    });
    EXPECT_TRUE(chain.finished.wait_until_open());
    EXPECT_EQ(server.counts().requests, 100);
    EXPECT_EQ(server.counts().connections, 1);
}

TEST_P(Exchanges, HeadRequestsHaveNoBodyWhateverTheirLengthSays) {
    if (GetParam().http2()) GTEST_SKIP() << "frames say where a body ends";
    ScriptServer server{[](Wire& wire) {
                            while (auto const request = read_request(wire)) {
                                EXPECT_EQ(request->method, "HEAD");
                                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
                            }
                        },
                        script_options(GetParam())};
    auto request = get_request(server.url());
    request.method = "HEAD";
    for (int i = 0; i < 3; ++i) {
        auto const outcome = driver.run(request);
        EXPECT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.body, "");
    }
    EXPECT_EQ(server.connections(), 1);
}

TEST_P(Exchanges, DrainLetsThoseUnderWayFinishAndTakesNoMore) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.hold = true;
                          return reaction;
                      },
                      server_options(GetParam())};
    auto& under_way = driver.start(post_request(server.url(), "kept"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));

    driver.on_loop([&] { driver.transport().drain(driver.runtime().scheduler().now() + 1min); });
    auto const refused = driver.post(server.url(), "late");
    server.release();

    EXPECT_EQ(refused.failure->kind, FailureKind::closed) << refused.text();
    EXPECT_EQ(refused.failure->seen, Seen::no);
    EXPECT_EQ(under_way.wait().body, "kept") << under_way.wait().text();
}

TEST_P(Exchanges, ADrainThatTakesTooLongEndsTheRest) {
    HttpServer server{[](ReceivedRequest const&) { return Reaction{.hold = true}; },
                      server_options(GetParam())};
    auto& under_way = driver.start(post_request(server.url(), "lost"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));

    driver.on_loop([&] { driver.transport().drain(driver.runtime().scheduler().now() + 30ms); });

    EXPECT_EQ(under_way.wait().failure->kind, FailureKind::closed) << under_way.wait().text();
}

TEST_P(Exchanges, AShutDownOfTheRuntimeEndsEveryCallAsClosed) {
    HttpServer server{[](ReceivedRequest const&) { return Reaction{.hold = true}; },
                      server_options(GetParam())};
    std::vector<Request> requests(20, post_request(server.url(), "x"));
    auto const calls = driver.start_all(requests);
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 20; }));

    driver.runtime().shutdown();

    for (auto* const call : calls) {
        ASSERT_TRUE(call->ended());
        EXPECT_EQ(call->wait().failure->kind, FailureKind::closed) << call->wait().text();
    }
}

}  // namespace
}  // namespace tinkxx::test
