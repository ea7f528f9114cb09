#include <tinkxx/training_client.hpp>

#include "base/common/invalid.hpp"
#include "client/options/shared_tokenizers.hpp"
#include "client/sampling_impl.hpp"
#include "client/training_impl.hpp"
#include "math/check.hpp"
#include "service/calls/request_call.hpp"
#include "service/http/http_order.hpp"
#include "service/text/endpoint.hpp"
#include "service/training/custom_loss_call.hpp"
#include "service/training/training_call.hpp"
#include "service/training/training_pass.hpp"
#include "service/training/training_start.hpp"
#include "wire/training/training.hpp"

#include <functional>
#include <utility>

namespace tinkxx {
namespace {

constexpr std::size_t most_recipients = 10;

template <class T>
Future<T> refused(ErrorDetails error) {
    return make_failed_future<T>(Error{std::move(error)});
}

ErrorDetails without_model(std::string_view operation) {
    return {.kind = ErrorKind::usage,
            .message = std::string{operation} +
                       ": this TrainingClient has no model; get one from "
                       "ServiceClient::create_lora_training_client or "
                       "ServiceClient::create_training_client_from_state",
            .category = ErrorCategory::user};
}

ErrorDetails invalid(std::string_view operation, std::string_view field, std::string value,
                     std::string_view rule) {
    return base::invalid(operation, std::string{field}, std::move(value),
                         std::string{field} + ' ' + std::string{rule});
}

SamplerOptions sampler_options(std::string model_path, TrainedSamplerOptions trained) {
    return {.model_path = std::move(model_path),
            .retry = std::move(trained.retry),
            .record_stability_info = trained.record_stability_info,
            .circuit_breaker = std::move(trained.circuit_breaker)};
}

std::optional<std::int64_t> seconds_of(std::optional<std::chrono::seconds> ttl) {
    return ttl ? std::optional<std::int64_t>{ttl->count()} : std::nullopt;
}

/// What is wrong with a save, before anything is sent.
std::optional<ErrorDetails> save_problem(std::string_view operation, std::string const& name,
                                         std::optional<std::chrono::seconds> ttl) {
    if (name.empty()) return invalid(operation, "name", "", "is empty; a checkpoint needs one");
    return math::ttl_problem(operation, seconds_of(ttl));
}

}  // namespace

TrainingClient::TrainingClient(std::shared_ptr<Impl const> impl) noexcept
    : impl_{std::move(impl)} {}

std::string TrainingClient::model_id() const { return impl_ ? impl_->model->id() : std::string{}; }

TrainingClient TrainingClient::with(CallOptions call) const {
    if (!impl_) return {};
    return TrainingClient{
        std::make_shared<Impl const>(impl_->runtime, impl_->model, std::move(call))};
}

/// What every call looks at before it does anything.
std::optional<ErrorDetails> TrainingClient::Impl::problem(std::shared_ptr<Impl const> const& impl,
                                                          std::string_view operation) {
    if (!impl) return without_model(operation);
    impl->runtime.core()->refuse_if_inherited();
    if (impl->call.deadline.count() < 0) {
        auto const ms = std::to_string(impl->call.deadline.count());
        return invalid(operation, "CallOptions::deadline", ms + " ms",
                       "must not be negative (0: the client's)");
    }
    if (impl->runtime.shut_down()) {
        return ErrorDetails{.kind = ErrorKind::cancelled,
                            .message = std::string{operation} + ": the runtime was shut down"};
    }
    return std::nullopt;
}

template <class T>
Future<T> TrainingClient::Impl::submit(std::string_view name, service::Ticket ticket,
                                       service::SubmitOrder order,
                                       std::function<Result<T>(std::string_view)> decode) const {
    auto plan = service::one_submit(*model, name, std::move(ticket), std::move(order));
    plan.headers = model->core().trace_headers();
    return service::call_model<T>(
        runtime, model, std::string{name}, call, std::move(plan),
        [decode = std::move(decode)](std::vector<service::RetrievedResult> const& results) {
            return decode(results.front().view());
        });
}

Future<ForwardBackwardOutput> TrainingClient::forward(std::vector<Datum> const& data,
                                                      Loss const& loss) const {
    return forward_span(data, loss);
}

Future<ForwardBackwardOutput> TrainingClient::forward_span(std::span<Datum const> data,
                                                           Loss const& loss) const {
    if (auto problem = Impl::problem(impl_, "forward")) {
        return refused<ForwardBackwardOutput>(*std::move(problem));
    }
    return service::start_pass(impl_->runtime, impl_->model, "forward", impl_->call, data, loss,
                               service::Direction::forward);
}

Future<ForwardBackwardOutput> TrainingClient::forward_backward(std::vector<Datum> const& data,
                                                               Loss const& loss) const {
    return forward_backward_span(data, loss);
}

Future<ForwardBackwardOutput> TrainingClient::forward_backward_span(std::span<Datum const> data,
                                                                    Loss const& loss) const {
    if (auto problem = Impl::problem(impl_, "forward_backward")) {
        return refused<ForwardBackwardOutput>(*std::move(problem));
    }
    return service::start_pass(impl_->runtime, impl_->model, "forward_backward", impl_->call, data,
                               loss, service::Direction::both);
}

Future<ForwardBackwardOutput> TrainingClient::forward_backward_custom(
    std::vector<Datum> const& data, CustomLoss loss) const {
    return forward_backward_custom_span(data, std::move(loss));
}

Future<ForwardBackwardOutput> TrainingClient::forward_backward_custom_span(
    std::span<Datum const> data, CustomLoss loss) const {
    constexpr auto name = service::CustomLossCall::operation;
    auto problem = Impl::problem(impl_, name);
    if (!problem) problem = math::no_data_problem(name, data);
    // Not to be turned off: without targets there is nothing to ask for.
    if (!problem) problem = math::custom_data_problem(name, data);
    if (!problem && !loss) problem = invalid(name, "loss", "", "is empty; a function is needed");
    if (problem) return refused<ForwardBackwardOutput>(*std::move(problem));
    auto const& model = impl_->model;
    auto const kept = std::make_shared<service::CustomLossData>(data);
    auto cut = service::cut(*model, kept->sent, LossFn::cross_entropy, service::Direction::both);
    if (!cut) return refused<ForwardBackwardOutput>(cut.error().details());
    auto const chunks = cut->chunks.size();
    auto forward_turn = model->take(chunks);
    auto backward_turn = model->take(chunks);
    auto forward = service::write_pass(*model, name, kept->sent, LossFn::cross_entropy,
                                       service::Direction::forward, *cut, forward_turn.seq_id(0));
    if (!forward) return refused<ForwardBackwardOutput>(forward.error().details());
    auto headers = model->core().trace_headers();
    forward->ticket = std::move(forward_turn);
    forward->headers = headers;
    return service::launch<service::CustomLossCall>(
        impl_->runtime, model, impl_->call, std::move(headers), kept, std::move(loss),
        *std::move(cut), *std::move(forward), std::move(backward_turn));
}

Future<OptimStepResult> TrainingClient::optim_step(AdamParams params) const { return step(params); }

Future<OptimStepResult> TrainingClient::step(OptimizerParams params) const {
    constexpr std::string_view name = "optim_step";
    auto problem = Impl::problem(impl_, name);
    if (!problem) problem = math::optimizer_problem(name, params, impl_->model->optimizer());
    if (problem) return refused<OptimStepResult>(*std::move(problem));
    auto ticket = impl_->model->take(1);
    auto order = service::numbered_submit(
        "/api/v1/optim_step", "OptimStep", ticket,
        [model_id = impl_->model->id(), params = std::move(params)](std::int64_t seq_id) {
            return wire::encode_optim_step(
                {.model_id = model_id, .seq_id = seq_id, .params = params});
        });
    order.step = true;
    return impl_->submit<OptimStepResult>(name, std::move(ticket), std::move(order),
                                          wire::decode_optim_step);
}

Future<SaveResult> TrainingClient::save_state(std::string name) const {
    return save_state(std::move(name), SaveOptions());
}

Future<SaveResult> TrainingClient::save_state(std::string name, SaveOptions options) const {
    constexpr std::string_view operation = "save_state";
    auto problem = Impl::problem(impl_, operation);
    if (!problem) problem = save_problem(operation, name, options.ttl);
    if (problem) return refused<SaveResult>(*std::move(problem));
    auto ticket = impl_->model->take(1);
    wire::SaveWeights request;
    request.model_id = impl_->model->id();
    request.name = std::move(name);
    request.ttl_seconds = seconds_of(options.ttl);
    request.overwrite = options.overwrite;
    request.user_metadata = service::metadata_if_any(std::move(options.user_metadata));
    auto order = service::numbered_submit(
        "/api/v1/save_weights", "SaveWeights", ticket,
        [request = std::move(request)](std::int64_t seq_id) mutable {
            request.seq_id = seq_id;
            return wire::encode_save_weights(request, wire::Members::newest);
        });
    order.http_retries = false;
    return impl_->submit<SaveResult>(operation, std::move(ticket), std::move(order),
                                     wire::decode_weights_saved);
}

Future<LoadResult> TrainingClient::Impl::load(std::shared_ptr<Impl const> const& impl,
                                              std::string_view operation,
                                              std::string_view replacement, std::string path,
                                              bool optimizer, std::string token) {
    if (auto found = problem(impl, operation)) return refused<LoadResult>(*std::move(found));
    if (impl->model->first_deprecated_load()) {
        impl->model->core().http().log(LogLevel::warning,
                                       std::string{operation} +
                                           ": loading into a model that exists is deprecated; "
                                           "use ServiceClient::" +
                                           std::string{replacement});
    }
    return service::load_weights(impl->runtime, impl->model, operation, impl->call,
                                 impl->model->core().trace_headers(), std::move(path), optimizer,
                                 std::move(token));
}

Future<LoadResult> TrainingClient::load_state(std::string path,
                                              std::string weights_access_token) const {
    return Impl::load(impl_, "load_state", "create_training_client_from_state", std::move(path),
                      false, std::move(weights_access_token));
}

Future<LoadResult> TrainingClient::load_state_with_optimizer(
    std::string path, std::string weights_access_token) const {
    return Impl::load(impl_, "load_state_with_optimizer",
                      "create_training_client_from_state_with_optimizer", std::move(path), true,
                      std::move(weights_access_token));
}

Future<SaveResult> TrainingClient::save_weights_for_sampler(std::string name) const {
    return save_weights_for_sampler(std::move(name), SaveOptions());
}

Future<wire::SavedForSampler> TrainingClient::Impl::save_for_sampler(
    std::string_view operation, wire::SaveWeightsForSampler request) const {
    auto ticket = model->take(1);
    request.model_id = model->id();
    auto order = service::numbered_submit(
        "/api/v1/save_weights_for_sampler", "SaveWeightsForSampler", ticket,
        [request = std::move(request)](std::int64_t seq_id) mutable {
            request.seq_id = seq_id;
            return wire::encode_save_weights_for_sampler(request, wire::Members::newest);
        });
    order.http_retries = false;
    return submit<wire::SavedForSampler>(operation, std::move(ticket), std::move(order),
                                         wire::decode_saved_for_sampler);
}

Future<SaveResult> TrainingClient::save_weights_for_sampler(std::string name,
                                                            SaveOptions options) const {
    constexpr std::string_view operation = "save_weights_for_sampler";
    auto problem = Impl::problem(impl_, operation);
    if (!problem) problem = save_problem(operation, name, options.ttl);
    if (!problem && options.overwrite) {
        problem = invalid(operation, "overwrite", "true", "is for save_state only");
    }
    if (problem) return refused<SaveResult>(*std::move(problem));
    wire::SaveWeightsForSampler request;
    request.name = std::move(name);
    request.ttl_seconds = seconds_of(options.ttl);
    request.user_metadata = service::metadata_if_any(std::move(options.user_metadata));
    auto saved = impl_->save_for_sampler(operation, std::move(request));
    return saved.then([](wire::SavedForSampler answer) -> SaveResult {
        if (!answer.path) {
            Error{{.kind = ErrorKind::validation,
                   .message = "save_weights_for_sampler: the answer has no path",
                   .field = "path"}}
                .raise();
        }
        return {.path = *std::move(answer.path), .size_bytes = answer.size_bytes};
    });
}

Future<SaveResult> TrainingClient::save_weights_external(std::string name) const {
    return save_weights_external(std::move(name), ExternalSaveOptions());
}

Future<SaveResult> TrainingClient::save_weights_external(std::string name,
                                                         ExternalSaveOptions options) const {
    constexpr std::string_view operation = "save_weights_external";
    auto problem = Impl::problem(impl_, operation);
    if (!problem) problem = save_problem(operation, name, options.ttl);
    if (!problem && options.age_recipients.size() > most_recipients) {
        problem =
            invalid(operation, "age_recipients", std::to_string(options.age_recipients.size()),
                    "are too many: the service takes ten at most");
    }
    if (problem) return refused<SaveResult>(*std::move(problem));
    auto ticket = impl_->model->take(1);
    wire::SaveWeightsExternal request;
    request.model_id = impl_->model->id();
    request.name = std::move(name);
    request.ttl_seconds = seconds_of(options.ttl);
    request.age_recipients = std::move(options.age_recipients);
    auto order =
        service::numbered_submit("/api/v1/save_weights_external", "SaveWeightsExternal", ticket,
                                 [request = std::move(request)](std::int64_t seq_id) mutable {
                                     request.seq_id = seq_id;
                                     return wire::encode_save_weights_external(request);
                                 });
    order.http_retries = false;
    order.feature = "saving external weights";
    return impl_->submit<SaveResult>(operation, std::move(ticket), std::move(order),
                                     wire::decode_saved_external);
}

Future<SamplingClient> TrainingClient::save_weights_and_get_sampling_client() const {
    return save_weights_and_get_sampling_client(TrainedSamplerOptions());
}

Future<SamplingClient> TrainingClient::save_weights_and_get_sampling_client(
    TrainedSamplerOptions options) const {
    constexpr std::string_view operation = "save_weights_and_get_sampling_client";
    if (auto problem = Impl::problem(impl_, operation)) {
        return refused<SamplingClient>(*std::move(problem));
    }
    try {
        options.retry.validate();
    } catch (ValidationError const& error) {
        return refused<SamplingClient>(error.details());
    }
    wire::SaveWeightsForSampler request;
    // Once for all repeats, so that these are the same request (R-TRAIN-62).
    request.sampling_session_seq_id = impl_->model->core().session().next_sampling_session_seq();
    auto saved = impl_->save_for_sampler(operation, std::move(request));
    return saved.then([impl = impl_, options = std::move(options)](wire::SavedForSampler answer) {
        if (!answer.sampling_session_id) {
            Error{{.kind = ErrorKind::validation,
                   .message = "save_weights_and_get_sampling_client: the answer has no "
                              "sampling_session_id",
                   .field = "sampling_session_id"}}
                .raise();
        }
        service::SamplerPlan plan;
        plan.sampling_session_id = *std::move(answer.sampling_session_id);
        plan.options = sampler_options({}, options);
        return impl->sampler(std::move(plan));
    });
}

Future<SamplingClient> TrainingClient::save_weights_and_get_sampling_client(
    std::string const& name) const {
    if (impl_ && !name.empty()) {
        impl_->model->core().http().log(
            LogLevel::warning,
            "save_weights_and_get_sampling_client: a name is deprecated and has no effect");
    }
    return save_weights_and_get_sampling_client();
}

SamplingClient TrainingClient::create_sampling_client(std::string model_path) const {
    return create_sampling_client(std::move(model_path), TrainedSamplerOptions());
}

SamplingClient TrainingClient::create_sampling_client(std::string model_path,
                                                      TrainedSamplerOptions options) const {
    constexpr std::string_view operation = "create_sampling_client";
    if (auto problem = Impl::problem(impl_, operation)) Error{*std::move(problem)}.raise();
    if (!model_path.starts_with(service::path_scheme)) {
        auto problem = invalid(operation, "model_path", model_path, "must start with tinker://");
        Error{std::move(problem)}.raise();
    }
    options.retry.validate();
    return impl_->sampler({.options = sampler_options(std::move(model_path), std::move(options))});
}

Future<ModelInfo> TrainingClient::get_info() const {
    constexpr std::string_view operation = "get_info";
    if (auto problem = Impl::problem(impl_, operation)) {
        return refused<ModelInfo>(*std::move(problem));
    }
    return service::ask_json<ModelInfo>(
        impl_->runtime, impl_->model->core_handle(), operation, "/api/v1/get_info",
        wire::encode_get_info(impl_->model->id()), impl_->call, wire::decode_model_info);
}

Future<std::shared_ptr<Tokenizer const>> TrainingClient::get_tokenizer(
    Tokenizers tokenizers) const {
    using Made = std::shared_ptr<Tokenizer const>;
    constexpr std::string_view operation = "get_tokenizer";
    if (auto problem = Impl::problem(impl_, operation)) return refused<Made>(*std::move(problem));
    if (auto const known = impl_->model->tokenizer()) {
        // As below on the callback executor: loading may take long.
        Promise<TokenizerId> found{impl_->runtime};
        found.set_value(*known);
        auto ready = found.get_future();
        return ready.then([tokenizers = std::move(tokenizers)](TokenizerId const& id) {
            return tokenizers.get(id);
        });
    }
    auto asked = get_info();
    return asked.then(
        [model = impl_->model, tokenizers = std::move(tokenizers)](ModelInfo const& info) {
            auto name = info.model_data.model_name ? info.model_data.model_name : info.model_name;
            if (!name && !info.model_data.tokenizer_id) {
                Error{invalid("get_tokenizer", "model_data/tokenizer_id", "",
                              "is not in what the server says about model " + model->id() +
                                  ", nor is the model's name; use the Tokenizer itself")}
                    .raise();
            }
            auto id = tokenizer_id(name.value_or(""), info.model_data.tokenizer_id);
            model->set_tokenizer(id);
            return tokenizers.get(id);
        });
}

Future<std::shared_ptr<Tokenizer const>> TrainingClient::get_tokenizer() const {
    using Made = std::shared_ptr<Tokenizer const>;
    if (auto problem = Impl::problem(impl_, "get_tokenizer"))
        return refused<Made>(*std::move(problem));
    return get_tokenizer(client::tokenizers_of(impl_->model->core().config()));
}

Future<std::vector<Token>> TrainingClient::encode(std::string text, Tokenizers tokenizers) const {
    auto found = get_tokenizer(std::move(tokenizers));
    return found.then([text = std::move(text)](std::shared_ptr<Tokenizer const> const& tokenizer) {
        return tokenizer->encode(text);
    });
}

Future<std::string> TrainingClient::decode(std::vector<Token> tokens, Tokenizers tokenizers) const {
    auto found = get_tokenizer(std::move(tokenizers));
    return found.then(
        [tokens = std::move(tokens)](std::shared_ptr<Tokenizer const> const& tokenizer) {
            return tokenizer->decode(tokens);
        });
}

Future<void> TrainingClient::unload() const {
    constexpr std::string_view operation = "unload";
    if (auto problem = Impl::problem(impl_, operation)) return refused<void>(*std::move(problem));
    // The request has no number; the turn keeps it behind what was asked for before.
    auto order = service::json_submit("/api/v1/unload_model", "UnloadModel",
                                      wire::encode_unload_model(impl_->model->id()));
    order.feature = "unloading models";
    auto gone =
        impl_->submit<std::string>(operation, impl_->model->take(1, service::Ticket::Numbers::none),
                                   std::move(order), wire::decode_model_unloaded);
    return gone.then([](std::string const&) {});
}

}  // namespace tinkxx
