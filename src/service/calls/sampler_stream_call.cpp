#include "service/calls/sampler_stream_call.hpp"

#include <utility>

namespace tinkxx::service {

SamplerStreamCall::SamplerStreamCall(Promise<void> promise, Runtime const& runtime,
                                     std::shared_ptr<Sampler> const& sampler, std::string name,
                                     Order order, DataHandler on_data)
    : PromiseCall{std::move(promise), sampler->core().shared_from_this(), sampler, std::move(name)},
      runtime_{runtime.context()},
      ready_sampler_{*sampler},
      make_order_{std::move(order)},
      on_data_{std::move(on_data)} {}

void SamplerStreamCall::go() {
    Promise<HttpResponse> whole{runtime_};
    auto stream_end = whole.get_future();
    stream_ = std::make_shared<HttpStreamCall>(core().http().shared_from_this(), nullptr,
                                               std::move(whole), make_order_(ready_sampler_),
                                               std::move(on_data_));
    std::weak_ptr<SamplerStreamCall> const weak =
        std::static_pointer_cast<SamplerStreamCall>(shared_from_this());
    stream_->on_change([weak] {
        if (auto const call = weak.lock()) call->look();
    });
    stream_->launch();
    // The last piece has been handed on by then.
    told_ = stream_end.then_result([weak, &scheduler = scheduler()](Result<HttpResponse> outcome) {
        scheduler.post([weak, outcome = std::move(outcome)] {
            if (auto const call = weak.lock()) call->over(outcome);
        });
    });
}

void SamplerStreamCall::over(Result<HttpResponse> const& outcome) {
    if (!under_way()) return;
    if (!outcome) return fail(outcome.error());
    keep({});
}

void SamplerStreamCall::drop() noexcept { told_.cancel(); }

Stage SamplerStreamCall::stage() const noexcept {
    if (!stream_) return Stage::submitting;
    if (stream_->waits_for_credential()) return Stage::waiting_for_credential;
    return stream_->flows() ? Stage::streaming : Stage::submitting;
}

void SamplerStreamCall::describe(OperationStatus& status, TimePoint now) const {
    switch (status.stage) {
        case Stage::waiting_for_credential: {
            auto credential = core().http().credentials().standing();
            status.why = std::move(credential.why);
            if (credential.until) status.ends_in = *credential.until - now;
            status.stalled = status.in_stage;
            break;
        }
        case Stage::streaming:
            status.why = "the service has not sent the last piece, or it is not handled yet";
            break;
        default:
            status.why = "the service has not answered yet";
            status.stalled = status.in_stage;
            break;
    }
}

}  // namespace tinkxx::service
