// Samples inside a program that runs on Asio: everything happens on the thread of its io_context.
// ./08_asio
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <iostream>

namespace asio = boost::asio;

/// Has `io` turn the loop of a runtime whenever there is something to do.
class Pump {
public:
    Pump(asio::io_context& io, tinkxx::Runtime runtime)
        : runtime_{std::move(runtime)}, news_{io, runtime_.descriptor()}, timer_{io} {}
    ~Pump() { news_.release(); }  // the runtime owns the descriptor

    void run() {
        while (runtime_.poll()) continue;
        news_.async_wait(asio::posix::stream_descriptor::wait_read, [this](auto error) {
            if (!error) again();
        });
        if (auto const time = runtime_.wait_time()) {
            timer_.expires_after(*time);
            timer_.async_wait([this](auto error) {
                if (!error) again();
            });
        }
    }
    void stop() { news_.cancel(), timer_.cancel(), stopped_ = true; }

private:
    void again() {
        news_.cancel(), timer_.cancel();
        if (!stopped_) run();
    }

    tinkxx::Runtime runtime_;
    asio::posix::stream_descriptor news_;
    asio::steady_timer timer_;
    bool stopped_{false};
};

int main() try {
    asio::io_context io;
    tinkxx::Runtime const runtime{{.threads = 0}};
    Pump pump{io, runtime};
    auto const service = tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}},
                                                       {.runtime = runtime});
    auto const sampler = service.create_sampling_client("tinkxx/tiny");
    auto const answer =
        sampler.sample("Q: What is two plus three?\nA:", {.max_tokens = 16, .temperature = 0})
            .then_result([&](auto response) {
                std::cout << response.value().text() << '\n';
                pump.stop();
            });
    pump.run();
    io.run();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
