#include <tinkxx/sampling_client.hpp>

#include "client/options/shared_tokenizers.hpp"
#include "client/sampling_impl.hpp"
#include "service/calls/ready_call.hpp"
#include "service/calls/request_call.hpp"
#include "service/calls/sampler_stream_call.hpp"
#include "service/http/http_order.hpp"
#include "service/sampling/sample_call.hpp"
#include "service/sampling/sampler_handle.hpp"
#include "wire/rest/sessions.hpp"
#include "wire/sampling/event_stream.hpp"
#include "wire/sampling/sample.hpp"

#include <functional>
#include <memory>
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
    return call.retry == RetryOverrides{} && !call.circuit_breaker && call.deadline.count() == 0 &&
           call.on_queue_state.empty() && call.queue_warnings && call.metadata.empty();
}

/// What is wrong with a sample, as it was called.
std::optional<ErrorDetails> problem_of(Runtime const& runtime, service::Sampler const& sampler,
                                       ModelInput const& prompt, SamplingParams const& params,
                                       SampleOptions const& options, CallOptions const& call) {
    if (auto problem = wire::sample_problem(prompt, params, options)) return problem;
    if (!(call.retry == RetryOverrides{})) {
        try {
            call.retry.over(sampler.plan().options.retry).validate();
        } catch (ValidationError const& error) {
            return error.details();
        }
    }
    if (call.deadline.count() < 0) {
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = "CallOptions::deadline is " +
                                       std::to_string(call.deadline.count()) +
                                       " ms; it must not be negative (0: the client's)",
                            .category = ErrorCategory::user,
                            .field = "deadline",
                            .value = std::to_string(call.deadline.count())};
    }
    if (runtime.shut_down()) {
        return ErrorDetails{.kind = ErrorKind::cancelled, .message = "the runtime was shut down"};
    }
    return std::nullopt;
}

Future<SampleResponse> start(Runtime const& runtime, service::Sampler& sampler,
                             std::string_view operation, ModelInput prompt, SamplingParams params,
                             SampleOptions options, CallOptions call, bool may_bypass_handler) {
    Promise<SampleResponse> promise{runtime};
    auto future = promise.get_future();
    auto const refuse = [&](ErrorDetails error) {
        error.message = service::with_operation(operation, error.message);
        promise.set_error(Error{std::move(error)});
    };
    if (auto problem = problem_of(runtime, sampler, prompt, params, options, call)) {
        refuse(*std::move(problem));
        return future;
    }
    std::shared_ptr<service::PlaceWait> waited;
    auto const wait = [&](std::shared_ptr<Promise<void>> turn) {
        waited = std::make_shared<service::PlaceWait>(sampler.core().shared_from_this(),
                                                      std::string{operation}, call.deadline,
                                                      call.metadata, std::move(turn));
        waited->launch();
    };
    auto place = sampler.core().bound().enter(runtime, std::cref(wait));
    if (!place) {
        if (waited) waited->give_up();
        refuse(place.error().details());
        return future;
    }
    service::SampleOrder order;
    order.place = *std::move(place);
    order.operation = operation;
    order.prompt_bytes = wire::estimate_prompt_bytes(prompt);
    order.prompt_length = known_length(prompt).value_or(-1);
    order.prompt = service::SamplePrompt{std::move(prompt)};
    order.settings = shared_settings(std::move(params), std::move(options));
    auto headers = sampler.core().trace_headers();
    if (headers.size() > 0 || waited || !is_default(call)) {
        order.extras = std::make_unique<service::SampleExtras const>(
            std::move(call), std::move(headers), std::move(waited));
    }
    order.may_bypass_handler = may_bypass_handler;
    auto const sample = std::allocate_shared<service::SampleCall>(
        detail::BlockAllocator<service::SampleCall>{}, sampler.shared_from_this(), std::move(order),
        std::move(promise));
    sample->launch();
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
            auto const chunk = wire::decode_sample_chunk(event.data);
            if (!chunk) continue;  // not for us
            if (chunk->error) {
                Error{{.kind = ErrorKind::request_failed,
                       .message = "sample_stream: the service reported: " + *chunk->error}}
                    .raise();
            }
            ended_ = chunk->finish_reason.has_value();
            on_chunk_(*chunk);
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
                                              detail::Count num_samples) const {
    return sample(std::move(prompt), std::move(params),
                  SampleOptions{.num_samples = num_samples.value()}, CallOptions{});
}

