#include "local/wait_on_loop.hpp"

#include <tinkxx/error.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tinkxx::local {

void wait_on_loop(tinkxx::detail::RuntimeCore& runtime, std::string_view who,
                  std::chrono::nanoseconds limit,
                  tinkxx::detail::UniqueFunction<void(Task done)> begin) {
    struct Done {
        std::mutex mutex{};
        std::condition_variable told{};
        bool over{false};
    };
    if (!runtime.zero_thread() && runtime.on_sdk_thread()) {
        Error{{.kind = ErrorKind::usage,
               .message =
                   std::string{who} + " waits, and must not be called on a thread of the runtime"}}
            .raise();
    }
    auto const done = std::make_shared<Done>();
    runtime.scheduler().post([done, begin = std::move(begin)]() mutable {
        begin([done] {
            std::lock_guard const lock{done->mutex};
            done->over = true;
            done->told.notify_all();
        });
    });
    std::unique_lock lock{done->mutex};
    if (runtime.zero_thread()) {
        while (!done->over && !runtime.shut_down()) {
            lock.unlock();
            (void)runtime.poll(std::chrono::milliseconds{100});
            lock.lock();
        }
        return;
    }
    // A second more than it may take, should the loop end meanwhile.
    done->told.wait_for(lock, limit + std::chrono::seconds{1}, [&] { return done->over; });
}

}  // namespace tinkxx::local
