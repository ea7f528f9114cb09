#include <tinkxx/service_client.hpp>

#include "client/client_core.hpp"
#include "client/close_call.hpp"
#include "client/http_order.hpp"
#include "client/ready_call.hpp"
#include "client/request_operation.hpp"
#include "client/resolved_options.hpp"
#include "client/sampling_impl.hpp"
#include "service/auth/identity.hpp"
#include "service/sampling/sampler.hpp"
#include "service/session/sampler_handle.hpp"
#include "service/telemetry/holder_telemetry.hpp"
#include "wire/service_messages.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

namespace tinkxx {
namespace {

constexpr std::string_view path_scheme = "tinker://";

[[noreturn]] void refuse(std::string field, std::string value, std::string message) {
    Error{{.kind = ErrorKind::validation,
           .message = "create_sampling_client: " + std::move(message),
           .category = ErrorCategory::user,
           .field = std::move(field),
           .value = std::move(value)}}
        .raise();
}

wire::FinishReason finish_reason(CloseReason reason) {
    switch (reason) {
        case CloseReason::errored:
            return wire::FinishReason::errored;
        case CloseReason::interrupted:
            return wire::FinishReason::interrupted;
        case CloseReason::success:
            break;
    }
    return wire::FinishReason::success;
}

}  // namespace

class ServiceClient::Impl {
public:
    explicit Impl(ClientOptions options)
        : runtime_{options.runtime ? *options.runtime : Runtime::shared()},
          resolved_{client::resolve(options, client::process_environment())},
          config_{client::holder_config(resolved_)},
          transport_{std::move(options.transport)} {
        if (!transport_) transport_ = net_transport(runtime_, resolved_.net);
    }

    using Shared = std::shared_ptr<service::SamplingShared>;

    /// R-CONF-40: each is made once, by the first call that needs it.
    Shared session() { return get(session_, service::HolderKind::session); }
    Shared sessionless() { return get(sessionless_, service::HolderKind::sessionless); }
    /// Null if no call needed it yet.
    Shared sessionless_if_any() {
        std::scoped_lock const lock{mutex_};
        return sessionless_;
    }

    template <class T>
    Future<T> ask(Shared const& shared, std::string name, std::string path, Purpose purpose,
                  service::Repeat repeat, typename client::RequestOperation<T>::Decode decode) {
        Promise<T> promise{runtime_};
        auto future = promise.get_future();
        std::make_shared<client::RequestOperation<T>>(
            shared, nullptr, std::move(name),
            [path = std::move(path), purpose](service::SamplingShared& ready) {
                return client::get_order(ready.http(), path, purpose);
            },
            repeat, std::move(decode), std::move(promise))
            ->launch();
        return future;
    }

    Future<void> close(std::optional<service::Finish> finish) {
        Shared session;
        Shared sessionless;
        {
            std::scoped_lock const lock{mutex_};
            closed_ = true;
            session = session_;
            sessionless = sessionless_;
        }
        std::vector<Future<void>> parts;
        if (session) parts.push_back(close(session, std::move(finish)));
        if (sessionless) parts.push_back(close(sessionless, std::nullopt));
        return when_all(std::move(parts));
    }

    [[nodiscard]] Runtime const& runtime() const noexcept { return runtime_; }
    [[nodiscard]] TracePropagator const& propagator() const noexcept {
        return resolved_.trace_propagator;
    }

private:
    Shared get(Shared& slot, service::HolderKind kind) {
        std::scoped_lock const lock{mutex_};
        if (!slot) {
            slot = client::make_core(runtime_, config_, resolved_, kind, transport_, std::nullopt,
                                     ids_);
            // A client that was closed before it was used stays closed (R-CONF-45).
            if (closed_) {
                slot->scheduler().post([shared = slot] {
                    shared->holder().close(std::nullopt, [](Result<void> const&) {});
                });
            }
        }
        return slot;
    }

    Future<void> close(Shared const& shared, std::optional<service::Finish> finish) {
        Promise<void> promise{runtime_};
        auto future = promise.get_future();
        std::make_shared<client::CloseCall>(shared, std::move(finish), std::move(promise))
            ->launch();
        return future;
    }

