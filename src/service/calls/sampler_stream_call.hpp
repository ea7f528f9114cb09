#pragma once

#include <tinkxx/future.hpp>

#include "service/calls/http_stream_call.hpp"
#include "service/calls/promise_call.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {

/// One streamed call of a sampler: waits for it, asks, and hands on what comes.
class SamplerStreamCall final : public PromiseCall<void> {
public:
    /// Makes the order once the sampler is there.
    using Order = std::function<HttpOrder(Sampler&)>;

    SamplerStreamCall(Promise<void> promise, Runtime const& runtime,
                      std::shared_ptr<Sampler> const& sampler, std::string name, Order order,
                      DataHandler on_data);

private:
    void go() override;
    void over(Result<HttpResponse> const& outcome);
    void drop() noexcept override;
    Stage stage() const noexcept override;
    void describe(OperationStatus& status, TimePoint now) const override;

    std::shared_ptr<detail::CallContext> const runtime_;
    Sampler& ready_sampler_;  // the base holds it
    Order const make_order_;
    DataHandler on_data_;
    std::shared_ptr<HttpStreamCall> stream_{};
    Future<void> told_{};  ///< once the stream is over
};

}  // namespace tinkxx::service
