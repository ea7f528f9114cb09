#include <tinkxx/service_client.hpp>

#include "base/common/invalid.hpp"
#include "client/options/make_core.hpp"
#include "client/options/resolved_options.hpp"
#include "client/sampling_impl.hpp"
#include "client/service_impl.hpp"
#include "client/training_impl.hpp"
#include "math/check.hpp"
#include "service/auth/identity.hpp"
#include "service/calls/ready_call.hpp"
#include "service/calls/request_call.hpp"
#include "service/common/uuid.hpp"
#include "service/http/http_order.hpp"
#include "service/sampling/sampler.hpp"
#include "service/sampling/sampler_handle.hpp"
#include "service/session/session_telemetry.hpp"
#include "service/text/endpoint.hpp"
#include "service/training/training_start.hpp"
#include "wire/session/service_messages.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <utility>

namespace tinkxx {
ServiceClient::ServiceClient() : ServiceClient{ClientOptions{}} {}
ServiceClient::ServiceClient(ClientOptions options)
    : impl_{std::make_shared<Impl>(client::with_defaults(std::move(options)))} {}

SamplingClient ServiceClient::create_sampling_client(std::string model, RetryConfig retry) const {
    SamplerOptions options;
    (model.starts_with(service::path_scheme) ? options.model_path : options.base_model) =
        std::move(model);
    options.retry = std::move(retry);
    return create_sampling_client(std::move(options));
}

SamplingClient ServiceClient::create_sampling_client(SamplerOptions options) const {
    if (options.base_model.empty() && options.model_path.empty()) {
        base::refuse("create_sampling_client", "base_model", "",
                     "either base_model or model_path must be given");
    }
    if (!options.model_path.empty() && !options.model_path.starts_with(service::path_scheme)) {
        base::refuse("create_sampling_client", "model_path", options.model_path,
                     "model_path is \"" + options.model_path + "\"; it must start with tinker://");
    }
    options.retry.validate();
    return SamplingClient{std::make_shared<SamplingClient::Impl>(
        impl_->runtime(),
        service::Sampler::make(impl_->session(), {.options = std::move(options)}))};
}

Future<TrainingClient> ServiceClient::create_lora_training_client(std::string base_model) const {
    return create_lora_training_client(std::move(base_model), TrainingOptions());
}

Future<TrainingClient> ServiceClient::create_lora_training_client(std::string base_model,
                                                                  detail::Count rank) const {
    TrainingOptions options;
    options.lora.rank = rank.value();
    return create_lora_training_client(std::move(base_model), std::move(options));
}

Future<TrainingClient> ServiceClient::create_lora_training_client(std::string base_model,
                                                                  TrainingOptions options) const {
    constexpr std::string_view operation = "create_lora_training_client";
    std::optional<ErrorDetails> problem;
    if (base_model.empty()) {
        problem = base::invalid(operation, "base_model", "",
                                "base_model is empty; name a model such as \"Qwen/Qwen3-8B\"");
    }
    if (!problem) problem = math::lora_problem(operation, options.lora);
    if (!problem) problem = math::optimizer_problem(operation, options.optimizer);
    if (problem) return make_failed_future<TrainingClient>(Error{*std::move(problem)});
    service::NewModel model;
    model.operation = operation;
    model.base_model = std::move(base_model);
    model.options = std::move(options);
    auto created = service::create_model(impl_->runtime(), impl_->session(), std::move(model));
    return created.then([runtime = impl_->runtime()](service::ModelHandle made) {
        return Impl::training_client(runtime, std::move(made));
    });
}

Future<TrainingClient> ServiceClient::create_training_client_from_state(std::string path) const {
    return from_state(std::move(path), FromStateOptions(), false);
}

Future<TrainingClient> ServiceClient::create_training_client_from_state(
    std::string path, FromStateOptions options) const {
    return from_state(std::move(path), std::move(options), false);
}

Future<TrainingClient> ServiceClient::create_training_client_from_state_with_optimizer(
    std::string path) const {
    return from_state(std::move(path), FromStateOptions(), true);
}

Future<TrainingClient> ServiceClient::create_training_client_from_state_with_optimizer(
    std::string path, FromStateOptions options) const {
    return from_state(std::move(path), std::move(options), true);
}

Future<TrainingClient> ServiceClient::from_state(std::string path, FromStateOptions options,
                                                 bool with_optimizer) const {
    auto const operation = Impl::from_state_name(with_optimizer);
    std::optional<ErrorDetails> problem;
    if (with_optimizer && options.optimizer) {
        problem =
            base::invalid(operation, "optimizer", std::string{optimizer_family(*options.optimizer)},
                          "optimizer is given, but the state that is restored has its own; "
                          "leave it out, or load the weights only");
    } else if (options.optimizer) {
        problem = math::optimizer_problem(operation, *options.optimizer);
    }
    if (problem) return make_failed_future<TrainingClient>(Error{*std::move(problem)});
    auto created = impl_->model_from_state(std::move(path), std::move(options), with_optimizer);
    return created.then([runtime = impl_->runtime()](service::ModelHandle made) {
        return Impl::training_client(runtime, std::move(made));
    });
}

Future<std::string> ServiceClient::copy_weights(std::string path) const {
    return copy_weights(std::move(path), CopyWeightsOptions());
}

Future<std::string> ServiceClient::copy_weights(std::string path,
                                                CopyWeightsOptions options) const {
    constexpr std::string_view operation = "copy_weights";
    wire::CopyWeights request;
    request.source_path = std::move(path);
    request.destination_project_id = options.destination_project.empty()
                                         ? impl_->config().project_id
                                         : std::move(options.destination_project);
    if (options.ttl) request.ttl_seconds = options.ttl->count();
    auto problem = math::ttl_problem(operation, request.ttl_seconds);
    if (request.destination_project_id.empty()) {
        problem = base::invalid(operation, "destination_project", "",
                                "there is no project to copy to; set "
                                "CopyWeightsOptions::destination_project, "
                                "ClientOptions::project_id or TINKER_PROJECT_ID");
    }
    if (problem) return make_failed_future<std::string>(Error{*std::move(problem)});
    return service::launch<service::RequestCall<std::string>>(
        impl_->runtime(), impl_->sessionless(), nullptr, std::string{operation},
        [body = wire::encode_copy_weights(request),
         token = std::move(options.weights_access_token)](service::ClientCore& ready) {
            auto& http = ready.http();
            auto order = service::post_order(http, "/api/v1/copy_weights", body, Purpose::train);
            order.operation.feature = "copying weights";
            // One key for all repeats: they make one copy (R-RETRY-84).
            auto const high = http.scheduler().entropy("copy_weights");
            order.idempotency_key =
                service::uuid_text(high, http.scheduler().entropy("copy_weights"));
            service::add_method(order, ready.session().config().sdk_version, "copy_weights");
            if (!token.empty()) order.headers.add("X-Tinker-Weights-Access-Token", token);
            return order;
        },
        service::Repeat::submit_loop,
        [](HttpResponse const& response) { return wire::decode_weights_copied(response.body); });
}

Future<ServerCapabilities> ServiceClient::get_server_capabilities() const {
    return impl_->ask<ServerCapabilities>(
        impl_->sessionless(), "get_server_capabilities", "/api/v1/get_server_capabilities",
        Purpose::train, service::Repeat::submit_loop, [](HttpResponse const& response) {
            return wire::decode_server_capabilities(response.body);
        });
}

Future<std::string> ServiceClient::health() const {
    return impl_->ask<std::string>(impl_->sessionless(), "health", "/api/v1/healthz", Purpose::rest,
                                   service::Repeat::submit_loop, [](HttpResponse const& response) {
                                       return wire::decode_healthz(response.body);
                                   });
}

Future<void> ServiceClient::check_access() const {
    return impl_->ask<void>(impl_->sessionless(), "check_access", "/api/v1/get_server_capabilities",
                            Purpose::train, service::Repeat::once,
                            [](HttpResponse const&) { return Result<void>{}; });
}

Future<Identity> ServiceClient::whoami() const {
    auto const core = impl_->sessionless();
    return service::once_ready<Identity>(
        impl_->runtime(), core, nullptr, "whoami", [&ready = *core]() -> Result<Identity> {
            auto const token = ready.session().identity_token();
            return service::whoami(token ? std::string_view{*token} : std::string_view{});
        });
}

Future<ServiceStatus> ServiceClient::status() const {
    auto const core = impl_->session();
    auto others = impl_->sessionless_cores();
    auto const done = std::make_shared<Promise<ServiceStatus>>(impl_->runtime());
    auto future = done->get_future();
    core->scheduler().post([core, others = std::move(others), done] {
        auto status = core->status();
        for (auto const& other : others) {
            auto more = other->status();
            std::ranges::move(more.pending, std::back_inserter(status.pending));
            std::ranges::stable_sort(status.pending, std::ranges::greater{}, &OperationStatus::age);
            status.billing_pause = std::max(status.billing_pause, more.billing_pause);
            status.telemetry_queued += more.telemetry_queued;
        }
        done->set_value(std::move(status));
    });
    return future;
}

Future<std::string> ServiceClient::session_id() const {
    auto const core = impl_->session();
    return service::once_ready<std::string>(
        impl_->runtime(), core, nullptr, "session_id",
        [&ready = *core]() -> Result<std::string> { return ready.session().session_id(); });
}

Future<void> ServiceClient::close() const { return impl_->close(std::nullopt); }

Future<void> ServiceClient::close(CloseReason reason) const {
    return impl_->close(service::Finish{.reason = reason});
}

Future<void> ServiceClient::close(CloseReason reason, std::string detail) const {
    return impl_->close(service::Finish{.reason = reason, .detail = std::move(detail)});
}

Runtime const& ServiceClient::runtime() const noexcept { return impl_->runtime(); }

SamplingClient from_sampler_handle(std::string const& handle) {
    return from_sampler_handle(handle, ClientOptions{});
}

SamplingClient from_sampler_handle(std::string const& handle, ClientOptions options) {
    return from_sampler_handle(handle, RetryConfig{}, std::move(options));
}

SamplingClient from_sampler_handle(std::string const& handle, RetryConfig retry,
                                   ClientOptions options) {
    retry.validate();
    auto snapshot = service::decode_sampler_handle(handle).value();
    options = client::with_defaults(std::move(options));
    options.base_url = snapshot.base_url;
    for (auto const& line : snapshot.header_overrides) {
        options.default_headers.set(line.name, line.value);
    }
    if (options.api_key.empty()) options.api_key = snapshot.api_key.value_or("");
    if (options.credential_cmd.empty()) {
        options.credential_cmd = snapshot.credential_cmd.value_or("");
    }
    auto const runtime = options.runtime ? *options.runtime : Runtime::shared();
    auto transport = std::move(options.transport);
    auto const config = std::make_shared<service::ClientConfig const>(client::with_credential(
        client::resolve(std::move(options), client::process_environment())));
    if (!transport) transport = client::shared_transport(runtime, client::transport_key(*config));
    service::SamplerPlan plan;
    plan.sampling_session_id = std::move(snapshot.sampling_session_id);
    plan.copy = true;
    plan.options.retry = std::move(retry);
    plan.options.record_stability_info = snapshot.record_stability_info;
    auto core = client::make_core(runtime, config, service::SessionKind::shadow, transport,
                                  snapshot.session, {});
    return SamplingClient{std::make_shared<SamplingClient::Impl>(
        runtime, service::Sampler::make(std::move(core), std::move(plan)))};
}

SessionScope::SessionScope(ServiceClient service)
    : service_{std::move(service)}, exceptions_{std::uncaught_exceptions()} {}

SessionScope::~SessionScope() {
    bool const failed = std::uncaught_exceptions() > exceptions_;
    try {
        auto closing = service_.close(failed ? CloseReason::errored : CloseReason::success);
        (void)closing.result();
    } catch (...) {
        // On a thread of the runtime there is no waiting; the close goes on by itself.
    }
}

}  // namespace tinkxx
