#include "support/sockets/http_driver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <utility>

namespace tinkxx::test {
namespace {

// Nothing here takes as long: a call that has not ended by then never will.
constexpr std::chrono::seconds hang_limit{60};

}  // namespace

std::string ExchangeOutcome::header(std::string_view name) const {
    auto const* value = head ? head->headers.find(name) : nullptr;
    return value == nullptr ? std::string{} : *value;
}

std::string ExchangeOutcome::text() const {
    if (failure) {
        return "failure " + std::string{to_string(failure->kind)} + ", seen " +
               std::string{to_string(failure->seen)} + ": " + failure->message;
    }
    return "status " + std::to_string(head ? head->status : 0) + ", " +
           std::to_string(body.size()) + " bytes" + (done ? "" : ", not ended");
}

ExchangeOutcome const& DrivenExchange::wait() {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, hang_limit, [this] { return endings_ > 0; })) {
        ADD_FAILURE() << "a call hangs: " << outcome_.text();
    }
    return outcome_;
}

bool DrivenExchange::ended() const {
    std::lock_guard const lock{mutex_};
    return endings_ > 0;
}

void DrivenExchange::wait_for_bytes(std::size_t count) {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, hang_limit, [&] {
            return endings_ > 0 || (outcome_.head && outcome_.body.size() >= count);
        })) {
        ADD_FAILURE() << "a call hangs: " << outcome_.text();
    }
}

std::size_t DrivenExchange::received() const {
    std::lock_guard const lock{mutex_};
    return outcome_.body.size();
}

ExchangeOutcome DrivenExchange::so_far() const {
    std::lock_guard const lock{mutex_};
    return outcome_;
}

void DrivenExchange::cancel() {
    driver_.on_loop([this] {
        cancelled_ = true;
        driver_.transport_->cancel(call_);
    });
}

void DrivenExchange::pause(bool on) {
    driver_.on_loop([this, on] { driver_.transport_->pause(call_, on); });
}

void DrivenExchange::on_head(Head head) {
    EXPECT_TRUE(driver_.runtime_.scheduler().on_loop());
    EXPECT_FALSE(starting_) << "the sink was called inside start()";
    EXPECT_FALSE(cancelled_) << "the sink was called after cancel()";
    {
        std::lock_guard const lock{mutex_};
        EXPECT_EQ(endings_, 0) << "on_head after the end";
        EXPECT_FALSE(outcome_.head) << "on_head came twice";
        outcome_.head = std::move(head);
    }
    changed_.notify_all();
    if (on_each_head_) on_each_head_(*this);
}

void DrivenExchange::on_data(std::span<char const> data) {
    EXPECT_FALSE(starting_) << "the sink was called inside start()";
    EXPECT_FALSE(cancelled_) << "the sink was called after cancel()";
    std::size_t received = 0;
    {
        std::lock_guard const lock{mutex_};
        EXPECT_EQ(endings_, 0) << "on_data after the end";
        EXPECT_TRUE(outcome_.head) << "on_data before on_head";
        outcome_.body.append(data.data(), data.size());
        received = outcome_.body.size();
    }
    changed_.notify_all();
    if (received >= pause_after_) {
        pause_after_ = SIZE_MAX;
        driver_.transport_->pause(call_, true);
    }
}

void DrivenExchange::on_done(Timing const& timing) {
    {
        std::lock_guard const lock{mutex_};
        EXPECT_TRUE(outcome_.head) << "on_done before on_head";
        outcome_.done = true;
        outcome_.timing = timing;
    }
    end();
}

void DrivenExchange::on_failure(Failure failure) {
    {
        std::lock_guard const lock{mutex_};
        EXPECT_FALSE(failure.message.empty()) << "a failure without words";
        outcome_.timing = failure.timing;
        outcome_.failure = std::move(failure);
    }
    end();
}

void DrivenExchange::end() {
    EXPECT_TRUE(driver_.runtime_.scheduler().on_loop());
    EXPECT_FALSE(starting_) << "the sink was called inside start()";
    EXPECT_FALSE(cancelled_) << "the sink was called after cancel()";
    std::lock_guard const lock{mutex_};
    EXPECT_EQ(++endings_, 1) << "a call ended twice";
    changed_.notify_all();
}

