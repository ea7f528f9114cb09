#include <tinkxx/runtime.hpp>

#include "base/common/forever.hpp"
#include "base/common/fork.hpp"
#include "base/runtime/runtime_core.hpp"

#include <mutex>
#include <utility>

namespace tinkxx {
namespace {

// The runtime knows this one by its address and never calls it: what it stands for depends on
// whether the caller is on the loop.
class InlineExecutor final : public Executor {
public:
    void run(Task task) override { task(); }
};

}  // namespace

std::shared_ptr<Executor> inline_executor() {
    // Never destroyed: runtimes may ask for it while the process ends.
    static base::Forever<std::shared_ptr<Executor>> only{std::make_shared<InlineExecutor>()};
    return only.get();
}

class Runtime::Owner {
public:
    explicit Owner(RuntimeOptions options) : core{detail::RuntimeCore::start(std::move(options))} {}
    ~Owner() {
        // A core of the parent process can neither be shut down here nor destroyed: it shares its
        // sockets with the parent.
        if (core->inherited()) {
            base::strand(core);
        } else {
            core->shutdown();
        }
    }
    Owner(Owner const&) = delete;
    Owner& operator=(Owner const&) = delete;

    std::shared_ptr<detail::RuntimeCore> const core;
};

Runtime::Runtime() : Runtime{RuntimeOptions{}} {}

Runtime::Runtime(RuntimeOptions options) : Runtime{std::make_shared<Owner>(std::move(options))} {}

Runtime::Runtime(std::shared_ptr<Owner> owner) noexcept
    : owner_{std::move(owner)}, core_{owner_->core} {}

Runtime Runtime::shared() {
    struct Default {
        Default() { base::hold_while_forking(base::ProcessLock::shared_runtime, mutex); }
        std::mutex mutex;
        std::weak_ptr<Owner> owner;
    };
    // Never destroyed: clients with static storage may ask for it, or leave it, at any time.
    static base::Forever<Default> only;
    auto& slot = only.get();
    std::shared_ptr<Owner>
        owner;  // declared before the lock: it may be the last, and joins threads
    std::scoped_lock const lock{slot.mutex};
    owner = slot.owner.lock();
    if (!owner || owner->core->shut_down() || owner->core->inherited()) {
        owner = std::make_shared<Owner>(RuntimeOptions{});
        slot.owner = owner;
    }
    return Runtime{std::move(owner)};
}

bool Runtime::poll() { return poll(std::chrono::nanoseconds::zero()); }

bool Runtime::poll(std::chrono::nanoseconds limit) {
    auto const core = core_;  // a callback may drop the last handle, even this one
    return core->poll(limit);
}

int Runtime::descriptor() const { return core_->descriptor(); }

std::optional<std::chrono::nanoseconds> Runtime::wait_time() const { return core_->wait_time(); }

void Runtime::shutdown() noexcept {
    auto const core = core_;
    core->shutdown();
}

Scheduler& Runtime::scheduler() const noexcept { return core_->scheduler(); }

bool Runtime::shut_down() const noexcept { return core_->shut_down(); }

std::shared_ptr<detail::CallContext> Runtime::context() const {
    core_->refuse_if_inherited();
    return core_;
}

}  // namespace tinkxx
