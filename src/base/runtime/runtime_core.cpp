#include "base/runtime/runtime_core.hpp"

#include <tinkxx/detail/future_state.hpp>
#include <tinkxx/error.hpp>

#include "base/common/forever.hpp"
#include "base/common/fork.hpp"
#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"
#include "base/runtime/callback_queue.hpp"
#include "base/runtime/own_thread.hpp"
#include "base/runtime/sdk_scope.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

namespace tinkxx::detail {
namespace {

using base::SdkScope;
using std::chrono::nanoseconds;

constexpr auto forever = nanoseconds::max();

std::string text_of(std::exception_ptr const& error) {
    try {
        std::rethrow_exception(error);
    } catch (std::exception const& e) {
        return e.what();
    } catch (...) {
        return "something that is no std::exception";
    }
}

/// The cores that have threads, for the end of the process. Never destroyed.
struct LiveCores {
    std::mutex mutex{};
    std::vector<std::weak_ptr<RuntimeCore>> cores{};
};

LiveCores& live_cores() {
    static base::Forever<LiveCores> only;
    static bool const held =
        (base::hold_while_forking(base::ProcessLock::runtimes, only.get().mutex), true);
    (void)held;
    return only.get();
}

std::atomic<bool> process_is_ending{false};

/// Threads must not run while objects with static storage are destroyed.
void end_with_process() {
    process_is_ending = true;
    std::vector<std::weak_ptr<RuntimeCore>> cores;
    {
        auto& live = live_cores();
        std::scoped_lock const lock{live.mutex};
        cores = std::move(live.cores);
    }
    for (auto const& weak : cores) {
        if (auto const core = weak.lock()) core->end_with_process();
    }
}

enum class CallbackMode {
    own_thread,
    executor,  ///< the user's
    inlined,   ///< on the loop, inside the call where possible
    loop,      ///< on the loop, later
};

[[noreturn]] void refuse(std::string field, std::string value, std::string message) {
    throw ValidationError{{.kind = ErrorKind::validation,
                           .message = std::move(message),
                           .field = std::move(field),
                           .value = std::move(value)}};
}

}  // namespace

struct RuntimeCore::Impl {
    explicit Impl(RuntimeCore& owner, RuntimeOptions given)
        : options{std::move(given)}, callbacks{std::make_shared<base::CallbackQueue>(&owner)} {
        if (options.threads != 0 && options.threads != 1) {
            refuse(
                "threads", std::to_string(options.threads),
                "Runtime: threads is " + std::to_string(options.threads) + "; it must be 0 or 1");
        }
        if (options.scheduler && options.threads != 0) {
            refuse("scheduler", std::to_string(options.threads),
                   "Runtime: a scheduler of one's own needs threads = 0, but threads is " +
                       std::to_string(options.threads));
        }
        if (options.executor == inline_executor()) {
            mode = CallbackMode::inlined;
        } else if (options.executor) {
            mode = CallbackMode::executor;
        } else if (options.threads == 0) {
            mode = CallbackMode::loop;
        }
        default_sink = !options.log;
        if (default_sink) options.log = stderr_log();
        if (!options.scheduler) {
            loop = std::make_unique<base::EventLoop>(options.seed);
            loop->on_exception([&owner](std::exception_ptr const& error) {
                owner.log(LogLevel::error, "the event loop caught: " + text_of(error));
            });
        }
        scheduler = loop ? loop.get() : options.scheduler.get();
    }

    RuntimeOptions options;
    bool default_sink{false};
    CallbackMode mode{CallbackMode::own_thread};
    /// Shared with its tickets, which may outlive the runtime in a user's executor and must not
    /// keep alive what in turn keeps that executor.
    std::shared_ptr<base::CallbackQueue> callbacks;
    std::unique_ptr<base::EventLoop> loop;
    Scheduler* scheduler{};

