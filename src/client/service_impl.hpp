#pragma once

#include <tinkxx/service_client.hpp>

#include "client/options/make_core.hpp"
#include "client/options/resolved_options.hpp"
#include "client/training_impl.hpp"
#include "service/calls/close_call.hpp"
#include "service/calls/request_call.hpp"
#include "service/http/http_order.hpp"
#include "service/training/training_start.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

/// What the copies of one `ServiceClient` share. Any thread.
class ServiceClient::Impl {
public:
    explicit Impl(ClientOptions options)
        : runtime_{options.runtime ? *options.runtime : Runtime::shared()},
          transport_{std::move(options.transport)},
          config_{std::make_shared<service::ClientConfig const>(client::with_credential(
              client::resolve(std::move(options), client::process_environment())))} {
        runtime_.core()->refuse_if_inherited();
        if (!transport_) {
            transport_ = client::shared_transport(runtime_, client::transport_key(*config_));
        }
    }

    using Core = std::shared_ptr<service::ClientCore>;

    /// R-CONF-40: each is made once, by the first call that needs it.
    Core session() { return get(session_, service::SessionKind::session); }
    Core sessionless() { return get(sessionless_, service::SessionKind::sessionless); }
    /// One that asks with somebody else's credential. It lives as long as it is used.
    Core sessionless_with(std::string token) {
        runtime_.core()->refuse_if_inherited();
        auto config = std::make_shared<service::ClientConfig>(*config_);
        config->credentials = {.api_key = std::move(token)};
        auto core =
            client::make_core(runtime_, std::move(config), service::SessionKind::sessionless,
                              transport_, std::nullopt, ids_);
        std::scoped_lock const lock{mutex_};
        std::erase_if(others_, [](auto const& other) { return other.expired(); });
        others_.push_back(core);
        if (closed_) close_core(core);
        return core;
    }
    /// All but the session's that calls have needed so far.
    std::vector<Core> sessionless_cores() {
        runtime_.core()->refuse_if_inherited();
        std::scoped_lock const lock{mutex_};
        std::vector<Core> cores;
        if (sessionless_) cores.push_back(sessionless_);
        for (auto const& other : others_) {
            if (auto core = other.lock()) cores.push_back(std::move(core));
        }
        return cores;
    }
    [[nodiscard]] service::ClientConfig const& config() const noexcept { return *config_; }

    template <class T>
    Future<T> ask(Core const& core, std::string name, std::string path, Purpose purpose,
                  service::Repeat repeat, typename service::RequestCall<T>::Decode decode) {
        return service::launch<service::RequestCall<T>>(
            runtime_, core, nullptr, std::move(name),
            [path = std::move(path), purpose](service::ClientCore& ready) {
                return service::get_order(ready.http(), path, purpose);
            },
            repeat, std::move(decode));
    }

    /// What a call that makes a model from a checkpoint is called.
    static std::string_view from_state_name(bool with_optimizer) noexcept {
        return with_optimizer ? "create_training_client_from_state_with_optimizer"
                              : "create_training_client_from_state";
    }
    /// Makes a model from a checkpoint. The options are checked.
    Future<service::ModelHandle> model_from_state(std::string path, FromStateOptions options,
                                                  bool with_optimizer) {
        auto const lookup = options.weights_access_token.empty()
                                ? sessionless()
                                : sessionless_with(options.weights_access_token);
        service::SavedModel saved;
        saved.operation = from_state_name(with_optimizer);
        saved.path = std::move(path);
        saved.with_optimizer = with_optimizer;
        saved.options = std::move(options);
        return service::create_model_from(runtime_, session(), lookup, std::move(saved));
    }
    static TrainingClient training_client(Runtime const& runtime, service::ModelHandle model) {
        return TrainingClient{
            std::make_shared<TrainingClient::Impl const>(runtime, std::move(model), CallOptions())};
    }

    Future<void> close(std::optional<service::Finish> finish) {
        runtime_.core()->refuse_if_inherited();
        Core session;
        {
            std::scoped_lock const lock{mutex_};
            closed_ = true;
            session = session_;
        }
        std::vector<Future<void>> parts;
        if (session) parts.push_back(close(session, std::move(finish)));
        for (auto const& core : sessionless_cores()) parts.push_back(close(core, std::nullopt));
        return when_all(std::move(parts));
    }

    [[nodiscard]] Runtime const& runtime() const noexcept { return runtime_; }

private:
    Core get(Core& slot, service::SessionKind kind) {
        runtime_.core()->refuse_if_inherited();  // before a lock that nobody here may hold
        std::scoped_lock const lock{mutex_};
        if (!slot) {
            slot = client::make_core(runtime_, config_, kind, transport_, std::nullopt, ids_);
            // A client that was closed before it was used stays closed (R-CONF-45).
            if (closed_) close_core(slot);
        }
        return slot;
    }
    static void close_core(Core const& core) {
        core->scheduler().post(
            [core] { core->session().close(std::nullopt, [](Result<void> const&) {}); });
    }

    Future<void> close(Core const& core, std::optional<service::Finish> finish) {
        Promise<void> promise{runtime_};
        auto future = promise.get_future();
        std::make_shared<service::CloseCall>(core, std::move(finish), std::move(promise))->launch();
        return future;
    }

    Runtime runtime_;
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<service::ClientConfig const> const config_;
    service::PendingList::Ids const ids_{std::make_shared<std::uint64_t>()};
    std::mutex mutex_{};  // guards what follows
    Core session_{};
    Core sessionless_{};
    std::vector<std::weak_ptr<service::ClientCore>> others_{};
    bool closed_{false};
};

}  // namespace tinkxx
