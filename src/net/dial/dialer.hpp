#pragma once

#include "net/address/url.hpp"
#include "net/dial/resolver.hpp"
#include "net/stream/stream.hpp"

#include <tinkxx/net_transport.hpp>

#include <memory>
#include <string>
#include <utility>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// Why an attempt to connect failed.
struct DialFailure {
    /// `resolve`, `connect` or `tls`, or `proxy` for whatever goes wrong on the way to a proxy or
    /// is refused by it.
    FailureKind kind{FailureKind::connect};
    /// Holds no credential.
    std::string message{};
    /// As in `Failure`.
    bool permanent{false};
};

/// Told how an attempt to connect ended: exactly one of the two, never from inside `dial`.
/// The attempt may be destroyed inside either.
class DialOwner {
public:
    virtual void on_connected(std::unique_ptr<Stream> stream) = 0;
    virtual void on_dial_failed(DialFailure failure) = 0;
    /// In place of the above, if it failed for want of a file descriptor: the peer is not at fault.
    virtual void on_no_descriptor(std::string message) {
        on_dial_failed({.kind = FailureKind::connect, .message = std::move(message)});
    }

protected:
    ~DialOwner() = default;
};

/// One attempt under way. Destroying it abandons the attempt without a call to its owner.
class Dial {
public:
    virtual ~Dial() = default;
};

/// Opens connections. An interface, so that tests can put their own streams behind a transport.
class Connector {
public:
    virtual ~Connector() = default;
    /// ALPN offers h2 and http/1.1 for `automatic`, else the one that `version` names.
    [[nodiscard]] virtual std::unique_ptr<Dial> dial(Origin const& origin, HttpVersion version,
                                                     DialOwner& owner) = 0;
};

/// The connector over real sockets: looks the name up off the loop, races IPv6 and IPv4 addresses,
/// goes through a proxy, and does the TLS handshake with verification, SNI, ALPN and resumption. It
/// has no time limit of its own: the caller abandons an attempt that takes too long.
///
/// Loop thread only, but for its creation. Outlives its attempts; the streams may outlive it.
class Dialer final : public Connector {
public:
    /// Throws `ValidationError` for unreadable files, bad proxy options and bad addresses.
    /// `ask` stands in for the system's look-up of names, in tests.
    Dialer(base::EventLoop& loop, NetOptions const& options, Resolver::Ask ask = {});
    ~Dialer() override;

    std::unique_ptr<Dial> dial(Origin const& origin, HttpVersion version,
                               DialOwner& owner) override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::net