    struct WakeWorker final : base::TurnEnd {
        explicit WakeWorker(base::CallbackQueue& queue) noexcept : callbacks{queue} {}
        void on_turn_end() override { callbacks.wake(); }
        base::CallbackQueue& callbacks;
    };
    WakeWorker wake_worker{*callbacks};

    std::uint32_t const born{forks()};
    std::atomic<bool> executor_failed{false};

    // Loop thread only.
    Resident* newest{};
    std::map<std::type_index, std::shared_ptr<void>> parts;
    std::atomic<std::size_t> cut_short{0};  // read by the thread that shuts down

    std::mutex commons_mutex;  // guards the next
    std::map<std::type_index, std::shared_ptr<void>> commons;

    std::atomic<bool> closing{false};
    /// The residents were told. Written by the loop.
    std::atomic<bool> told{false};

    // Guards what follows: who turns the loop of a zero-thread runtime, and the end of threads.
    std::mutex mutex;
    std::condition_variable changed;
    bool turning{false};
    /// Counts turns that are over, so that a thread that waits for another's notices each one.
    std::uint64_t turns{0};
    bool ended{false};  ///< zero-thread: the loop runs nothing any more
    std::thread io_thread;
    std::thread callback_thread;
    std::atomic<bool> callback_thread_started{false};  // written under the lock
    int live_threads{0};
    bool joining{false};

    void tell_residents() noexcept {
        told = true;  // first: residents that are added from here on are told by `add`
        for (auto const* each = newest; each != nullptr; each = each->previous_) {
            cut_short += each->calls_under_way();
        }
        while (newest != nullptr) {
            auto& resident = *newest;
            unlink(resident);
            resident.on_shutdown();
        }
    }

    void unlink(Resident& resident) noexcept {
        (resident.next_ != nullptr ? resident.next_->previous_ : newest) = resident.previous_;
        if (resident.previous_ != nullptr) resident.previous_->next_ = resident.next_;
        resident.core_ = nullptr;
        resident.previous_ = resident.next_ = nullptr;
    }

    void thread_ended() noexcept {
        {
            std::scoped_lock const lock{mutex};
            --live_threads;
        }
        changed.notify_all();
    }

    /// The I/O thread.
    void run_loop() noexcept {
        while (!told) loop->turn(forever);
        loop->turn(nanoseconds::zero());  // what the residents posted on their way out
        loop->close();
    }

    /// Whoever has the right to turn: finishes a shutdown that was asked for.
    void finish_if_closing() {
        if (!closing || ended) return;
        while (!told) scheduler->turn(nanoseconds::zero());
        scheduler->turn(nanoseconds::zero());
        if (loop) loop->close();
        std::scoped_lock const lock{mutex};
        ended = true;
    }
};

namespace {

/// Stands for one callback in a queue of someone else's: runs it, or drops it if destroyed first.
class Ticket {
public:
    explicit Ticket(std::shared_ptr<base::CallbackQueue> queue) noexcept
        : queue_{std::move(queue)} {}
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
        if (queue_) queue_->drop_next();
    }
    void operator()() { std::exchange(queue_, nullptr)->run_next(); }

private:
    std::shared_ptr<base::CallbackQueue> queue_;
};

/// Work that somebody waits for: it tells if it is not done. What it holds goes on the loop, since
/// it may be the last to hold something that belongs there.
class Errand {
public:
    using Otherwise = UniqueFunction<void(Error)>;

    Errand(std::shared_ptr<RuntimeCore> core, Task task, Otherwise otherwise) noexcept
        : core_{std::move(core)}, task_{std::move(task)}, otherwise_{std::move(otherwise)} {}
    Errand(Errand&&) noexcept = default;
    Errand& operator=(Errand&&) = delete;
    ~Errand() {
        if (!core_) return;
        failed(Error{{.kind = ErrorKind::callback,
                      .message = "the callback executor (RuntimeOptions::executor) did not run "
                                 "what it was given",
                      .category = ErrorCategory::user}});
    }
    void operator()() {
        try {
            task_();
        } catch (...) {
            return failed(current_error());
        }
        auto const core = std::exchange(core_, nullptr);
        core->scheduler().post([task = std::move(task_), otherwise = std::move(otherwise_)] {});
    }

private:
    void failed(Error error) noexcept {
        auto const core = std::exchange(core_, nullptr);
        if (!core->takes_callbacks() || core->inherited()) return;
        core->scheduler().post([tell = std::move(otherwise_), task = std::move(task_),
                                error = std::move(error)]() mutable { tell(std::move(error)); });
    }

