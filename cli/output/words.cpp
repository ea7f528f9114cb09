#include "output/words.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <iterator>

namespace tinkxx::cli {
namespace {

using namespace std::chrono_literals;

/// "5 minutes", or empty for less than a minute.
std::string span_words(std::chrono::microseconds span) {
    using std::chrono::days;
    using std::chrono::weeks;
    auto const in = [&](auto unit, std::string_view name) {
        return counted(static_cast<std::int64_t>(span / unit), name);
    };
    if (span > days{7}) return in(weeks{1}, "week");
    if (span >= days{1}) return in(days{1}, "day");
    if (span >= 1h) return in(1h, "hour");
    if (span >= 1min) return in(1min, "minute");
    return {};
}

}  // namespace

std::string fixed(double number, int decimals) {
    char digits[400];
    auto const end = std::to_chars(std::begin(digits), std::end(digits), number,
                                   std::chars_format::fixed, decimals)
                         .ptr;
    return {digits, end};
}

std::string counted(std::int64_t count, std::string_view what) {
    return std::to_string(count) + ' ' + std::string{what} + (count == 1 ? "" : "s");
}

std::string size_words(std::optional<std::int64_t> bytes) {
    if (!bytes) return "N/A";
    constexpr std::array units{"B", "KB", "MB", "GB", "TB", "PB"};
    auto size = static_cast<double>(*bytes);
    std::size_t unit = 0;
    while (size >= 1024 && unit + 1 < units.size()) {
        size /= 1024;
        ++unit;
    }
    return fixed(size, unit == 0 ? 0 : 1) + ' ' + units[unit];
}

std::string time_words(Timestamp const& time, Timestamp::Time now) {
    bool const future = time.time > now;
    auto const span = future ? time.time - now : now - time.time;
    if (span > std::chrono::days{30}) return to_string(time).substr(0, 10);
    auto const words = span_words(span);
    if (words.empty()) return future ? "in a moment" : "just now";
    return future ? "in " + words : words + " ago";
}

std::string expiry_words(std::optional<Timestamp> const& time, Timestamp::Time now) {
    return time ? time_words(*time, now) : "Never";
}

std::string yes_or_no(bool yes) { return yes ? "Yes" : "No"; }

}  // namespace tinkxx::cli
