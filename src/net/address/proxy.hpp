#pragma once

#include <tinkxx/net_transport.hpp>
#include <tinkxx/result.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::net {

/// A proxy as its URL names it.
struct Proxy {
    bool tls{false};
    std::string host{};
    std::uint16_t port{0};
    /// Percent-decoded; empty if the URL has none.
    std::string user{};
    std::string password{};

    /// "http://host:port": what messages may show.
    [[nodiscard]] std::string display() const;
    /// The value of Proxy-Authorization; empty without credentials.
    [[nodiscard]] std::string authorization() const;
};

/// Takes `http(s)://[user:password@]host[:port]` apart (R-CONF-07, R-EXT-70). The error is a
/// validation error that holds no credential.
[[nodiscard]] Result<Proxy> parse_proxy_url(std::string_view url);

/// Refuses header lines that would break the head of a CONNECT request.
[[nodiscard]] Result<void> check_proxy_headers(Headers const& headers);

/// The head of a CONNECT request for `host:port`. `headers`, if any, stand in place of the
/// credentials of the proxy's URL.
[[nodiscard]] std::string connect_head(Proxy const& proxy, Headers const& headers,
                                       std::string_view host, std::uint16_t port);

/// Which hosts are reached without the proxy, as in `NO_PROXY`.
class NoProxy {
public:
    NoProxy() = default;
    /// Entries that mean nothing are left out: the variable is shared with other programs.
    explicit NoProxy(std::string_view list);

    /// `host` as in `Origin`: lower case, IPv6 without brackets.
    [[nodiscard]] bool matches(std::string_view host, std::uint16_t port) const;

private:
    struct Address {
        std::array<unsigned char, 16> bytes{};  // IPv4 in its mapped form
        [[nodiscard]] bool is_ipv4() const noexcept;
    };
    struct Rule {
        std::string name{};  // empty: by address
        Address address{};
        unsigned prefix_bits{128};
        std::uint16_t port{0};  // 0: any
    };
    static bool parse_address(std::string_view text, Address& address, bool& ipv4);
    static bool parse_rule(std::string_view entry, Rule& rule);

    std::vector<Rule> rules_;
    bool all_{false};
};

/// Reads the answer to a CONNECT request from bytes as they come.
class ProxyReply {
public:
    static constexpr std::size_t max_bytes = std::size_t{16} * 1024;
    enum class Step {
        more,   ///< not all there yet
        done,   ///< `status()` is final
        error,  ///< `error_text()` says why
    };

    /// Takes bytes up to the end of the head; `used` says how many. What follows is the tunnel's.
    Step feed(std::span<char const> bytes, std::size_t& used);

    [[nodiscard]] int status() const noexcept { return status_; }
    /// As the proxy words it, made printable and short.
    [[nodiscard]] std::string const& reason() const noexcept { return reason_; }
    [[nodiscard]] std::string_view error_text() const noexcept { return error_; }

private:
    Step end_of_head();
    Step fail(char const* text);

    std::string line_;
    bool first_line_{true};
    std::size_t total_{0};
    int status_{0};
    std::string reason_;
    std::string_view error_;
};

}  // namespace tinkxx::net
