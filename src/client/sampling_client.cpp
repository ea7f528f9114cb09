#include <tinkxx/sampling_client.hpp>

#include "client/http_order.hpp"
#include "client/request_operation.hpp"
#include "client/sampling_impl.hpp"
#include "client/stream_operation.hpp"
#include "service/sampling/sample_operation.hpp"
#include "service/session/sampler_handle.hpp"
#include "wire/event_stream.hpp"
#include "wire/sample.hpp"
#include "wire/service_messages.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx {
namespace {

/// The number of tokens, if every chunk tells.
std::optional<std::int64_t> known_length(ModelInput const& prompt) {
    try {
        return prompt.length();
    } catch (ValidationError const&) {
        return std::nullopt;
    }
}

/// Equal settings, one after the other, are one object.
std::shared_ptr<service::SampleSettings const> shared_settings(SamplingParams params,
                                                               SampleOptions options) {
    thread_local std::shared_ptr<service::SampleSettings const> last;
    service::SampleSettings settings{std::move(params), std::move(options)};
    if (settings.options.target_prompt_logprobs) {  // large, and hardly ever the same
        return std::make_shared<service::SampleSettings const>(std::move(settings));
    }
    if (!last || !(*last == settings)) {
        last = std::make_shared<service::SampleSettings const>(std::move(settings));
    }
    return last;
}

bool is_default(CallOptions const& call) {
    return call.retry == RetryOverrides{} && call.deadline.count() == 0 &&
           call.on_queue_state.empty() && call.queue_warnings && call.metadata.empty();
}

Future<SampleResponse> start(Runtime const& runtime, service::Sampler& sampler,
                             TracePropagator const& propagator, std::string_view operation,
                             ModelInput prompt, SamplingParams params, SampleOptions options,
                             CallOptions call, bool may_bypass_handler) {
    Promise<SampleResponse> promise{runtime};
    auto future = promise.get_future();
    auto const refuse = [&](ErrorDetails error) {
        error.message = std::string{operation} + ": " + error.message;
        promise.set_error(Error{std::move(error)});
    };
    if (auto problem = wire::sample_problem(prompt, params, options)) {
        refuse(*std::move(problem));
        return future;
    }
    if (!(call.retry == RetryOverrides{})) {
        try {
            call.retry.over(sampler.plan().retry).validate();
        } catch (ValidationError const& error) {
            refuse(error.details());
            return future;
        }
    }
    if (call.deadline.count() < 0) {
        refuse({.kind = ErrorKind::validation,
                .message = "CallOptions::deadline is " + std::to_string(call.deadline.count()) +
                           " ms; it must not be negative (0: the client's)",
                .category = ErrorCategory::user,
                .field = "deadline",
                .value = std::to_string(call.deadline.count())});
        return future;
    }
    if (runtime.shut_down()) {
        refuse({.kind = ErrorKind::cancelled, .message = "the runtime was shut down"});
        return future;
    }
    auto place = sampler.shared().bound().enter(runtime);
    if (!place) {
        refuse(place.error().details());
        return future;
    }
    service::SampleOrder order;
    order.place = *std::move(place);
    order.operation = operation;
    order.prompt_bytes = wire::estimate_prompt_bytes(prompt);
    order.prompt_length = known_length(prompt).value_or(-1);
    order.prompt = std::move(prompt);
    order.settings = shared_settings(std::move(params), std::move(options));
    auto headers = client::trace_headers(sampler.shared().http(), propagator);
    if (headers.size() > 0 || !is_default(call)) {
        order.extras =
            std::make_unique<service::SampleExtras const>(std::move(call), std::move(headers));
    }
    order.may_bypass_handler = may_bypass_handler;
    auto const operation_object = std::make_shared<service::SampleOperation>(
        sampler.shared_from_this(), std::move(order), std::move(promise));
    operation_object->launch();
    return future;
}

/// Completes `promise` on the loop once the sampler exists.
template <class T, class Fn>
class AfterReady final : public std::enable_shared_from_this<AfterReady<T, Fn>>,
                         private service::SamplerWaiter,
                         private service::PendingOperation {
public:
    AfterReady(std::shared_ptr<service::Sampler> sampler, std::string name, Promise<T> promise,
               Fn fn)
        : sampler_{std::move(sampler)},
          name_{std::move(name)},
          promise_{std::move(promise)},
          fn_{std::move(fn)} {}

    void launch() {
        auto& scheduler = sampler_->scheduler();
        promise_.on_cancel([weak = this->weak_from_this(), &scheduler] {
            scheduler.post([weak] {
                if (auto const waiting = weak.lock()) waiting->end();
            });
        });
        scheduler.post([waiting = this->shared_from_this()] { waiting->begin(); });
    }

private:
    void begin() {
        if (promise_.done()) return;
        if (auto refusal = sampler_->refusal(name_)) {
            promise_.set_error(*std::move(refusal));
            return;
        }
        self_ = this->shared_from_this();
        started_ = sampler_->scheduler().now();
        id_ = sampler_->pending().next_id();
        sampler_->pending().add(*this);
        if (auto const ready = sampler_->when_ready(*this)) on_sampler(*ready);
    }
    void on_sampler(Result<void> outcome) override {
        auto const keep_alive = self_;
        end();
        if (outcome) {
            fn_(*sampler_, std::move(promise_));
        } else {
            promise_.set_error(outcome.error());
        }
    }
    OperationStatus status(TimePoint now) const override {
        OperationStatus status;
        status.id = id_;
        status.operation = name_;
        status.stage = sampler_->stage();
        status.why = sampler_->standing(now);
        status.age = status.in_stage = now - started_;
        return status;
    }
    void on_close() noexcept override {
        auto const keep_alive = self_;
        end();
        promise_.set_error(Error{{.kind = ErrorKind::cancelled,
                                  .message = name_ + ": the client was closed",
                                  .stopped = RetryEnd::cancelled}});
    }
    void end() noexcept {
        auto const keep_alive = std::move(self_);
        sampler_->forget(static_cast<service::SamplerWaiter&>(*this));
        sampler_->pending().remove(*this);
    }

    std::shared_ptr<service::Sampler> const sampler_;
    std::string const name_;
    Promise<T> promise_;
    Fn fn_;
    std::shared_ptr<AfterReady> self_{};  // while it waits; loop thread only
    std::uint64_t id_{0};
    TimePoint started_{};
};

template <class T, class Fn>
Future<T> after_ready(Runtime const& runtime, std::shared_ptr<service::Sampler> const& sampler,
                      std::string name, Fn fn) {
    Promise<T> promise{runtime};
    auto future = promise.get_future();
    std::make_shared<AfterReady<T, Fn>>(sampler, std::move(name), std::move(promise), std::move(fn))
        ->launch();
    return future;
}

/// Takes a streamed sample apart. Used by one thread at a time.
class ChunkReader {
public:
    explicit ChunkReader(std::function<void(SampleChunk const&)> on_chunk)
        : on_chunk_{std::move(on_chunk)} {}

