#include "net/address/proxy.hpp"

#include "base/common/ascii.hpp"
#include "net/address/url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace tinkxx::net {
namespace {

constexpr std::size_t longest_reason = 100;

Error bad_proxy(std::string_view url, std::string_view why) {
    auto shown = url_for_message(url);
    auto message = "NetOptions::proxy.url '" + shown + "': " + std::string{why} +
                   "; expected http(s)://[user:password@]host[:port]";
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::move(message),
                              .field = "proxy.url",
                              .value = std::move(shown)}};
}

int hex_value(char c) noexcept {
    c = base::ascii_lower(c);
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool percent_decode(std::string_view text, std::string& decoded) {
    decoded.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return false;
        auto const high = hex_value(text[i + 1]);
        auto const low = hex_value(text[i + 2]);
        if (high < 0 || low < 0) return false;
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}

std::string base64(std::string_view text) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string encoded;
    for (std::size_t i = 0; i < text.size(); i += 3) {
        unsigned group = 0;
        for (std::size_t j = i; j < i + 3; ++j) {
            group = group << 8U | (j < text.size() ? static_cast<unsigned char>(text[j]) : 0U);
        }
        for (unsigned j = 0; j < 4; ++j) {
            bool const padding = i + j > text.size();
            encoded += padding ? '=' : digits[group >> (18 - 6 * j) & 63U];
        }
    }
    return encoded;
}

bool is_token(std::string_view text) noexcept {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') ||
               (base::ascii_lower(c) >= 'a' && base::ascii_lower(c) <= 'z') ||
               std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
    });
}

template <class Number>
bool parse_number(std::string_view text, Number& number) noexcept {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string Proxy::display() const {
    return (tls ? "https://" : "http://") + host_port(host, port);
}

std::string Proxy::authorization() const {
    if (user.empty() && password.empty()) return {};
    return "Basic " + base64(user + ':' + password);
}

Result<Proxy> parse_proxy_url(std::string_view url) {
    Proxy proxy;
    auto rest = url;
    auto const scheme = rest.find("://");
    if (scheme == std::string_view::npos) return bad_proxy(url, "it has no scheme");
    if (base::equal_in_any_case(rest.substr(0, scheme), "https")) {
        proxy.tls = true;
        proxy.port = 443;
    } else if (base::equal_in_any_case(rest.substr(0, scheme), "http")) {
        proxy.port = 80;
    } else {
        return bad_proxy(url, "its scheme is neither http nor https");
    }
    rest.remove_prefix(scheme + 3);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (auto const at = rest.rfind('@'); at != std::string_view::npos) {
        auto const credentials = rest.substr(0, at);
        rest.remove_prefix(at + 1);
        auto const colon = std::min(credentials.find(':'), credentials.size());
        auto const password =
            colon < credentials.size() ? credentials.substr(colon + 1) : std::string_view{};
        if (!percent_decode(credentials.substr(0, colon), proxy.user) ||
            !percent_decode(password, proxy.password)) {
            return bad_proxy(url, "a '%' in its user or password is not followed by two digits");
        }
    }
    if (rest.empty() || rest.front() == ':') return bad_proxy(url, "it has no host");
    if (rest.find_first_of("/?#") != std::string_view::npos) {
        return bad_proxy(url, "it has a path or query");
    }
    if (!parse_host_port(rest, proxy.host, proxy.port)) {
        return bad_proxy(url, "its host or port is malformed");
    }
    return proxy;
}

Result<void> check_proxy_headers(Headers const& headers) {
    for (auto const& [name, value] : headers) {
        bool const good =
            is_token(name) && std::all_of(value.begin(), value.end(), [](char c) {
                return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\t';
            });
        if (!good) {
            // The value may be a credential: it is not shown.
            return ErrorDetails{.kind = ErrorKind::validation,
                                .message = "NetOptions::proxy.headers: '" + url_for_message(name) +
                                           "' is not a valid header line",
                                .field = "proxy.headers",
                                .value = url_for_message(name)};
        }
    }
    return {};
}

std::string connect_head(Proxy const& proxy, Headers const& headers, std::string_view host,
                         std::uint16_t port) {
    auto const target = host_port(host, port);
    auto head = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
    auto const add = [&head](std::string_view name, std::string_view value) {
        head.append(name).append(": ").append(value).append("\r\n");
    };
    for (auto const& [name, value] : headers) {
        if (!base::equal_in_any_case(name, "host")) add(name, value);
    }
    if (auto const basic = proxy.authorization(); headers.empty() && !basic.empty()) {
        add("Proxy-Authorization", basic);
    }
    return head += "\r\n";
}

bool NoProxy::Address::is_ipv4() const noexcept {
    return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto byte) { return byte == 0; }) &&
           bytes[10] == 0xff && bytes[11] == 0xff;
}