Future<SampleResponse> SamplingClient::sample(ModelInput prompt, SamplingParams params,
                                              SampleOptions options) const {
    return sample(std::move(prompt), std::move(params), std::move(options), CallOptions{});
}

Future<SampleResponse> SamplingClient::sample(ModelInput prompt, SamplingParams params,
                                              SampleOptions options, CallOptions call) const {
    return start(impl_->runtime, *impl_->sampler, "sample", std::move(prompt), std::move(params),
                 std::move(options), std::move(call), true);
}

Future<SampleResponse> SamplingClient::sample_text(std::string prompt, SamplingParams params,
                                                   SampleOptions options, CallOptions call) const {
    auto found = get_tokenizer();
    return found.then([self = *this, prompt = std::move(prompt), params = std::move(params),
                       options = std::move(options), call = std::move(call)](
                          std::shared_ptr<Tokenizer const> const& tokenizer) mutable {
        auto pending = self.sample(ModelInput::from_tokens(tokenizer->encode(prompt)),
                                   std::move(params), std::move(options), std::move(call));
        return pending.then([tokenizer](SampleResponse response) {
            response.tokenizer = tokenizer;
            return response;
        });
    });
}

Future<std::shared_ptr<Tokenizer const>> SamplingClient::get_tokenizer() const {
    auto const load = [tokenizers = client::tokenizers_of(impl_->sampler->core().config())](
                          std::string const& base_model) {
        return tokenizers.get(tokenizer_id(base_model, std::nullopt));
    };
    auto const& planned = impl_->sampler->plan().options.base_model;
    if (planned.empty()) {
        auto asked = get_base_model();
        return asked.then(load);
    }
    // Loading may take long: on the callback executor.
    Promise<std::string> known{impl_->runtime};
    known.set_value(planned);
    auto ready = known.get_future();
    return ready.then(load);
}

