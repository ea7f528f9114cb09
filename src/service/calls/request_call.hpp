#pragma once

#include <tinkxx/future.hpp>

#include "service/calls/promise_call.hpp"
#include "service/requests/service_request.hpp"
#include "service/results/standing.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx::service {

/// One plain call of the service: waits for the session, or the sampler, asks, and decodes the
/// answer.
template <class T>
class RequestCall final : public PromiseCall<T>, private ServiceRequest::Listener {
public:
    /// Makes the order once the session is ready.
    using Order = std::function<HttpOrder(ClientCore&)>;
    using Decode = std::function<Result<T>(HttpResponse const&)>;

    /// `sampler` is null if the session will do.
    RequestCall(Promise<T> promise, std::shared_ptr<ClientCore> core,
                std::shared_ptr<Sampler> sampler, std::string name, Order order, Repeat repeat,
                Decode decode)
        : PromiseCall<T>{std::move(promise), std::move(core), std::move(sampler), std::move(name)},
          make_order_{std::move(order)},
          repeat_{repeat},
          decode_{std::move(decode)} {}

    using PromiseCall<T>::set_call;
    /// Whether a request that failed so, and would be repeated, is. Before it is launched.
    void repeat_if(std::function<bool(Error const&)> may_repeat) {
        may_repeat_ = std::move(may_repeat);
    }

private:
    void go() override {
        ServiceRequest::Listener& listener = *this;
        call_.emplace(this->core().context(), listener);
        call_->start(make_order_(this->core()), repeat_);
    }
    void on_response(HttpResponse response) override {
        auto const keep_alive = this->shared_from_this();
        auto result = decode_(response);
        if (!result) return this->fail(this->named(result.error()));
        this->keep(std::move(result));
    }
    void on_error(Error error) override { this->fail(this->named(error)); }
    void on_standing() override { this->look(); }
    bool may_repeat(Error const& error, RepeatCost /*cost*/) override {
        return !may_repeat_ || may_repeat_(error);
    }

    void drop() noexcept override { call_.reset(); }
    Stage stage() const noexcept override {
        return call_ ? stage_of(call_->doing()) : Stage::submitting;
    }
    void describe(OperationStatus& status, TimePoint now) const override {
        if (call_) describe_alone(status, *call_, now);
    }

    Order const make_order_;
    Repeat const repeat_;
    Decode const decode_;
    std::function<bool(Error const&)> may_repeat_{};
    std::optional<ServiceRequest> call_{};
};

}  // namespace tinkxx::service
