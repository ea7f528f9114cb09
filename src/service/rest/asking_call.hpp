#pragma once

#include <tinkxx/future.hpp>

#include "service/calls/promise_call.hpp"
#include "service/common/alarm.hpp"
#include "service/requests/service_request.hpp"
#include "service/rest/asking.hpp"
#include "service/results/standing.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tinkxx::service {

/// A question that is asked until `Machine` has its answer. From three minutes on it says every
/// half minute that it goes on.
template <class Machine>
class AskingCall final : public PromiseCall<typename Machine::Value>,
                         private ServiceRequest::Listener {
public:
    using Value = typename Machine::Value;
    /// Makes the request, each time anew.
    using Order = std::function<HttpOrder(ClientCore&)>;

    static constexpr std::chrono::seconds first_line{180};
    static constexpr std::chrono::seconds between_lines{30};

    AskingCall(Promise<Value> promise, std::shared_ptr<ClientCore> core, std::string name,
               Order order, Machine machine)
        : PromiseCall<Value>{std::move(promise), std::move(core), nullptr, std::move(name)},
          make_order_{std::move(order)},
          machine_{std::move(machine)} {}

    using PromiseCall<Value>::set_call;

private:
    void go() override {
        asked_since_ = this->scheduler().now();
        this->core().http().log(LogLevel::warning, this->name() + ": " + Machine::warning());
        this->scheduler().arm(lines_, asked_since_ + first_line, Precision::coarse);
        ask();
    }
    void ask() {
        waits_for_.clear();
        if (!call_) {
            ServiceRequest::Listener& listener = *this;
            call_.emplace(this->core().context(), listener);
        }
        call_->start(make_order_(this->core()), Repeat::submit_loop);
        this->look();
    }
    void say_so() {
        auto const took = std::chrono::duration_cast<std::chrono::seconds>(this->scheduler().now() -
                                                                           asked_since_);
        this->core().http().log(LogLevel::warning, this->name() + ": still running after " +
                                                       std::to_string(took.count()) + " s");
        this->scheduler().arm(lines_, this->scheduler().now() + between_lines, Precision::coarse);
    }
    void on_response(HttpResponse response) override {
        follow(machine_.on_response(response, this->scheduler().wall()));
    }
    void on_error(Error error) override { follow(machine_.on_error(error)); }
    bool may_repeat(Error const& error, RepeatCost /*cost*/) override {
        return machine_.may_repeat(error);
    }
    void on_standing() override { this->look(); }
    void follow(typename Machine::Action action) {
        auto const keep_alive = this->shared_from_this();
        if (auto* const again = std::get_if<AskAgain>(&action)) {
            waits_for_ = std::move(again->why);
            until_ = this->scheduler().now() + again->delay;
            this->scheduler().arm(again_, until_, Precision::exact);
            return this->look();
        }
        if (auto* const vain = std::get_if<AskInVain>(&action))
            return this->fail(this->named(vain->error));
        drop();
        this->keep(std::move(std::get<Answered<Value>>(action).value));
    }

    void drop() noexcept override {
        call_.reset();
        disarm(again_);
        disarm(lines_);
    }
    void disarm(Timer& timer) noexcept { this->scheduler().disarm(timer); }
    Stage stage() const noexcept override {
        if (!waits_for_.empty()) return Stage::waiting_to_poll;
        return call_ ? stage_of(call_->doing()) : Stage::submitting;
    }
    void describe(OperationStatus& status, TimePoint now) const override {
        if (!waits_for_.empty()) {
            status.why = waits_for_;
            status.ends_in = until_ - now;
            return;
        }
        if (call_) describe_alone(status, *call_, now);
    }

    Order const make_order_;
    Machine machine_;
    std::optional<ServiceRequest> call_{};
    Alarm<AskingCall> again_{*this, &AskingCall::ask};
    Alarm<AskingCall> lines_{*this, &AskingCall::say_so};
    TimePoint asked_since_{};
    TimePoint until_{};
    std::string waits_for_{};
};

}  // namespace tinkxx::service
