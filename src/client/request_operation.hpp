#pragma once

#include <tinkxx/future.hpp>

#include "service/sampling/sampling_shared.hpp"
#include "service/session/service_call.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx::client {

/// One plain call of the service: waits for the holder, asks, and decodes the answer. Made on the
/// caller's thread, then lives on the loop, which holds it until it is over.
template <class T>
class RequestOperation final : public std::enable_shared_from_this<RequestOperation<T>>,
                               private service::PendingOperation,
                               private service::ReadyWaiter,
                               private service::ServiceCall::Listener {
public:
    /// Makes the order once the holder is ready, or says why it cannot.
    using Order = std::function<Result<service::HttpOrder>(service::SamplingShared&)>;
    using Decode = std::function<Result<T>(HttpResponse const&)>;

    RequestOperation(std::shared_ptr<service::SamplingShared> shared, std::string name, Order order,
                     service::Repeat repeat, Decode decode, Promise<T> promise)
        : shared_{std::move(shared)},
          name_{std::move(name)},
          make_order_{std::move(order)},
          repeat_{repeat},
          decode_{std::move(decode)},
          promise_{std::move(promise)} {}

    /// Goes to the loop. Any thread, once.
    void launch() {
        auto& scheduler = shared_->scheduler();
        // Weak: a cancel that is never made must not keep the operation.
        promise_.on_cancel([weak = this->weak_from_this(), &scheduler] {
            scheduler.post([weak] {
                if (auto const operation = weak.lock()) operation->stop();
            });
        });
        scheduler.post([operation = this->shared_from_this()] { operation->begin(); });
    }

private:
    void begin() {
        if (promise_.done()) return;
        if (auto refusal = shared_->refusal(name_)) {
            promise_.set_error(*std::move(refusal));
            return;
        }
        self_ = this->shared_from_this();
        started_ = shared_->scheduler().now();
        id_ = shared_->pending().next_id();
        shared_->attach();
        shared_->pending().add(*this);
        shared_->holder().when_ready(*this);
    }

    void on_ready(Result<void> outcome) override {
        if (!outcome) return end(outcome.error());
        auto order = make_order_(*shared_);
        if (!order) return end(order.error());
        service::ServiceCall::Listener& listener = *this;
        call_.emplace(shared_->context(), listener);
        call_->start(*std::move(order), repeat_);
    }

    void on_response(HttpResponse response) override {
        auto result = decode_(response);
        if (result) return end(std::move(result));
        end(named(result.error()));
    }
    void on_error(Error error) override { end(named(error)); }

    void on_close() noexcept override {
        end(Error{{.kind = ErrorKind::cancelled,
                   .message = name_ + ": the client was closed while it was under way",
                   .stopped = RetryEnd::cancelled}});
    }
    void stop() noexcept {
        if (self_) end(detail::cancelled_error());
    }

    OperationStatus status(TimePoint now) const override {
        OperationStatus status;
        status.id = id_;
        status.operation = name_;
        status.age = status.in_stage = now - started_;
        if (!call_) {
            status.why = shared_->holder().standing();
            return status;
        }
        auto const standing = call_->standing();
        status.stage = Stage::submitting;
        status.attempt = standing.attempt;
        status.why = standing.why;
        if (standing.until) status.ends_in = *standing.until - now;
        if (standing.doing == service::Standing::Doing::submit_wait) {
            status.stage = Stage::waiting_to_submit;
        } else if (standing.doing == service::Standing::Doing::billing_pause) {
            status.stage = Stage::billing_pause;
        }
        return status;
    }

    [[nodiscard]] Error named(Error const& error) const {
        auto details = error.details();
        details.message = name_ + ": " + details.message;
        return Error{std::move(details)};
    }

    void end(Result<T> result) {
        auto const keep_alive = std::move(self_);
        shared_->holder().forget(*this);
        shared_->pending().remove(*this);
        call_.reset();
        if (auto* const telemetry = shared_->context().telemetry();
            telemetry != nullptr && !result) {
            telemetry->capture(result.error());
        }
        promise_.set_result(std::move(result));
    }

    std::shared_ptr<service::SamplingShared> const shared_;
    std::string const name_;
    Order const make_order_;
    service::Repeat const repeat_;
    Decode const decode_;
    Promise<T> promise_;
    std::optional<service::ServiceCall> call_{};
    std::shared_ptr<RequestOperation> self_{};  // while under way; loop thread only
    std::uint64_t id_{0};
    TimePoint started_{};
};

}  // namespace tinkxx::client
