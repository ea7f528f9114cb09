#include "net/dial/dialer.hpp"

#include <tinkxx/error.hpp>

#include "base/common/ascii.hpp"
#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"
#include "net/address/proxy.hpp"
#include "net/dial/connecting_socket.hpp"
#include "net/dial/resolver.hpp"
#include "net/stream/descriptors.hpp"
#include "net/stream/prefixed_stream.hpp"
#include "net/stream/socket_stream.hpp"
#include "net/tls/tls.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tinkxx::net {
namespace {

constexpr std::size_t most_addresses_in_message = 6;
// A name that is unknown is asked for once more: the answer may come from a server that has just
// started, or from another one.
constexpr std::chrono::milliseconds before_asking_again{250};
constexpr std::size_t most_known_hosts = 1024;
constexpr std::array<std::string_view, 2> alpn_any{"h2", "http/1.1"};
constexpr std::array<std::string_view, 1> alpn_http1{"http/1.1"};
constexpr std::array<std::string_view, 1> alpn_http2{"h2"};

std::span<std::string_view const> alpn_for(HttpVersion version) noexcept {
    switch (version) {
        case HttpVersion::http1:
            return alpn_http1;
        case HttpVersion::http2:
            return alpn_http2;
        case HttpVersion::automatic:
            break;
    }
    return alpn_any;
}

/// The families in turn, beginning with the one that the resolver put first (RFC 8305, 4).
std::vector<IpAddress> interleave(std::vector<IpAddress> const& addresses) {
    std::vector<IpAddress> first;
    std::vector<IpAddress> second;
    for (auto const& address : addresses) {
        (address.is_v6() == addresses.front().is_v6() ? first : second).push_back(address);
    }
    std::vector<IpAddress> mixed;
    mixed.reserve(addresses.size());
    for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
        if (i < first.size()) mixed.push_back(first[i]);
        if (i < second.size()) mixed.push_back(second[i]);
    }
    return mixed;
}

}  // namespace

/// What the attempts of one dialer share.
struct DialerShared {
    DialerShared(base::EventLoop& loop_, NetOptions const& options, Resolver::Ask ask);

    /// Made when first needed: a program that speaks plain HTTP needs none. Options that can be
    /// wrong are tried at once, though.
    TlsContext& tls() {
        if (tls_context == nullptr) tls_context = TlsContext::make(tls_options);
        return *tls_context;
    }

    base::EventLoop& loop;
    Resolver resolver;
    TlsOptions tls_options;
    std::shared_ptr<TlsContext> tls_context;
    std::optional<Proxy> proxy;
    Headers proxy_headers;
    NoProxy no_proxy;
    std::map<std::string, std::vector<IpAddress>, std::less<>> addresses;
    /// Hosts that had an address once. That DNS denies them now is an outage, which passes.
    std::set<std::string, std::less<>> known_hosts;
    std::chrono::milliseconds attempt_delay;
};

DialerShared::DialerShared(base::EventLoop& loop_, NetOptions const& options, Resolver::Ask ask)
    : loop{loop_},
      resolver{loop_, std::move(ask)},
      tls_options{options.tls},
      proxy_headers{options.proxy.headers},
      no_proxy{options.proxy.no_proxy},
      attempt_delay{options.connection_attempt_delay} {
    if (tls_options != TlsOptions{}) tls();
    if (!options.proxy.url.empty()) proxy = parse_proxy_url(options.proxy.url).value();
    check_proxy_headers(proxy_headers).value();
    for (auto const& [host, list] : options.resolve) {
        auto name = host;
        std::transform(name.begin(), name.end(), name.begin(),
                       [](char c) { return base::ascii_lower(c); });
        auto& known = addresses[name];
        for (auto const& text : list) {
            auto const address = IpAddress::parse(text);
            if (address) {
                known.push_back(*address);
            } else {
                std::string message{"NetOptions::resolve: '"};
                message += text;
                message += "' for ";
                message += host;
                message += " is not an IPv4 or IPv6 address";
                throw ValidationError{ErrorDetails{.kind = ErrorKind::validation,
                                                   .message = std::move(message),
                                                   .field = "resolve",
                                                   .value = text}};
            }
        }
    }
}

