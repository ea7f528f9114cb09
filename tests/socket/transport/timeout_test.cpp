// Every phase has its limit. The waits here are real, short, and the subject.
#include "socket/modes.hpp"

#include <gmock/gmock.h>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class TimeoutTest : public testing::TestWithParam<Mode> {
protected:
    HttpDriver driver{net_options(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, TimeoutTest, all_modes(), mode_name);

TEST_P(TimeoutTest, ConnectingTakesNoLongerThanAllowed) {
    DeadEnd nobody{Family::ipv4, 0};
    auto request = get_request((GetParam().tls ? "https://127.0.0.1:" : "http://127.0.0.1:") +
                               std::to_string(nobody.port()));
    request.timeouts.connect = 80ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::connect_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_THAT(outcome.failure->message, HasSubstr("80 ms"));
    EXPECT_GE(outcome.timing.finished - outcome.timing.started, 80ms);
}

TEST_P(TimeoutTest, AHandshakeThatNeverEndsIsPartOfConnecting) {
    if (!GetParam().tls) GTEST_SKIP() << "no handshake in the clear";
    ScriptServer server{[](Wire& wire) { wire.drain(); }};  // reads the ClientHello, says nothing
    auto request = get_request("https://127.0.0.1:" + std::to_string(server.port()));
    request.timeouts.connect = 80ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::connect_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
}

TEST_P(TimeoutTest, ASilentServerIsGivenUp) {
    HttpServer server{[](ReceivedRequest const&) { return Reaction{.hold = true}; },
                      server_options(GetParam())};
    auto request = post_request(server.url(), "x");
    request.timeouts.read = 80ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::read_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::maybe);
    EXPECT_GE(outcome.timing.finished - outcome.timing.sent, 80ms);
}

TEST_P(TimeoutTest, AServerThatStopsInTheMiddleIsGivenUp) {
    ScriptServer server{
        [&](Wire& wire) {
            if (GetParam().http2()) {
                Http2Peer peer{wire};
                peer.handshake();
                std::uint32_t stream = 0;
                (void)peer.receive_request(stream);
                peer.send(peer.head(stream, {}, false) + h2::data(stream, "half", false));
                wire.drain();
            } else {
                (void)read_request(wire);
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
                wire.drain();
            }
        },
        script_options(GetParam())};
    auto request = post_request(server.url(), "x");
    request.timeouts.read = 80ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::read_timeout) << outcome.text();
    EXPECT_EQ(outcome.body, "half");
}

TEST_P(TimeoutTest, ASlowServerThatKeepsTalkingIsGivenTime) {
    // Each silence is well within the limit, and all together are beyond it.
    std::vector<std::unique_ptr<Gate>> steps;
    for (int i = 0; i < 12; ++i) steps.push_back(std::make_unique<Gate>());
    ScriptServer server{[&](Wire& wire) {
                            std::optional<Http2Peer> peer;
                            std::uint32_t stream = 0;
                            if (GetParam().http2()) {
                                peer.emplace(wire);
                                peer->handshake();
                                (void)peer->receive_request(stream);
                                peer->send(peer->head(stream, {}, false));
                            } else {
                                (void)read_request(wire);
                                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
                            }
                            for (auto const& step : steps) {
                                wire.wait(*step);
                                bool const last = step == steps.back();
                                wire.send(peer ? h2::data(stream, "x", last) : "x");
                            }
                            wire.drain();
                        },
                        script_options(GetParam())};
    auto request = post_request(server.url(), "x");
    request.timeouts.read = 400ms;
    auto& slow = driver.start(request);
    slow.wait_for_head();
    for (auto const& step : steps) {
        driver.let_pass(40ms);
        step->open();
    }
    EXPECT_EQ(slow.wait().body, "xxxxxxxxxxxx") << slow.wait().text();
    EXPECT_GE(slow.wait().timing.finished - slow.wait().timing.started, 400ms);
}

TEST_P(TimeoutTest, AServerThatReadsNothingIsGivenUp) {
    ScriptServer server{
        [&](Wire& wire) {
            if (GetParam().http2()) {
                Http2Peer peer{wire};
                peer.handshake({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7fffffff}});
                peer.send(h2::window_update(0, 0x7fff0000));
                wire.stall();
            } else {
                wire.stall();
            }
        },
        script_options(GetParam())};
    auto request = post_request(server.url(), pattern(30'000'000));
    request.timeouts.write = 150ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::write_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::partly) << outcome.text();
}

TEST_P(TimeoutTest, TheTotalHoldsWhateverThePhase) {
    DeadEnd nobody{Family::ipv4, 0};
    HttpServer silent{[](ReceivedRequest const&) { return Reaction{.hold = true}; },
                      server_options(GetParam())};
    auto connecting = get_request((GetParam().tls ? "https://127.0.0.1:" : "http://127.0.0.1:") +
                                  std::to_string(nobody.port()));
    connecting.timeouts.total = 80ms;
    auto reading = get_request(silent.url());
    reading.timeouts.total = 80ms;
    for (auto* const call : driver.start_all({connecting, reading})) {
        auto const& outcome = call->wait();
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::total_timeout) << outcome.text();
        EXPECT_GE(outcome.timing.finished - outcome.timing.started, 80ms);
    }
}

TEST_P(TimeoutTest, TheTotalIncludesRedirects) {
    HttpServer server{[](ReceivedRequest const&) {
                          return Reaction{
                              .answer = {.status = 302, .headers = {{"location", "/again"}}},
                              .delay = 40ms};
                      },
                      server_options(GetParam())};
    auto request = get_request(server.url());
    request.timeouts.total = 150ms;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::total_timeout) << outcome.text();
}

TEST_P(TimeoutTest, WaitingForAFreeConnectionHasItsLimit) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.hold = true;
                          return reaction;
                      },
                      server_options(GetParam())};
    auto options = net_options(GetParam());
    options.max_connections = 1;
    options.max_streams_per_connection = 1;
    HttpDriver narrow{options};
    auto& first = narrow.start(post_request(server.url(), "in time"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));
    auto request = post_request(server.url(), "too late");
    request.timeouts.pool = 80ms;
    auto const outcome = narrow.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::pool_timeout) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    server.release();
    EXPECT_EQ(first.wait().body, "in time");
}

TEST_P(TimeoutTest, ZeroMeansNoLimit) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.delay = 50ms;
                          return reaction;
                      },
                      server_options(GetParam())};
    auto request = post_request(server.url(), "x");
    request.timeouts = {.connect = 0ms, .read = 0ms, .write = 0ms, .pool = 0ms, .total = 0ms};
    EXPECT_EQ(driver.run(request).body, "x");
}

}  // namespace
}  // namespace tinkxx::test
