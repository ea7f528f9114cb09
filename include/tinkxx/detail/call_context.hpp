#pragma once

#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx::detail {

/// Asks a waiting thread's question, "is it ready?", without knowing what it waits for.
class Readiness {
public:
    Readiness() noexcept = default;
    Readiness(Readiness const&) = delete;
    Readiness& operator=(Readiness const&) = delete;
    [[nodiscard]] virtual bool ready() const noexcept = 0;

protected:
    ~Readiness() = default;
};

/// How lending one's thread to a runtime ended.
enum class Pumped : std::uint8_t {
    ready,    ///< what was waited for is there
    expired,  ///< the limit is over
    stuck,    ///< nothing is left to run and time stands still
    closed,   ///< the runtime is shut down and runs nothing
};

/// What a future needs of its runtime.
class CallContext {
public:
    virtual ~CallContext() = default;

    /// Runs `task` on the callback executor, which may be inside this call if the executor says
    /// so; destroys it unrun once the runtime is shut down. Any thread.
    virtual void run(Task task) = 0;
    /// As `run`, but never inside this call.
    virtual void run_later(Task task) = 0;

    /// Whether the caller is on the loop or inside a callback, where waiting is refused.
    [[nodiscard]] virtual bool on_sdk_thread() const noexcept = 0;
    [[nodiscard]] virtual bool shut_down() const noexcept = 0;

    /// Whether waiting threads must lend themselves to the loop, by `pump`.
    [[nodiscard]] virtual bool zero_thread() const noexcept = 0;
    /// Runs the loop until `what` is ready or `limit` is over.
    virtual Pumped pump(Readiness const& what, std::optional<std::chrono::nanoseconds> limit) = 0;
    /// Makes threads in `pump` look again. Any thread.
    virtual void wake() noexcept = 0;
};

}  // namespace tinkxx::detail
