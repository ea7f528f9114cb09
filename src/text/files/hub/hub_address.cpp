#include "text/files/hub/hub_address.hpp"

#include <algorithm>

namespace tinkxx::text::files {

std::string origin_of(std::string_view url) {
    auto const mark = url.find("://");
    if (mark == std::string_view::npos) return {};
    auto const end = std::min(url.find_first_of("/?#", mark + 3), url.size());
    std::string origin{url.substr(0, end)};
    std::ranges::transform(origin, origin.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    bool const known = origin.starts_with("http://") || origin.starts_with("https://");
    auto const odd = [](char c) { return c <= ' ' || c == '@' || c == '\\' || c == '\x7f'; };
    if (!known || end == mark + 3 || std::ranges::any_of(origin, odd)) return {};
    if (origin.starts_with("https://") && origin.ends_with(":443")) {
        origin.resize(origin.size() - 4);
    }
    if (origin.starts_with("http://") && origin.ends_with(":80")) origin.resize(origin.size() - 3);
    return origin;
}

bool is_private(std::string_view origin) {
    if (origin.starts_with("https://")) return true;
    for (std::string_view const local : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
        if (!origin.starts_with(local)) continue;
        auto const rest = origin.substr(local.size());
        if (rest.empty() || rest.front() == ':') return true;
    }
    return false;
}

std::string redirected(std::string_view url, std::string_view location) {
    if (!origin_of(location).empty()) return std::string{location};
    if (location.starts_with("//") || !location.starts_with('/')) return {};
    return origin_of(url) + std::string{location};
}

}  // namespace tinkxx::text::files