    void feed(std::span<char const> data) {
        auto events = stream_.feed({data.data(), data.size()});
        if (!events) events.error().raise();
        for (auto const& event : *events) {
            if (ended_) return;
            auto chunk = wire::decode_sample_chunk(event.data);
            if (!chunk) continue;  // not for us
            if (chunk->error) {
                Error{{.kind = ErrorKind::request_failed,
                       .message = "sample_stream: the service reported: " + *chunk->error}}
                    .raise();
            }
            SampleChunk told;
            told.token = std::move(chunk->token);
            told.token_id = chunk->token_id;
            told.index = chunk->index;
            told.logprob = chunk->logprob;
            told.finish_reason = std::move(chunk->finish_reason);
            told.total_tokens = chunk->total_tokens;
            ended_ = told.finish_reason.has_value();
            on_chunk_(told);
        }
    }

private:
    std::function<void(SampleChunk const&)> on_chunk_;
    wire::EventStream stream_{};
    bool ended_{false};
};

}  // namespace

SamplingClient::SamplingClient(std::shared_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}

Future<SampleResponse> SamplingClient::sample(ModelInput prompt, SamplingParams params,
                                              std::int64_t num_samples) const {
    return sample(std::move(prompt), std::move(params), SampleOptions{.num_samples = num_samples},
                  CallOptions{});
}

