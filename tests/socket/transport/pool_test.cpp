// How connections are opened, shared, kept and closed.
#include "socket/modes.hpp"

#include <set>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;

Reaction held_echo(ReceivedRequest const& request) {
    auto reaction = echo(request);
    reaction.hold = true;
    return reaction;
}

std::vector<Request> many(std::size_t count, std::string const& url, Purpose purpose) {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < count; ++i) {
        requests.push_back(with_id(post_request(url, pattern(100 + i, static_cast<unsigned>(i)))));
        requests.back().purpose = purpose;
    }
    return requests;
}

TEST(Pool, AColdStartOpensAsManyConnectionsAsStreamsNeed) {  // R-CONF-50
    auto options = server_options(http2_tls);
    options.max_streams = 100;
    HttpServer server{held_echo, options};
    HttpDriver driver{net_options(http2_tls)};
    auto const requests = many(400, server.url(), Purpose::sample);

    auto const calls = driver.start_all(requests);
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 400; }));
    server.release();

    for (std::size_t i = 0; i < calls.size(); ++i) {
        ASSERT_EQ(calls[i]->wait().status(), 200) << calls[i]->wait().text();
        EXPECT_TRUE(calls[i]->wait().body == *requests[i].body.tail);
    }
    EXPECT_EQ(server.counts().connections, 4);
    EXPECT_EQ(server.counts().most_streams, 100);
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

TEST(Pool, TheSmallerOfOurLimitAndTheServersHolds) {  // R-CONF-50
    for (auto const& [server_limit, our_limit, expected] :
         {std::tuple{7U, 100, 7}, std::tuple{1000U, 20, 20}, std::tuple{1000U, 100, 100}}) {
        auto options = server_options(http2_cleartext);
        options.max_streams = server_limit;
        HttpServer server{held_echo, options};
        auto net = net_options(http2_cleartext);
        net.max_streams_per_connection = our_limit;
        HttpDriver driver{net};
        auto const calls = driver.start_all(many(200, server.url(), Purpose::sample));
        ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 200; }));
        server.release();
        for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200);
        EXPECT_EQ(server.counts().most_streams, expected);
        EXPECT_EQ(server.counts().connections, (200 + expected - 1) / expected);
    }
}

TEST(Pool, ThousandsOfRequestsShareAFewConnections) {
    HttpServer server{held_echo, server_options(http2_tls)};
    HttpDriver driver{net_options(http2_tls)};
    auto const calls = driver.start_all(many(3000, server.url(), Purpose::sample));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 3000; }));
    server.release();
    for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200) << call->wait().text();
    EXPECT_EQ(server.counts().connections, 30);
}

TEST(Pool, TrainingStepsAndTokensHaveConnectionsOfTheirOwn) {  // R-CONF-50 R-TRAIN-34
    for (auto const purpose : {Purpose::train, Purpose::auth}) {
        HttpServer server{held_echo, server_options(http2_cleartext)};
        HttpDriver driver{net_options(http2_cleartext)};
        auto const calls = driver.start_all(many(5, server.url(), purpose));
        ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 5; }));
        EXPECT_EQ(server.counts().most_streams, 1);
        EXPECT_EQ(server.counts().connections, 5);
        server.release();
        for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200);
    }
}

TEST(Pool, OnePurposeCannotStarveAnother) {  // R-CONF-50
    HttpServer server{[](ReceivedRequest const& request) {
        auto reaction = echo(request);
        reaction.hold = request.target == "/held";
        return reaction;
    }};
    NetOptions options;
    options.max_http1_connections = 16;
    HttpDriver driver{options};
    // Every purpose floods its pool in turn; all the others still get through.
    for (std::size_t flood = 0; flood < purpose_count; ++flood) {
        auto const calls =
            driver.start_all(many(40, server.url("/held"), static_cast<Purpose>(flood)));
        driver.on_loop([] {});
        for (std::size_t other = 0; other < purpose_count; ++other) {
            if (other == flood) continue;
            auto request = post_request(server.url(), "through");
            request.purpose = static_cast<Purpose>(other);
            request.timeouts.pool = 10s;
            auto const outcome = driver.run(request);
            EXPECT_EQ(outcome.body, "through")
                << to_string(static_cast<Purpose>(other)) << " was starved by "
                << to_string(static_cast<Purpose>(flood)) << ": " << outcome.text();
        }
        for (auto* const call : calls) call->cancel();
    }
}

TEST(Pool, AQuotaOfConnectionsIsKept) {  // R-CONF-51
    HttpServer server{held_echo};
    NetOptions options;
    options.http1_quota[static_cast<std::size_t>(Purpose::rest)] = 3;
    HttpDriver driver{options};
    auto const calls = driver.start_all(many(20, server.url(), Purpose::rest));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 3; }));
    NetStats stats;
    driver.on_loop([&] { stats = net_stats(driver.transport()); });
    EXPECT_EQ(stats.active, 3U);
    EXPECT_EQ(stats.waiting, 17U);
    server.release();
    for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200);
    EXPECT_EQ(server.counts().connections, 3);
}

class PoolModes : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(, PoolModes, all_modes(), mode_name);