    std::shared_ptr<RuntimeCore> core_;
    Task task_;
    Otherwise otherwise_;
};

/// The right to turn a zero-thread runtime's loop, for the time of the scope.
template <class Impl>
class Turning {
public:
    Turning(Impl& impl, void const* runtime) noexcept : impl_{&impl}, scope_{runtime} {}
    ~Turning() {
        {
            std::scoped_lock const lock{impl_->mutex};
            impl_->turning = false;
            ++impl_->turns;
        }
        impl_->changed.notify_all();
    }
    Turning(Turning const&) = delete;
    Turning& operator=(Turning const&) = delete;

private:
    Impl* impl_;
    SdkScope scope_;
};

/// Joins the threads, or, on one of them, lets them end by themselves. `lock` is of the mutex.
template <class Impl>
void end_threads(Impl& impl, std::unique_lock<std::mutex>& lock, bool on_own_thread) {
    std::thread io;
    std::thread callback;
    if (impl.io_thread.joinable() && !impl.joining) {
        io = std::move(impl.io_thread);
        callback = std::move(impl.callback_thread);
        if (on_own_thread) {
            io.detach();
            if (callback.joinable()) callback.detach();
        } else {
            impl.joining = true;
        }
    }
    if (on_own_thread) return;
    if (io.joinable()) {
        lock.unlock();
        io.join();
        if (callback.joinable()) callback.join();
        lock.lock();
        impl.joining = false;
        impl.changed.notify_all();
    }
    impl.changed.wait(lock, [&impl] { return impl.live_threads == 0 && !impl.joining; });
}

/// The last turns of a runtime without threads.
template <class Impl>
void finish_without_thread(Impl& impl, void const* runtime, std::unique_lock<std::mutex>& lock) {
    while (impl.options.threads == 0 && !impl.ended) {
        if (impl.turning) {
            impl.changed.wait(lock);
            continue;
        }
        impl.turning = true;
        lock.unlock();
        try {
            Turning const turning{impl, runtime};
            impl.finish_if_closing();
        } catch (...) {
            // A task of the user's scheduler threw; the shutdown goes on with the next.
        }
        lock.lock();
    }
}

}  // namespace

Resident::~Resident() {
    if (core_ != nullptr) core_->remove(*this);
}

std::shared_ptr<RuntimeCore> RuntimeCore::start(RuntimeOptions options) {
    auto core = std::make_shared<RuntimeCore>(std::move(options));
    core->impl_->callbacks->on_exception(
        [weak = std::weak_ptr{core}](std::exception_ptr const& error) {
            if (auto const alive = weak.lock()) {
                alive->log(LogLevel::error, "a callback threw: " + text_of(error));
            }
        });
    if (core->zero_thread()) return core;
    auto& impl = *core->impl_;
    std::scoped_lock const lock{impl.mutex};
    impl.io_thread = base::start_thread("tinkxx-io", [core] {
        SdkScope const scope{core.get()};
        core->impl_->run_loop();
        core->impl_->thread_ended();
    });
    ++impl.live_threads;
    static bool const at_exit = (end_runtimes_with_process(), true);
    (void)at_exit;
    auto& live = live_cores();
    std::scoped_lock const registering{live.mutex};
    std::erase_if(live.cores, [](auto const& each) { return each.expired(); });
    live.cores.push_back(core);
    return core;
}

void end_runtimes_with_process() {
    if (std::atexit(&end_with_process) != 0) {
        // No room for a handler: the process then ends as if the threads were somebody else's.
    }
}

