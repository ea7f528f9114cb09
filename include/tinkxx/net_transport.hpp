#pragma once

#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx {

/// Certificates beyond the system's trust store. Verification itself cannot be turned off.
struct TlsOptions {
    /// PEM file of further certificate authorities to trust.
    std::string ca_file{};
    /// PEM files of a client certificate (with its chain) and its key. Both or neither.
    std::string client_certificate_file{};
    std::string client_key_file{};

    bool operator==(TlsOptions const&) const = default;
};

/// A proxy that all connections go through, by CONNECT.
struct ProxyOptions {
    /// `http(s)://[user:password@]host[:port]`. Empty: no proxy. Ports default to 80 and 443.
    std::string url{};
    /// Sent with CONNECT. If given, they stand in place of the Basic credentials of the URL.
    Headers headers{};
    /// Hosts that are reached directly, as in `NO_PROXY`: comma-separated names (which cover
    /// their subdomains), addresses, CIDR ranges, each with an optional port, or `*` for all.
    std::string no_proxy{};

    bool operator==(ProxyOptions const&) const = default;
};

enum class HttpVersion : std::uint8_t {
    automatic,  ///< by ALPN on https; HTTP/1.1 on http
    http1,      ///< HTTP/1.1 always
    http2,      ///< HTTP/2 always; on http with prior knowledge
};

/// How the network transport behaves. Every field has a working default.
///
/// Clients share a transport, and with it connections and their limits, if they share the runtime,
/// reach the same service with the same credential, and have equal options. A process that runs out
/// of file descriptors is told of in one line of the runtime's log at once, and then at most once a
/// minute; requests go on with the connections that are there, and otherwise wait until one can be
/// opened, as long as `Timeouts::pool` lets them.
struct NetOptions {
    HttpVersion http_version{HttpVersion::automatic};
    TlsOptions tls{};
    ProxyOptions proxy{};
    /// Streams per HTTP/2 connection; a lower limit of the server wins.
    int max_streams_per_connection{100};
    /// HTTP/1.1 connections per origin and group of purposes (control, sample, poll, train,
    /// auth); further requests wait for one to be free.
    int max_http1_connections{256};
    /// How many of its group's HTTP/1.1 connections one purpose may use at once, by `Purpose`.
    /// 0: all but a few that are kept for each other purpose of the group (R-CONF-50).
    std::array<int, purpose_count> http1_quota{};
    /// Connections of any kind per origin and group.
    int max_connections{1000};
    /// An unused connection is closed after this time.
    std::chrono::milliseconds idle_timeout{std::chrono::seconds{60}};
    /// HTTP/2: after this much silence with requests waiting a PING is sent, and without an
    /// answer within `ping_timeout` the connection is given up. Zero: never.
    std::chrono::milliseconds ping_interval{std::chrono::seconds{15}};
    std::chrono::milliseconds ping_timeout{std::chrono::seconds{10}};
    /// Head start of one address over the next when a host has several (RFC 8305).
    std::chrono::milliseconds connection_attempt_delay{250};
    /// Longest head of an answer.
    std::size_t max_header_bytes{std::size_t{256} * 1024};
    int max_redirects{20};
    /// Addresses to use for a host name in place of a look-up: for tests and split horizons.
    std::map<std::string, std::vector<std::string>> resolve{};

    bool operator==(NetOptions const&) const = default;
};

/// A transport over TCP, TLS, HTTP/1.1 and HTTP/2 that runs on `runtime`'s loop, with connections
/// of its own. Throws `ValidationError` for options that cannot work, e.g. an unreadable CA file.
///
/// May be created and released on any thread; its members are for the loop thread. If the
/// runtime shuts down first, its calls fail with `FailureKind::closed`.
[[nodiscard]] std::shared_ptr<Transport> net_transport(Runtime const& runtime, NetOptions options);
[[nodiscard]] std::shared_ptr<Transport> net_transport(Runtime const& runtime);

/// How a network transport stands at this moment.
struct NetStats {
    std::size_t connections{0};
    std::size_t dialing{0};   ///< connections being opened
    std::size_t active{0};    ///< requests that have a connection
    std::size_t waiting{0};   ///< requests that wait for one
    std::uint64_t opened{0};  ///< connections opened so far

    bool operator==(NetStats const&) const = default;
};

/// `transport` must come from `net_transport`; otherwise all is zero. Loop thread only.
[[nodiscard]] NetStats net_stats(Transport const& transport) noexcept;

}  // namespace tinkxx