TEST_P(PoolModes, AnUnusedConnectionIsClosedAfterItsTime) {
    HttpServer server{echo, server_options(GetParam())};
    auto options = net_options(GetParam());
    options.idle_timeout = 50ms;
    HttpDriver driver{options};
    ASSERT_EQ(driver.post(server.url(), "x").status(), 200);
    EXPECT_TRUE(server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
    EXPECT_EQ(driver.post(server.url(), "y").body, "y");
    EXPECT_EQ(server.counts().connections, 2);
}

TEST_P(PoolModes, AConnectionWithAWaitingRequestIsNotIdle) {
    HttpServer server{[](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.delay = 200ms;
                          return reaction;
                      },
                      server_options(GetParam())};
    auto options = net_options(GetParam());
    options.idle_timeout = 30ms;
    HttpDriver driver{options};
    EXPECT_EQ(driver.post(server.url(), "slow").body, "slow");
}

TEST_P(PoolModes, ReleasingTheTransportClosesItsConnections) {
    HttpServer server{echo, server_options(GetParam())};
    HttpDriver driver{net_options(GetParam())};
    ASSERT_EQ(driver.post(server.url(), "x").status(), 200);
    driver.release_transport();
    EXPECT_TRUE(server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
}

TEST_P(PoolModes, OriginsDoNotShareConnections) {
    HttpServer one{echo, server_options(GetParam())};
    HttpServer two{echo, server_options(GetParam())};
    HttpDriver driver{net_options(GetParam())};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(driver.post(one.url(), "1").body, "1");
        EXPECT_EQ(driver.post(two.url(), "2").body, "2");
    }
    EXPECT_EQ(one.counts().connections, 1);
    EXPECT_EQ(two.counts().connections, 1);
}

TEST_P(PoolModes, ThousandsOfOriginsComeAndGoBesideARequestThatWaits) {
    HttpServer server{held_echo, server_options(GetParam())};
    HttpServer gone{echo, server_options(GetParam())};
    gone.kill();
    auto options = net_options(GetParam());
    std::vector<Request> some;
    std::vector<Request> others;
    for (int i = 0; i < 6000; ++i) {
        auto const host = "host" + std::to_string(i) + ".example";
        options.resolve[host] = {"127.0.0.1"};
        auto& to = i < 3000 ? some : others;
        to.push_back(get_request("http://" + host + ":" + std::to_string(gone.port()) + "/"));
    }
    HttpDriver driver{options};
    auto& held = driver.start(post_request(server.url(), "held"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));
    for (auto* const requests : {&some, &others}) {
        for (auto* const one : driver.start_all(std::move(*requests))) {
            EXPECT_TRUE(one->wait().failure);
        }
    }
    server.release();
    EXPECT_EQ(held.wait().body, "held");
    EXPECT_EQ(driver.post(server.url(), "again").body, "again");
    EXPECT_EQ(server.counts().connections, 1);
}

TEST_P(PoolModes, StatsSayWhatIsGoingOn) {
    HttpServer server{held_echo, server_options(GetParam())};
    HttpDriver driver{net_options(GetParam())};
    auto const calls = driver.start_all(many(5, server.url(), Purpose::sample));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 5; }));
    NetStats stats;
    driver.on_loop([&] { stats = net_stats(driver.transport()); });
    EXPECT_EQ(stats.active, 5U);
    EXPECT_EQ(stats.waiting, 0U);
    EXPECT_EQ(stats.connections, GetParam().http2() ? 1U : 5U);
    EXPECT_EQ(stats.opened, stats.connections);
    server.release();
    for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200);
    driver.on_loop([&] { stats = net_stats(driver.transport()); });
    EXPECT_EQ(stats.active, 0U);
}

TEST_P(PoolModes, AServerThatComesBackIsUsedAgain) {
    HttpServer server{echo, server_options(GetParam())};
    HttpDriver driver{net_options(GetParam())};
    for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(driver.post(server.url(), "up").body, "up");
        server.kill();
        driver.on_loop([] {});
        auto const down = driver.post(server.url(), "down");
        ASSERT_TRUE(down.failure) << down.text();
        EXPECT_TRUE(down.failure->kind == FailureKind::connect ||
                    down.failure->kind == FailureKind::reset)
            << down.text();
        server.restart();
    }
}

TEST(Pool, AutomaticTakesWhatAlpnOffers) {
    for (auto const& [alpn, version] :
         {std::pair{"h2,http/1.1", 20}, std::pair{"http/1.1", 11}, std::pair{"", 11}}) {
        HttpServerOptions options;
        options.tls = tls_server(alpn);
        HttpServer server{echo, options};
        NetOptions net;
        net.tls.ca_file = certificates().ca_file();
        HttpDriver driver{net};
        auto const outcome = driver.post(server.url(), "x");
        ASSERT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.head->http_version, version);
    }
}

TEST(Pool, AColdStartAgainstHttp1OpensOneConnectionEachAndNoMore) {
    HttpServerOptions options;
    options.tls = tls_server("http/1.1");
    HttpServer server{held_echo, options};
    NetOptions net;
    net.tls.ca_file = certificates().ca_file();
    HttpDriver driver{net};
    auto const calls = driver.start_all(many(40, server.url(), Purpose::sample));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 40; }));
    server.release();
    for (auto* const call : calls) EXPECT_EQ(call->wait().status(), 200);
    EXPECT_EQ(server.counts().connections, 40);
}

}  // namespace
}  // namespace tinkxx::test