bool process_ends() noexcept { return process_is_ending; }

RuntimeCore::RuntimeCore(RuntimeOptions options)
    : impl_{std::make_unique<Impl>(*this, std::move(options))} {}

RuntimeCore::~RuntimeCore() {
    // Only a scheduler of the user's that was never turned again leaves residents untold.
    impl_->tell_residents();
}

Scheduler& RuntimeCore::scheduler() noexcept { return *impl_->scheduler; }

base::EventLoop* RuntimeCore::event_loop() noexcept { return impl_->loop.get(); }

bool RuntimeCore::inherited() const noexcept { return impl_->born != forks(); }

void RuntimeCore::log(LogLevel level, std::string line) {
    if (!logs(level) || inherited()) return;
    auto& impl = *impl_;
    auto const hand_over = [&impl](LogLevel at, std::string_view text) {
        try {
            impl.options.log(at, text);
        } catch (...) {
            // A sink must not throw, and there is nowhere left to say that this one did.
        }
    };
    if (impl.default_sink) return hand_over(level, line);
    if (auto core = weak_from_this().lock()) {
        run_later([core = std::move(core), hand_over, level, text = std::move(line)] {
            hand_over(level, text);
        });
    }
}

bool RuntimeCore::logs(LogLevel level) const noexcept {
    return level >= impl_->options.log_level && level != LogLevel::off;
}

void RuntimeCore::run_callback(Task task, UniqueFunction<void(Error)> otherwise) {
    // What is destroyed together with the core may still ask, and gets nothing.
    auto core = weak_from_this().lock();
    if (core) run_later(Errand{std::move(core), std::move(task), std::move(otherwise)});
}

/// A user's executor may throw. Its ticket is then gone, and the first callback with it.
void RuntimeCore::hand_over(Task ticket) {
    auto& impl = *impl_;
    try {
        impl.options.executor->run(std::move(ticket));
    } catch (...) {
        if (impl.executor_failed.exchange(true)) return;
        auto const line = "the callback executor (RuntimeOptions::executor) threw: " +
                          text_of(std::current_exception()) +
                          "; callbacks that it does not run are dropped";
        // Not through the executor.
        if (impl.default_sink && logs(LogLevel::error)) impl.options.log(LogLevel::error, line);
    }
}

void RuntimeCore::run(Task task) {
    if (inherited()) return base::strand(std::move(task));
    auto& impl = *impl_;
    if (impl.mode == CallbackMode::inlined && impl.scheduler->on_loop()) {
        return impl.callbacks->run_now(std::move(task));
    }
    run_later(std::move(task));
}

void RuntimeCore::run_later(Task task) {
    if (inherited()) return base::strand(std::move(task));
    auto& impl = *impl_;
    // A turn of the loop ends many calls, but has to wake the thread of callbacks once.
    bool const at_turn_end = impl.mode == CallbackMode::own_thread && impl.loop->on_loop();
    if (at_turn_end) impl.loop->at_turn_end(impl.wake_worker);
    if (!(at_turn_end ? impl.callbacks->push_quietly(task) : impl.callbacks->push(task))) {
        SdkScope const scope{this};  // destroying a callback is as good as running it
        auto const unrun = std::move(task);
        return;
    }
    switch (impl.mode) {
        case CallbackMode::executor:
            hand_over(Ticket{impl.callbacks});
            return;
        case CallbackMode::inlined:
        case CallbackMode::loop:
            impl.scheduler->post(Ticket{impl.callbacks});
            return;
        case CallbackMode::own_thread:
            break;
    }
    if (impl.callback_thread_started) return;
    std::scoped_lock const lock{impl.mutex};
    if (impl.callback_thread_started || impl.closing) return;
    impl.callback_thread = base::start_thread("tinkxx-callback", [core = shared_from_this()] {
        SdkScope const in_thread{core.get()};
        core->impl_->callbacks->work();
        core->impl_->thread_ended();
    });
    ++impl.live_threads;
    impl.callback_thread_started = true;
}

