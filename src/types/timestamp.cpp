#include <tinkxx/types/timestamp.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>

namespace tinkxx {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;

/// Takes parts of a text off its front.
class TimeText {
public:
    explicit TimeText(std::string_view text) noexcept : rest_{text} {}

    [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
    [[nodiscard]] bool at_digit() const noexcept {
        return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
    }
    bool take(char c) noexcept {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool take_any(std::string_view characters) noexcept {
        return std::ranges::any_of(characters, [this](char c) { return take(c); });
    }
    /// A number of exactly so many digits.
    bool number(std::size_t digits, int& out) noexcept {
        if (rest_.size() < digits) return false;
        out = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            if (rest_[i] < '0' || rest_[i] > '9') return false;
            out = 10 * out + (rest_[i] - '0');
        }
        rest_.remove_prefix(digits);
        return true;
    }
    /// Digits after a point, as microseconds; what is smaller is cut off.
    bool fraction(microseconds& out) noexcept {
        if (!at_digit()) return false;
        auto digit = microseconds{100'000};
        for (; at_digit(); rest_.remove_prefix(1), digit /= 10) {
            out += digit * (rest_.front() - '0');
        }
        return true;
    }

private:
    std::string_view rest_;
};

std::optional<std::chrono::sys_days> date_in(TimeText& text) noexcept {
    int year = 0;
    int month = 0;
    int day = 0;
    if (!text.number(4, year) || !text.take('-') || !text.number(2, month) || !text.take('-') ||
        !text.number(2, day)) {
        return std::nullopt;
    }
    std::chrono::year_month_day const date{std::chrono::year{year},
                                           std::chrono::month{static_cast<unsigned>(month)},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok() || year == 0) return std::nullopt;
    return std::chrono::sys_days{date};
}

std::optional<microseconds> time_in(TimeText& text) noexcept {
    int hour = 0;
    int minute = 0;
    int second = 0;
    microseconds fraction{0};
    if (!text.number(2, hour) || !text.take(':') || !text.number(2, minute) || hour > 23 ||
        minute > 59) {
        return std::nullopt;
    }
    if (text.take(':')) {
        if (!text.number(2, second) || second > 59) return std::nullopt;
        if (text.take_any(".,") && !text.fraction(fraction)) return std::nullopt;
    }
    return std::chrono::hours{hour} + minutes{minute} + std::chrono::seconds{second} + fraction;
}

/// The offset at the end; false if there is something else.
bool offset_in(TimeText& text, std::optional<minutes>& out) noexcept {
    out.reset();
    if (text.done()) return true;
    if (text.take_any("Zz")) {
        out = minutes{0};
        return text.done();
    }
    bool const west = text.take('-');
    int hour = 0;
    int minute = 0;
    if (!west && !text.take('+')) return false;
    if (!text.number(2, hour) || hour > 23) return false;
    (void)text.take(':');
    if (!text.number(2, minute) || minute > 59) return false;
    auto const east = std::chrono::hours{hour} + minutes{minute};
    out = west ? -east : east;
    return text.done();
}

/// Seconds since 1970, or milliseconds if that many seconds would be far in the future.
std::optional<Timestamp> since_1970(std::string_view text) noexcept {
    constexpr double most_seconds = 2e10;
    constexpr double most = 2e14;  // milliseconds: some thousand years
    double number = 0;
    auto const* const end = text.data() + text.size();
    auto const read = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    if (!(number > -most && number < most)) return std::nullopt;
    bool const milliseconds = number > most_seconds || number < -most_seconds;
    auto const count = number * (milliseconds ? 1e3 : 1e6);
    return Timestamp{.time = Timestamp::Time{microseconds{
                         static_cast<std::int64_t>(count < 0 ? count - 0.5 : count + 0.5)}}};
}

}  // namespace

std::string to_string(Timestamp const& time) {
    auto const local = time.time + time.offset.value_or(minutes{0});
    auto const days = std::chrono::floor<std::chrono::days>(local);
    std::chrono::year_month_day const date{days};
    std::chrono::hh_mm_ss const clock{std::chrono::floor<std::chrono::seconds>(local - days)};
    char text[64];
    int size = std::snprintf(
        text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
        static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
        static_cast<int>(clock.seconds().count()));
    std::string out(text, static_cast<std::size_t>(size));
    auto const fraction = local - std::chrono::floor<std::chrono::seconds>(local);
    if (fraction.count() != 0) {
        size = std::snprintf(text, sizeof text, ".%06d", static_cast<int>(fraction.count()));
        out.append(text, static_cast<std::size_t>(size));
    }
    if (!time.offset) return out;
    if (time.offset->count() == 0) return out + 'Z';
    auto const east = static_cast<int>(time.offset->count());
    auto const distance = east < 0 ? -east : east;
    size = std::snprintf(text, sizeof text, "%c%02d:%02d", east < 0 ? '-' : '+', distance / 60,
                         distance % 60);
    return out.append(text, static_cast<std::size_t>(size));
}

std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept {
    TimeText rest{text};
    auto const date = date_in(rest);
    if (!date) return since_1970(text);
    Timestamp out{.time = *date, .offset = std::nullopt};
    if (rest.done()) return out;
    if (!rest.take_any("Tt _")) return std::nullopt;
    auto const time = time_in(rest);
    if (!time || !offset_in(rest, out.offset)) return std::nullopt;
    out.time += *time - out.offset.value_or(minutes{0});
    return out;
}

}  // namespace tinkxx
