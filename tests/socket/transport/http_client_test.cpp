// The public HTTP client over real connections: retries, streams, threads, proxies, cancelling.
#include "socket/modes.hpp"
#include "support/servers/connect_proxy.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/http_client.hpp>

#include <gmock/gmock.h>

#include <mutex>
#include <set>
#include <thread>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class HttpClientModes : public testing::TestWithParam<Mode> {
protected:
    ClientOptions options(std::string const& url) const {
        ClientOptions all;
        all.base_url = url;
        all.api_key = "tml-a-key-that-nobody-must-see";
        all.net = net_options(GetParam());
        all.runtime = Runtime{};
        return all;
    }
    HttpRequest post(std::string path, std::string body) const {
        return {.method = "POST", .path = std::move(path), .body = std::move(body)};
    }
};
INSTANTIATE_TEST_SUITE_P(, HttpClientModes, all_modes(), mode_name);

TEST_P(HttpClientModes, SendsAndReceives) {
    ReceivedRequest seen;
    HttpServer server{[&](ReceivedRequest const& request) {
                          seen = request;
                          return echo(request);
                      },
                      server_options(GetParam())};
    HttpClient client{options(server.url(""))};
    auto const body = pattern(300'000);

    auto pending = client.send(post("/api/v1/echo?a=b", body));
    auto const response = pending.get();

    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.body == body);
    EXPECT_EQ(response.http_version, GetParam().http2() ? 20 : 11);
    EXPECT_EQ(seen.target, "/api/v1/echo?a=b");
    EXPECT_EQ(seen.header("x-api-key"), "tml-a-key-that-nobody-must-see");
}

TEST_P(HttpClientModes, ALostAnswerIsAskedForAgainUnderTheSameKey) {
    std::mutex mutex;
    std::vector<std::string> keys;
    ScriptServer server{[&](Wire& wire) {
                            auto const note = [&](ReceivedRequest const& request) {
                                std::lock_guard const lock{mutex};
                                keys.push_back(request.header("x-idempotency-key"));
                            };
                            if (GetParam().http2()) {
                                Http2Peer peer{wire};
                                peer.handshake();
                                for (;;) {
                                    std::uint32_t stream = 0;
                                    note(peer.receive_request(stream));
                                    if (wire.index() == 0) return wire.reset();
                                    peer.send(peer.answer(stream, {.body = "at last"}));
                                }
                            }
                            while (auto const request = read_request(wire)) {
                                note(*request);
                                if (wire.index() == 0) return wire.reset();
                                wire.send(http1_answer({.body = "at last"}));
                            }
                        },
                        script_options(GetParam())};
    HttpClient client{options(server.url(""))};

    auto pending = client.send(post("/", "x"));
    auto const response = pending.get();

    EXPECT_EQ(response.body, "at last");
    EXPECT_EQ(response.retries, 1);
    std::lock_guard const lock{mutex};
    ASSERT_EQ(keys.size(), 2U);
    EXPECT_FALSE(keys[0].empty());
    EXPECT_EQ(keys[0], keys[1]);
}

TEST_P(HttpClientModes, AServerThatAsksForPatienceIsGivenIt) {
    std::atomic<int> asked{0};
    HttpServer server{
        [&](ReceivedRequest const&) {
            if (++asked < 4) {
                return Reaction{.answer = {.status = 429, .headers = {{"retry-after-ms", "5"}}}};
            }
            return Reaction{.answer = {.body = "now"}};
        },
        server_options(GetParam())};
    HttpClient client{options(server.url(""))};
    auto pending = client.send(post("/", "x"));
    auto const response = pending.get();
    EXPECT_EQ(response.body, "now");
    EXPECT_EQ(response.retries, 3);
}

TEST_P(HttpClientModes, ErrorsCarryTheAnswerAndNoSecret) {  // R-ERR-04
    HttpServer server{[](ReceivedRequest const&) {
                          return Reaction{.answer = {.status = 422, .body = R"({"detail":"no"})"}};
                      },
                      server_options(GetParam())};
    HttpClient client{options(server.url(""))};
    auto pending = client.send(post("/", "x"));
    auto const result = pending.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::status);
    EXPECT_EQ(result.error().http_status(), 422);
    EXPECT_THAT(result.error().what(), HasSubstr("no"));
    EXPECT_THAT(result.error().what(), Not(HasSubstr("nobody-must-see")));
}

