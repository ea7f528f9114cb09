// Who shares connections with whom.
#include "client/options/make_core.hpp"

#include <tinkxx/error.hpp>

#include "client/options/resolved_options.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::client {
namespace {

TransportKey key() { return {.endpoint = "https://host", .credentials = {.api_key = "tml-one"}}; }

TEST(SharedTransport, IsOneForEqualKeys) {
    Runtime const runtime;
    auto const first = shared_transport(runtime, key());
    EXPECT_EQ(shared_transport(runtime, key()), first);
}

TEST(SharedTransport, IsAnotherForWhateverMattersToAConnection) {
    Runtime const runtime;
    std::vector<TransportKey> keys(1, key());
    auto const with = [&](auto change) {
        auto other = key();
        change(other);
        keys.push_back(std::move(other));
    };
    with([](TransportKey& other) { other.endpoint = "https://elsewhere"; });
    with([](TransportKey& other) { other.credentials.api_key = "tml-two"; });
    with([](TransportKey& other) { other.credentials.command = "print-key"; });
    with([](TransportKey& other) { other.net.proxy.url = "http://proxy:3128"; });
    with([](TransportKey& other) { other.net.max_connections = 7; });
    with([](TransportKey& other) { other.net.http_version = HttpVersion::http1; });
    with([](TransportKey& other) { other.net.idle_timeout = std::chrono::seconds{1}; });
    with([](TransportKey& other) { other.net.resolve = {{"host", {"127.0.0.1"}}}; });
    std::vector<std::shared_ptr<Transport>> transports;
    for (auto const& each : keys) {
        auto const made = shared_transport(runtime, each);
        for (auto const& other : transports) EXPECT_NE(made, other);
        transports.push_back(made);
    }
    Runtime const elsewhere;
    EXPECT_NE(shared_transport(elsewhere, key()), transports.front());
}

TEST(SharedTransport, KeyTellsAccountsAndServicesApart) {
    auto const of = [](std::string url, std::string api_key) {
        ClientOptions options;
        options.base_url = std::move(url);
        options.api_key = std::move(api_key);
        return transport_key(with_credential(
            resolve(std::move(options), [](char const*) { return std::optional<std::string>{}; })));
    };
    auto const one = of("https://Host:443/", "tml-one");
    EXPECT_EQ(of("https://host", "tml-one"), one);
    EXPECT_NE(of("https://host", "tml-two"), one);
    EXPECT_NE(of("https://host:444", "tml-one"), one);
}

TEST(SharedTransport, EndsWithTheLastWhoUsesIt) {
    Runtime const runtime;
    std::weak_ptr<Transport> const first = shared_transport(runtime, key());
    EXPECT_TRUE(first.expired());
    EXPECT_NE(shared_transport(runtime, key()), nullptr);
}

TEST(SharedTransport, RefusesOptionsThatCannotWork) {
    Runtime const runtime;
    auto wrong = key();
    wrong.net.max_connections = 0;
    EXPECT_THROW((void)shared_transport(runtime, wrong), ValidationError);
    EXPECT_THROW((void)shared_transport(runtime, wrong), ValidationError);
}

TEST(SharedTransport, IsAskedForByManyThreadsAtOnce) {
    Runtime const runtime;
    auto const kept = shared_transport(runtime, key());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                EXPECT_EQ(shared_transport(runtime, key()), kept);
            }
        });
    }
    for (auto& each : threads) each.join();
}

}  // namespace
}  // namespace tinkxx::client
