#include "base/common/fork.hpp"

#include "base/common/forever.hpp"

#include <tinkxx/detail/process.hpp>
#include <tinkxx/error.hpp>

#include <pthread.h>

#include <array>
#include <atomic>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

std::atomic<std::uint32_t> fork_count{0};

std::array<std::atomic<std::mutex*>, base::process_locks> locks{};
// What the thread that forks has locked. It has the first of them until it has let go of all
// others, so that a second one that forks does not get in between.
std::array<std::mutex*, base::process_locks> locked{};

void before_fork() {
    for (std::size_t i = 0; i < locks.size(); ++i) {
        auto* const mutex = locks[i].load();
        if (mutex != nullptr) mutex->lock();
        locked[i] = mutex;
    }
}

void after_fork() {
    for (std::size_t i = locked.size(); i > 0; --i) {
        if (auto* const mutex = std::exchange(locked[i - 1], nullptr)) mutex->unlock();
    }
}

void in_child() {
    fork_count.fetch_add(1, std::memory_order_relaxed);
    after_fork();
}

// With the program, since a fork before the first runtime changes nothing.
[[maybe_unused]] int const registered = ::pthread_atfork(before_fork, after_fork, in_child);

/// Never destroyed, and reachable, so that no leak is seen in it.
struct Stranded {
    std::mutex mutex{};
    std::vector<Task> tasks{};
    std::vector<std::shared_ptr<void>> things{};
};

Stranded& stranded() {
    static base::Forever<Stranded> only;
    return only.get();
}

}  // namespace

namespace base {

void hold_while_forking(ProcessLock which, std::mutex& mutex) noexcept {
    locks[static_cast<std::size_t>(which)].store(&mutex);
}

void strand(Task task) noexcept {
    auto& all = stranded();
    std::scoped_lock const lock{all.mutex};
    all.tasks.push_back(std::move(task));
}

void strand(std::shared_ptr<void> thing) noexcept {
    auto& all = stranded();
    std::scoped_lock const lock{all.mutex};
    all.things.push_back(std::move(thing));
}

}  // namespace base

namespace detail {

std::uint32_t forks() noexcept { return fork_count.load(std::memory_order_relaxed); }

void refuse_inherited() {
    Error{{.kind = ErrorKind::usage,
           .message = "this was made before the process forked, and its threads are not in the "
                      "child; make a new client, or a new Runtime, in the child",
           .category = ErrorCategory::user}}
        .raise();
}

}  // namespace detail
}  // namespace tinkxx