TEST_P(HttpClientModes, ManyThreadsShareOneClient) {
    HttpServer server{echo, server_options(GetParam())};
    HttpClient const client{options(server.url(""))};
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (unsigned t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            std::vector<std::pair<std::string, Future<HttpResponse>>> calls;
            for (unsigned i = 0; i < 50; ++i) {
                auto body = pattern(500 + i * 37, t * 1000 + i);
                auto pending = client.send(post("/", body));
                calls.emplace_back(std::move(body), std::move(pending));
            }
            for (auto& [body, pending] : calls) {
                if (pending.get().body == body) ++right;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 400);
    EXPECT_EQ(server.counts().requests, 400);
}

TEST_P(HttpClientModes, RetriesCarryEveryRequestOverARestart) {
    HttpServer server{echo, server_options(GetParam())};
    HttpClient const client{options(server.url(""))};
    std::vector<Future<HttpResponse>> calls;
    for (unsigned i = 0; i < 300; ++i) calls.push_back(client.send(post("/", pattern(20'000, i))));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests >= 20; }));
    server.kill();
    server.restart();
    for (unsigned i = 0; i < 300; ++i) {
        auto const result = calls[i].result();
        ASSERT_TRUE(result) << result.error().what();
        EXPECT_TRUE(result->body == pattern(20'000, i));
    }
}

TEST_P(HttpClientModes, AStreamGoesNoFasterThanItsReader) {
    auto const body = pattern(48'000'000);
    HttpServer server{[&](ReceivedRequest const& request) {
                          return Reaction{.answer = {.body = request.target == "/big" ? body : ""}};
                      },
                      server_options(GetParam())};
    HttpClient const client{options(server.url(""))};
    Gate first;
    Gate go_on;
    std::string got;
    auto pending = client.stream({.path = "/big"}, [&](std::span<char const> data) {
        if (got.empty()) {
            first.open();
            (void)go_on.wait_until_open();
        }
        got.append(data.data(), data.size());
    });
    ASSERT_TRUE(first.wait_until_open());
    // Once many small requests saw no further byte sent, the server is held back.
    HttpDriver others{net_options(GetParam())};
    std::uint64_t before = 0;
    for (int quiet = 0; quiet < 20; ++quiet) {
        ASSERT_EQ(others.get(server.url("/small")).status(), 200);
        auto const now = server.counts().bytes_sent;
        if (now > before + 2000) quiet = 0;
        before = now;
    }
    EXPECT_LT(before, body.size() / 2) << "the server was not held back";
    go_on.open();
    EXPECT_EQ(pending.get().status, 200);
    EXPECT_TRUE(got == body);
}

TEST_P(HttpClientModes, CancellingTellsTheServer) {
    HttpServer server{[](ReceivedRequest const&) { return Reaction{.hold = true}; },
                      server_options(GetParam())};
    HttpClient const client{options(server.url(""))};
    auto pending = client.send(post("/", "x"));
    ASSERT_TRUE(server.wait_for([](auto const& seen) { return seen.requests == 1; }));
    pending.cancel();
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::cancelled);
    EXPECT_TRUE(server.wait_for([&](auto const& seen) {
        return GetParam().http2() ? seen.resets == 1 : seen.open_connections == 0;
    }));
}

TEST_P(HttpClientModes, GoesThroughTheProxyOfItsOptions) {  // R-EXT-70
    HttpServer server{echo, server_options(GetParam())};
    ConnectProxy proxy{{.authorization = "Basic dTpw"}};
    auto with_proxy = options(server.url(""));
    with_proxy.proxy = proxy.url("u:p");
    HttpClient const client{with_proxy};
    auto pending = client.send(post("/", "x"));
    EXPECT_EQ(pending.get().body, "x");
    EXPECT_EQ(proxy.requests().size(), 1U);
}

}  // namespace
}  // namespace tinkxx::test
