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
    /// Runs `task` soon, each exactly once, or destroys it if it never will. Any thread. What it
    /// throws is logged, once; a call that needs what was thrown away fails with `CallbackError`.
    virtual void run(Task task) = 0;
};

/// Runs each callback on the I/O thread, right when it falls due: the fastest, for callbacks
/// that are quick and never block.
[[nodiscard]] std::shared_ptr<Executor> inline_executor();

/// How a `Runtime` works. Every field has a working default.
struct RuntimeOptions {
    /// 1: an I/O thread of its own. 0: none; the caller lends its thread with `poll()`, and
    /// waiting for a future polls.
    int threads{1};
    /// Where callbacks run. Empty: one thread, started with the first callback; with
    /// `threads = 0` the loop itself.
    std::shared_ptr<Executor> executor{};
    /// Replaces time, timers, chance and the queue, e.g. by `testing::ManualClock`. Needs
    /// `threads = 0`.
    std::shared_ptr<Scheduler> scheduler{};
    /// Seeds all chance. Empty: from the operating system.
    std::optional<std::uint64_t> seed{};
    /// Receives log lines of level `log_level` and above. Empty: warnings and errors to stderr.
    LogSink log{};
    LogLevel log_level{LogLevel::warning};
};

namespace detail {
class CallContext;
class RuntimeCore;
}  // namespace detail

/// The threads and the clock that clients run on. Clients that are given none share one, which
/// starts with the first of them and ends with the last, and with the last of their calls.
///
/// A cheap handle: copies share one runtime, which shuts down with its last handle. A client is a
/// handle, and so is every call that is under way on a runtime with a thread; one without threads
/// ends with its last other handle, since nobody is left to run it. A process that returns from
/// `main` shuts all down, and says in one line how many calls that cut short. Every member may be
/// called from any thread unless it says otherwise.
///
/// After a `fork` the child has none of the threads. Runtimes, clients and pending futures of the
/// parent throw `UsageError` there; they can be destroyed, but keep their memory. What is made in
/// the child works: clients that are given no runtime share a new one.
class Runtime {
public:
    /// A runtime of one's own. Throws `ValidationError` for options that do not fit together.
    Runtime();
    explicit Runtime(RuntimeOptions options);
    /// The default that clients share; starts it if no client holds it.
    [[nodiscard]] static Runtime shared();

    /// With `threads = 0`: runs what is due and returns whether anything was; false at once if
    /// another thread is doing so, or after `shutdown`. Throws `UsageError` on a runtime that has
    /// its own thread, and from within a callback.
    bool poll();
    /// As `poll()`, but waits for at most `limit` for something to be due, or for the other
    /// thread.
    bool poll(std::chrono::nanoseconds limit);

    /// Ends everything under way with a cancellation error and leaves no thread. Waits for at
    /// most the one callback that is running; called from a callback or the I/O thread it
    /// returns at once and the threads end by themselves. Safe to call twice.
    void shutdown() noexcept;

    /// The loop's clock and queue. Lives as long as the runtime.
    [[nodiscard]] Scheduler& scheduler() const noexcept;
    /// Whether `shutdown` was called.
    [[nodiscard]] bool shut_down() const noexcept;

    /// For the library's own use.
    [[nodiscard]] std::shared_ptr<detail::RuntimeCore> const& core() const noexcept {
        return core_;
    }
    /// What futures keep of a runtime. It outlives the threads, which it does not keep running.
    /// Throws `UsageError` in a child of the process that it belongs to.
    [[nodiscard]] std::shared_ptr<detail::CallContext> context() const;

private:
    class Owner;
    explicit Runtime(std::shared_ptr<Owner> owner) noexcept;

    std::shared_ptr<Owner> owner_;  // shuts down with its last copy
    std::shared_ptr<detail::RuntimeCore> core_;
};

}  // namespace tinkxx
