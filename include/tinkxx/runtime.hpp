#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace tinkxx {

/// Runs continuations, coroutine resumptions, observers and log sinks.
class Executor {
public:
    virtual ~Executor() = default;
    /// Runs `task` soon and exactly once, or destroys it if it will never run. Called on any
    /// thread. If this throws, the exception is logged once, and a call that depends on the task
    /// fails with `CallbackError`.
    virtual void run(Task task) = 0;
};

/// Runs each callback directly on the I/O thread. The fastest choice, for callbacks that are quick
/// and never block.
[[nodiscard]] std::shared_ptr<Executor> inline_executor();

/// Runs callbacks on up to `threads` threads of its own, which start as they are needed and end
/// with its last handle, after the callbacks that are running; those that wait are dropped. For
/// callbacks that take long: a slow one holds no other up, but two may run at the same time and in
/// any order. Throws `ValidationError` if `threads` is below 1.
[[nodiscard]] std::shared_ptr<Executor> pool_executor(int threads);

/// How a `Runtime` works. Every field has a working default.
struct RuntimeOptions {
    /// 1: the runtime has its own I/O thread. 0: it has none; the caller runs it with `poll()`, and
    /// waiting for a future polls too.
    int threads{1};
    /// Runs callbacks. Empty: one thread, which starts with the first callback; with `threads = 0`,
    /// the loop itself.
    std::shared_ptr<Executor> executor{};
    /// Replaces time, timers, random numbers and the task queue, e.g. with `testing::ManualClock`.
    /// Needs `threads = 0`.
    std::shared_ptr<Scheduler> scheduler{};
    /// The seed of all random numbers. Empty: from the operating system.
    std::optional<std::uint64_t> seed{};
    /// Receives log lines of level `log_level` and above. Empty: warnings and errors to stderr.
    LogSink log{};
    LogLevel log_level{LogLevel::warning};
};

namespace detail {
class CallContext;
class RuntimeCore;
}  // namespace detail

/// The threads and the clock that clients run on. Clients that are not given a runtime share one,
/// which starts with the first of them and ends with the last client and call.
///
/// A cheap handle: copies share one runtime, which shuts down with its last handle. Clients count
/// as handles, and so do pending calls on a runtime with a thread. (Pending calls do not keep a
/// runtime without threads alive, since nobody is left to run it.) Returning from `main` shuts all
/// runtimes down; if that cuts calls short, one line on stderr says how many. Every member may be
/// called from any thread unless it says otherwise.
///
/// A child process made by `fork` has none of the threads. Runtimes, clients and pending futures of
/// the parent throw `UsageError` there; they can be destroyed, but their memory is not freed.
/// Objects created in the child work: clients that are not given a runtime share a new one.
class Runtime {
public:
    /// A new runtime. Throws `ValidationError` for options that contradict each other.
    Runtime();
    explicit Runtime(RuntimeOptions options);
    /// The runtime that clients share by default; starts it if it is not running.
    [[nodiscard]] static Runtime shared();

    /// With `threads = 0`: runs everything that is due and returns whether there was anything.
    /// Returns false at once if another thread is polling, or after `shutdown`. Throws `UsageError`
    /// on a runtime with its own thread, and inside a callback.
    bool poll();
    /// As `poll()`, but waits for at most `limit` until something is due or the other thread is
    /// done.
    bool poll(std::chrono::nanoseconds limit);

    /// With `threads = 0`, for a program with an event loop of its own: a descriptor that becomes
    /// readable when there is something for `poll()` to do. The runtime owns it; watch it for
    /// reading, level-triggered, and never read from it. Throws `UsageError` on a runtime with its
    /// own thread or a scheduler of one's own.
    [[nodiscard]] int descriptor() const;
    /// How long that loop may wait for `descriptor()` before it calls `poll()` again: zero if
    /// something is due already; empty if nothing ever is unless the descriptor says so. To be
    /// asked before each wait, on the thread that polls: until then, what other threads hand over
    /// does not make the descriptor readable. Throws as `descriptor`.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> wait_time() const;

    /// Cancels everything that is pending and ends all threads. Waits for the callback that is
    /// running, if any; called on a thread of the runtime, it returns at once and the threads end
    /// by themselves. May be called repeatedly.
    void shutdown() noexcept;

    /// The loop's clock and queue. Lives as long as the runtime.
    [[nodiscard]] Scheduler& scheduler() const noexcept;
    /// Whether `shutdown` was called.
    [[nodiscard]] bool shut_down() const noexcept;

    /// For the library's own use.
    [[nodiscard]] std::shared_ptr<detail::RuntimeCore> const& core() const noexcept {
        return core_;
    }
    /// The part of a runtime that futures hold. It outlives the threads and does not keep them
    /// running. Throws `UsageError` in a child process.
    [[nodiscard]] std::shared_ptr<detail::CallContext> context() const;

private:
    class Owner;
    explicit Runtime(std::shared_ptr<Owner> owner) noexcept;

    std::shared_ptr<Owner> owner_;  // shuts down with its last copy
    std::shared_ptr<detail::RuntimeCore> core_;
};

}  // namespace tinkxx