bool RuntimeCore::on_sdk_thread() const noexcept {
    return SdkScope::inside(this) || impl_->scheduler->on_loop();
}

bool RuntimeCore::shut_down() const noexcept { return impl_->closing; }

bool RuntimeCore::takes_callbacks() const noexcept { return !impl_->callbacks->closed(); }

bool RuntimeCore::zero_thread() const noexcept { return impl_->options.threads == 0; }

void RuntimeCore::wake() noexcept {
    // A turn that this thread is in ends by itself, and a posted task would outlive the wait.
    if (!inherited() && !impl_->scheduler->on_loop()) impl_->scheduler->post([] {});
}

Pumped RuntimeCore::pump(Readiness const& what, std::optional<nanoseconds> limit) {
    using Clock = std::chrono::steady_clock;
    refuse_if_inherited();
    auto& impl = *impl_;
    auto& scheduler = *impl.scheduler;
    // With a loop of our own this is its clock. A scheduler of the user's has its own time, in
    // which its limit counts; then this one serves only while another thread turns.
    auto const deadline = limit ? Clock::now() + *limit : TimePoint::max();
    std::optional<TimePoint> virtual_deadline;
    nanoseconds step{std::chrono::milliseconds{1}};
    for (;;) {
        std::unique_lock lock{impl.mutex};
        auto const turns = impl.turns;  // read before the look: a turn that ends after it counts
        lock.unlock();
        if (what.ready()) return Pumped::ready;
        lock.lock();
        if (impl.ended) return Pumped::closed;
        if (impl.turning) {
            auto const over = [&] { return impl.turns != turns; };
            if (!limit) {
                impl.changed.wait(lock, over);
            } else if (!impl.changed.wait_until(lock, deadline, over)) {
                return Pumped::expired;
            }
            continue;
        }
        impl.turning = true;
        lock.unlock();
        Turning const turning{impl, this};

        if (impl.loop) {
            auto const left = limit ? deadline - Clock::now() : forever;
            if (left <= nanoseconds::zero()) return Pumped::expired;
            scheduler.turn(left);
        } else if (scheduler.turn(nanoseconds::zero())) {
            step = std::chrono::milliseconds{1};
        } else {
            // Time is let go on in growing steps, not at one go: a scheduler whose time moves
            // stops at its next timer anyway, and one whose time stands still is found out.
            auto const before = scheduler.now();
            if (!virtual_deadline) virtual_deadline = limit ? before + *limit : TimePoint::max();
            auto const left = *virtual_deadline - before;
            if (left <= nanoseconds::zero()) return Pumped::expired;
            constexpr std::chrono::hours longest{24 * 365};
            if (!scheduler.turn(std::min(step, left)) &&
                (scheduler.now() == before || step > longest)) {
                return Pumped::stuck;
            }
            if (step <= longest) step *= 2;  // timers may follow each other for long
        }
        impl.finish_if_closing();
    }
}

void RuntimeCore::add(Resident& resident) {
    auto& impl = *impl_;
    TINKXX_ASSERT_LOOP(*impl.scheduler);
    if (impl.told) return resident.on_shutdown();
    resident.core_ = this;
    resident.previous_ = impl.newest;
    if (impl.newest != nullptr) impl.newest->next_ = &resident;
    impl.newest = &resident;
}

void RuntimeCore::remove(Resident& resident) noexcept {
    if (resident.core_ != this) return;
    TINKXX_ASSERT_LOOP(*impl_->scheduler);
    impl_->unlink(resident);
}

std::shared_ptr<void>& RuntimeCore::part_of(std::type_index type) {
    TINKXX_ASSERT_LOOP(*impl_->scheduler);
    return impl_->parts[type];
}

std::shared_ptr<void> RuntimeCore::common_of(std::type_index type,
                                             std::shared_ptr<void> (*make)()) {
    std::scoped_lock const lock{impl_->commons_mutex};
    auto& slot = impl_->commons[type];
    if (!slot) slot = make();
    return slot;
}