namespace {

class DialImpl final : public Dial,
                       private StreamOwner,
                       private Timer,
                       private Resolver::Asker,
                       private ConnectingSocket::Owner {
public:
    DialImpl(DialerShared& dialer, Origin const& origin, HttpVersion version, DialOwner& owner)
        : dialer_{dialer}, origin_{origin}, version_{version}, owner_{owner} {
        if (dialer.proxy && !dialer.no_proxy.matches(origin.host, origin.port)) {
            proxy_ = &*dialer.proxy;
        }
        look_up();
        starting_ = false;
    }
    DialImpl(DialImpl const&) = delete;
    DialImpl& operator=(DialImpl const&) = delete;
    ~DialImpl() override = default;

private:
    enum class Phase { connecting, proxy_tls, proxy_connect, tls };
    struct Attempt {
        IpAddress address{};
        std::unique_ptr<ConnectingSocket> socket{};
        int error{0};
    };

    [[nodiscard]] std::string const& asked_host() const noexcept {
        return proxy_ != nullptr ? proxy_->host : origin_.host;
    }
    [[nodiscard]] std::uint16_t asked_port() const noexcept {
        return proxy_ != nullptr ? proxy_->port : origin_.port;
    }
    void look_up();
    void on_answer(Resolver::Answer const& answer) override;
    void race(std::vector<IpAddress> const& addresses);
    void start_attempt();
    void on_attempt(std::size_t index, int code) override;
    void fail_attempts();

    void on_readable() override { step(); }
    void on_writable() override { step(); }
    void on_time() override;

    void next_phase();
    void start_tls(Phase phase, TlsPeer const& peer);
    void step();
    void step_tls();
    void step_proxy_connect();
    void tunnel_open(std::string_view rest);
    [[nodiscard]] std::string refusal() const;

    /// The last thing that any path does: the owner may destroy this.
    void succeed();
    void fail(FailureKind kind, std::string message, bool permanent = false);
    void fail_without_descriptor(std::string message) {
        scarce_ = true;
        fail(FailureKind::connect, std::move(message));
    }
    void give_up(DialFailure failure) {
        scarce_ ? owner_.on_no_descriptor(std::move(failure.message))
                : owner_.on_dial_failed(std::move(failure));
    }
    void fail_proxy(std::string_view what, bool permanent = false) {
        fail(FailureKind::proxy, "the proxy " + proxy_->display() + ": " + std::string{what},
             permanent);
    }

    DialerShared& dialer_;
    Origin origin_;
    HttpVersion version_;
    DialOwner& owner_;
    Proxy const* proxy_{nullptr};  // null: direct
    Phase phase_{Phase::connecting};
    bool starting_{true};
    bool asked_again_{false};
    bool scarce_{false};                  // it failed for want of a file descriptor
    std::optional<DialFailure> failure_;  // found while starting

    std::vector<Attempt> attempts_;
    std::size_t started_{0};
    std::size_t failed_{0};

    std::unique_ptr<Stream> stream_;
    TlsStream* tls_{nullptr};  // the stream, while it shakes hands
    std::string request_;      // what is left to send to the proxy
    ProxyReply reply_;
};

void DialImpl::look_up() {
    auto const& host = asked_host();
    if (auto const known = dialer_.addresses.find(host); known != dialer_.addresses.end()) {
        return race(known->second);
    }
    if (auto const literal = IpAddress::parse(host)) return race({*literal});
    dialer_.resolver.look_up(host, *this);
}

void DialImpl::on_answer(Resolver::Answer const& answer) {
    auto& known = dialer_.known_hosts;
    if (answer.addresses.empty()) {
        if (answer.no_descriptor) {
            return fail_without_descriptor("cannot resolve '" + asked_host() +
                                           "': " + answer.error);
        }
        bool const unknown = answer.unknown && !known.contains(asked_host());
        if (unknown && !std::exchange(asked_again_, true)) {
            dialer_.loop.arm(*this, dialer_.loop.now() + before_asking_again, Precision::exact);
            return;
        }
        if (proxy_ != nullptr) {
            return fail_proxy("cannot resolve its name: " + answer.error, unknown);
        }
        return fail(FailureKind::resolve,
                    "cannot resolve '" + origin_.host + "': " + answer.error +
                        "; check the name and this machine's DNS",
                    unknown);
    }
    if (known.size() >= most_known_hosts) known.clear();
    known.insert(asked_host());
    race(answer.addresses);
}

void DialImpl::race(std::vector<IpAddress> const& addresses) {
    if (addresses.empty()) {
        return fail(FailureKind::resolve,
                    "NetOptions::resolve has no address for '" + asked_host() + "'", true);
    }
    for (auto const& address : interleave(addresses)) attempts_.push_back({.address = address});
    start_attempt();
}

void DialImpl::start_attempt() {
    auto const index = started_++;
    auto& attempt = attempts_[index];
    ConnectingSocket::Owner& owner = *this;
    attempt.socket = std::make_unique<ConnectingSocket>(
        dialer_.loop, SocketAddress{attempt.address, asked_port()}, owner, index);
    if (started_ < attempts_.size()) {
        dialer_.loop.arm(*this, dialer_.loop.now() + dialer_.attempt_delay, Precision::exact);
    }
}

void DialImpl::on_attempt(std::size_t index, int code) {
    auto& attempt = attempts_[index];
    if (code != 0) {
        attempt.socket.reset();
        attempt.error = code;
        ++failed_;
        if (started_ < attempts_.size()) return start_attempt();
        if (failed_ == attempts_.size()) fail_attempts();
        return;
    }
    dialer_.loop.disarm(*this);
    stream_ = make_socket_stream(dialer_.loop, attempt.socket->release(),
                                 host_port(attempt.address.text(), asked_port()));
    attempts_.clear();
    next_phase();
}

void DialImpl::fail_attempts() {
    std::string text;
    bool const scarce = std::ranges::any_of(
        attempts_, [](Attempt const& each) { return is_descriptor_shortage(each.error); });
    for (std::size_t i = 0; i < attempts_.size(); ++i) {
        if (i == most_addresses_in_message) {
            text += "; and " + std::to_string(attempts_.size() - i) + " more";
            break;
        }
        if (i != 0) text += "; ";
        auto const address = attempts_[i].address.text();
        if (address != origin_.host || proxy_ != nullptr) text += address + ": ";
        text += system_text(attempts_[i].error);
    }
    if (scarce) {
        return fail_without_descriptor("cannot connect to " +
                                       host_port(asked_host(), asked_port()) + ": " + text);
    }
    if (proxy_ != nullptr) return fail_proxy("cannot connect to it: " + text);
    fail(FailureKind::connect,
         "cannot connect to " + host_port(origin_.host, origin_.port) + ": " + text);
}

void DialImpl::on_time() {
    if (failure_) return give_up(*std::exchange(failure_, std::nullopt));
    if (attempts_.empty() && phase_ == Phase::connecting) return look_up();
    if (phase_ == Phase::connecting && started_ < attempts_.size()) start_attempt();
}

void DialImpl::next_phase() {
    if (phase_ == Phase::connecting && proxy_ != nullptr && proxy_->tls) {
        return start_tls(Phase::proxy_tls,
                         {.host = proxy_->host, .port = proxy_->port, .alpn = alpn_http1});
    }
    if (phase_ <= Phase::proxy_tls && proxy_ != nullptr) {
        phase_ = Phase::proxy_connect;
        request_ = connect_head(*proxy_, dialer_.proxy_headers, origin_.host, origin_.port);
        stream_->set_owner(this);
        return step_proxy_connect();
    }
    if (phase_ <= Phase::proxy_connect && origin_.tls) {
        return start_tls(Phase::tls, {.host = origin_.host,
                                      .port = origin_.port,
                                      .via = proxy_ != nullptr ? proxy_->display() : "",
                                      .alpn = alpn_for(version_)});
    }
    succeed();
}

void DialImpl::start_tls(Phase phase, TlsPeer const& peer) {
    phase_ = phase;
    auto stream = dialer_.tls().wrap(dialer_.loop, std::move(stream_), peer);
    tls_ = stream.get();
    stream_ = std::move(stream);
    stream_->set_owner(this);
    step_tls();
}

void DialImpl::step() {
    switch (phase_) {
        case Phase::connecting:
            return;
        case Phase::proxy_connect:
            return step_proxy_connect();
        case Phase::proxy_tls:
        case Phase::tls:
            return step_tls();
    }
}

void DialImpl::step_tls() {
    switch (tls_->handshake()) {
        case TlsStream::Handshake::pending:
            return;
        case TlsStream::Handshake::failed: {
            auto const why = stream_->error_text();
            bool const permanent = tls_->permanent();
            if (phase_ == Phase::proxy_tls) {
                return fail_proxy("TLS with it failed: " + why, permanent);
            }
            auto const way = proxy_ != nullptr ? " through the proxy " + proxy_->display()
                                               : " (" + std::string{stream_->peer()} + ')';
            return fail(
                FailureKind::tls,
                "TLS with " + host_port(origin_.host, origin_.port) + way + " failed: " + why,
                permanent);
        }
        case TlsStream::Handshake::done:
            break;
    }
    if (phase_ == Phase::tls && version_ == HttpVersion::http2 && stream_->alpn() != "h2") {
        return fail(FailureKind::tls,
                    host_port(origin_.host, origin_.port) +
                        " did not agree to HTTP/2 (by ALPN); NetOptions::http_version = "
                        "HttpVersion::automatic would speak HTTP/1.1 with it",
                    true);
    }
    next_phase();
}

void DialImpl::step_proxy_connect() {
    while (!request_.empty()) {
        iovec const piece{.iov_base = request_.data(), .iov_len = request_.size()};
        auto const result = stream_->write({&piece, 1});
        if (result.status == IoResult::Status::would_block) return stream_->want_write();
        if (result.status != IoResult::Status::ok) return fail_proxy(stream_->error_text());
        request_.erase(0, result.bytes);
    }
    std::array<char, 2048> buffer;
    for (;;) {
        auto const result = stream_->read(buffer);
        switch (result.status) {
            case IoResult::Status::would_block:
                return stream_->want_read();
            case IoResult::Status::closed:
                return fail_proxy("it closed the connection without an answer to CONNECT");
            case IoResult::Status::error:
                return fail_proxy(stream_->error_text());
            case IoResult::Status::ok:
                break;
        }
        std::size_t used = 0;
        switch (reply_.feed({buffer.data(), result.bytes}, used)) {
            case ProxyReply::Step::more:
                continue;
            case ProxyReply::Step::error:
                return fail_proxy(reply_.error_text());
            case ProxyReply::Step::done:
                return tunnel_open({buffer.data() + used, result.bytes - used});
        }
    }
}

void DialImpl::tunnel_open(std::string_view rest) {
    if (reply_.status() >= 300) {
        // It does not take our word for who we are; it will not the next time either.
        auto const status = reply_.status();
        return fail_proxy(refusal(), status == 401 || status == 403 || status == 407);
    }
    if (!rest.empty()) {
        // A server that speaks first, as in HTTP/2, may be heard with the proxy's answer.
        stream_ = make_prefixed_stream(dialer_.loop, std::move(stream_), std::string{rest});
    }
    next_phase();
}

std::string DialImpl::refusal() const {
    auto text = "it refused CONNECT to " + host_port(origin_.host, origin_.port) + ": " +
                std::to_string(reply_.status());
    // The reason is the proxy's own wording, which must not carry a credential into a log.
    auto const& reason = reply_.reason();
    auto const holds = [&reason](std::string_view secret) {
        return !secret.empty() && reason.find(secret) != std::string::npos;
    };
    auto const& headers = dialer_.proxy_headers;
    bool const secret = holds(proxy_->password) || holds(proxy_->authorization()) ||
                        std::any_of(headers.begin(), headers.end(),
                                    [&](Header const& line) { return holds(line.value); });
    if (!reason.empty() && !secret) text += ' ' + reason;
    if (reply_.status() == 407) {
        text += "; give user and password in NetOptions::proxy.url, or proxy.headers";
    }
    return text;
}

void DialImpl::succeed() {
    tls_ = nullptr;
    stream_->set_owner(nullptr);
    owner_.on_connected(std::move(stream_));
}

void DialImpl::fail(FailureKind kind, std::string message, bool permanent) {
    dialer_.loop.disarm(*this);
    attempts_.clear();
    tls_ = nullptr;
    stream_.reset();
    DialFailure failure{.kind = kind, .message = std::move(message), .permanent = permanent};
    if (starting_) {
        failure_ = std::move(failure);
        dialer_.loop.arm(*this, dialer_.loop.now(), Precision::exact);
    } else {
        give_up(std::move(failure));
    }
}

}  // namespace

struct Dialer::Impl : DialerShared {
    using DialerShared::DialerShared;
};

Dialer::Dialer(base::EventLoop& loop, NetOptions const& options, Resolver::Ask ask)
    : impl_{std::make_unique<Impl>(loop, options, std::move(ask))} {}

Dialer::~Dialer() = default;

std::unique_ptr<Dial> Dialer::dial(Origin const& origin, HttpVersion version, DialOwner& owner) {
    TINKXX_ASSERT_LOOP(impl_->loop);
    return std::make_unique<DialImpl>(*impl_, origin, version, owner);
}

}  // namespace tinkxx::net
