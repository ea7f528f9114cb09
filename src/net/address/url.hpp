#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::net {

/// Where connections go: scheme, host and port.
struct Origin {
    bool tls{false};
    std::string host{};  ///< lower case; IPv6 without brackets
    std::uint16_t port{0};

    bool operator==(Origin const&) const = default;
    /// As in a `Host` header: brackets around IPv6, the port only if it is not the default.
    [[nodiscard]] std::string authority() const;
};

/// An absolute http or https URL, taken apart.
struct Url {
    Origin origin{};
    std::string target{};  ///< path and query, at least "/"; no fragment
};

/// Takes `text` apart. Refuses other schemes, user names (a credential in a URL ends up in
/// logs), empty hosts, ports out of range, spaces and control characters. The target is kept as
/// it is, percent signs included. The error's message names the URL, without any credential in
/// it.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// `text` fit for a message: no user, password or query, no control characters, not too long.
[[nodiscard]] std::string url_for_message(std::string_view text);

/// A bare host (IPv6 in brackets) with an optional `:port`, as in the authority of a URL, taken
/// apart; the host in lower case. False if it is malformed; `port` stays as it is if none is
/// given.
[[nodiscard]] bool parse_host_port(std::string_view text, std::string& host, std::uint16_t& port);

/// "host:port", with brackets around IPv6: for CONNECT and for messages.
[[nodiscard]] std::string host_port(std::string_view host, std::uint16_t port);

/// The absolute URL that `reference` (a Location header) means, seen from `base`, without its
/// fragment. Characters that belong percent-encoded, as some servers send them, are encoded.
[[nodiscard]] Result<std::string> resolve_reference(std::string_view base,
                                                    std::string_view reference);

}  // namespace tinkxx::net