Future<SampleResponse> SamplingClient::sample(ModelInput prompt, SamplingParams params,
                                              SampleOptions options) const {
    return sample(std::move(prompt), std::move(params), std::move(options), CallOptions{});
}

Future<SampleResponse> SamplingClient::sample(ModelInput prompt, SamplingParams params,
                                              SampleOptions options, CallOptions call) const {
    return start(impl_->runtime, *impl_->sampler, impl_->propagator, "sample", std::move(prompt),
                 std::move(params), std::move(options), std::move(call), true);
}

Future<SampleResponse> SamplingClient::sample_async(ModelInput prompt, SamplingParams params,
                                                    std::int64_t num_samples) const {
    return sample(std::move(prompt), std::move(params), num_samples);
}

void SamplingClient::sample_async(ModelInput prompt, SamplingParams params, SampleOptions options,
                                  std::function<void(Result<SampleResponse>)> done) const {
    auto pending = sample(std::move(prompt), std::move(params), std::move(options));
    detail::notify(std::move(pending), std::move(done));
}

Future<std::vector<std::optional<float>>> SamplingClient::compute_logprobs(
    ModelInput prompt) const {
    return compute_logprobs(std::move(prompt), 0, CallOptions{});
}

Future<std::vector<std::optional<float>>> SamplingClient::compute_logprobs(ModelInput prompt,
                                                                           std::int64_t last_n,
                                                                           CallOptions call) const {
    SampleOptions options;
    options.include_prompt_logprobs = true;
    if (last_n != 0) options.prompt_logprobs_last_n = last_n;
    auto pending = start(impl_->runtime, *impl_->sampler, impl_->propagator, "compute_logprobs",
                         std::move(prompt), SamplingParams{.max_tokens = 1}, std::move(options),
                         std::move(call), false);
    return pending.then([](SampleResponse response) {
        if (!response.prompt_logprobs) {
            Error{{.kind = ErrorKind::validation,
                   .message = "compute_logprobs: the answer has no prompt logprobs; the server may "
                              "not know how to compute them",
                   .field = "prompt_logprobs",
                   .unsupported_feature = "prompt logprobs"}}
                .raise();
        }
        return std::move(*response.prompt_logprobs);
    });
}

Future<void> SamplingClient::sample_stream(ModelInput prompt, SamplingParams params,
                                           std::function<void(SampleChunk const&)> on_chunk) const {
    auto const& sampler = impl_->sampler;
    if (auto problem = wire::sample_problem(prompt, params, {})) {
        problem->message = "sample_stream: " + problem->message;
        return make_failed_future<void>(Error{*std::move(problem)});
    }
    auto tail = std::make_shared<std::string const>(
        wire::encode_sample_tail(prompt, params, {}, false, wire::Members::before_0_26));
    auto headers = client::trace_headers(sampler->shared().http(), impl_->propagator);
    return after_ready<HttpResponse>(
               impl_->runtime, sampler, "sample_stream",
               [tail = std::move(tail), headers = std::move(headers),
                on_chunk = std::move(on_chunk)](service::Sampler& ready,
                                                Promise<HttpResponse> promise) mutable {
                   constexpr std::string_view path = "/api/v1/stream_sample";
                   auto& http = ready.shared().http();
                   service::HttpOrder order;
                   order.operation = {
                       .method = "POST", .path = std::string{path}, .feature = "streamed samples"};
                   order.url = ready.url(path);
                   auto common = *http.json_headers();
                   common.set("Accept", "text/event-stream");
                   order.common_headers = std::make_shared<Headers const>(std::move(common));
                   order.headers = std::move(headers);
                   order.body.head = std::make_shared<std::string const>(
                       wire::encode_sample_head(ready.id(), ready.next_seq_id()));
                   order.body.tail = std::move(tail);
                   order.purpose = Purpose::sample;
                   order.timeouts = http.config().timeouts;
                   order.max_retries = 0;
                   order.stream = true;
                   auto reader = std::make_shared<ChunkReader>(std::move(on_chunk));
                   std::make_shared<client::StreamOperation>(
                       http.shared_from_this(), std::move(promise), std::move(order),
                       [reader](std::span<char const> data) { reader->feed(data); })
                       ->launch();
               })
        .then([](HttpResponse const&) {});
}

