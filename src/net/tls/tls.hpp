#pragma once

#include "net/stream/stream.hpp"

#include <tinkxx/net_transport.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// Whom a TLS connection is meant for.
struct TlsPeer {
    /// What its certificate must name: a host name or an address.
    std::string host{};
    std::uint16_t port{0};
    /// The proxy on the way, if any: sessions are resumed only along the same way.
    std::string via{};
    /// What ALPN offers, the most wanted first.
    std::span<std::string_view const> alpn{};
};

/// TLS over another stream, which it owns. First `handshake` until that is no longer `pending`;
/// meanwhile the owner is told when to call it again, by either of its functions.
class TlsStream : public Stream {
public:
    enum class Handshake { done, pending, failed };
    /// After `failed`, `error_text` says what is wrong and the way out.
    virtual Handshake handshake() = 0;
    /// After `failed`: whether another handshake would end the same way.
    [[nodiscard]] virtual bool permanent() const noexcept = 0;
};

/// Trust, keys and resumable sessions that TLS connections share. Loop thread only, but for
/// its creation. Lives as long as its streams at least.
class TlsContext {
public:
    /// Throws `ValidationError` for files that cannot be used.
    [[nodiscard]] static std::shared_ptr<TlsContext> make(TlsOptions const& options);
    virtual ~TlsContext() = default;

    [[nodiscard]] virtual std::unique_ptr<TlsStream> wrap(base::EventLoop& loop,
                                                          std::unique_ptr<Stream> lower,
                                                          TlsPeer const& peer) = 0;
};

}  // namespace tinkxx::net
