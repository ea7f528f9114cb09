#include "net/address/url.hpp"

#include "base/common/ascii.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>
#include <boost/url/url_view.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace tinkxx::net {
namespace {

constexpr std::size_t longest_host = 254;  // RFC 1035: 253, and a dot at the end
constexpr std::size_t longest_in_message = 200;

enum : std::uint8_t { host_char = 1, target_char = 2, uri_char = 4, authority_char = 8 };

/// What each byte may be part of.
constexpr std::array<std::uint8_t, 256> make_classes() {
    std::array<std::uint8_t, 256> classes{};
    for (unsigned c = 0; c < 256; ++c) {
        auto const ch = static_cast<char>(c);
        bool const alnum =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        std::uint8_t bits = 0;
        // No name in use has more than these; '_' is common inside container networks.
        if (alnum || ch == '-' || ch == '.' || ch == '_') bits |= host_char;
        if (c > 0x20 && c != 0x7f) bits |= target_char;
        if (ch != '/' && ch != '?' && ch != '#') bits |= authority_char;
        if (alnum || std::string_view{"-._~:/?#[]@!$&'()*+,;=%"}.find(ch) != std::string_view::npos)
            bits |= uri_char;
        classes[c] = bits;
    }
    return classes;
}
constexpr auto classes = make_classes();

/// How many bytes at the beginning of `text` are of that class.
std::size_t span_of(std::string_view text, std::uint8_t wanted) noexcept {
    std::size_t size = 0;
    while (size < text.size() && (classes[static_cast<unsigned char>(text[size])] & wanted) != 0) {
        ++size;
    }
    return size;
}

/// Whether `text` begins with `prefix`, in any case.
bool begins_with(std::string_view text, std::string_view prefix) noexcept {
    return base::equal_in_any_case(text.substr(0, prefix.size()), prefix);
}

bool is_ipv6(std::string_view text) noexcept {
    std::array<char, INET6_ADDRSTRLEN> copy{};
    // inet_pton would take a NUL for the end.
    if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return false;
    std::copy(text.begin(), text.end(), copy.begin());
    in6_addr ignored{};
    return ::inet_pton(AF_INET6, copy.data(), &ignored) == 1;
}

Error bad_url(std::string_view text, std::string_view why) {
    auto shown = url_for_message(text);
    auto message = "bad URL '" + shown + "': " + std::string{why};
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::move(message),
                              .field = "url",
                              .value = std::move(shown)}};
}

/// Encodes what RFC 3986 does not allow to stand as it is, so that Boost.URL takes it.
std::string percent_encode_stray(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    // Brackets are for IPv6 hosts alone: after the authority they are stray.
    auto const authority = text.find("//");
    auto const path =
        authority == std::string_view::npos ? 0 : text.find_first_of("/?#", authority + 2);
    auto const is_hex = [&](std::size_t at) {
        auto const c = at < text.size() ? base::ascii_lower(text[at]) : '\0';
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    };
    std::string encoded;
    encoded.reserve(text.size());
    bool fragment = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto const c = text[i];
        auto const byte = static_cast<unsigned char>(c);
        bool keep = (classes[byte] & uri_char) != 0;
        if (c == '%') keep = is_hex(i + 1) && is_hex(i + 2);
        if (c == '[' || c == ']') keep = i < path;
        if (c == '#') keep = !std::exchange(fragment, true);
        if (keep) {
            encoded += c;
        } else {
            encoded += '%';
            encoded += digits[byte >> 4U];
            encoded += digits[byte & 15U];
        }
    }
    return encoded;
}

/// As RFC 3986 (5.2.4) has it. Boost's own version leaves steps above the root in.
std::string remove_dot_segments(std::string_view path) {
    std::vector<std::string_view> kept;
    bool folder = true;  // whether the result ends with a slash
    for (std::size_t at = 1; at <= path.size();) {
        auto const end = std::min(path.find('/', at), path.size());
        auto const segment = path.substr(at, end - at);
        folder = segment == "." || segment == "..";
        if (!folder) {
            kept.push_back(segment);
        } else if (segment == ".." && !kept.empty()) {
            kept.pop_back();
        }
        at = end + 1;
    }
    std::string result;
    for (auto const segment : kept) result.append("/").append(segment);
    if (folder) result += '/';
    return result;
}

}  // namespace

std::string Origin::authority() const {
    if (port == (tls ? 443 : 80)) {
        return host.find(':') == std::string::npos ? host : '[' + host + ']';
    }
    return host_port(host, port);
}

