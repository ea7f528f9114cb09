#include <tinkxx/recovery.hpp>

#include "base/common/invalid.hpp"
#include "client/service_impl.hpp"
#include "service/recovery/recover_call.hpp"
#include "service/recovery/watch_call.hpp"

#include <utility>

namespace tinkxx {
namespace {

constexpr std::string_view recovering = "recover";
constexpr std::string_view watching = "watch";

ErrorDetails misuse(std::string_view operation, std::string_view problem) {
    return {.kind = ErrorKind::usage,
            .message = std::string{operation} + ": " + std::string{problem},
            .category = ErrorCategory::user};
}

/// Why a policy leads to no recovery, or nothing (R-EXT-40, R-EXT-41).
std::optional<ErrorDetails> policy_problem(std::string_view operation,
                                           RecoveryPolicy const& policy) {
    if (!policy.enabled) {
        return misuse(operation, "recovery is not enabled; set RecoveryPolicy::enabled");
    }
    return std::nullopt;
}

std::optional<ErrorDetails> run_problem(std::string_view operation, std::string const& run_id) {
    if (!run_id.empty()) return std::nullopt;
    return base::invalid(operation, "run_id", "",
                         "run_id is empty; name a run, or give the client that trains it");
}

Future<Recovery> refused(ErrorDetails problem) {
    return make_failed_future<Recovery>(Error{std::move(problem)});
}

}  // namespace

// Executor ----------------------------------------------------------------------------------------

class RecoveryExecutor::Impl {
public:
    Impl(ServiceClient owner, RecoveryPolicy const& policy)
        : source{std::make_shared<Source const>(std::move(owner), policy.restore_optimizer)},
          core{std::make_shared<service::RecoveryCore>(source, source->owner.impl_->sessionless(),
                                                       policy)} {}
    Impl(Impl const&) = delete;
    Impl& operator=(Impl const&) = delete;
    ~Impl() {
        // Weak: nobody may ever turn a scheduler of the user's again.
        core->scheduler().post([weak = std::weak_ptr{core}] {
            if (auto const left = weak.lock()) left->end();
        });
    }

    /// `last` is the run's last checkpoint, if that is known.
    [[nodiscard]] Future<Recovery> recover(RecoveryRequest request,
                                           std::optional<std::string> last) const {
        if (request.run_id.empty()) request.run_id = request.client.model_id();
        auto problem = policy_problem(recovering, core->policy);
        if (!problem) problem = run_problem(recovering, request.run_id);
        if (problem) return refused(*std::move(problem));
        service::RecoveryOrder order;
        order.run_id = request.run_id;
        auto const* specific = std::get_if<SpecificCheckpoint>(&core->policy.checkpoint);
        if (!request.checkpoint.empty()) {
            order.checkpoint = std::move(request.checkpoint);
        } else if (specific != nullptr) {
            order.checkpoint = specific->path;
        } else {
            order.checkpoint = std::move(last);
        }
        auto const told = [run_id = std::move(request.run_id),
                           old_client = std::move(request.client)](service::Recovered made) {
            auto& [runtime, model] = made.replacement;
            return Recovery{
                .run_id = run_id,
                .old_client = old_client,
                .client = ServiceClient::Impl::training_client(runtime, std::move(model)),
                .checkpoint = std::move(made.checkpoint),
                .attempts = made.attempts};
        };
        if (core->policy.on_recovery) {
            order.on_recovered = [told, on_recovery = core->policy.on_recovery](
                                     service::Recovered const& made) { on_recovery(told(made)); };
        }
        auto recovered = service::launch<service::RecoverCall>(runtime(), core, std::move(order));
        return recovered.then(told);
    }
    [[nodiscard]] Runtime const& runtime() const noexcept { return source->owner.runtime(); }

private:
    /// The client, as its recoveries see it.
    struct Source final : service::RecoverySource {
        Source(ServiceClient its_owner, bool its_restore_optimizer)
            : owner{std::move(its_owner)}, restore_optimizer{its_restore_optimizer} {}
        Future<TrainingRun> run(std::string const& run_id) const override {
            return service::get_training_run(owner.runtime(), owner.impl_->sessionless(), run_id,
                                             service::Repeat::once);
        }
        Future<service::Replacement> make(std::string checkpoint) const override {
            auto made = owner.impl_->model_from_state(std::move(checkpoint), FromStateOptions(),
                                                      restore_optimizer);
            return made.then([runtime = owner.runtime()](service::ModelHandle model) {
                return service::Replacement{runtime, std::move(model)};
            });
        }

