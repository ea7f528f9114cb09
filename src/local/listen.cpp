// The public face of the listener: joins it to a server.
#include <tinkxx/local/listen.hpp>

#include "base/loop/event_loop.hpp"
#include "base/runtime/runtime_core.hpp"
#include "local/api/access.hpp"
#include "local/core/core.hpp"
#include "local/core/routes.hpp"
#include "local/listen/listener.hpp"
#include "local/wait_on_loop.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace tinkxx::local {
namespace {

using tinkxx::detail::RuntimeCore;

std::string line_of(RequestRecord const& record) {
    using std::chrono::duration_cast;
    using std::chrono::milliseconds;
    auto line = (record.method.empty() ? "?" : record.method) + " " +
                (record.path.empty() ? "?" : record.path) + " " + std::to_string(record.status) +
                " in " + std::to_string(record.request_bytes) + " out " +
                std::to_string(record.answer_bytes) + " bytes, " +
                std::to_string(duration_cast<milliseconds>(record.time).count()) + " ms";
    if (!record.note.empty()) line += "; " + record.note;
    return line;
}

std::string url_of(std::string host, std::uint16_t port) {
    // Where it listens on all addresses, this machine still has to name one.
    if (host == "0.0.0.0") host = "127.0.0.1";
    if (host == "::") host = "::1";
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    return "http://" + host + ":" + std::to_string(port);
}

/// Says before the body is read what the core would say after it.
std::optional<Refusal> refusal_of(AccessRules const& rules, ServerRequest const& head) {
    auto const path = std::string_view{head.target}.substr(0, head.target.find('?'));
    auto const match = match_route(head.method, path);
    auto why = forbidden(rules, head, match.route == nullptr || !match.route->open);
    if (!why) return std::nullopt;
    return Refusal{.status = why->status, .detail = std::move(why->detail)};
}

}  // namespace

/// The handler and the listener belong to the loop; the rest does not change. Ends with the runtime
/// if that ends first.
struct Listening::Shared final : tinkxx::detail::Resident {
    Shared(std::shared_ptr<RuntimeCore> on, std::shared_ptr<Handler> to)
        : runtime{std::move(on)}, handler{std::move(to)} {}

    void open(BoundSockets sockets, ListenerOptions options) {
        listener.emplace(*runtime->event_loop(), *handler, std::move(sockets), std::move(options));
        runtime->add(*this);
    }
    void on_shutdown() noexcept override { listener.reset(); }

    std::shared_ptr<RuntimeCore> runtime;
    std::string url{};
    std::uint16_t port{0};
    bool loopback_only{true};
    std::shared_ptr<Handler> handler;
    std::optional<Listener> listener{};
};

Listening::Listening(std::shared_ptr<Shared> shared) noexcept : shared_{std::move(shared)} {}

std::uint16_t Listening::port() const noexcept { return shared_->port; }
std::string const& Listening::url() const noexcept { return shared_->url; }
bool Listening::loopback_only() const noexcept { return shared_->loopback_only; }

Listening listen(Server const& server) { return listen(server, ListenOptions()); }

Listening listen(Server const& server, ListenOptions const& options) {
    auto const& on = server.runtime().core();
    auto const core = std::dynamic_pointer_cast<Core>(server.handler());
    if (on->event_loop() == nullptr || core == nullptr) {
        Error{{.kind = ErrorKind::usage,
               .message = "listen: sockets need the library's own loop, and this server's runtime "
                          "was given another scheduler"}}
            .raise();
    }
    auto sockets = BoundSockets::bind(options.host, options.port);
    if (!sockets) sockets.error().raise();
    // Its end belongs to the loop, wherever the last handle goes.
    std::shared_ptr<Listening::Shared> shared{
        std::make_unique<Listening::Shared>(on, core).release(), [](Listening::Shared* last) {
            auto const runtime = std::move(last->runtime);
            runtime->scheduler().post([owned = std::unique_ptr<Listening::Shared>{last}] {});
        }};
    shared->port = sockets->port();
    shared->url = url_of(options.host, sockets->port());
    shared->loopback_only = sockets->loopback_only();

    auto const& rules = core->options();
    ListenerOptions listener{
        .host = options.host,
        .port = options.port,
        .admit = [access = AccessRules{.api_key = rules.api_key, .hosts = rules.hosts}](
                     ServerRequest const& head) { return refusal_of(access, head); },
        .limits = {.max_header_bytes = options.max_header_bytes,
                   .max_request_bytes = rules.limits.request_bytes,
                   .max_connections = options.max_connections,
                   .header_timeout = options.header_timeout,
                   .idle_timeout = options.idle_timeout},
    };
    auto const say = [runtime = std::weak_ptr<RuntimeCore>{on}, weak = std::weak_ptr<Core>{core},
                      own = rules.log != nullptr](LogLevel level, std::string line) {
        auto const alive = runtime.lock();
        if (!alive) return;
        if (!own) return alive->log(level, std::move(line));
        auto const still = weak.lock();
        if (!still || !still->options().log) return;  // it has stopped
        alive->run_callback(
            [sink = still->options().log, level, text = std::move(line)] { sink(level, text); });
    };
    listener.on_trouble = [say](std::string line) { say(LogLevel::warning, std::move(line)); };
    if (options.log_requests) {
        listener.on_request = [say](RequestRecord const& one) {
            say(LogLevel::info, line_of(one));
        };
    }
    on->scheduler().post([weak = std::weak_ptr<Listening::Shared>{shared},
                          bound = std::make_shared<BoundSockets>(std::move(*sockets)),
                          listener = std::move(listener)]() mutable {
        if (auto const alive = weak.lock()) alive->open(std::move(*bound), std::move(listener));
    });
    return Listening{std::move(shared)};
}

void Listening::stop(std::chrono::milliseconds limit) const {
    wait_on_loop(*shared_->runtime, "stop: it", limit, [shared = shared_, limit](Task done) {
        auto const on = shared->runtime;
        // Where log lines are written, behind the last of them.
        auto finish = [on, done = std::move(done)]() mutable { on->run_callback(std::move(done)); };
        if (!shared->listener) return finish();
        shared->listener->stop(on->scheduler().now() + limit, std::move(finish));
    });
}

}  // namespace tinkxx::local
