#pragma once

#include <tinkxx/observer.hpp>
#include <tinkxx/recovery_policy.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/types/checkpoint.hpp>

#include "service/recovery/recovery_queue.hpp"
#include "service/training/training_start.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

class RecoverCall;

/// A model that was made in place of a lost run, and the runtime that its handle will need.
struct Replacement {
    Runtime runtime;
    ModelHandle model{};
};

/// What recoveries ask of the client that they work for. Called on the loop.
class RecoverySource {
public:
    virtual ~RecoverySource() = default;
    [[nodiscard]] virtual Future<TrainingRun> run(std::string const& run_id) const = 0;
    [[nodiscard]] virtual Future<Replacement> make(std::string checkpoint) const = 0;
};

/// What the recoveries and watches of one executor have in common.
class RecoveryCore {
public:
    /// `sessionless` is a core of the same client, without a session.
    RecoveryCore(std::weak_ptr<RecoverySource const> source,
                 std::shared_ptr<ClientCore> sessionless, RecoveryPolicy const& policy);
    RecoveryCore(RecoveryCore const&) = delete;
    RecoveryCore& operator=(RecoveryCore const&) = delete;

    // Any thread.
    /// There while the executor is. Calls under way must not keep the client, which keeps the
    /// runtime that is to end them.
    std::weak_ptr<RecoverySource const> const source;
    std::shared_ptr<ClientCore> const sessionless;
    RecoveryPolicy const policy;  ///< checked
    [[nodiscard]] Scheduler& scheduler() const noexcept { return sessionless->scheduler(); }
    void tell(RecoveryEvent event) const;
    /// Has a function of the policy called on the callback executor.
    void call_back(std::function<void()> fn) const;

    // Loop thread only.
    [[nodiscard]] RecoveryQueue::Place add(std::shared_ptr<RecoverCall> const& call);
    void remove(std::string const& run_id);
    [[nodiscard]] std::size_t active() const noexcept { return queue_.active(); }
    /// Ends all recoveries.
    void end();

private:
    RecoveryQueue queue_;
    std::map<std::string, std::weak_ptr<RecoverCall>> calls_{};
};

/// The last checkpoint of a run, if it has one.
[[nodiscard]] std::optional<std::string> last_checkpoint(TrainingRun const& run);
/// What a recovery or watch ends with that nobody wants any more.
[[nodiscard]] Error ended_early(std::string_view operation, std::string const& run_id,
                                std::string_view why);

/// Has `member` of `call` called on the loop with the result of `future`, if the call is still
/// there. The future that it gives is there to be cancelled.
template <class T, class Call>
[[nodiscard]] Future<void> then_on_loop(Future<T> future, std::shared_ptr<Call> const& call,
                                        detail::RuntimeCore& runtime,
                                        void (Call::*member)(Result<T>)) {
    return future.then_result([runtime = runtime.shared_from_this(),
                               weak = std::weak_ptr<Call>{call}, member](Result<T> result) {
        auto& scheduler = runtime->scheduler();
        scheduler.post([weak, member, result = std::move(result)]() mutable {
            if (auto const kept = weak.lock()) ((*kept).*member)(std::move(result));
        });
    });
}

}  // namespace tinkxx::service
