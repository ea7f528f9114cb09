#include "service/text/http_date.hpp"

#include "base/common/ascii.hpp"

#include <array>
#include <chrono>
#include <cstddef>

namespace tinkxx::service {

namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Cursor {
public:
    explicit Cursor(std::string_view text) noexcept : rest_{text} {}

    [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
    [[nodiscard]] char peek() const noexcept { return rest_.empty() ? '\0' : rest_.front(); }
    bool take(char c) noexcept {
        if (peek() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool spaces() noexcept {
        auto const before = rest_.size();
        while (take(' ') || take('\t')) {
        }
        return rest_.size() != before;
    }
    std::string_view word() noexcept {
        std::size_t n = 0;
        while (n < rest_.size() && is_letter(rest_[n])) ++n;
        auto const found = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return found;
    }
    /// A number of `least` to `most` digits.
    std::optional<int> number(std::size_t least, std::size_t most) noexcept {
        int value = 0;
        std::size_t n = 0;
        while (n < rest_.size() && n < most && is_digit(rest_[n])) {
            value = value * 10 + (rest_[n] - '0');
            ++n;
        }
        if (n < least || (n < rest_.size() && is_digit(rest_[n]))) return std::nullopt;
        rest_.remove_prefix(n);
        return value;
    }
    [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

private:
    std::string_view rest_;
};

std::optional<unsigned> month(std::string_view word) noexcept {
    constexpr std::string_view names = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (word.size() != 3) return std::nullopt;
    std::array<char, 3> const key{base::ascii_lower(word[0]), base::ascii_lower(word[1]),
                                  base::ascii_lower(word[2])};
    for (std::size_t i = 0; i < 12; ++i) {
        if (names.substr(i * 3, 3) == std::string_view{key.data(), key.size()}) {
            return static_cast<unsigned>(i + 1);
        }
    }
    return std::nullopt;
}

std::optional<std::chrono::seconds> time_of_day(Cursor& cursor) noexcept {
    auto const hour = cursor.number(2, 2);
    if (!hour || *hour > 23 || !cursor.take(':')) return std::nullopt;
    auto const minute = cursor.number(2, 2);
    if (!minute || *minute > 59 || !cursor.take(':')) return std::nullopt;
    auto const second = cursor.number(2, 2);
    if (!second || *second > 60) return std::nullopt;  // 60: a leap second
    return std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
           std::chrono::seconds{*second};
}

// The offset from UTC; none at the end of the text means UTC.
std::optional<std::chrono::minutes> zone(Cursor& cursor) noexcept {
    using std::chrono::minutes;
    cursor.spaces();
    if (cursor.done()) return minutes{0};
    if (cursor.peek() == '+' || cursor.peek() == '-') {
        int const sign = cursor.peek() == '+' ? 1 : -1;
        cursor.take(cursor.peek());
        auto const hhmm = cursor.number(4, 4);
        if (!hhmm || !cursor.done() || *hhmm / 100 > 23 || *hhmm % 100 > 59) return std::nullopt;
        return minutes{sign * (*hhmm / 100 * 60 + *hhmm % 100)};
    }
    auto const name = cursor.word();
    if (!cursor.done() || (name != "GMT" && name != "UTC" && name != "UT" && name != "Z")) {
        return std::nullopt;
    }
    return minutes{0};
}

int full_year(int two_digits, WallTime now) noexcept {
    auto const today =
        std::chrono::year_month_day{std::chrono::floor<std::chrono::days>(now)}.year();
    int const this_year = static_cast<int>(today);
    int year = this_year - this_year % 100 + two_digits;
    if (year > this_year + 50) year -= 100;
    return year;
}

std::optional<WallTime> assemble(int year, std::optional<unsigned> in_month, int day,
                                 std::chrono::seconds time, std::chrono::minutes offset) noexcept {
    if (!in_month) return std::nullopt;
    std::chrono::year_month_day const date{std::chrono::year{year}, std::chrono::month{*in_month},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    // Beyond these years a count of nanoseconds runs over.
    if (!date.ok() || year < 1700 || year > 2250) return std::nullopt;
    return WallTime{std::chrono::sys_days{date}.time_since_epoch() + time - offset};
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) noexcept {
    Cursor cursor{text};
    cursor.spaces();
    auto const weekday = cursor.word();
    if (weekday.size() < 3) return std::nullopt;

    if (cursor.take(',')) {
        cursor.spaces();
        auto const day = cursor.number(1, 2);
        if (!day) return std::nullopt;
        bool const dashes = cursor.take('-');  // Friday, 15-Jan-27 08:00:30 GMT
        if (!dashes && !cursor.spaces()) return std::nullopt;
        auto const in_month = month(cursor.word());
        if (dashes ? !cursor.take('-') : !cursor.spaces()) return std::nullopt;
        auto const digits_before = cursor.left();
        auto year = cursor.number(2, 4);
        if (!year) return std::nullopt;
        auto const digits = digits_before - cursor.left();
        if (digits == 3) return std::nullopt;
        if (digits == 2) year = full_year(*year, now);
        if (!cursor.spaces()) return std::nullopt;
        auto const time = time_of_day(cursor);
        if (!time) return std::nullopt;
        auto const offset = zone(cursor);
        if (!offset) return std::nullopt;
        return assemble(*year, in_month, *day, *time, *offset);
    }

    // Fri Jan 15 08:00:30 2027
    if (!cursor.spaces()) return std::nullopt;
    auto const in_month = month(cursor.word());
    if (!cursor.spaces()) return std::nullopt;
    auto const day = cursor.number(1, 2);
    if (!day || !cursor.spaces()) return std::nullopt;
    auto const time = time_of_day(cursor);
    if (!time || !cursor.spaces()) return std::nullopt;
    auto const year = cursor.number(4, 4);
    cursor.spaces();
    if (!year || !cursor.done()) return std::nullopt;
    return assemble(*year, in_month, *day, *time, std::chrono::minutes{0});
}

}  // namespace tinkxx::service
