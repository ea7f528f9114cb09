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

/// Certificates in addition to the system's trust store. Verification cannot be turned off.
struct TlsOptions {
    /// A PEM file with additional certificate authorities to trust.
    std::string ca_file{};
    /// PEM files with a client certificate (including its chain) and its key. Both or neither.
    std::string client_certificate_file{};
    std::string client_key_file{};

    bool operator==(TlsOptions const&) const = default;
};

/// A proxy for all connections, used by CONNECT.
struct ProxyOptions {
    /// `http(s)://[user:password@]host[:port]`. Empty: no proxy. Ports default to 80 and 443.
    std::string url{};
    /// Sent with CONNECT. If given, they replace the Basic credentials of the URL.
    Headers headers{};
    /// Hosts that are reached without the proxy, as in `NO_PROXY`: comma-separated names (which
    /// include their subdomains), addresses, CIDR ranges, each with an optional port, or `*` for
    /// all.
    std::string no_proxy{};

    bool operator==(ProxyOptions const&) const = default;
};

enum class HttpVersion : std::uint8_t {
    automatic,  ///< negotiated by ALPN on https; HTTP/1.1 on http
    http1,      ///< always HTTP/1.1
    http2,      ///< always HTTP/2; on http with prior knowledge
};

/// How the network transport behaves. Every field has a working default.
///
/// Clients that share the runtime, use the same service and credential, and have equal options
/// share one transport, including its connections and limits. If the process runs out of file
/// descriptors, a warning is logged at once and then at most once a minute; requests use the
/// existing connections, or wait until one can be opened, for at most `Timeouts::pool`.
struct NetOptions {
    HttpVersion http_version{HttpVersion::automatic};
    TlsOptions tls{};
    ProxyOptions proxy{};
    /// Streams per HTTP/2 connection. A lower limit of the server takes precedence.
    int max_streams_per_connection{100};
    /// HTTP/1.1 connections per origin and group of purposes (control, sample, poll, train, auth).
    /// Further requests wait for a free one.
    int max_http1_connections{256};
    /// How many of its group's HTTP/1.1 connections each `Purpose` may use at once. 0: all but a
    /// few that are reserved for each other purpose of the group.
    std::array<int, purpose_count> http1_quota{};
    /// Connections of any kind per origin and group.
    int max_connections{1000};
    /// Idle connections are closed after this time.
    std::chrono::milliseconds idle_timeout{std::chrono::seconds{60}};
    /// HTTP/2: if nothing arrives for this long while requests are pending, a PING is sent; without
    /// an answer within `ping_timeout`, the connection is closed. Zero: never.
    std::chrono::milliseconds ping_interval{std::chrono::seconds{15}};
    std::chrono::milliseconds ping_timeout{std::chrono::seconds{10}};
    /// The delay before the next address of a host is tried in parallel (RFC 8305).
    std::chrono::milliseconds connection_attempt_delay{250};
    /// The maximum size of the head of an answer.
    std::size_t max_header_bytes{std::size_t{256} * 1024};
    int max_redirects{20};
    /// Addresses to use for a host name instead of a DNS look-up, for tests and split-horizon DNS.
    std::map<std::string, std::vector<std::string>> resolve{};

    bool operator==(NetOptions const&) const = default;
};

/// A transport over TCP, TLS, HTTP/1.1 and HTTP/2 that runs on the loop of `runtime` and does not
/// share its connections. Throws `ValidationError` for invalid options, e.g. an unreadable CA file.
///
/// It may be created and released on any thread; its members may only be called on the loop thread.
/// If the runtime shuts down first, its calls fail with `FailureKind::closed`.
[[nodiscard]] std::shared_ptr<Transport> net_transport(Runtime const& runtime, NetOptions options);
[[nodiscard]] std::shared_ptr<Transport> net_transport(Runtime const& runtime);

/// The current state of a network transport.
struct NetStats {
    std::size_t connections{0};
    std::size_t dialing{0};   ///< connections being opened
    std::size_t active{0};    ///< requests that have a connection
    std::size_t waiting{0};   ///< requests that wait for one
    std::uint64_t opened{0};  ///< connections opened so far

    bool operator==(NetStats const&) const = default;
};

/// The state of a transport made by `net_transport`; all zero for another transport. Loop thread
/// only.
[[nodiscard]] NetStats net_stats(Transport const& transport) noexcept;

}  // namespace tinkxx
