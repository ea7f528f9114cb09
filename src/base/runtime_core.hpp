#pragma once

#include <tinkxx/runtime.hpp>

#include <memory>
#include <string>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::detail {

/// Something that lives on the loop and must end what it has under way when the runtime shuts
/// down. Told last in, first out. Loop thread only.
class Resident {
public:
    Resident() noexcept = default;
    Resident(Resident const&) = delete;
    Resident& operator=(Resident const&) = delete;
    /// Called on the loop thread (or on the thread that shuts a zero-thread runtime down), once.
    virtual void on_shutdown() noexcept = 0;

protected:
    ~Resident();

private:
    friend class RuntimeCore;
    RuntimeCore* core_{};
    Resident* previous_{};
    Resident* next_{};
};

/// What a `Runtime` handle stands for, as the library itself uses it.
class RuntimeCore : public std::enable_shared_from_this<RuntimeCore> {
public:
    explicit RuntimeCore(RuntimeOptions options);
    ~RuntimeCore();

    [[nodiscard]] Scheduler& scheduler() noexcept;
    /// The loop that sockets can use; null if the runtime was given a scheduler.
    [[nodiscard]] base::EventLoop* event_loop() noexcept;

    /// Runs `task` on the callback executor; destroys it unrun once shut down. Any thread.
    void run_callback(Task task);
    /// Hands a line to the log sink, on the callback executor. Any thread.
    void log(LogLevel level, std::string line);
    [[nodiscard]] bool logs(LogLevel level) const noexcept;
    /// Whether the caller is on the loop or inside a callback, where waiting is refused.
    [[nodiscard]] bool on_sdk_thread() const noexcept;
    /// Any thread.
    [[nodiscard]] bool shut_down() const noexcept;

    /// Loop thread only. A resident that is added after the shutdown is told at once.
    void add(Resident& resident);
    void remove(Resident& resident) noexcept;

    bool poll(std::chrono::nanoseconds limit);
    void shutdown() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::detail
