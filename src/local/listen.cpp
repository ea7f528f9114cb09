// The public face of the listener: joins it to a server.
#include <tinkxx/local/listen.hpp>

#include "base/event_loop.hpp"
#include "base/runtime_core.hpp"
#include "local/api/access.hpp"
#include "local/core/core.hpp"
#include "local/core/routes.hpp"
#include "local/listen/listener.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace tinkxx::local {
namespace {

using tinkxx::detail::Resident;
using tinkxx::detail::RuntimeCore;

/// What lives on the loop. Ends with the runtime if that ends first.
class Front final : public Resident {
public:
    explicit Front(std::shared_ptr<Handler> handler) : handler_{std::move(handler)} {}
    void open(RuntimeCore& core, BoundSockets sockets, ListenerOptions options) {
        listener_.emplace(*core.event_loop(), *handler_, std::move(sockets), std::move(options));
        core.add(*this);
    }
    void on_shutdown() noexcept override { listener_.reset(); }
    [[nodiscard]] std::optional<Listener>& listener() noexcept { return listener_; }

private:
    std::shared_ptr<Handler> handler_;
    std::optional<Listener> listener_{};
};

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

struct Listening::Shared {
    std::shared_ptr<RuntimeCore> runtime{};
    std::shared_ptr<Front> front{};
    std::string url{};
    std::uint16_t port{0};
    bool loopback_only{true};
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
    auto shared = std::make_shared<Listening::Shared>();
    shared->runtime = on;
    shared->port = sockets->port();
    shared->url = url_of(options.host, sockets->port());
    shared->loopback_only = sockets->loopback_only();
    // Its end belongs to the loop, wherever the last handle goes.
    shared->front = std::shared_ptr<Front>{
        new Front{core},
        [on](Front* last) { on->scheduler().post([owned = std::unique_ptr<Front>{last}] {}); }};

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
    auto const say = [runtime = std::weak_ptr<RuntimeCore>{on}, sink = rules.log](
                         LogLevel level, std::string line) {
        auto const alive = runtime.lock();
        if (!alive) return;
        if (!sink) return alive->log(level, std::move(line));
        alive->run_callback([sink, level, text = std::move(line)] { sink(level, text); });
    };
    listener.on_trouble = [say](std::string line) { say(LogLevel::warning, std::move(line)); };
    if (options.log_requests) {
        listener.on_request = [say](RequestRecord const& one) {
            say(LogLevel::info, line_of(one));
        };
    }
    on->scheduler().post([on, front = std::weak_ptr<Front>{shared->front},
                          bound = std::make_shared<BoundSockets>(std::move(*sockets)),
                          listener = std::move(listener)]() mutable {
        if (auto const alive = front.lock())
            alive->open(*on, std::move(*bound), std::move(listener));
    });
    return Listening{std::move(shared)};
}

void Listening::stop(std::chrono::milliseconds limit) const {
    struct Done {
        std::mutex mutex{};
        std::condition_variable told{};
        bool over{false};
    };
    auto const& on = shared_->runtime;
    if (!on->zero_thread() && on->on_sdk_thread()) {
        Error{{.kind = ErrorKind::usage,
               .message = "stop: it waits, and must not be called on a thread of the runtime"}}
            .raise();
    }
    auto const done = std::make_shared<Done>();
    // Where log lines are written, behind the last of them.
    auto const finish = [done, on] {
        on->run_callback([done] {
            std::lock_guard const lock{done->mutex};
            done->over = true;
            done->told.notify_all();
        });
    };
    on->scheduler().post([on, front = shared_->front, limit, finish] {
        if (!front->listener()) return finish();
        front->listener()->stop(on->scheduler().now() + limit, finish);
    });
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