std::string host_port(std::string_view host, std::uint16_t port) {
    bool const ipv6 = host.find(':') != std::string_view::npos;
    std::string text;
    text.reserve(host.size() + 8);
    if (ipv6) text += '[';
    text += host;
    if (ipv6) text += ']';
    text += ':';
    text += std::to_string(port);
    return text;
}

std::string url_for_message(std::string_view text) {
    // A password may hold '/', '?' or '#' that should have been encoded. So all before the last
    // '@' is taken for a credential, wherever the '@' is.
    std::string shown;
    auto const at = text.rfind('@');
    if (at != std::string_view::npos) {
        auto const scheme = text.substr(0, at).find("://");
        if (scheme != std::string_view::npos) shown += text.substr(0, scheme + 3);
        shown += "***";
        text.remove_prefix(at);
    }
    auto const query = text.find_first_of("?#");
    shown += text.substr(0, query);
    if (query != std::string_view::npos) shown += "?...";
    if (shown.size() > longest_in_message) {
        shown.resize(longest_in_message);
        shown += "...";
    }
    for (auto& c : shown) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return shown;
}

bool parse_host_port(std::string_view text, std::string& host, std::uint16_t& port) {
    std::string_view name;
    if (text.starts_with('[')) {
        auto const end = text.find(']');
        if (end == std::string_view::npos) return false;
        name = text.substr(1, end - 1);
        if (!is_ipv6(name)) return false;
        text.remove_prefix(end + 1);
        if (!text.empty() && text.front() != ':') return false;
    } else {
        name = text.substr(0, span_of(text, host_char));
        text.remove_prefix(name.size());
        if (name.empty() || name.size() > longest_host) return false;
        if (!text.empty() && text.front() != ':') return false;
    }
    if (text.size() > 1) {
        // A lone colon means the default port.
        auto const digits = text.substr(1);
        std::uint16_t number = 0;
        auto const [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error != std::errc{} || end != digits.data() + digits.size() || number == 0) {
            return false;
        }
        port = number;
    }
    host.assign(name);
    for (auto& c : host) c = base::ascii_lower(c);
    return true;
}

Result<Url> parse_url(std::string_view text) {
    Url url;
    auto rest = text;
    if (begins_with(rest, "https://")) {
        url.origin.tls = true;
        url.origin.port = 443;
        rest.remove_prefix(8);
    } else if (begins_with(rest, "http://")) {
        url.origin.port = 80;
        rest.remove_prefix(7);
    } else {
        return bad_url(text, "it must begin with http:// or https://");
    }
    auto const authority = rest.substr(0, span_of(rest, authority_char));
    rest.remove_prefix(authority.size());
    if (authority.find('@') != std::string_view::npos) {
        return bad_url(text, "a user or password in it would end up in logs; leave it out");
    }
    if (authority.empty() || authority.front() == ':') return bad_url(text, "it has no host");
    if (!parse_host_port(authority, url.origin.host, url.origin.port)) {
        return bad_url(text, "its host or port is malformed");
    }
    rest = rest.substr(0, rest.find('#'));
    if (span_of(rest, target_char) != rest.size()) {
        return bad_url(text, "spaces and control characters must be percent-encoded");
    }
    if (rest.empty() || rest.front() != '/') {
        url.target.reserve(rest.size() + 1);
        url.target += '/';
        url.target += rest;
    } else {
        url.target.assign(rest);
    }
    return url;
}

Result<std::string> resolve_reference(std::string_view base, std::string_view reference) {
    reference = base::trim(reference);
    if (std::any_of(reference.begin(), reference.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
        return bad_url(reference, "it holds control characters");
    }
    auto const base_text = percent_encode_stray(base);
    auto const reference_text = percent_encode_stray(reference);
    auto const parsed_base = boost::urls::parse_uri(base_text);
    if (!parsed_base) return bad_url(base, "it is not an absolute URL");
    auto const parsed_reference = boost::urls::parse_uri_reference(reference_text);
    if (!parsed_reference) return bad_url(reference, "it is not a URL reference");
    boost::urls::url resolved;
    if (!boost::urls::resolve(*parsed_base, *parsed_reference, resolved)) {
        return bad_url(reference, "it cannot be resolved");
    }
    if (!resolved.has_authority()) return bad_url(reference, "it has no host");
    std::string text{resolved.scheme()};
    text.append("://").append(resolved.encoded_authority());
    text += remove_dot_segments(resolved.encoded_path());
    if (resolved.has_query()) text.append("?").append(resolved.encoded_query());
    return text;
}

}  // namespace tinkxx::net