        ServiceClient const owner;
        bool const restore_optimizer;
    };

    std::shared_ptr<Source const> const source;

public:
    std::shared_ptr<service::RecoveryCore> const core;
};

RecoveryExecutor::RecoveryExecutor(ServiceClient service, RecoveryPolicy const& policy)
    : impl_{std::make_shared<Impl>(std::move(service), policy)} {}

Future<Recovery> RecoveryExecutor::recover(std::string run_id) const {
    RecoveryRequest request;
    request.run_id = std::move(run_id);
    return recover(std::move(request));
}

Future<Recovery> RecoveryExecutor::recover(TrainingClient const& client) const {
    RecoveryRequest request;
    request.client = client;
    return recover(std::move(request));
}

Future<Recovery> RecoveryExecutor::recover(RecoveryRequest request) const {
    if (!impl_) {
        return refused(
            misuse(recovering, "this RecoveryExecutor is empty; make one from a ServiceClient"));
    }
    return impl_->recover(std::move(request), std::nullopt);
}

RecoveryPolicy RecoveryExecutor::policy() const {
    return impl_ ? impl_->core->policy : RecoveryPolicy();
}

// Monitor -----------------------------------------------------------------------------------------

class RecoveryMonitor::Impl {
public:
    explicit Impl(std::shared_ptr<RecoveryExecutor::Impl> its_executor)
        : executor{std::move(its_executor)} {}
    Impl(Impl const&) = delete;
    Impl& operator=(Impl const&) = delete;
    ~Impl() {
        executor->core->scheduler().post([weak = std::weak_ptr{list}] {
            if (auto const left = weak.lock()) left->end();
        });
    }

    std::shared_ptr<RecoveryExecutor::Impl> const executor;
    std::shared_ptr<service::WatchList> const list{std::make_shared<service::WatchList>()};
};

RecoveryMonitor::RecoveryMonitor(ServiceClient service, RecoveryPolicy const& policy)
    : RecoveryMonitor{RecoveryExecutor{std::move(service), policy}} {}

RecoveryMonitor::RecoveryMonitor(RecoveryExecutor executor) {
    if (executor.impl_) impl_ = std::make_shared<Impl>(std::move(executor.impl_));
}

Future<Recovery> RecoveryMonitor::watch(std::string run_id) const {
    return watch(std::move(run_id), TrainingClient());
}

Future<Recovery> RecoveryMonitor::watch(TrainingClient const& client) const {
    return watch(client.model_id(), client);
}

Future<Recovery> RecoveryMonitor::watch(std::string run_id, TrainingClient client) const {
    if (!impl_) {
        return refused(
            misuse(watching,
                   "this RecoveryMonitor has no executor; make it from a ServiceClient or from a "
                   "RecoveryExecutor that is not empty"));
    }
    auto const& core = impl_->executor->core;
    auto problem = policy_problem(watching, core->policy);
    if (!problem) problem = run_problem(watching, run_id);
    if (problem) return refused(*std::move(problem));
    auto lost =
        service::launch<service::WatchCall>(impl_->executor->runtime(), core, impl_->list, run_id);
    return lost.then([weak = std::weak_ptr{impl_->executor}, run_id = std::move(run_id),
                      client = std::move(client)](service::LostRun run) {
        auto const executor = weak.lock();
        if (!executor) {
            return refused({.kind = ErrorKind::cancelled,
                            .message = std::string{watching} + ": run " + run_id +
                                       ": its RecoveryMonitor has gone away",
                            .stopped = RetryEnd::cancelled});
        }
        RecoveryRequest request;
        request.run_id = run_id;
        request.client = client;
        return executor->recover(std::move(request), std::move(run.checkpoint));
    });
}

void RecoveryMonitor::forget(std::string const& run_id) const {
    if (!impl_) return;
    impl_->executor->core->scheduler().post([list = impl_->list, run_id] { list->end(run_id); });
}

Future<std::vector<std::string>> RecoveryMonitor::watched() const {
    if (!impl_) return make_ready_future(std::vector<std::string>());
    auto const& core = impl_->executor->core;
    auto const promise =
        std::make_shared<Promise<std::vector<std::string>>>(impl_->executor->runtime());
    auto future = promise->get_future();
    core->scheduler().post([list = impl_->list, promise] {
        std::vector<std::string> runs;
        for (auto const& [run_id, call] : list->calls) runs.push_back(run_id);
        promise->set_value(std::move(runs));
    });
    return future;
}

}  // namespace tinkxx
