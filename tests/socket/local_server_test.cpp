// Our client and our server, over loopback.
#include <tinkxx/local/listen.hpp>
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/tinkxx.hpp>

#include "support/sockets/processes.hpp"
#include "support/sockets/sockets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string const model = "org/small";

ServerOptions options(std::string const& home) {
    return {.models = {{.name = model,
                        .folder = TINKXX_SOURCE_DIR "/tests/golden/models/data/qwen3-tiny"}},
            .home = home,
            .threads = 1,
            .survive_power_loss = false};
}

/// All that a server answers to `request` before it closes.
std::string raw(std::uint16_t port, std::string const& request) {
    auto const socket = test::connect_to_loopback(test::Family::ipv4, port);
    EXPECT_TRUE(socket);
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string all;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::recv(socket.get(), buffer.data(), buffer.size(), 0)) > 0;) {
        all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
}

TEST(LocalServerOnSockets, TrainsAndSamplesForClientsOfTheNetwork) {
    test::TemporaryFolder const home;
    Server const server{options(home / "home")};
    auto const listening = listen(server, {.port = 0});
    EXPECT_TRUE(listening.loopback_only());
    EXPECT_EQ(listening.url(), "http://127.0.0.1:" + std::to_string(listening.port()));

    ServiceClient service{{.base_url = listening.url(), .api_key = "tml-any"}};
    auto const trainer = service.create_lora_training_client(model, 4).get();
    std::vector<Token> const text{1, 2, 3, 4, 5};
    std::vector const batch{data::from_tokens(text, std::vector<float>(5, 1))};
    auto first = trainer.forward_backward(batch, LossFn::cross_entropy);
    auto step = trainer.optim_step({.learning_rate = 1e-2});
    auto second = trainer.forward(batch, LossFn::cross_entropy);
    auto const before = first.get().metrics.at("loss:sum");
    EXPECT_LT(second.get().metrics.at("loss:sum"), before);
    (void)step.get();

    // More at once than there are connections for each purpose.
    auto const sampler = trainer.save_weights_and_get_sampling_client().get();
    std::vector<Future<SampleResponse>> pending;
    for (int i = 0; i < 300; ++i) {
        pending.push_back(sampler.sample(ModelInput::from_tokens({1, 2}), {.max_tokens = 4}));
    }
    for (auto& one : pending) EXPECT_EQ(one.get().sequences.at(0).tokens.size(), 4U);
    service.close(CloseReason::success).get();
    server.stop();
    listening.stop();
    EXPECT_FALSE(test::connect_to_loopback(test::Family::ipv4, listening.port()));
}

TEST(LocalServerOnSockets, WritesNoLineOnceTheServerHasStopped) {
    test::TemporaryFolder const home;
    std::mutex mutex;
    std::vector<std::string> lines;
    auto chosen = options(home / "home");
    chosen.log = [&](LogLevel, std::string_view line) {
        std::scoped_lock const lock{mutex};
        lines.emplace_back(line);
    };
    Server const server{chosen};
    auto const listening = listen(server, {.port = 0, .log_requests = true});
    std::string const question =
        "GET /api/v1/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    EXPECT_THAT(raw(listening.port(), question), StartsWith("HTTP/1.1 200 "));
    server.stop();
    auto const written = [&] {
        std::scoped_lock const lock{mutex};
        EXPECT_THAT(lines, Contains(StartsWith("GET /api/v1/healthz 200 ")));
        return lines.size();
    };
    auto const before = written();
    EXPECT_THAT(raw(listening.port(), question), StartsWith("HTTP/1.1 "));
    listening.stop();
    EXPECT_EQ(written(), before);
}

TEST(LocalServerOnSockets, TurnsStrangersAwayBeforeTheyHaveSentTheirBody) {
    test::TemporaryFolder const home;
    std::mutex mutex;
    std::vector<std::string> lines;
    auto chosen = options(home / "home");
    chosen.api_key = "tml-secret";
    chosen.log = [&](LogLevel, std::string_view line) {
        std::scoped_lock const lock{mutex};
        lines.emplace_back(line);
    };
    {
        Server const server{chosen};
        auto const listening = listen(server, {.port = 0, .log_requests = true});
        std::string const head =
            "POST /api/v1/asample?a=tml-secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            "Content-Length: 1000\r\n";
        EXPECT_THAT(raw(listening.port(), head + "\r\n"),
                    AllOf(StartsWith("HTTP/1.1 401 "), Not(HasSubstr("tml-secret"))));
        EXPECT_THAT(
            raw(listening.port(), head + "X-API-Key: tml-secret\r\nOrigin: http://evil\r\n\r\n"),
            StartsWith("HTTP/1.1 403 "));
        EXPECT_THAT(
            raw(listening.port(),
                "GET /api/v1/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
            StartsWith("HTTP/1.1 200 "));
        listening.stop();
        server.stop();
    }
    std::scoped_lock const lock{mutex};
    EXPECT_THAT(lines, Contains(StartsWith("POST /api/v1/asample 401 ")));
    EXPECT_THAT(lines, Contains(StartsWith("GET /api/v1/healthz 200 ")));
    EXPECT_THAT(lines, Not(Contains(HasSubstr("secret"))));
}

TEST(LocalServerOnSockets, SaysThatAPortIsTaken) {
    test::TemporaryFolder const home;
    Server const server{options(home / "home")};
    auto const listening = listen(server, {.port = 0});
    try {
        (void)listen(server, {.port = listening.port()});
        FAIL() << "the port was given twice";
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "port");
        EXPECT_EQ(error.value(), std::to_string(listening.port()));
    }
}

TEST(LocalServerOnSockets, ClosesWithItsLastHandle) {
    test::TemporaryFolder const home;
    Server const server{options(home / "home")};
    std::uint16_t port = 0;
    {
        auto const listening = listen(server, {.port = 0});
        port = listening.port();
        EXPECT_TRUE(test::connect_to_loopback(test::Family::ipv4, port));
    }
    server.stop();  // and so the loop has closed what was let go before
    EXPECT_FALSE(test::connect_to_loopback(test::Family::ipv4, port));
}

TEST(EmbeddedServer, CallsUnderWayNeedNoHandle) {
    test::TemporaryFolder const home;
    Future<SampleResponse> pending;
    std::weak_ptr<tinkxx::detail::RuntimeCore> runtime;
    {
        auto const service =
            service_client(options(home / "home"), ClientOptions{.telemetry = false});
        runtime = service.runtime().core();
        pending = service.create_sampling_client(model).sample(ModelInput::from_tokens({1, 2}),
                                                               {.max_tokens = 64});
    }
    auto const result = pending.result();
    EXPECT_TRUE(result) << result.error().what();
    pending = {};
    // The server ends with the call, and lets go of its home.
    while (!runtime.expired()) std::this_thread::yield();
}

TEST(EmbeddedServer, CallsUnderWayNeedNoHandleOnARuntimeThatTheCallerRuns) {
    test::TemporaryFolder const home;
    Runtime runtime{RuntimeOptions{.threads = 0}};
    Future<SampleResponse> pending;
    {
        ClientOptions client;
        client.telemetry = false;
        client.runtime = runtime;
        auto const service = service_client(options(home / "home"), std::move(client));
        pending = service.create_sampling_client(model).sample(ModelInput::from_tokens({1, 2}),
                                                               {.max_tokens = 64});
    }
    auto const result = pending.result();
    EXPECT_TRUE(result) << result.error().what();
    runtime.shutdown();
}

}  // namespace
}  // namespace tinkxx::local