Future<SampleResponse> SamplingClient::sample_async(ModelInput prompt, SamplingParams params,
                                                    detail::Count num_samples) const {
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
    auto pending =
        start(impl_->runtime, *impl_->sampler, "compute_logprobs", std::move(prompt),
              SamplingParams{.max_tokens = 1}, std::move(options), std::move(call), false);
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

// NOLINTNEXTLINE(performance-unnecessary-value-param): the same parameters as `sample`
Future<void> SamplingClient::sample_stream(ModelInput prompt, SamplingParams params,
                                           std::function<void(SampleChunk const&)> on_chunk) const {
    auto const& sampler = impl_->sampler;
    if (auto problem = wire::sample_problem(prompt, params, {})) {
        problem->message = "sample_stream: " + problem->message;
        return make_failed_future<void>(Error{*std::move(problem)});
    }
    auto tail = std::make_shared<std::string const>(
        wire::encode_sample_tail(prompt.chunks, params, {}, false, wire::Members::before_0_26));
    auto headers = sampler->core().trace_headers();
    auto reader = std::make_shared<ChunkReader>(std::move(on_chunk));
    return service::launch<service::SamplerStreamCall>(
        impl_->runtime, impl_->runtime, sampler, "sample_stream",
        [tail = std::move(tail), headers = std::move(headers)](service::Sampler& ready) {
            constexpr std::string_view path = "/api/v1/stream_sample";
            auto& http = ready.core().http();
            service::HttpOrder order;
            order.operation = {
                .method = "POST", .path = std::string{path}, .feature = "streamed samples"};
            order.url = ready.url(path);
            auto common = *http.json_headers();
            common.set("Accept", "text/event-stream");
            order.common_headers = std::make_shared<Headers const>(std::move(common));
            order.headers = headers;
            order.body.head = std::make_shared<std::string const>(
                wire::encode_sample_head(ready.id(), ready.next_seq_id()));
            order.body.tail = tail;
            order.purpose = Purpose::sample;
            order.timeouts = http.config().timeouts;
            order.max_retries = 0;
            return order;
        },
        [reader](std::span<char const> data) { reader->feed(data); });
}

Future<std::string> SamplingClient::get_base_model() const {
    auto const& sampler = impl_->sampler;
    return service::launch<service::RequestCall<std::string>>(
        impl_->runtime, sampler->core().shared_from_this(), sampler, "get_base_model",
        [&ready = *sampler](service::ClientCore& core) {
            return service::get_order(core.http(), "/api/v1/samplers/" + ready.id(),
                                      Purpose::train);
        },
        service::Repeat::submit_loop,
        [](HttpResponse const& response) -> Result<std::string> {
            auto answer = wire::decode_sampler_info(response.body);
            if (!answer) return answer.error();
            return std::move(answer->base_model);
        });
}

namespace {

/// `fn` is given the sampler once it is there, on the loop.
template <class T, class Fn>
Future<T> read(Runtime const& runtime, std::shared_ptr<service::Sampler> const& sampler,
               std::string name, Fn fn) {
    return service::once_ready<T>(
        runtime, sampler->core().shared_from_this(), sampler, std::move(name),
        [&ready = *sampler, fn = std::move(fn)]() -> Result<T> { return fn(ready); });
}

service::SamplerSnapshot snapshot_of(service::Sampler& ready) {
    auto& session = ready.core().session();
    auto const& config = session.config();
    service::SamplerSnapshot snapshot;
    snapshot.sampling_session_id = ready.id();
    snapshot.record_stability_info = ready.record_stability_info();
    snapshot.base_url = config.endpoint.base_url();
    snapshot.header_overrides = config.default_headers;
    snapshot.session = session.snapshot();
    return snapshot;
}

}  // namespace

Future<std::string> SamplingClient::sampling_session_id() const {
    return read<std::string>(impl_->runtime, impl_->sampler, "sampling_session_id",
                             [](service::Sampler& ready) { return ready.id(); });
}

Future<std::string> SamplingClient::get_sampler_handle() const {
    return read<std::string>(
        impl_->runtime, impl_->sampler, "get_sampler_handle",
        [](service::Sampler& ready) { return service::encode_sampler_handle(snapshot_of(ready)); });
}

Future<std::string> SamplingClient::export_sampler() const {
    return read<std::string>(
        impl_->runtime, impl_->sampler, "export_sampler", [](service::Sampler& ready) {
            auto snapshot = snapshot_of(ready);
            auto const& credentials = ready.core().session().config().credentials;
            if (!credentials.api_key.empty()) snapshot.api_key = credentials.api_key;
            if (!credentials.command.empty()) snapshot.credential_cmd = credentials.command;
            return service::encode_sampler_export(snapshot);
        });
}

Future<SamplerStats> SamplingClient::stats() const {
    return read<SamplerStats>(impl_->runtime, impl_->sampler, "stats", [](service::Sampler& ready) {
        SamplerStats stats;
        stats.next_sequence_id = ready.peek_seq_id();
        if (auto const* handler = ready.handler()) {
            auto known = handler->stats();
            stats.waiting = known.waiting;
            stats.in_progress = known.in_retry_loop;
            stats.processed = known.processed;
            stats.retries = known.retries;
            stats.errors = std::move(known.errors);
            stats.since_progress = ready.core().scheduler().now() - known.last_progress;
        }
        return stats;
    });
}

}  // namespace tinkxx
