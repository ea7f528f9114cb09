// Written for the thread sanitizer: a real loop thread, many callers, ends at awkward moments.
#include <tinkxx/http_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using testing::FakeTransport;
using testing::Reply;
using testing::SentRequest;

struct HttpClientThreads : ::testing::Test {
    Runtime runtime{RuntimeOptions{.log = silent_log()}};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(runtime.scheduler())};

    HttpClient client() {
        ClientOptions made;
        made.base_url = "http://host";
        made.transport = fake;
        made.runtime = runtime;
        return HttpClient{made};
    }
};

TEST_F(HttpClientThreads, ServesManyThreadsAtOnce) {  // R-CONV-03
    fake->otherwise([](SentRequest const& sent) { return Reply{.body = sent.path}; });
    auto const http = client();
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&http, &right, t] {
            for (int i = 0; i < 50; ++i) {
                auto const path = '/' + std::to_string(t) + '/' + std::to_string(i);
                if (http.send({.path = path}).get().body == path) ++right;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 200);
}

TEST_F(HttpClientThreads, MayBeDroppedInACallback) {
    fake->otherwise([](SentRequest const&) { return Reply{.body = "x"}; });
    auto http = std::make_shared<std::optional<HttpClient>>(client());
    auto const pending = (*http)->send({.path = "/"});
    auto other = (*http)->send({.path = "/"}).then([http](HttpResponse const& response) {
        http->reset();
        return response.status;
    });
    EXPECT_EQ(other.get(), 200);
}

TEST_F(HttpClientThreads, OwnRuntimeEndsInItsOwnCallback) {
    std::weak_ptr<FakeTransport> watch;
    Future<int> pending;
    {
        Runtime own{RuntimeOptions{.log = silent_log()}};
        auto transport = std::make_shared<FakeTransport>(own.scheduler());
        transport->otherwise([](SentRequest const&) { return Reply{}; });
        watch = transport;
        auto holder = std::make_shared<std::optional<HttpClient>>();
        ClientOptions made;
        made.base_url = "http://host";
        made.transport = std::move(transport);
        made.runtime = std::move(own);
        holder->emplace(std::move(made));
        pending = (*holder)->send({.path = "/"}).then([holder](HttpResponse const& response) {
            holder->reset();  // the last handle of client and runtime, on a thread of theirs
            return response.status;
        });
    }
    auto const result = pending.result();
    EXPECT_TRUE(!result || *result == 200);
}

TEST_F(HttpClientThreads, CancelRacesWithTheAnswer) {
    fake->otherwise([](SentRequest const&) { return Reply{.body = "x"}; });
    auto const http = client();
    for (int i = 0; i < 200; ++i) {
        auto pending = http.send({.path = "/"});
        if (i % 2 == 0) std::this_thread::yield();
        pending.cancel();
        auto const result = pending.result();
        EXPECT_TRUE(result || result.error().kind() == ErrorKind::cancelled);
    }
}

TEST_F(HttpClientThreads, CloseRacesWithCalls) {
    fake->otherwise([](SentRequest const&) { return Reply{.body = "x"}; });
    for (int round = 0; round < 20; ++round) {
        auto const http = client();
        std::thread closer{[&http] { http.close(); }};
        std::vector<Future<HttpResponse>> pending;
        for (int i = 0; i < 20; ++i) pending.push_back(http.send({.path = "/"}));
        closer.join();
        for (auto& future : pending) {
            auto const result = future.result();
            EXPECT_TRUE(result || result.error().kind() == ErrorKind::cancelled ||
                        result.error().kind() == ErrorKind::closed);
        }
    }
}

TEST_F(HttpClientThreads, ShutdownEndsEveryCall) {
    fake->otherwise([](SentRequest const&) { return std::nullopt; });
    auto const http = client();
    std::vector<Future<HttpResponse>> pending;
    for (int i = 0; i < 50; ++i) pending.push_back(http.send({.path = "/"}));
    runtime.shutdown();
    for (auto& future : pending) EXPECT_THROW(future.get(), CancelledError);
}

TEST_F(HttpClientThreads, StreamsToTheCallbackThread) {
    std::string const body(1 << 20, 'x');
    fake->otherwise([&body](SentRequest const&) { return Reply{.body = body, .pieces = 100}; });
    auto const http = client();
    std::size_t bytes = 0;
    auto pending =
        http.stream({.path = "/"}, [&bytes](std::span<char const> data) { bytes += data.size(); });
    EXPECT_EQ(pending.get().status, 200);
    EXPECT_EQ(bytes, body.size());
}

}  // namespace
}  // namespace tinkxx
