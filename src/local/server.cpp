#include <tinkxx/local/server.hpp>

#include "base/runtime_core.hpp"
#include "local/core/core.hpp"
#include "local/in_process.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace tinkxx::local {

namespace {

/// The transport within the process, which fails its calls when the loop ends.
class LocalTransport final : public Transport, public tinkxx::detail::Resident {
public:
    LocalTransport(Scheduler& scheduler, std::shared_ptr<Handler> handler)
        : inner_{scheduler, std::move(handler)} {}

    Call start(Request request, ReplySink& sink) override {
        return inner_.start(std::move(request), sink);
    }
    void cancel(Call call) noexcept override { inner_.cancel(call); }
    void pause(Call call, bool on) noexcept override { inner_.pause(call, on); }
    void drain(TimePoint deadline) noexcept override { inner_.drain(deadline); }
    void on_shutdown() noexcept override { inner_.close(); }

private:
    InProcessTransport inner_;
};

}  // namespace

struct Server::Shared {
    std::shared_ptr<tinkxx::detail::RuntimeCore> runtime{};
    std::shared_ptr<Core> core{};
    std::filesystem::path home{};
};

Server::Server(ServerOptions options) : Server{std::move(options), Runtime{}} {}

Server::Server(ServerOptions options, Runtime const& runtime)
    : runtime_{runtime}, shared_{std::make_shared<Shared>()} {
    auto const& on = runtime.core();
    if (options.compute == Compute::loop && !on->zero_thread()) {
        Error{ErrorDetails{.kind = ErrorKind::validation,
                           .message =
                               "local server: Compute::loop needs a runtime without threads, "
                               "or its thread would compute instead of answering",
                           .field = "compute"}}
            .raise();
    }
    auto made = Core::create(std::move(options), on->scheduler());
    if (!made) made.error().raise();
    shared_->runtime = on;
    shared_->home = (*made)->home();
    // The deleter posts: the last handle may go anywhere, and all of the core belongs to the loop.
    // A loop that is gone destroys the task, and so the core.
    shared_->core = std::shared_ptr<Core>{
        made->release(), [on = on](Core* last) mutable {
            auto const core = std::move(on);  // not held for those who hold the server weakly
            core->scheduler().post([owned = std::unique_ptr<Core>{last}] {});
        }};
    on->scheduler().post([core = std::weak_ptr<Core>{shared_->core}] {
        if (auto const still = core.lock()) still->start();
    });
}

std::shared_ptr<Transport> Server::transport() const {
    auto const on = shared_->runtime;
    auto* const raw = new LocalTransport{on->scheduler(), shared_->core};
    std::shared_ptr<Transport> shared{
        raw, [on = on](LocalTransport* last) mutable {
            auto const core = std::move(on);
            core->scheduler().post([owned = std::unique_ptr<LocalTransport>{last}] {});
        }};
    on->scheduler().post([on, raw, alive = std::weak_ptr<Transport>{shared}] {
        if (alive.lock()) on->add(*raw);
    });
    return shared;
}

std::filesystem::path const& Server::home() const noexcept { return shared_->home; }

std::shared_ptr<Handler> Server::handler() const { return shared_->core; }

void Server::stop(std::chrono::nanoseconds limit) const {
    struct Done {
        std::mutex mutex{};
        std::condition_variable told{};
        bool over{false};
    };
    auto const done = std::make_shared<Done>();
    auto const finish = [done] {
        std::lock_guard const lock{done->mutex};
        done->over = true;
        done->told.notify_all();
    };
    auto const& on = shared_->runtime;
    on->refuse_if_inherited();
    if (!on->zero_thread() && on->on_sdk_thread()) {
        Error{ErrorDetails{.kind = ErrorKind::usage,
                           .message =
                               "local server: stop waits, and must not be called on a thread "
                               "of the runtime"}}
            .raise();
    }
    on->scheduler().post([core = shared_->core, limit, finish] { core->stop(limit, finish); });
    std::unique_lock lock{done->mutex};
    if (on->zero_thread()) {
        while (!done->over && !on->shut_down()) {
            lock.unlock();
            (void)on->poll(std::chrono::milliseconds{100});
            lock.lock();
        }
        return;
    }
    // A second more than it may take, should the loop end meanwhile.
    done->told.wait_for(lock, limit + std::chrono::seconds{1}, [&] { return done->over; });
}

}  // namespace tinkxx::local
