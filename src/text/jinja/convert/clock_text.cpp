#include "text/jinja/convert/clock_text.hpp"

#include "text/jinja/values/budget.hpp"

#include <array>

namespace tinkxx::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> days{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> months{"January",   "February", "March",    "April",
                                                  "May",       "June",     "July",     "August",
                                                  "September", "October",  "November", "December"};

struct Moment {
    std::chrono::year_month_day date{};
    unsigned weekday{0};  ///< from Sunday
    int day_of_year{1};
    std::int64_t hour{0};
    std::int64_t minute{0};
    std::int64_t second{0};
    std::int64_t microsecond{0};
    std::int64_t since_epoch{0};

    [[nodiscard]] int year() const { return static_cast<int>(date.year()); }
    [[nodiscard]] unsigned month() const { return static_cast<unsigned>(date.month()); }
    [[nodiscard]] unsigned day() const { return static_cast<unsigned>(date.day()); }
};

Moment moment_of(LocalTime time) {
    namespace chrono = std::chrono;
    auto const day = chrono::floor<chrono::days>(time);
    Moment moment;
    moment.date = chrono::year_month_day{day};
    moment.weekday = chrono::weekday{day}.c_encoding();
    auto const first = chrono::local_days{moment.date.year() / chrono::January / 1};
    moment.day_of_year = static_cast<int>((day - first).count()) + 1;
    auto const within = time - day;
    moment.hour = within / chrono::hours{1};
    moment.minute = within % chrono::hours{1} / chrono::minutes{1};
    moment.second = within % chrono::minutes{1} / chrono::seconds{1};
    moment.microsecond = within % chrono::seconds{1} / chrono::microseconds{1};
    moment.since_epoch = chrono::floor<chrono::seconds>(time).time_since_epoch().count();
    return moment;
}

/// The year and the week of ISO 8601.
std::pair<int, int> iso_week(Moment const& moment) {
    auto const weekday = static_cast<int>((moment.weekday + 6) % 7);  // from Monday
    auto const weeks_of = [](int year) {
        auto const last = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
        return last(year) == 4 || last(year - 1) == 3 ? 53 : 52;
    };
    auto const week = (moment.day_of_year - 1 - weekday + 10) / 7;
    if (week < 1) return {moment.year() - 1, weeks_of(moment.year() - 1)};
    if (week > weeks_of(moment.year())) return {moment.year() + 1, 1};
    return {moment.year(), week};
}

/// How a number is padded: as its directive has it, or as a flag says.
struct Padding {
    char flag{0};

    [[nodiscard]] std::string show(std::int64_t number, std::size_t width, char usual = '0') const {
        auto const fill = flag == '0' ? '0' : (flag == '_' ? ' ' : usual);
        auto text = std::to_string(number);
        if (flag != '-' && text.size() < width) text.insert(0, width - text.size(), fill);
        return text;
    }
};

std::string numbers(Moment const& moment, char letter, Padding padding) {
    auto const hour12 = (moment.hour + 11) % 12 + 1;
    switch (letter) {
        case 'd':
            return padding.show(moment.day(), 2);
        case 'e':
            return padding.show(moment.day(), 2, ' ');
        case 'm':
            return padding.show(moment.month(), 2);
        case 'Y':
            return std::to_string(moment.year());
        case 'y':
            return padding.show(moment.year() % 100, 2);
        case 'C':
            return padding.show(moment.year() / 100, 2);
        case 'H':
            return padding.show(moment.hour, 2);
        case 'k':
            return padding.show(moment.hour, 2, ' ');
        case 'I':
            return padding.show(hour12, 2);
        case 'l':
            return padding.show(hour12, 2, ' ');
        case 'M':
            return padding.show(moment.minute, 2);
        case 'S':
            return padding.show(moment.second, 2);
        case 'f':
            return padding.show(moment.microsecond, 6);
        case 'j':
            return padding.show(moment.day_of_year, 3);
        case 'u':
            return std::to_string((moment.weekday + 6) % 7 + 1);
        case 'w':
            return std::to_string(moment.weekday);
        case 's':
            return std::to_string(moment.since_epoch);
        case 'U':
            return padding.show((moment.day_of_year + 6 - static_cast<int>(moment.weekday)) / 7, 2);
        case 'W':
            return padding.show(
                (moment.day_of_year + 6 - static_cast<int>((moment.weekday + 6) % 7)) / 7, 2);
        case 'V':
            return padding.show(iso_week(moment).second, 2);
        case 'G':
            return std::to_string(iso_week(moment).first);
        case 'g':
            return padding.show(iso_week(moment).first % 100, 2);
        default:
            return {};
    }
}

/// What a directive stands for that is several others.
std::string_view composed(char letter) noexcept {
    switch (letter) {
        case 'c':
            return "%a %b %e %H:%M:%S %Y";
        case 'D':
        case 'x':
            return "%m/%d/%y";
        case 'F':
            return "%Y-%m-%d";
        case 'T':
        case 'X':
            return "%H:%M:%S";
        case 'R':
            return "%H:%M";
        case 'r':
            return "%I:%M:%S %p";
        default:
            return {};
    }
}

std::string words(Moment const& moment, char letter) {
    switch (letter) {
        case 'a':
            return std::string{days[moment.weekday].substr(0, 3)};
        case 'A':
            return std::string{days[moment.weekday]};
        case 'b':
        case 'h':
            return std::string{months[moment.month() - 1].substr(0, 3)};
        case 'B':
            return std::string{months[moment.month() - 1]};
        case 'p':
            return moment.hour < 12 ? "AM" : "PM";
        case 'P':
            return moment.hour < 12 ? "am" : "pm";
        case 'n':
            return "\n";
        case 't':
            return "\t";
        case '%':
            return "%";
        default:
            return {};
    }
}

void append_time(std::string& made, Moment const& moment, std::string_view format) {
    for (std::size_t at = 0; at < format.size(); ++at) {
        check_text_size(made.size());
        if (format[at] != '%' || at + 1 == format.size()) {
            made += format[at];
            continue;
        }
        auto const begin = at++;
        Padding padding;
        bool upper = false;
        for (; at + 1 < format.size(); ++at) {
            auto const flag = format[at];
            if (flag == '^') {
                upper = true;
            } else if (flag == '-' || flag == '_' || flag == '0') {
                padding.flag = flag;
            } else {
                break;
            }
        }
        auto const letter = format[at];
        std::string text = words(moment, letter);
        if (text.empty()) text = numbers(moment, letter, padding);
        if (text.empty()) append_time(text, moment, composed(letter));
        bool const nothing = letter == 'Z' || letter == 'z';  // a time without a zone
        if (text.empty() && !nothing) text = format.substr(begin, at - begin + 1);
        for (auto& c : text) {
            if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
        }
        made += text;
    }
}

}  // namespace

std::string format_time(LocalTime time, std::string_view format) {
    std::string made;
    append_time(made, moment_of(time), format);
    return made;
}

}  // namespace tinkxx::text::jinja