    Runtime runtime_;
    client::ResolvedOptions const resolved_;
    service::HolderConfig const config_;
    std::shared_ptr<Transport> transport_;
    service::PendingList::Ids const ids_{std::make_shared<std::uint64_t>()};
    std::mutex mutex_{};  // guards what follows
    Shared session_{};
    Shared sessionless_{};
    bool closed_{false};
};

ServiceClient::ServiceClient() : ServiceClient{ClientOptions{}} {}
ServiceClient::ServiceClient(ClientOptions options)
    : impl_{std::make_shared<Impl>(client::with_defaults(std::move(options)))} {}

SamplingClient ServiceClient::create_sampling_client(std::string model) const {
    return create_sampling_client(std::move(model), RetryConfig{});
}

SamplingClient ServiceClient::create_sampling_client(std::string model, RetryConfig retry) const {
    SamplerOptions options;
    (model.starts_with(path_scheme) ? options.model_path : options.base_model) = std::move(model);
    options.retry = std::move(retry);
    return create_sampling_client(std::move(options));
}

SamplingClient ServiceClient::create_sampling_client(SamplerOptions options) const {
    if (options.base_model.empty() && options.model_path.empty()) {
        refuse("base_model", "", "either base_model or model_path must be given");
    }
    if (!options.model_path.empty() && !options.model_path.starts_with(path_scheme)) {
        refuse("model_path", options.model_path,
               "model_path is \"" + options.model_path + "\"; it must start with tinker://");
    }
    options.retry.validate();
    service::SamplerPlan plan;
    plan.base_model = std::move(options.base_model);
    plan.model_path = std::move(options.model_path);
    plan.retry = std::move(options.retry);
    plan.record_stability_info = options.record_stability_info;
    plan.breaker = std::move(options.circuit_breaker);
    return SamplingClient{std::make_shared<SamplingClient::Impl>(
        impl_->runtime(), std::make_shared<service::Sampler>(impl_->session(), std::move(plan)),
        impl_->propagator())};
}

Future<ServerCapabilities> ServiceClient::get_server_capabilities() const {
    return impl_->ask<ServerCapabilities>(
        impl_->sessionless(), "get_server_capabilities", "/api/v1/get_server_capabilities",
        Purpose::train, service::Repeat::submit_loop,
        [](HttpResponse const& response) -> Result<ServerCapabilities> {
            auto answer = wire::decode_server_capabilities(response.body);
            if (!answer) return answer.error();
            ServerCapabilities capabilities;
            for (auto& model : answer->supported_models) {
                SupportedModel known;
                known.model_name = std::move(model.model_name);
                known.max_context_length = model.max_context_length;
                known.trainable = model.trainable;
                known.sampleable = model.sampleable;
                capabilities.supported_models.push_back(std::move(known));
            }
            return capabilities;
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
    auto const shared = impl_->sessionless();
    return client::once_ready<Identity>(
        impl_->runtime(), shared, nullptr, "whoami", [&ready = *shared]() -> Result<Identity> {
            auto const token = ready.holder().identity_token();
            auto known = service::whoami(token ? std::string_view{*token} : std::string_view{});
            if (!known) return known.error();
            Identity identity;
            identity.user_urn = std::move(known->user_urn);
            identity.email = std::move(known->email);
            identity.organization_urn = std::move(known->organization_urn);
            return identity;
        });
}

Future<ServiceStatus> ServiceClient::status() const {
    auto const shared = impl_->session();
    auto const other = impl_->sessionless_if_any();
    auto const done = std::make_shared<Promise<ServiceStatus>>(impl_->runtime());
    auto future = done->get_future();
    shared->scheduler().post([shared, other, done] {
        auto status = shared->status();
        if (other) {
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
    auto const shared = impl_->session();
    return client::once_ready<std::string>(
        impl_->runtime(), shared, nullptr, "session_id",
        [&ready = *shared]() -> Result<std::string> { return ready.holder().session_id(); });
}

Future<void> ServiceClient::close() const { return impl_->close(std::nullopt); }

Future<void> ServiceClient::close(CloseReason reason) const {
    return impl_->close(service::Finish{.reason = finish_reason(reason)});
}

Future<void> ServiceClient::close(CloseReason reason, std::string detail) const {
    return impl_->close(
        service::Finish{.reason = finish_reason(reason), .detail = std::move(detail)});
}

Runtime const& ServiceClient::runtime() const noexcept { return impl_->runtime(); }

SamplingClient from_sampler_handle(std::string const& handle) {
    return from_sampler_handle(handle, ClientOptions{});
}

SamplingClient from_sampler_handle(std::string const& handle, ClientOptions options) {
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
    auto const resolved = client::resolve(options, client::process_environment());
    auto transport = options.transport;
    if (!transport) transport = net_transport(runtime, resolved.net);
    service::SamplerPlan plan;
    plan.sampling_session_id = std::move(snapshot.sampling_session_id);
    plan.copy = true;
    plan.record_stability_info = snapshot.record_stability_info;
    auto core = client::make_core(runtime, client::holder_config(resolved), resolved,
                                  service::HolderKind::shadow, transport, snapshot.session, {});
    return SamplingClient{std::make_shared<SamplingClient::Impl>(
        runtime, std::make_shared<service::Sampler>(std::move(core), std::move(plan)),
        resolved.trace_propagator)};
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
