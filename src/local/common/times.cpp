#include "local/common/times.hpp"

#include "wire/session/telemetry.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

namespace tinkxx::local {

namespace {

using namespace std::chrono;

/// Takes a number of exactly `digits` digits off the front.
bool take(std::string_view& text, std::size_t digits, int& out) {
    if (text.size() < digits) return false;
    auto const* const end = text.data() + digits;
    for (auto const c : text.substr(0, digits)) {
        if (c < '0' || c > '9') return false;
    }
    auto const result = std::from_chars(text.data(), end, out);
    text.remove_prefix(digits);
    return result.ec == std::errc{} && result.ptr == end;
}

bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

}  // namespace

std::string iso_time(WallTime time) { return wire::telemetry_time(time); }

std::optional<WallTime> parse_time(std::string_view text) {
    int y = 0;
    int mo = 0;
    int d = 0;
    int h = 0;
    int mi = 0;
    int s = 0;
    if (!take(text, 4, y) || !take(text, '-') || !take(text, 2, mo) || !take(text, '-') ||
        !take(text, 2, d)) {
        return std::nullopt;
    }
    year_month_day const date{year{y}, month{static_cast<unsigned>(mo)},
                              day{static_cast<unsigned>(d)}};
    // A clock of nanoseconds has no more years.
    if (!date.ok() || y < 1700 || y > 2200) return std::nullopt;
    WallTime time{sys_days{date}};
    if (text.empty()) return time;
    if (!(take(text, 'T') || take(text, ' ')) || !take(text, 2, h) || !take(text, ':') ||
        !take(text, 2, mi) || !take(text, ':') || !take(text, 2, s) || h > 23 || mi > 59 ||
        s > 59) {
        return std::nullopt;
    }
    time += hours{h} + minutes{mi} + seconds{s};
    if (take(text, '.')) {
        auto scale = microseconds{100'000};
        bool any = false;
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
            time += scale * (text.front() - '0');
            scale /= 10;
            text.remove_prefix(1);
            any = true;
        }
        if (!any) return std::nullopt;
    }
    if (text.empty() || text == "Z" || text == "z") return time;
    // In a query a plus reads as a blank.
    bool const west = text.front() == '-';
    if (!west && text.front() != '+' && text.front() != ' ') return std::nullopt;
    text.remove_prefix(1);
    if (!take(text, 2, h) || !take(text, ':') || !take(text, 2, mi) || !text.empty()) {
        return std::nullopt;
    }
    auto const offset = hours{h} + minutes{mi};
    return west ? time + offset : time - offset;
}

std::string http_date(WallTime time) {
    constexpr std::array<char const*, 7> days_of_week{"Sun", "Mon", "Tue", "Wed",
                                                      "Thu", "Fri", "Sat"};
    constexpr std::array<char const*, 12> months_of_year{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    auto const day_point = floor<days>(time);
    year_month_day const date{day_point};
    hh_mm_ss const clock{floor<seconds>(time - day_point)};
    std::array<char, 40> text{};
    auto const size = std::snprintf(
        text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
        days_of_week[weekday{day_point}.c_encoding()], static_cast<unsigned>(date.day()),
        months_of_year[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
        static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
        static_cast<int>(clock.seconds().count()));
    return {text.data(), static_cast<std::size_t>(size)};
}

std::int64_t to_micros(WallTime time) {
    return duration_cast<microseconds>(time.time_since_epoch()).count();
}

WallTime from_micros(std::int64_t micros) { return WallTime{microseconds{micros}}; }

}  // namespace tinkxx::local
