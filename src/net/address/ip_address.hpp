#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::net {

/// An IPv4 or IPv6 address.
class IpAddress {
public:
    /// Reads "127.0.0.1", "::1" or "fe80::1%eth0", and nothing else: no name, no port, no brackets.
    [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
    /// None if `from` is of another family.
    [[nodiscard]] static std::optional<IpAddress> of(sockaddr const& from) noexcept;

    [[nodiscard]] bool is_v6() const noexcept { return v6_; }
    /// As `parse` reads it.
    [[nodiscard]] std::string text() const;

    bool operator==(IpAddress const&) const = default;

private:
    friend class SocketAddress;
    /// Whether its scope is a network interface, which has a name.
    [[nodiscard]] bool link_local() const noexcept;

    bool v6_{false};
    std::array<std::uint8_t, 16> bytes_{};  ///< the first four for IPv4
    std::uint32_t scope_{0};
};

/// Address and port, as the system takes them.
class SocketAddress {
public:
    SocketAddress(IpAddress const& address, std::uint16_t port) noexcept;

    [[nodiscard]] int family() const noexcept { return at_.any.sa_family; }
    [[nodiscard]] sockaddr const& get() const noexcept { return at_.any; }
    [[nodiscard]] socklen_t size() const noexcept;

private:
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    } at_;
};

}  // namespace tinkxx::net
