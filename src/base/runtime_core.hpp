#pragma once

#include <tinkxx/detail/call_context.hpp>
#include <tinkxx/runtime.hpp>

#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <utility>

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
    virtual ~Resident();

private:
    friend class RuntimeCore;
    RuntimeCore* core_{};
    Resident* previous_{};
    Resident* next_{};
};

/// What a `Runtime` handle stands for, as the library itself uses it.
///
/// Shutting down goes in this order, and every step is safe to race with any other call:
/// 1. Callbacks close: those that wait are destroyed unrun, later ones at once.
/// 2. The loop finishes what was posted before, then tells the residents, newest first, and
///    finishes its turn.
/// 3. The threads end. The thread that shuts down joins them; if it is itself one of them, or
///    inside a callback, they are detached and the core lives until they are gone.
class RuntimeCore final : public CallContext, public std::enable_shared_from_this<RuntimeCore> {
public:
    /// Checks the options and starts the I/O thread, if there is to be one. Throws
    /// `ValidationError`.
    [[nodiscard]] static std::shared_ptr<RuntimeCore> start(RuntimeOptions options);
    /// Only for `start`.
    explicit RuntimeCore(RuntimeOptions options);
    ~RuntimeCore() override;

    [[nodiscard]] Scheduler& scheduler() noexcept;
    /// The loop that sockets can use; null if the runtime was given a scheduler.
    [[nodiscard]] base::EventLoop* event_loop() noexcept;

    /// Runs `task` on the callback executor, never inside this call; destroys it unrun once shut
    /// down. Any thread that holds the core.
    void run_callback(Task task) { run_later(std::move(task)); }
    /// Hands a line to the log sink, on the callback executor. Any thread.
    void log(LogLevel level, std::string line);
    [[nodiscard]] bool logs(LogLevel level) const noexcept;

    void run(Task task) override;
    void run_later(Task task) override;
    [[nodiscard]] bool on_sdk_thread() const noexcept override;
    [[nodiscard]] bool shut_down() const noexcept override;
    [[nodiscard]] bool zero_thread() const noexcept override;
    Pumped pump(Readiness const& what, std::optional<std::chrono::nanoseconds> limit) override;
    void wake() noexcept override;

    /// The one `T` of this runtime, which its clients share; made when first asked for, and gone
    /// with the core. Loop thread only.
    template <class T>
    [[nodiscard]] std::shared_ptr<T> part() {
        auto& slot = part_of(typeid(T));
        if (!slot) slot = std::make_shared<T>();
        return std::static_pointer_cast<T>(slot);
    }

    /// Loop thread only. A resident that is added after the shutdown is told at once.
    void add(Resident& resident);
    void remove(Resident& resident) noexcept;

    bool poll(std::chrono::nanoseconds limit);
    void shutdown() noexcept;

private:
    friend class Resident;
    [[nodiscard]] std::shared_ptr<void>& part_of(std::type_index type);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::detail
