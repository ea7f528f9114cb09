#include <tinkxx/future.hpp>

#include "base/common/forever.hpp"

#include <string>
#include <vector>

namespace tinkxx::detail {
namespace {

// A limit beyond this is no limit; adding it to a clock would overflow.
constexpr std::chrono::hours longest_limit{24 * 365 * 100};

/// Work of the library's own that waits for the one that is under way on this thread. Without
/// it, a chain of futures that were returned by continuations would complete recursively.
struct Pending {
    ContinuationPtr continuation;
    std::shared_ptr<StateBase> state;
};
thread_local std::vector<Pending>* under_way = nullptr;

class SetUnderWay {
public:
    explicit SetUnderWay(std::vector<Pending>* list) noexcept
        : before_{std::exchange(under_way, list)} {}
    ~SetUnderWay() { under_way = before_; }
    SetUnderWay(SetUnderWay const&) = delete;
    SetUnderWay& operator=(SetUnderWay const&) = delete;

private:
    std::vector<Pending>* before_;
};

/// On its way to an executor: run there once, or refused if the executor destroys it.
class Delivery {
public:
    Delivery(ContinuationPtr continuation, std::shared_ptr<StateBase> state) noexcept
        : continuation_{std::move(continuation)}, state_{std::move(state)} {}
    Delivery(Delivery&&) noexcept = default;
    Delivery& operator=(Delivery&&) = delete;
    ~Delivery() {
        if (!continuation_) return;
        SetUnderWay const user_code{nullptr};
        continuation_.release()->refused(*state_);
    }
    void operator()() { continuation_.release()->run(*state_); }

private:
    ContinuationPtr continuation_;
    std::shared_ptr<StateBase> state_;
};

Error abandoned_error(bool shut_down) {
    return Error{{.kind = ErrorKind::cancelled,
                  .message = shut_down
                                 ? "the call was abandoned: its runtime was shut down"
                                 : "the call was abandoned: its promise was dropped unfulfilled"}};
}

}  // namespace

Error cancelled_error() {
    // Never destroyed: calls may end while the process does.
    static base::Forever<Error const> error{ErrorDetails{
        .kind = ErrorKind::cancelled, .message = "the call was cancelled by its caller"}};
    return error.get();
}

Error callback_error(std::exception_ptr thrown) {
    std::string what = "something that is no std::exception";
    try {
        std::rethrow_exception(thrown);
    } catch (std::exception const& e) {
        what = e.what();
    } catch (...) {
        // Its type is all there is to know, and `exception()` has it.
    }
    return Error{{.kind = ErrorKind::callback,
                  .message = "a continuation threw: " + what,
                  .exception = std::move(thrown)}};
}

Error usage_error(std::string message) {
    return Error{{.kind = ErrorKind::usage, .message = std::move(message)}};
}

Error current_error() {
    try {
        throw;
    } catch (Error const& error) {
        return error;
    } catch (...) {
        return callback_error(std::current_exception());
    }
}

Waited StateBase::wait(std::optional<std::chrono::milliseconds> limit) {
    if (ready()) return Waited::ready;
    if (inherited()) refuse_inherited();
    if (limit && *limit > longest_limit) limit.reset();
    auto const own_context = context();
    if (own_context && own_context->on_sdk_thread()) {
        usage_error(
            "waiting for a pending future on a thread of its runtime, or inside one of its "
            "callbacks, would never end; use then() or co_await")
            .raise();
    }

    // In the list before the last look: who completes it after that look sees the waiter.
    class Waiting {
    public:
        explicit Waiting(StateBase& state) noexcept : state_{state} {
            std::scoped_lock const lock{state_.mutex_};
            waiter.next = std::exchange(state_.waiters_, &waiter);
        }
        ~Waiting() {
            std::scoped_lock const lock{state_.mutex_};
            auto** place = &state_.waiters_;
            while (*place != &waiter) place = &(*place)->next;
            *place = waiter.next;
        }
        Waiting(Waiting const&) = delete;
        Waiting& operator=(Waiting const&) = delete;
        Waiter waiter{};

    private:
        StateBase& state_;
    };
    Waiting waiting{*this};

    if (own_context && own_context->zero_thread()) {
        switch (own_context->pump(*this, limit)) {
            case Pumped::ready:
                return Waited::ready;
            case Pumped::expired:
                return Waited::expired;
            case Pumped::stuck:
                return Waited::stuck;
            case Pumped::closed:
                break;  // only another thread can complete it now
        }
    }
    std::unique_lock lock{mutex_};
    auto const done = [this] { return ready(); };
    auto& changed = waiting.waiter.changed;
    if (limit) return changed.wait_for(lock, *limit, done) ? Waited::ready : Waited::expired;
    changed.wait(lock, done);
    return Waited::ready;
}

void StateBase::refuse(Waited how, std::chrono::milliseconds limit) {
    if (how == Waited::stuck) {
        usage_error(
            "get: the future is pending, nothing is left to run, and time stands still; advance "
            "the clock first, or let it advance by itself")
            .raise();
    }
    Error{{.kind = ErrorKind::timeout,
           .message = "get: no result within " + std::to_string(limit.count()) +
                      " ms; the call goes on, and get() may be called again",
           .retryable = true}}
        .raise();
}

void StateBase::cancel() noexcept {
    if (inherited()) return;  // its call is the parent's
    Task handler;
    {
        std::scoped_lock const lock{mutex_};
        if (phase_.load(std::memory_order_relaxed) != Phase::pending) return;
        phase_.store(Phase::completing, std::memory_order_relaxed);
        cancelled_ = true;
        handler = std::move(on_cancel_);
    }
    fail(cancelled_error());
    finish();
    if (!handler) return;
    try {
        handler();
    } catch (...) {
        // Cancelling has no one to report to; the future is cancelled all the same.
    }
}

void StateBase::attach(ContinuationPtr continuation) {
    if (inherited() && !ready()) refuse_inherited();
    if (attach_unless_ready(*continuation)) {
        (void)continuation.release();
        return;
    }
    dispatch(std::move(continuation), context().get(), true);
}

bool StateBase::attach_unless_ready(Continuation& continuation) {
    std::scoped_lock const lock{mutex_};
    if (ready()) return false;
    continuation.next_ = std::exchange(continuations_, &continuation);
    return true;
}

bool StateBase::claim() noexcept {
    std::scoped_lock const lock{mutex_};
    if (phase_.load(std::memory_order_relaxed) != Phase::pending) return false;
    phase_.store(Phase::completing, std::memory_order_relaxed);
    return true;
}

void StateBase::finish() noexcept {
    Task handler;  // destroyed below, outside of the lock
    Continuation* newest = nullptr;
    std::shared_ptr<CallContext> own_context;
    bool wake = false;
    {
        std::scoped_lock const lock{mutex_};
        phase_.store(Phase::done, std::memory_order_release);
        handler = std::move(on_cancel_);
        newest = std::exchange(continuations_, nullptr);
        for (auto* waiter = waiters_; waiter != nullptr; waiter = waiter->next) {
            waiter->changed.notify_one();
            wake = context_ && context_->zero_thread();
        }
        if (wake || newest != nullptr) own_context = context_;
    }
    if (wake) own_context->wake();
    Continuation* oldest = nullptr;
    while (newest != nullptr) {
        auto* const next = newest->next_;
        newest->next_ = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != nullptr) {
        auto* const next = oldest->next_;
        dispatch(ContinuationPtr{oldest}, own_context.get(), false);
        oldest = next;
    }
}

void StateBase::abandon() noexcept {
    if (ready() || inherited() || !claim()) return;
    auto const own_context = context();
    fail(abandoned_error(own_context && own_context->shut_down()));
    finish();
}

void StateBase::on_cancel(Task handler) {
    {
        std::scoped_lock const lock{mutex_};
        if (phase_.load(std::memory_order_relaxed) == Phase::pending) {
            std::swap(on_cancel_, handler);  // the old one is destroyed outside of the lock
            return;
        }
        if (!cancelled_) return;
    }
    if (handler) handler();
}

std::shared_ptr<CallContext> StateBase::context() const {
    if (inherited()) return context_;  // a thread that is not here may hold the lock
    std::scoped_lock const lock{mutex_};
    return context_;
}

void StateBase::adopt(std::shared_ptr<CallContext> context) {
    if (!context) return;
    std::scoped_lock const lock{mutex_};
    if (!context_) context_ = std::move(context);
}

void StateBase::run_here(ContinuationPtr continuation, std::shared_ptr<StateBase> self) noexcept {
    try {
        if (under_way != nullptr) {
            under_way->push_back({std::move(continuation), std::move(self)});
            return;
        }
        std::vector<Pending> list;
        SetUnderWay const set{&list};
        continuation.release()->run(*self);
        // NOLINTNEXTLINE(modernize-loop-convert): the list grows meanwhile
        for (std::size_t i = 0; i < list.size(); ++i) {
            auto next = std::move(list[i]);
            next.continuation.release()->run(*next.state);
        }
    } catch (...) {
        // The library's own continuations do not throw; out of memory, a future is abandoned.
    }
}

void StateBase::dispatch(ContinuationPtr continuation, CallContext* context, bool later) noexcept {
    auto self = shared_from_this();
    if (continuation->where_ == Continuation::Where::here) {
        return run_here(std::move(continuation), std::move(self));
    }
    try {
        if (context == nullptr) {
            SetUnderWay const user_code{nullptr};
            continuation.release()->run(*self);
            return;
        }
        Task task{Delivery{std::move(continuation), std::move(self)}};
        later ? context->run_later(std::move(task)) : context->run(std::move(task));
    } catch (...) {
        // What could not be handed over was destroyed unrun, which abandons what depends on it.
    }
}

}  // namespace tinkxx::detail
