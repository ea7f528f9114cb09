// Samples inside the event loop of a program: one thread, and one epoll_wait for all. ./07_own_loop
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>

int main() try {
    tinkxx::Runtime runtime{{.threads = 0}};
    auto const service = tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}},
                                                       {.runtime = runtime});
    auto const sampler = service.create_sampling_client("tinkxx/tiny");
    bool done = false;
    auto const answer =
        sampler.sample("Q: What is two plus three?\nA:", {.max_tokens = 16, .temperature = 0})
            .then([&](tinkxx::SampleResponse const& response) {
                std::cout << response.text() << '\n';
                done = true;
            });

    // What else the program does: something every ten milliseconds.
    int const ticker = ::timerfd_create(CLOCK_MONOTONIC, 0);
    itimerspec const every{.it_interval = {0, 10'000'000}, .it_value = {0, 10'000'000}};
    ::timerfd_settime(ticker, 0, &every, nullptr);
    int const epoll = ::epoll_create1(0);
    for (int const descriptor : {ticker, runtime.descriptor()}) {
        epoll_event watched{.events = EPOLLIN, .data = {.fd = descriptor}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &watched);
    }
    while (!done && !answer.ready()) {
        while (runtime.poll()) continue;
        auto const time = runtime.wait_time();
        auto const limit = time ? std::chrono::ceil<std::chrono::milliseconds>(*time).count() : -1;
        epoll_event news{};
        if (::epoll_wait(epoll, &news, 1, static_cast<int>(limit)) == 1 && news.data.fd == ticker) {
            std::uint64_t ticks = 0;
            if (::read(ticker, &ticks, sizeof ticks) > 0) std::clog << '.';
        }
    }
    ::close(epoll);
    ::close(ticker);
    return done ? 0 : 1;
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
