// A server with a port, its clients on threads of their own, and the end of either at awkward
// moments.
#include <tinkxx/local/listen.hpp>
#include <tinkxx/tinkxx.hpp>

#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using testing::race;

constexpr int threads = 4;
std::string const model = "org/small";

ServerOptions options() {
    return {.models = {{.name = model,
                        .folder = TINKXX_SOURCE_DIR "/tests/golden/models/data/qwen3-tiny"}},
            .threads = 2,
            .survive_power_loss = false,
            .log = [](LogLevel, std::string_view) {}};
}

ClientOptions client_options(std::string const& url) {
    ClientOptions client;
    client.base_url = url;
    client.api_key = "tml-any";
    client.max_retries = 1;
    client.telemetry = false;
    client.intervals.telemetry_drain = 50ms;  // nobody waits for a server that is gone
    client.log = [](LogLevel, std::string_view) {};
    client.runtime = Runtime{};
    return client;
}

/// A client with a runtime of its own: its threads are not those of the server.
struct Client {
    explicit Client(std::string const& url) : service{client_options(url)} {}

    ServiceClient service;
    SamplingClient sampler{service.create_sampling_client(model)};
};

Future<SampleResponse> ask(SamplingClient const& sampler) {
    // Once the server is gone nobody waits for another.
    return sampler.sample(ModelInput::from_tokens({1, 2, 3}), {.max_tokens = 4}, SampleOptions{},
                          CallOptions{.retry = {.enable_retry_logic = false}, .deadline = 20s});
}

/// Sends `text` and breaks the connection off.
void break_off(std::uint16_t port, std::string_view text) {
    auto const socket = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(socket, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0) {
        (void)::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        linger const hard{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    ::close(socket);
}

TEST(ListenerRace, ManyClientsAskCancelAndClose) {
    Server const server{options()};
    auto const listening = listen(server, {.port = 0, .log_requests = true});
    std::atomic<int> drawn{0};
    race(threads, [&](int thread) {
        for (int round = 0; round < 12; ++round) {
            Client const client{listening.url()};
            std::vector<Future<SampleResponse>> pending;
            for (int i = 0; i < 12; ++i) pending.push_back(ask(client.sampler));
            // Some are given up on their way, some when they are about to be done.
            for (int i = 0; i < 12; i += 3) {
                if (round % 2 == 0) (void)pending.at(3).wait_for(5ms * thread);
                pending.at(static_cast<std::size_t>(i)).cancel();
            }
            bool const early = round % 3 == 2;
            if (early) client.service.close().get();
            for (auto& one : pending) {
                if (one.result()) ++drawn;
            }
            if (!early) client.service.close(CloseReason::success).get();
        }
    });
    EXPECT_GE(drawn, threads * 8 * 8);
    listening.stop();
    server.stop();
}

TEST(ListenerRace, TheServerEndsWhileItIsBusy) {
    for (int round = 0; round < 12; ++round) {
        Server const server{options()};
        auto const listening = listen(server, {.port = 0});
        std::atomic<bool> ending{false};
        std::atomic<int> ended{0};
        std::vector<std::thread> clients;
        for (int thread = 0; thread < threads; ++thread) {
            clients.emplace_back([&] {
                Client const client{listening.url()};
                do {
                    std::vector<Future<SampleResponse>> pending;
                    for (int i = 0; i < 8; ++i) pending.push_back(ask(client.sampler));
                    if (ending) break;
                    for (auto& one : pending) {
                        while (!one.wait_for(20ms) && !ending) {
                        }
                        if (ending) one.cancel();
                        (void)one.result();
                        ++ended;
                    }
                } while (!ending);
            });
        }
        while (ended < 8 * (round % 4)) std::this_thread::yield();
        // Either may go first, and both may be told twice.
        if (round % 2 == 0) {
            listening.stop(1ms * round);
            server.stop(10ms);
        } else {
            std::thread other{[&] { listening.stop(5ms); }};
            server.stop(5ms);
            listening.stop(1ms);
            other.join();
        }
        ending = true;
        for (auto& client : clients) client.join();
    }
}

/// Sends the same request again and again, reads nothing, and breaks the connection off once the
/// server takes no more.
void flood(std::uint16_t port, std::string_view request) {
    auto const socket = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(socket, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address), 0);
    timeval const patience{.tv_sec = 0, .tv_usec = 200'000};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    std::string many;
    while (many.size() < 60'000) many += request;
    std::size_t sent = 0;
    for (;;) {
        auto const some = ::send(socket, many.data(), many.size(), MSG_NOSIGNAL);
        if (some < static_cast<ssize_t>(many.size())) break;
        sent += many.size();
        ASSERT_LT(sent, std::size_t{256} << 20U) << "the server takes it without end";
    }
    ::close(socket);
}

TEST(ListenerRace, FloodsOfRequestsWithoutAReaderEndAndOthersAreServed) {
    Server const server{options()};
    auto const listening = listen(server, {.port = 0, .log_requests = true});
    race(threads, [&](int thread) {
        if (thread == 0) {
            Client const client{listening.url()};
            for (int i = 0; i < 10; ++i) EXPECT_EQ(client.service.health().get(), "ok");
        } else {
            flood(listening.port(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
    });
    listening.stop();
    server.stop();
}

TEST(ListenerRace, ConnectionsBreakOffAndPortsCloseAnywhere) {
    Server const server{options()};
    auto const stays = listen(server, {.port = 0, .log_requests = true});
    auto const head = "POST /api/v1/create_session HTTP/1.1\r\nHost: localhost\r\n";
    race(threads, [&](int thread) {
        for (int i = 0; i < 60; ++i) {
            auto const own = thread == 0 && i % 3 == 0 ? listen(server, {.port = 0}) : stays;
            switch ((thread + i) % 4) {
                case 0:
                    break_off(own.port(), "");
                    break;
                case 1:
                    break_off(own.port(), head);
                    break;
                case 2:
                    break_off(own.port(), std::string{head} + "Content-Length: 100\r\n\r\n{\"a\"");
                    break;
                default:
                    break_off(own.port(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
        }
    });
    Client const client{stays.url()};
    EXPECT_EQ(client.service.health().get(), "ok");
}

}  // namespace
}  // namespace tinkxx::local