bool NoProxy::parse_address(std::string_view text, Address& address, bool& ipv4) {
    std::array<char, INET6_ADDRSTRLEN> copy{};
    // inet_pton would take a NUL for the end.
    if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return false;
    std::copy(text.begin(), text.end(), copy.begin());
    ipv4 = ::inet_pton(AF_INET, copy.data(), address.bytes.data() + 12) == 1;
    if (ipv4) {
        std::fill_n(address.bytes.begin(), 10, static_cast<unsigned char>(0));
        address.bytes[10] = address.bytes[11] = 0xff;
        return true;
    }
    return ::inet_pton(AF_INET6, copy.data(), address.bytes.data()) == 1;
}

bool NoProxy::parse_rule(std::string_view entry, Rule& rule) {
    bool ipv4 = false;
    if (auto const slash = entry.find('/'); slash != std::string_view::npos) {
        auto base = entry.substr(0, slash);
        if (base.starts_with('[') && base.ends_with(']')) base = base.substr(1, base.size() - 2);
        unsigned bits = 0;
        if (!parse_address(base, rule.address, ipv4) ||
            !parse_number(entry.substr(slash + 1), bits) || bits > (ipv4 ? 32U : 128U)) {
            return false;
        }
        rule.prefix_bits = ipv4 ? bits + 96 : bits;
        return true;
    }
    // An IPv6 address without brackets has no port; anything else may have one.
    if (parse_address(entry, rule.address, ipv4)) return true;
    if (entry.starts_with("*.")) entry.remove_prefix(1);
    while (entry.starts_with('.')) entry.remove_prefix(1);
    if (!parse_host_port(entry, rule.name, rule.port)) return false;
    if (rule.name.ends_with('.')) rule.name.pop_back();
    if (parse_address(rule.name, rule.address, ipv4)) rule.name.clear();
    return true;
}

NoProxy::NoProxy(std::string_view list) {
    while (!list.empty()) {
        auto const comma = std::min(list.find(','), list.size());
        auto const entry = base::trim(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
        Rule rule;
        if (entry == "*") {
            all_ = true;
        } else if (!entry.empty() && parse_rule(entry, rule)) {
            rules_.push_back(std::move(rule));
        }
    }
}

bool NoProxy::matches(std::string_view host, std::uint16_t port) const {
    if (all_) return true;
    if (host.ends_with('.')) host.remove_suffix(1);
    Address address;
    bool ipv4 = false;
    bool const by_address = parse_address(host, address, ipv4);
    return std::any_of(rules_.begin(), rules_.end(), [&](Rule const& rule) {
        if (rule.port != 0 && rule.port != port) return false;
        if (rule.name.empty()) {
            // "::/0" is all of IPv6, not the addresses of IPv4 that are kept in its form.
            if (!by_address || rule.address.is_ipv4() != address.is_ipv4()) return false;
            auto const whole = rule.prefix_bits / 8;
            if (!std::equal(address.bytes.begin(), address.bytes.begin() + whole,
                            rule.address.bytes.begin())) {
                return false;
            }
            auto const bits = rule.prefix_bits % 8;
            if (bits == 0) return true;
            auto const mask = 0xffU << (8 - bits) & 0xffU;
            return (address.bytes[whole] & mask) == (rule.address.bytes[whole] & mask);
        }
        if (by_address || host.size() < rule.name.size()) return false;
        auto const rest = host.size() - rule.name.size();
        return base::equal_in_any_case(host.substr(rest), rule.name) &&
               (rest == 0 || host[rest - 1] == '.');
    });
}

ProxyReply::Step ProxyReply::feed(std::span<char const> bytes, std::size_t& used) {
    used = 0;
    if (!error_.empty()) return Step::error;
    for (auto const c : bytes) {
        ++used;
        if (++total_ > max_bytes) return fail("its answer has too long a head");
        if (c != '\n') {
            line_ += c;
            continue;
        }
        if (line_.ends_with('\r')) line_.pop_back();
        if (first_line_) {
            // "HTTP/1.1 200 Connection established"; the reason may be missing.
            std::string_view const line{line_};
            if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ' ||
                !parse_number(line.substr(9, 3), status_) || status_ < 100 ||
                (line.size() > 12 && line[12] != ' ')) {
                return fail("its answer is not HTTP");
            }
            reason_ = base::trim(line.substr(12)).substr(0, longest_reason);
            for (auto& r : reason_) {
                if (static_cast<unsigned char>(r) < 0x20 || static_cast<unsigned char>(r) > 0x7e) {
                    r = '?';
                }
            }
            first_line_ = false;
        } else if (line_.empty()) {
            if (auto const step = end_of_head(); step != Step::more) return step;
        }
        line_.clear();
    }
    return Step::more;
}

ProxyReply::Step ProxyReply::end_of_head() {
    first_line_ = true;
    if (status_ == 101) return fail("it switched protocols instead of opening a tunnel");
    return status_ < 200 ? Step::more : Step::done;
}

ProxyReply::Step ProxyReply::fail(char const* text) {
    error_ = text;
    return Step::error;
}

}  // namespace tinkxx::net
