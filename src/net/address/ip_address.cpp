#include "net/address/ip_address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>

namespace tinkxx::net {

namespace {

/// The scope that `text` names: an interface, or a number.
std::uint32_t scope_of(std::string const& text, bool interface) noexcept {
    if (interface) {
        if (auto const index = ::if_nametoindex(text.c_str()); index != 0) return index;
    }
    std::uint32_t number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
    // inet_pton would take a NUL for the end.
    if (text.find('\0') != std::string_view::npos) return std::nullopt;
    auto const percent = text.find('%');
    std::string const host{text.substr(0, percent)};
    IpAddress address;
    if (percent == std::string_view::npos &&
        ::inet_pton(AF_INET, host.c_str(), address.bytes_.data()) == 1) {
        return address;
    }
    if (::inet_pton(AF_INET6, host.c_str(), address.bytes_.data()) != 1) return std::nullopt;
    address.v6_ = true;
    if (percent != std::string_view::npos) {
        address.scope_ = scope_of(std::string{text.substr(percent + 1)}, address.link_local());
    }
    return address;
}

std::optional<IpAddress> IpAddress::of(sockaddr const& from) noexcept {
    IpAddress address;
    if (from.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &from, sizeof v4);
        std::memcpy(address.bytes_.data(), &v4.sin_addr, sizeof v4.sin_addr);
    } else if (from.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &from, sizeof v6);
        std::memcpy(address.bytes_.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
        address.v6_ = true;
        address.scope_ = v6.sin6_scope_id;
    } else {
        return std::nullopt;
    }
    return address;
}

bool IpAddress::link_local() const noexcept {
    bool const unicast = bytes_[0] == 0xfe && (bytes_[1] & 0xc0U) == 0x80;
    bool const multicast = bytes_[0] == 0xff && (bytes_[1] & 0x0fU) == 0x02;
    return v6_ && (unicast || multicast);
}

std::string IpAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    (void)::inet_ntop(v6_ ? AF_INET6 : AF_INET, bytes_.data(), buffer.data(),
                      static_cast<socklen_t>(buffer.size()));
    std::string text{buffer.data()};
    if (scope_ == 0) return text;
    std::array<char, IF_NAMESIZE> name{};
    bool const named = link_local() && ::if_indextoname(scope_, name.data()) != nullptr;
    return text + '%' + (named ? std::string{name.data()} : std::to_string(scope_));
}

SocketAddress::SocketAddress(IpAddress const& address, std::uint16_t port) noexcept : at_{} {
    if (address.v6_) {
        at_.v6 = {};
        at_.v6.sin6_family = AF_INET6;
        at_.v6.sin6_port = htons(port);
        at_.v6.sin6_scope_id = address.scope_;
        std::memcpy(&at_.v6.sin6_addr, address.bytes_.data(), sizeof at_.v6.sin6_addr);
    } else {
        at_.v4 = {};
        at_.v4.sin_family = AF_INET;
        at_.v4.sin_port = htons(port);
        std::memcpy(&at_.v4.sin_addr, address.bytes_.data(), sizeof at_.v4.sin_addr);
    }
}

socklen_t SocketAddress::size() const noexcept {
    return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace tinkxx::net