bool RuntimeCore::poll(nanoseconds limit) {
    refuse_if_inherited();
    auto& impl = *impl_;
    auto const misused = [](char const* why) {
        throw UsageError{{.kind = ErrorKind::usage, .message = std::string{"poll: "} + why}};
    };
    if (!zero_thread())
        misused("this runtime has its own thread; use RuntimeOptions{.threads = 0}");
    if (on_sdk_thread()) misused("called from within a callback; return from it instead");
    auto const keep_alive = shared_from_this();
    std::unique_lock lock{impl.mutex};
    if (impl.turning) {
        // Whoever turns runs what is due. Its end is awaited, and time is up or nearly so.
        if (limit <= nanoseconds::zero()) return false;
        auto const over = [&impl] { return !impl.turning; };
        if (limit == forever) {
            impl.changed.wait(lock, over);
        } else if (!impl.changed.wait_for(lock, limit, over)) {
            return false;
        }
        limit = nanoseconds::zero();
    }
    if (impl.ended) return false;
    impl.turning = true;
    lock.unlock();
    Turning const turning{impl, this};
    bool const ran = impl.scheduler->turn(limit);
    impl.finish_if_closing();
    return ran;
}

base::EventLoop& RuntimeCore::loop_to_wait_for(char const* who) const {
    refuse_if_inherited();
    auto const misused = [who](char const* why) {
        throw UsageError{
            {.kind = ErrorKind::usage, .message = std::string{who} + ": this runtime has " + why}};
    };
    if (!zero_thread()) misused("its own thread; use RuntimeOptions{.threads = 0}");
    if (!impl_->loop) misused("a scheduler of its own, which waits for nothing outside");
    return *impl_->loop;
}

int RuntimeCore::descriptor() const { return loop_to_wait_for("descriptor").descriptor(); }

std::optional<nanoseconds> RuntimeCore::wait_time() {
    // Long enough not to spin, and short enough to be there when the other thread stops.
    constexpr std::chrono::milliseconds while_another_polls{1};
    auto& loop = loop_to_wait_for("wait_time");
    std::scoped_lock const lock{impl_->mutex};
    if (impl_->turning) return while_another_polls;
    if (impl_->ended) return std::nullopt;
    return loop.wait_time();
}

void RuntimeCore::end_with_process() noexcept {
    if (inherited()) return;
    shutdown();
    auto& impl = *impl_;
    auto const calls = impl.cut_short.load();
    if (calls == 0 || !impl.default_sink || !logs(LogLevel::warning)) return;
    try {
        impl.options.log(LogLevel::warning,
                         "the process ends while " + std::to_string(calls) +
                             (calls == 1 ? " call is" : " calls are") +
                             " under way; cancelled. Wait for the futures before main returns, or "
                             "cancel them");
    } catch (...) {
        // Then it ends without a word.
    }
}

void RuntimeCore::shutdown() noexcept {
    if (inherited()) return;
    auto& impl = *impl_;
    auto const keep_alive = shared_from_this();
    // In this order: whoever sees the runtime shut down sees no callback start after that, and
    // what is destroyed unrun can say that the runtime was shut down.
    auto unrun = impl.callbacks->close();
    bool first = false;
    {
        // Under the lock, so that no callback thread is started after this.
        std::scoped_lock const lock{impl.mutex};
        first = !impl.closing.exchange(true);
    }
    {
        SdkScope const scope{this};
        unrun.clear();
    }
    if (first) {
        impl.scheduler->post([weak = weak_from_this()] {
            if (auto const core = weak.lock()) core->impl_->tell_residents();
        });
    }

    bool const on_own_thread = on_sdk_thread();
    std::unique_lock lock{impl.mutex};
    end_threads(impl, lock, on_own_thread);
    if (on_own_thread) return;
    finish_without_thread(impl, this, lock);
    lock.unlock();
    impl.callbacks->wait_until_idle();
}

}  // namespace tinkxx::detail
