#include "net/dial/resolver.hpp"

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"
#include "net/stream/descriptors.hpp"
#include "net/stream/socket_stream.hpp"

#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tinkxx::net {
namespace {

/// Names that nobody will ever have (RFC 6761, 6.4): the answer is known without a network.
bool never_exists(std::string_view host) noexcept {
    if (host.ends_with('.')) host.remove_suffix(1);
    return host == "invalid" || host.ends_with(".invalid");
}

bool says_unknown(int code) noexcept {
#ifdef EAI_NODATA
    if (code == EAI_NODATA) return true;
#endif
    return code == EAI_NONAME;
}

Resolver::Answer look_up_now(std::string const& host) {
    if (never_exists(host)) return {.error = ::gai_strerror(EAI_NONAME), .unknown = true};
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    auto const code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    auto const system_code = errno;
    Resolver::Answer answer;
    if (code != 0) {
        answer.error = code == EAI_SYSTEM ? system_text(system_code) : ::gai_strerror(code);
        answer.unknown = says_unknown(code);
        // It opens files and sockets, and does not always say that it could not.
        answer.no_descriptor = descriptors_are_short();
        return answer;
    }
    for (auto const* entry = list; entry != nullptr; entry = entry->ai_next) {
        auto const address = IpAddress::of(*entry->ai_addr);
        if (!address) continue;
        auto& found = answer.addresses;
        if (std::ranges::find(found, *address) == found.end()) found.push_back(*address);
    }
    ::freeaddrinfo(list);
    if (answer.addresses.empty()) {
        answer.error = "it has no address";
        answer.unknown = true;
    }
    return answer;
}

/// Keeps the program's signal handlers off the threads that are started meanwhile.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(SignalsBlocked const&) = delete;
    SignalsBlocked& operator=(SignalsBlocked const&) = delete;
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

struct Resolver::Impl {
    using Askers = boost::intrusive::list<Asker, boost::intrusive::constant_time_size<false>>;

    Impl(base::EventLoop& loop_, Ask ask_)
        : ask{ask_ ? std::move(ask_) : Ask{look_up_now}}, loop{&loop_} {}

    /// On any thread. The mutex keeps the loop alive while it is posted to.
    static void deliver(std::shared_ptr<Impl> const& self, std::string host, Answer answer) {
        std::lock_guard const lock{self->mutex};
        if (self->loop == nullptr) return;
        self->loop->post(
            [weak = std::weak_ptr<Impl>{self}, host = std::move(host), answer = std::move(answer)] {
                auto const alive = weak.lock();
                if (alive != nullptr && !alive->closed) alive->finish(host, answer);
            });
    }

    void finish(std::string const& host, Answer const& answer) {
        auto const found = pending.find(host);
        if (found == pending.end()) return;
        Askers askers;
        askers.swap(found->second);
        pending.erase(found);
        while (!askers.empty()) {
            auto& asker = askers.front();
            askers.pop_front();
            asker.on_answer(answer);
        }
    }

    Ask const ask;
    std::mutex mutex;
    base::EventLoop* loop;  // guarded by the mutex; null once the resolver is gone
    // Loop thread only:
    std::map<std::string, Askers> pending;
    bool closed{false};
};

Resolver::Resolver(base::EventLoop& loop, Ask ask)
    : impl_{std::make_shared<Impl>(loop, std::move(ask))} {}

Resolver::~Resolver() {
    impl_->closed = true;
    impl_->pending.clear();
    std::lock_guard const lock{impl_->mutex};
    impl_->loop = nullptr;
}

void Resolver::look_up(std::string const& host, Asker& asker) {
    TINKXX_ASSERT_LOOP(*impl_->loop);
    auto const [entry, fresh] = impl_->pending.try_emplace(host);
    entry->second.push_back(asker);
    if (!fresh) return;
    try {
        SignalsBlocked const blocked;
        std::thread{[impl = impl_, host] { Impl::deliver(impl, host, impl->ask(host)); }}.detach();
    } catch (std::system_error const& error) {
        Impl::deliver(impl_, host, Answer{.error = system_text(error.code().value())});
    }
}

}  // namespace tinkxx::net
