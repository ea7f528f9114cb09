#include "service/text/retry_after.hpp"

#include "base/common/ascii.hpp"
#include "service/text/http_date.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace tinkxx::service {

namespace {

std::optional<double> number(std::string_view text) noexcept {
    text = base::trim(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (!std::isfinite(value)) return std::nullopt;
    return value;
}

}  // namespace

std::optional<std::chrono::nanoseconds> retry_after(Headers const& headers, WallTime now,
                                                    std::chrono::nanoseconds longest) noexcept {
    // Compared as doubles first: a count of nanoseconds could run over.
    auto const usable = [longest](double ns) -> std::optional<std::chrono::nanoseconds> {
        if (!(ns > 0)) return std::nullopt;
        if (ns >= static_cast<double>(longest.count())) return longest;
        auto const whole = std::chrono::nanoseconds{static_cast<std::int64_t>(ns)};
        return whole.count() > 0 ? whole : std::chrono::nanoseconds{1};
    };
    if (auto const* text = headers.find("retry-after-ms")) {
        if (auto const ms = number(*text)) {
            if (auto const wait = usable(*ms * 1e6)) return wait;
        }
    }
    if (auto const* text = headers.find("retry-after")) {
        if (auto const seconds = number(*text)) {
            if (auto const wait = usable(*seconds * 1e9)) return wait;
        }
        // Far in the past the difference would be more than a duration can hold.
        if (auto const date = parse_http_date(*text, now); date && *date > now) {
            return std::min<std::chrono::nanoseconds>(*date - now, longest);
        }
    }
    return std::nullopt;
}

}  // namespace tinkxx::service
