#include <tinkxx/local/server.hpp>

#include "base/runtime/loop_owned.hpp"
#include "base/runtime/runtime_core.hpp"
#include "local/core/core.hpp"
#include "local/in_process.hpp"
#include "local/wait_on_loop.hpp"

#include <utility>

namespace tinkxx::local {

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
    shared_->core = base::loop_owned<Core>(on, std::move(*made));
    on->scheduler().post([core = std::weak_ptr<Core>{shared_->core}] {
        if (auto const still = core.lock()) still->start();
    });
}

std::shared_ptr<Transport> Server::transport() const {
    auto const on = shared_->runtime;
    return base::loop_owned_resident<Transport>(
        on, std::make_unique<InProcessTransport>(on->scheduler(), shared_->core));
}

std::filesystem::path const& Server::home() const noexcept { return shared_->home; }

std::shared_ptr<Handler> Server::handler() const { return shared_->core; }

void Server::stop(std::chrono::nanoseconds limit) const {
    auto const& on = shared_->runtime;
    on->refuse_if_inherited();
    wait_on_loop(*on, "local server: stop", limit, [on, core = shared_->core, limit](Task done) {
        // Where the lines of a listener are written, behind the last of them.
        auto const told = std::make_shared<Task>(std::move(done));
        core->stop(limit, [weak = std::weak_ptr{on}, told] {
            auto const alive = weak.lock();
            if (!alive) return (*told)();
            alive->run_callback([told] { (*told)(); },
                                [told](Error const& /*nobody runs it*/) { (*told)(); });
        });
    });
}

}  // namespace tinkxx::local