Future<std::string> SamplingClient::get_base_model() const {
    auto const& sampler = impl_->sampler;
    return after_ready<std::string>(
        impl_->runtime, sampler, "get_base_model",
        [](service::Sampler& ready, Promise<std::string> promise) {
            auto const path = "/api/v1/samplers/" + ready.id();
            std::make_shared<client::RequestOperation<std::string>>(
                ready.shared().shared_from_this(), "get_base_model",
                [path](service::SamplingShared& shared) -> Result<service::HttpOrder> {
                    return client::get_order(shared.http(), path, Purpose::train);
                },
                service::Repeat::submit_loop,
                [](HttpResponse const& response) -> Result<std::string> {
                    auto answer = wire::decode_sampler(response.body);
                    if (!answer) return answer.error();
                    return std::move(answer->base_model);
                },
                std::move(promise))
                ->launch();
        });
}

Future<std::string> SamplingClient::sampling_session_id() const {
    return after_ready<std::string>(impl_->runtime, impl_->sampler, "sampling_session_id",
                                    [](service::Sampler& ready, Promise<std::string> promise) {
                                        promise.set_value(ready.id());
                                    });
}

namespace {

service::SamplerSnapshot snapshot_of(service::Sampler& ready) {
    auto& holder = ready.shared().holder();
    auto const& config = holder.config();
    service::SamplerSnapshot snapshot;
    snapshot.sampling_session_id = ready.id();
    snapshot.record_stability_info = ready.record_stability_info();
    snapshot.base_url = config.http.endpoint.base_url();
    snapshot.header_overrides = config.header_overrides;
    snapshot.session = holder.snapshot();
    return snapshot;
}

}  // namespace

Future<std::string> SamplingClient::get_sampler_handle() const {
    return after_ready<std::string>(
        impl_->runtime, impl_->sampler, "get_sampler_handle",
        [](service::Sampler& ready, Promise<std::string> promise) {
            promise.set_value(service::encode_sampler_handle(snapshot_of(ready)));
        });
}

Future<std::string> SamplingClient::export_sampler() const {
    return after_ready<std::string>(impl_->runtime, impl_->sampler, "export_sampler",
                                    [](service::Sampler& ready, Promise<std::string> promise) {
                                        auto snapshot = snapshot_of(ready);
                                        auto const& credentials =
                                            ready.shared().holder().config().credentials;
                                        if (!credentials.api_key.empty())
                                            snapshot.api_key = credentials.api_key;
                                        if (!credentials.command.empty())
                                            snapshot.credential_cmd = credentials.command;
                                        promise.set_value(service::encode_sampler_export(snapshot));
                                    });
}

Future<SamplerStats> SamplingClient::stats() const {
    return after_ready<SamplerStats>(impl_->runtime, impl_->sampler, "stats",
                                     [](service::Sampler& ready, Promise<SamplerStats> promise) {
                                         SamplerStats stats;
                                         stats.next_sequence_id = ready.peek_seq_id();
                                         if (auto const* handler = ready.handler()) {
                                             auto known = handler->stats();
                                             stats.waiting = known.waiting;
                                             stats.in_progress = known.in_retry_loop;
                                             stats.processed = known.processed;
                                             stats.retries = known.retries;
                                             stats.errors = std::move(known.errors);
                                             stats.since_progress =
                                                 ready.scheduler().now() - known.last_progress;
                                         }
                                         promise.set_value(std::move(stats));
                                     });
}

}  // namespace tinkxx
