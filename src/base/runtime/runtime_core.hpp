#pragma once

#include <tinkxx/detail/call_context.hpp>
#include <tinkxx/detail/process.hpp>
#include <tinkxx/error.hpp>
#include <tinkxx/runtime.hpp>

#include <cstddef>
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
    /// Calls that would be cut short by a shutdown now and that nobody but the runtime will speak
    /// of. On the loop, before anybody is told.
    [[nodiscard]] virtual std::size_t calls_under_way() const noexcept { return 0; }

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
///
/// A process that ends shuts down every core that has threads.
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
    /// As above for work that somebody waits for. If it throws, or the executor throws or destroys
    /// it unrun, `otherwise` is told why, on the loop; but not once the runtime is shut down, which
    /// ends those who wait by itself.
    void run_callback(Task task, UniqueFunction<void(Error)> otherwise);
    /// Hands a line to the log sink, on the callback executor. Any thread.
    void log(LogLevel level, std::string line);
    [[nodiscard]] bool logs(LogLevel level) const noexcept;

    void run(Task task) override;
    void run_later(Task task) override;
    [[nodiscard]] bool on_sdk_thread() const noexcept override;
    [[nodiscard]] bool shut_down() const noexcept override;
    /// False once it is shut down, and a moment before that can be seen.
    [[nodiscard]] bool takes_callbacks() const noexcept;
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

    /// As `part`, but for any thread: `T` guards itself.
    template <class T>
    [[nodiscard]] std::shared_ptr<T> common() {
        return std::static_pointer_cast<T>(
            common_of(typeid(T), [] { return std::shared_ptr<void>{std::make_shared<T>()}; }));
    }

    /// Whether it belongs to the parent of this process, from which only one thread was forked.
    /// Then it does nothing any more. Any thread.
    [[nodiscard]] bool inherited() const noexcept;
    void refuse_if_inherited() const {
        if (inherited()) refuse_inherited();
    }
    /// Loop thread only. A resident that is added after the shutdown is told at once.
    void add(Resident& resident);
    void remove(Resident& resident) noexcept;

    bool poll(std::chrono::nanoseconds limit);
    [[nodiscard]] int descriptor() const;
    [[nodiscard]] std::optional<std::chrono::nanoseconds> wait_time();
    void shutdown() noexcept;
    /// Shuts down, since the process ends, and says in one line how many calls that cut short.
    void end_with_process() noexcept;

private:
    friend class Resident;
    [[nodiscard]] std::shared_ptr<void>& part_of(std::type_index type);
    [[nodiscard]] std::shared_ptr<void> common_of(std::type_index type,
                                                  std::shared_ptr<void> (*make)());
    void hand_over(Task ticket);
    /// The loop, for a program that waits for it by itself; `who` is what it calls.
    [[nodiscard]] base::EventLoop& loop_to_wait_for(char const* who) const;

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Has the threads of all runtimes end before anything that was made before this call and is
/// destroyed at the end of the process. To be called again after what they use was set up. Any
/// thread.
void end_runtimes_with_process();

}  // namespace tinkxx::detail