HttpDriver::HttpDriver() : HttpDriver{NetOptions{}} {}

HttpDriver::HttpDriver(NetOptions options)
    : transport_{net_transport(runtime_, std::move(options))} {}

HttpDriver::~HttpDriver() {
    runtime_.shutdown();
    transport_.reset();
    for (auto const& exchange : exchanges_) {
        EXPECT_EQ(exchange->endings_, exchange->cancelled_ ? 0 : 1)
            << (exchange->cancelled_ ? "a cancelled call ended: " : "a call never ended: ")
            << exchange->outcome_.text();
    }
}

DrivenExchange& HttpDriver::add() {
    exchanges_.push_back(std::unique_ptr<DrivenExchange>{new DrivenExchange{*this}});
    return *exchanges_.back();
}

void HttpDriver::start_on_loop(DrivenExchange& exchange, Request request) {
    exchange.starting_ = true;
    exchange.call_ = transport_->start(std::move(request), exchange);
    exchange.starting_ = false;
}

DrivenExchange& HttpDriver::start(Request request) {
    auto& exchange = add();
    runtime_.scheduler().post([this, &exchange, moved = std::move(request)]() mutable {
        start_on_loop(exchange, std::move(moved));
    });
    return exchange;
}

DrivenExchange& HttpDriver::start_and_pause_after(Request request, std::size_t bytes) {
    auto& exchange = add();
    exchange.pause_after_ = bytes;
    runtime_.scheduler().post([this, &exchange, moved = std::move(request)]() mutable {
        start_on_loop(exchange, std::move(moved));
    });
    return exchange;
}

DrivenExchange& HttpDriver::start_with_head_hook(Request request,
                                                 std::function<void(DrivenExchange&)> fn) {
    auto& exchange = add();
    exchange.on_each_head_ = std::move(fn);
    runtime_.scheduler().post([this, &exchange, moved = std::move(request)]() mutable {
        start_on_loop(exchange, std::move(moved));
    });
    return exchange;
}

std::vector<DrivenExchange*> HttpDriver::start_all(std::vector<Request> requests) {
    std::vector<DrivenExchange*> all;
    all.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) all.push_back(&add());
    on_loop([&] {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            start_on_loop(*all[i], std::move(requests[i]));
        }
    });
    return all;
}

ExchangeOutcome HttpDriver::run(Request request) { return start(std::move(request)).wait(); }
ExchangeOutcome HttpDriver::get(std::string url) { return run(get_request(std::move(url))); }
ExchangeOutcome HttpDriver::post(std::string url, std::string body) {
    return run(post_request(std::move(url), std::move(body)));
}

void HttpDriver::on_loop(std::function<void()> fn) {
    std::promise<void> done;
    runtime_.scheduler().post([&] {
        fn();
        done.set_value();
    });
    if (done.get_future().wait_for(hang_limit) != std::future_status::ready) {
        ADD_FAILURE() << "the loop hangs";
        std::abort();  // `done` and `fn` are on this stack
    }
}

void HttpDriver::let_pass(std::chrono::milliseconds time) {
    struct Alarm final : Timer {
        void on_time() override { rung.set_value(); }
        std::promise<void> rung{};
    } alarm;
    on_loop([&] {
        auto& scheduler = runtime_.scheduler();
        scheduler.arm(alarm, scheduler.now() + time, Precision::exact);
    });
    alarm.rung.get_future().wait();
    on_loop([] {});  // the timer is called no more
}

Request get_request(std::string url) {
    Request request;
    request.url = std::move(url);
    return request;
}

Request post_request(std::string url, std::string body) {
    Request request;
    request.method = "POST";
    request.url = std::move(url);
    request.body.tail = std::make_shared<std::string const>(std::move(body));
    return request;
}

Request with_id(Request request) {
    static std::atomic<int> next{0};
    request.headers.add("x-request-id", "id-" + std::to_string(++next));
    return request;
}

}  // namespace tinkxx::test
