#include "service/text/endpoint.hpp"

#include <tinkxx/redaction.hpp>

#include "base/common/ascii.hpp"
#include "service/text/query.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <optional>

namespace tinkxx::service {

namespace {

ErrorDetails bad_base_url(std::string_view given, std::string why) {
    auto const shown = redact_url(given);
    return {.kind = ErrorKind::validation,
            .message = "base_url " + std::move(why) + ", got \"" + shown +
                       "\"; set TINKER_BASE_URL or ClientOptions::base_url to "
                       "http(s)://host[:port][/path]",
            .category = ErrorCategory::user,
            .field = "base_url",
            .value = shown};
}

// Scheme, host and port in their normal form; empty if there is none.
std::optional<std::string> origin_of(boost::urls::url_view const& url) {
    auto scheme = base::ascii_lower(std::string{url.scheme()});
    if (scheme != "http" && scheme != "https") return std::nullopt;
    auto const host = base::ascii_lower(std::string{url.encoded_host()});
    if (host.empty()) return std::nullopt;
    auto origin = scheme + "://" + host;
    if (url.has_port()) {
        auto const port = url.port_number();
        if (port == 0) return std::nullopt;
        if (port != (scheme == "http" ? 80 : 443)) origin += ':' + std::to_string(port);
    }
    return origin;
}

bool must_encode(char c) noexcept {
    auto const byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7f ||
           std::string_view{"\"#<>\\^`{|}"}.find(c) != std::string_view::npos;
}

std::string encode_path(std::string_view path) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    std::string out;
    out.reserve(path.size());
    for (char const c : path) {
        if (must_encode(c)) {
            auto const byte = static_cast<unsigned char>(c);
            out += {'%', hex[byte >> 4U], hex[byte & 15U]};
        } else {
            out += c;
        }
    }
    return out;
}

}  // namespace

bool is_absolute_url(std::string_view path) noexcept {
    auto const scheme = path.substr(0, path.find("://"));
    if (scheme.size() == path.size()) return false;
    return base::ascii_lower(scheme) == "http" || base::ascii_lower(scheme) == "https";
}

Result<Endpoint> Endpoint::parse(std::string_view base_url) {
    auto const parsed = boost::urls::parse_uri({base_url.data(), base_url.size()});
    if (!parsed) return bad_base_url(base_url, "must be an absolute URL");
    auto const& url = *parsed;
    auto const scheme = base::ascii_lower(std::string{url.scheme()});
    if (scheme != "http" && scheme != "https") {
        return bad_base_url(base_url, "must begin with http:// or https://");
    }
    if (url.has_userinfo()) return bad_base_url(base_url, "must not contain credentials");
    if (!url.has_authority() || url.encoded_host().empty()) {
        return bad_base_url(base_url, "must name a host");
    }
    if (url.has_query() || url.has_fragment()) {
        return bad_base_url(base_url, "must have neither query nor fragment");
    }
    auto const origin = origin_of(url);
    if (!origin || (url.has_port() && url.port().size() > 5)) {
        return bad_base_url(base_url, "must have a port from 1 to 65535");
    }
    Endpoint endpoint;
    endpoint.base_url_ = base_url.substr(0, base_url.find_last_not_of('/') + 1);
    endpoint.origin_ = *origin;
    std::string path{url.encoded_path()};
    while (path.ends_with('/')) path.pop_back();
    endpoint.key_ = *origin + path;
    return endpoint;
}

std::string Endpoint::url(std::string_view path, Query const& defaults, Query const& query) const {
    auto const mark = path.find('?');
    auto const in_path =
        mark == std::string_view::npos ? std::string_view{} : path.substr(mark + 1);
    path = path.substr(0, mark);
    std::string out;
    if (is_absolute_url(path)) {
        out = encode_path(path);
    } else {
        while (path.starts_with('/')) path.remove_prefix(1);
        out.reserve(base_url_.size() + 1 + path.size());
        out += base_url_;
        out += '/';
        out += encode_path(path);
    }
    auto const text = merged_query(defaults, encode_path(in_path), query);
    if (!text.empty()) {
        out += '?';
        out += text;
    }
    return out;
}

bool Endpoint::owns(std::string_view url) const {
    auto const parsed = boost::urls::parse_uri({url.data(), url.size()});
    return parsed && origin_of(*parsed) == origin_;
}

}  // namespace tinkxx::service
