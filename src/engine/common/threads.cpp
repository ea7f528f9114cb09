#include "engine/common/threads.hpp"

#include "base/common/give_way.hpp"

#include <chrono>
#include <exception>
#include <system_error>

namespace tinkxx::engine {

namespace {

// Longer than the pause between two products of one step, shorter than a scheduler's time slice.
constexpr std::chrono::microseconds spin_limit{50};

// Shorter than a scheduler's time slice: see `work`.
constexpr std::chrono::milliseconds yield_interval{1};

// Which body of which pool this thread is inside of, if any.
thread_local Threads const* inside_pool = nullptr;
thread_local unsigned inside_slot = 0;

class Inside {
public:
    Inside(Threads const* pool, unsigned slot) noexcept : pool_{inside_pool}, slot_{inside_slot} {
        inside_pool = pool;
        inside_slot = slot;
    }
    ~Inside() {
        inside_pool = pool_;
        inside_slot = slot_;
    }
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;

private:
    Threads const* pool_;
    unsigned slot_;
};

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/// Waits until `value` is no longer `old`: a while at full speed, then asleep.
void await_change(std::atomic<std::uint32_t> const& value, std::uint32_t old) noexcept {
    auto const start = std::chrono::steady_clock::now();
    do {
        for (int i = 0; i != 32; ++i) {
            if (value.load(std::memory_order_acquire) != old) return;
            pause();
        }
    } while (std::chrono::steady_clock::now() - start < spin_limit);
    value.wait(old, std::memory_order_acquire);
}

}  // namespace

Threads::Threads(unsigned count, int niceness) {
    if (count == 0) count = std::thread::hardware_concurrency();
    workers_.reserve(count > 1 ? count - 1 : 0);
    try {
        for (unsigned slot = 1; slot < count; ++slot) {
            workers_.emplace_back([this, slot, niceness] {
                base::give_way(niceness);
                work(slot);
            });
        }
    } catch (std::system_error const&) {
        // The system has no more of them; those that run do the work.
    }
}

Threads::~Threads() {
    stop_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (auto& worker : workers_) worker.join();
}

void Threads::run_erased(std::size_t chunks, Job job) {
    if (chunks == 0) return;
    if (inside_pool == this) {
        for (std::size_t chunk = 0; chunk != chunks; ++chunk)
            job.call(job.body, chunk, inside_slot);
        return;
    }
    Inside const inside{this, 0};
    std::unique_lock const lock{running_, std::try_to_lock};
    if (workers_.empty() || chunks == 1 || !lock) {
        for (std::size_t chunk = 0; chunk != chunks; ++chunk) job.call(job.body, chunk, 0);
        return;
    }

    // A ticket counts 32 bits of chunks; nobody needs more, but a wrong split would be silent.
    if (chunks > UINT32_MAX) std::terminate();

    // A worker late from an earlier round cannot claim here before the ticket carries the new
    // epoch, and then it sees what is written before that. Nor can it still read job_ of the
    // earlier round: it would hold a chunk of it, and that round ended with none held.
    job_ = job;
    chunks_ = chunks;
    unfinished_.store(static_cast<std::uint32_t>(chunks), std::memory_order_relaxed);
    auto const epoch = epoch_.load(std::memory_order_relaxed) + 1;
    ticket_.store(std::uint64_t{epoch} << 32 | chunks, std::memory_order_release);
    epoch_.store(epoch, std::memory_order_release);
    epoch_.notify_all();

    claim(epoch, 0);
    // Every chunk is claimed; wait for those that workers still compute.
    for (;;) {
        auto const left = unfinished_.load(std::memory_order_acquire);
        if (left == 0) return;
        await_change(unfinished_, left);
    }
}

void Threads::work(unsigned slot) {
    Inside const inside{this, slot};
    std::uint32_t seen = 0;
    auto yielded = std::chrono::steady_clock::now();
    for (;;) {
        await_change(epoch_, seen);
        seen = epoch_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed)) return;
        claim(seen, slot);
        // Who else wants this CPU gets it now, when no chunk is held. At the end of the time slice
        // the scheduler would take it in the middle of one, and the caller would wait as long as
        // the other runs.
        if (auto const now = std::chrono::steady_clock::now(); now - yielded > yield_interval) {
            std::this_thread::yield();
            yielded = std::chrono::steady_clock::now();
        }
    }
}

void Threads::claim(std::uint32_t epoch, unsigned slot) noexcept {
    auto ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
        auto const left = static_cast<std::uint32_t>(ticket);
        if (static_cast<std::uint32_t>(ticket >> 32) != epoch || left == 0) return;
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
            continue;
        }
        job_.call(job_.body, chunks_ - left, slot);
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
        // Also picks up what happened while the body ran.
        ticket = ticket_.load(std::memory_order_acquire);
    }
}

}  // namespace tinkxx::engine
