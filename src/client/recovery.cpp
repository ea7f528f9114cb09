#include <tinkxx/recovery.hpp>

#include "base/common/invalid.hpp"
#include "client/recovery_calls.hpp"
#include "client/service_impl.hpp"

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
    if (std::holds_alternative<BestCheckpoint>(policy.checkpoint)) {
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = std::string{operation} +
                                       ": RecoveryPolicy::checkpoint is BestCheckpoint, which is "
                                       "not supported; use LatestCheckpoint or SpecificCheckpoint",
                            .category = ErrorCategory::user,
                            .field = "RecoveryPolicy::checkpoint",
                            .value = "BestCheckpoint",
                            .unsupported_feature = "recovery from the best checkpoint"};
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

RecoveryPolicy RecoveryPolicy::checked() const {
    auto made = *this;
    auto const rules = service::RecoveryRules{.max_attempts = max_attempts,
                                              .backoff = backoff,
                                              .max_backoff = max_backoff,
                                              .poll_interval = poll_interval,
                                              .max_concurrent = max_concurrent}
                           .checked();
    made.max_attempts = rules.max_attempts;
    made.backoff = rules.backoff;
    made.max_backoff = rules.max_backoff;
    made.poll_interval = rules.poll_interval;
    made.max_concurrent = rules.max_concurrent;
    auto const* specific = std::get_if<SpecificCheckpoint>(&checkpoint);
    if (specific != nullptr && specific->path.empty()) made.checkpoint = LatestCheckpoint{};
    return made;
}

// Executor ----------------------------------------------------------------------------------------

class RecoveryExecutor::Impl {
public:
    Impl(ServiceClient its_service, RecoveryPolicy const& policy)
        : service{std::make_shared<ServiceClient const>(std::move(its_service))},
          core{std::make_shared<client::RecoveryCore>(service, service->impl_->sessionless(),
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
        client::RecoveryOrder order{.run_id = std::move(request.run_id),
                                    .client = std::move(request.client)};
        auto const* specific = std::get_if<SpecificCheckpoint>(&core->policy.checkpoint);
        if (!request.checkpoint.empty()) {
            order.checkpoint = std::move(request.checkpoint);
        } else if (specific != nullptr) {
            order.checkpoint = specific->path;
        } else {
            order.checkpoint = std::move(last);
        }
        Promise<Recovery> promise{service->runtime()};
        auto future = promise.get_future();
        std::make_shared<client::RecoverCall>(core, std::move(order), std::move(promise))->launch();
        return future;
    }

    std::shared_ptr<ServiceClient const> const service;
    std::shared_ptr<client::RecoveryCore> const core;
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
    std::shared_ptr<client::WatchList> const list{std::make_shared<client::WatchList>()};
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
    Promise<client::LostRun> promise{impl_->executor->service->runtime()};
    auto lost = promise.get_future();
    std::make_shared<client::WatchCall>(core, impl_->list, run_id, std::move(promise))->launch();
    return lost.then([weak = std::weak_ptr{impl_->executor}, run_id = std::move(run_id),
                      client = std::move(client)](client::LostRun run) {
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
    impl_->executor->core->scheduler().post([list = impl_->list, run_id] {
        auto const found = list->calls.find(run_id);
        if (found == list->calls.end()) return;
        if (auto const call = found->second.lock()) call->end();
    });
}

Future<std::vector<std::string>> RecoveryMonitor::watched() const {
    if (!impl_) return make_ready_future(std::vector<std::string>());
    auto const& core = impl_->executor->core;
    auto const promise =
        std::make_shared<Promise<std::vector<std::string>>>(impl_->executor->service->runtime());
    auto future = promise->get_future();
    core->scheduler().post([list = impl_->list, promise] {
        std::vector<std::string> runs;
        for (auto const& [run_id, call] : list->calls) runs.push_back(run_id);
        promise->set_value(std::move(runs));
    });
    return future;
}

}  // namespace tinkxx
