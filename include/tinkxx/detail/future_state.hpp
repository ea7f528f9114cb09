#pragma once

#include <tinkxx/detail/blocks.hpp>
#include <tinkxx/detail/call_context.hpp>
#include <tinkxx/detail/process.hpp>
#include <tinkxx/detail/unique_function.hpp>
#include <tinkxx/error.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace tinkxx::detail {

class StateBase;

[[nodiscard]] Error cancelled_error();
[[nodiscard]] Error callback_error(std::exception_ptr thrown);
[[nodiscard]] Error usage_error(std::string message);
/// The exception that is being handled, as an error: itself if it is one of ours.
[[nodiscard]] Error current_error();

/// How waiting for a future ended.
enum class Waited : std::uint8_t {
    ready,
    expired,
    stuck,  ///< a clock that stands still keeps it from ever being ready
};

/// What follows the completion of a future. Exactly one of `run` and `drop` is called, and ends
/// its life.
class Continuation : public InBlocks {
public:
    enum class Where : std::uint8_t {
        executor,  ///< where the user's code runs
        here,      ///< on the thread that completes; for the library's own short work
    };

    explicit Continuation(Where where) noexcept : where_{where} {}
    Continuation(Continuation const&) = delete;
    Continuation& operator=(Continuation const&) = delete;

    /// `state` is complete, and lives until this returns.
    virtual void run(StateBase& state) = 0;
    /// It will never be run, since `state` is not completed.
    virtual void drop() noexcept = 0;
    /// In place of `run`, where the executor does not take it: the runtime is shut down, say.
    virtual void refused(StateBase& /*state*/) noexcept { drop(); }

protected:
    virtual ~Continuation() = default;

private:
    friend class StateBase;
    Continuation* next_{};
    Where where_;
};

struct DropContinuation {
    void operator()(Continuation* continuation) const noexcept { continuation->drop(); }
};
using ContinuationPtr = std::unique_ptr<Continuation, DropContinuation>;

/// What a promise and its future share, whatever the type of the value. Any thread.
///
/// It completes once: who changes `pending` to `completing` (by `claim`, or inside `cancel`) has
/// the value and the error to itself until `finish` publishes them.
class StateBase : public Readiness, public std::enable_shared_from_this<StateBase> {
public:
    explicit StateBase(std::shared_ptr<CallContext> context) noexcept
        : context_{std::move(context)} {}
    virtual ~StateBase() = default;

    [[nodiscard]] bool ready() const noexcept override {
        return phase_.load(std::memory_order_acquire) == Phase::done;
    }
    /// Blocks, or runs the loop of a runtime without threads, until it is ready or `limit` is
    /// over. Throws `UsageError` where waiting could never end.
    Waited wait(std::optional<std::chrono::milliseconds> limit);
    /// Throws as `get` does for a wait that ended without a result.
    [[noreturn]] static void refuse(Waited how, std::chrono::milliseconds limit);
    /// Completes it with `cancelled` and tells the producer, if it is pending.
    void cancel() noexcept;
    /// Runs `continuation` once it is complete; never inside this call if there is a context.
    void attach(ContinuationPtr continuation);
    /// As `attach`; false, and `continuation` is left alone, if it is complete already.
    [[nodiscard]] bool attach_unless_ready(Continuation& continuation);

    /// The right, and duty, to complete it. False if it is complete or about to be.
    [[nodiscard]] bool claim() noexcept;
    /// After `claim`.
    void fail(Error error) noexcept { error_ = std::make_unique<Error const>(std::move(error)); }
    /// After `claim`: publishes value or error.
    void finish() noexcept;
    /// Completes it as abandoned, if nobody completed it.
    void abandon() noexcept;
    /// Calls `handler` if it is cancelled, which may be now. Replaces the handler before it.
    void on_cancel(Task handler);

    /// Null if it is complete with a value. Only once ready.
    [[nodiscard]] Error const* error() const noexcept { return error_.get(); }
    [[nodiscard]] std::shared_ptr<CallContext> context() const;
    /// Whether it belongs to a runtime of the parent process: nobody here will complete it.
    [[nodiscard]] bool inherited() const noexcept {
        return born_ != forks() && context_ != nullptr;
    }
    /// Takes `context` if it has none.
    void adopt(std::shared_ptr<CallContext> context);

private:
    enum class Phase : std::uint8_t { pending, completing, done };

    /// A thread in `wait`; on its stack, since few futures are ever waited for.
    struct Waiter {
        std::condition_variable changed;
        Waiter* next{};
    };

    static void run_here(ContinuationPtr continuation, std::shared_ptr<StateBase> self) noexcept;
    void dispatch(ContinuationPtr continuation, CallContext* context, bool later) noexcept;

    // Guards all below except what `claim` hands over. Never held while user code runs.
    mutable std::mutex mutex_;
    std::shared_ptr<CallContext> context_;
    Task on_cancel_;
    Continuation* continuations_{};       ///< newest first
    std::unique_ptr<Error const> error_;  // few have one, and thousands wait at once
    Waiter* waiters_{};
    std::atomic<Phase> phase_{Phase::pending};
    bool cancelled_{false};
    std::uint32_t const born_{forks()};
};

template <class T>
using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// A value that is not there yet. A large one is kept aside once it comes: what waits in thousands
/// should be small.
template <class T>
class Later {
public:
    template <class... Args>
    void emplace(Args&&... args) {
        if constexpr (aside) {
            value_ = make_in_block<T>(std::forward<Args>(args)...);
        } else {
            value_.emplace(std::forward<Args>(args)...);
        }
    }
    [[nodiscard]] T& operator*() noexcept { return *value_; }

private:
    static constexpr bool aside = sizeof(T) > 64 && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    std::conditional_t<aside, std::unique_ptr<T, GiveBlock<T>>, std::optional<T>> value_;
};

template <class T>
class State final : public StateBase {
public:
    using StateBase::StateBase;

    /// After `claim`. If making the value throws, that becomes the error.
    template <class... Args>
    void emplace(Args&&... args) noexcept {
        try {
            value_.emplace(std::forward<Args>(args)...);
        } catch (...) {
            fail(current_error());
        }
    }
    /// Only once ready, and without an error.
    [[nodiscard]] Stored<T>& value() noexcept { return *value_; }

private:
    Later<Stored<T>> value_;
};

}  // namespace tinkxx::detail
