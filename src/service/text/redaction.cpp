#include <tinkxx/redaction.hpp>

#include "base/common/ascii.hpp"

#include <algorithm>
#include <array>

namespace tinkxx {

std::string redact_key(std::string_view key) {
    // A short key would be half told by ten of its characters.
    if (key.size() < 16) return std::string(key.empty() ? 0 : 8, '*');
    return std::string{key.substr(0, 6)} + "..." + std::string{key.substr(key.size() - 4)};
}

bool is_secret_header(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 7> names{
        "x-api-key",
        "cf-access-client-secret",
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-tinker-weights-access-token",
    };
    return std::ranges::any_of(
        names, [name](std::string_view secret) { return base::equal_in_any_case(name, secret); });
}

Headers redact(Headers const& headers) {
    Headers shown;
    shown.reserve(headers.size());
    for (auto const& [name, value] : headers) {
        shown.add(name, is_secret_header(name) ? std::string{redaction_marker} : value);
    }
    return shown;
}

std::string redact_url(std::string_view url) {
    auto const scheme = url.find("://");
    auto const begin = scheme == std::string_view::npos ? 0 : scheme + 3;
    auto const end = std::min(url.find_first_of("/?#", begin), url.size());
    auto const at = url.substr(0, end).rfind('@');
    if (at == std::string_view::npos || at < begin) return std::string{url};
    return std::string{url.substr(0, begin)} + std::string{redaction_marker} +
           std::string{url.substr(at)};
}

}  // namespace tinkxx
