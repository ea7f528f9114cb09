#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tinkxx::engine {

/// A few threads that share the chunks of one piece of work.
///
/// Chunks are *claimed*, by the caller too: it never waits for a worker that has not begun, so a
/// busy machine costs little more than having no workers. Results must not depend on who runs
/// which chunk; nothing here says which. No call allocates.
class Threads {
public:
    /// `count` threads in all, the caller included; 0 means one for each CPU of the machine. Fewer
    /// if the system gives no more. The others give way to the rest of the process by `niceness`.
    explicit Threads(unsigned count, int niceness = 0);
    /// Ends the workers. No call of `run` may be under way.
    ~Threads();
    Threads(Threads const&) = delete;
    Threads& operator=(Threads const&) = delete;

    /// The caller and the workers.
    [[nodiscard]] unsigned count() const noexcept {
        return static_cast<unsigned>(workers_.size()) + 1;
    }

    /// Calls `body(chunk, slot)` once for each `chunk` in [0, `chunks`) and returns when all are
    /// done. `slot` < `count()` is the thread's own number (the caller is 0), e.g. for scratch
    /// memory: no two calls with the same slot overlap.
    ///
    /// Any thread. Called from inside a body, or while another thread runs, it does all chunks
    /// itself with the slot of the body it is inside of; a caller that is in none gets slot 0, so
    /// scratch memory by slot is for programs that call `run` from one thread. `body` must not
    /// throw.
    template <class Body>
    void run(std::size_t chunks, Body&& body) {
        using Plain = std::remove_reference_t<Body>;
        run_erased(chunks, {[](void* b, std::size_t chunk, unsigned slot) noexcept {
                                (*static_cast<Plain*>(b))(chunk, slot);
                            },
                            const_cast<void*>(static_cast<void const*>(&body))});
    }

private:
    struct Job {
        void (*call)(void*, std::size_t, unsigned) noexcept {nullptr};
        void* body{nullptr};
    };

    void run_erased(std::size_t chunks, Job job);
    void work(unsigned slot);
    /// Runs chunks of the round `epoch` until none is left.
    void claim(std::uint32_t epoch, unsigned slot) noexcept;

    std::mutex running_;
    // The round in the upper half, the chunks nobody has claimed in the lower.
    alignas(64) std::atomic<std::uint64_t> ticket_{0};
    alignas(64) std::atomic<std::uint32_t> unfinished_{0};
    alignas(64) std::atomic<std::uint32_t> epoch_{0};
    std::atomic<bool> stop_{false};
    // Written before a round opens; read only by who has claimed one of its chunks.
    Job job_{};
    std::size_t chunks_{0};
    std::vector<std::thread> workers_;
};

}  // namespace tinkxx::engine
