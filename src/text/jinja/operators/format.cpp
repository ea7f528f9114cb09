#include "text/jinja/operators/format.hpp"

#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tinkxx::text::jinja {
namespace {

constexpr std::int64_t widest = 1 << 20;
constexpr std::int64_t most_precise = 4096;

void check_width(std::int64_t width, std::int64_t precision) {
    if (width > widest || precision > std::max(widest, most_precise)) {
        fail_limit("a width or precision of more than " + std::to_string(widest) +
                   " is not supported");
    }
}

std::string digits_of(std::uint64_t number, int base, bool upper) {
    std::array<char, 72> digits;
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    std::string text{digits.data(), end};
    if (upper) {
        for (auto& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    return text;
}

std::uint64_t size_of(std::int64_t number) noexcept {
    return number < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(number)
                      : static_cast<std::uint64_t>(number);
}

/// The parts of a number: what stands before the padding of zeros, and what behind it.
struct Shown {
    std::string prefix;
    std::string digits;
};

std::string pad(std::string_view text, FormatSpec const& spec, char align) {
    auto const size = static_cast<std::int64_t>(count_characters(text));
    auto const room = std::max<std::int64_t>(spec.width - size, 0);
    auto const before = align == '<' ? 0 : (align == '^' ? room / 2 : room);
    std::string padded;
    for (std::int64_t i = 0; i < before; ++i) padded += spec.fill;
    padded += text;
    for (std::int64_t i = before; i < room; ++i) padded += spec.fill;
    return padded;
}

std::string pad_number(Shown const& shown, FormatSpec const& spec) {
    auto const align = spec.align == 0 ? '>' : spec.align;
    if (align != '=') return pad(shown.prefix + shown.digits, spec, align);
    auto inner = spec;
    inner.width -= static_cast<std::int64_t>(shown.prefix.size());
    return shown.prefix + pad(shown.digits, inner, '>');
}

/// Separators between groups of digits; with zeros up to the width, these are grouped too.
std::string group(std::string const& digits, char separator, std::size_t every,
                  std::int64_t width) {
    auto const end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
    std::string whole = digits.substr(0, end);
    auto const rest = digits.substr(end);
    auto const grouped_size = [&](std::size_t count) { return count + (count - 1) / every; };
    while (static_cast<std::int64_t>(grouped_size(whole.size() + 1) + rest.size()) <= width) {
        whole.insert(0, 1, '0');
    }
    // A separator cannot stand in front: one zero more than fits, as Python does it.
    if (static_cast<std::int64_t>(grouped_size(whole.size()) + rest.size()) < width) {
        whole.insert(0, 1, '0');
    }
    std::string grouped;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        if (i != 0 && (whole.size() - i) % every == 0) grouped += separator;
        grouped += whole[i];
    }
    return grouped + rest;
}

void add_groups(Shown& shown, FormatSpec const& spec, std::size_t every) {
    if (spec.grouping == 0) return;
    bool const zeros = spec.align == '=' && spec.fill == "0";
    auto const width = zeros ? spec.width - static_cast<std::int64_t>(shown.prefix.size()) : 0;
    shown.digits = group(shown.digits, spec.grouping, every, width);
}

std::string sign_text(bool negative, char sign) {
    if (negative) return "-";
    return sign == '-' ? std::string{} : std::string{sign};
}

std::string format_integer(std::int64_t number, FormatSpec const& spec) {
    if (spec.precision >= 0) fail_value("Precision not allowed in integer format specifier");
    Shown shown;
    shown.prefix = sign_text(number < 0, spec.sign);
    auto const size = size_of(number);
    std::size_t every = 4;
    switch (spec.type) {
        case 'b':
            shown.digits = digits_of(size, 2, false);
            if (spec.alternate) shown.prefix += "0b";
            break;
        case 'o':
            shown.digits = digits_of(size, 8, false);
            if (spec.alternate) shown.prefix += "0o";
            break;
        case 'x':
        case 'X':
            shown.digits = digits_of(size, 16, spec.type == 'X');
            if (spec.alternate) shown.prefix += spec.type == 'x' ? "0x" : "0X";
            break;
        default:
            shown.digits = std::to_string(size);
            every = 3;
    }
    add_groups(shown, spec, every);
    return pad_number(shown, spec);
}

std::string format_character(std::int64_t number, FormatSpec const& spec) {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
        fail_value("%c arg not in range(0x110000)");
    }
    std::string text;
    append_utf8(text, static_cast<char32_t>(number));
    return pad(text, spec, spec.align == 0 ? '<' : spec.align);
}

std::string format_real(double number, FormatSpec const& spec) {
    Shown shown;
    bool const negative = std::signbit(number) && !std::isnan(number);
    shown.prefix = sign_text(negative, spec.sign);
    auto const size = std::abs(number);
    auto const type = spec.type;
    if (type == 0 && spec.precision < 0) {
        append_real(shown.digits, size);
    } else if (type == 0) {
        // As `g`, but with a digit behind the point.
        shown.digits = show_real(size, 'g', std::max<std::int64_t>(spec.precision, 1), false);
        if (shown.digits.find_first_not_of("0123456789") == std::string::npos) {
            if (static_cast<std::int64_t>(shown.digits.size()) < spec.precision ||
                spec.precision == 0) {
                shown.digits += ".0";
            } else {
                shown.digits =
                    show_real(size, 'e', std::max<std::int64_t>(spec.precision - 1, 0), false);
                auto const point = shown.digits.find('.');
                auto const exponent = shown.digits.find('e');
                if (point != std::string::npos) {
                    auto last = exponent;
                    while (last > point + 1 && shown.digits[last - 1] == '0') --last;
                    if (last == point + 1) last = point;
                    shown.digits.erase(last, exponent - last);
                }
            }
        }
    } else if (type == '%') {
        shown.digits =
            show_real(size * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) +
            "%";
    } else {
        auto const conversion = type == 'n' ? 'g' : type;
        shown.digits =
            show_real(size, conversion, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
    }
    add_groups(shown, spec, 3);
    return pad_number(shown, spec);
}

[[noreturn]] void fail_code(char type, Value const& value) {
    fail_value("Unknown format code '" + std::string{type} + "' for object of type '" +
               std::string{type_name(value)} + "'");
}

std::string format_text(Value const& value, FormatSpec const& spec) {
    if (spec.type != 0 && spec.type != 's') fail_code(spec.type, value);
    if (spec.align == '=') {
        fail_value("'=' alignment not allowed in string format specifier");
    }
    auto text = value.view();
    if (spec.precision >= 0) {
        text = text.substr(0, offset_of_character(text, static_cast<std::size_t>(spec.precision)));
    }
    return pad(text, spec, spec.align == 0 ? '<' : spec.align);
}

std::int64_t take_number(std::string_view& text, std::int64_t otherwise) {
    std::int64_t number = otherwise;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || text.front() < '0' || text.front() > '9') return otherwise;
    if (error != std::errc{}) fail_value("Too many decimal digits in format string");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool is_align(std::string_view text) noexcept {
    return !text.empty() && std::string_view{"<>=^"}.find(text.front()) != std::string_view::npos;
}

bool take(std::string_view& text, char wanted) noexcept {
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(1);
    return true;
}

FormatSpec parse_spec(std::string_view text) {
    FormatSpec spec;
    auto const first = text.empty() ? 0 : character_size(text.front());
    if (is_align(text.substr(std::min(first, text.size()))) && first != 0) {
        spec.fill = text.substr(0, first);
        spec.align = text[first];
        text.remove_prefix(first + 1);
    } else if (is_align(text)) {
        spec.align = text.front();
        text.remove_prefix(1);
    }
    if (!text.empty() && (text.front() == '+' || text.front() == '-' || text.front() == ' ')) {
        spec.sign = text.front();
        text.remove_prefix(1);
    }
    (void)take(text, 'z');
    spec.alternate = take(text, '#');
    if (text.starts_with('0') && spec.align == 0) {
        spec.fill = "0";
        spec.align = '=';
    }
    (void)take(text, '0');
    spec.width = take_number(text, 0);
    if (text.starts_with(',') || text.starts_with('_')) {
        spec.grouping = text.front();
        text.remove_prefix(1);
    }
    if (take(text, '.')) {
        spec.precision = take_number(text, -1);
        if (spec.precision < 0) fail_value("Format specifier missing precision");
    }
    if (text.size() > 1) fail_value("Invalid format specifier");
    if (!text.empty()) spec.type = text.front();
    check_width(spec.width, spec.precision);
    return spec;
}

}  // namespace

std::string show_real(double number, char conversion, std::int64_t precision, bool alternate) {
    if (precision > most_precise) {
        fail_limit("a precision of more than " + std::to_string(most_precise) +
                   " digits is not supported");
    }
    if (!std::isfinite(number)) {
        std::string text;
        append_real(text, number);
        if (conversion >= 'A' && conversion <= 'Z') {
            for (auto& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
        }
        return text;
    }
    std::array<char, 8> pattern{'%', alternate ? '#' : '.', '.', '*', conversion, 0};
    if (!alternate) pattern = {'%', '.', '*', conversion, 0};
    auto const digits = static_cast<int>(precision);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    auto const size = std::snprintf(nullptr, 0, pattern.data(), digits, number);
    std::string text(static_cast<std::size_t>(size) + 1, '\0');
    std::snprintf(text.data(), text.size(), pattern.data(), digits, number);
#pragma GCC diagnostic pop
    text.pop_back();
    return text;
}

std::string format_value(Value const& value, std::string_view text) {
    if (text.empty()) return text_of(value);
    auto const spec = parse_spec(text);
    auto const type = spec.type;
    if (value.is_string()) return format_text(value, spec);
    bool const real_type = std::string_view{"eEfFgG%"}.find(type) != std::string_view::npos;
    if (value.is(Kind::real)) {
        if (type != 0 && type != 'n' && !real_type) fail_code(type, value);
        return format_real(value.real, spec);
    }
    if (value.is(Kind::boolean) && type == 0) {
        auto spec_of_text = spec;
        if (spec.align == 0) spec_of_text.align = '>';
        return pad_number({{}, std::to_string(value.as_integer())}, spec_of_text);
    }
    if (value.is_integer()) {
        if (type != 0 && real_type) return format_real(value.as_real(), spec);
        if (type == 'c') return format_character(value.as_integer(), spec);
        if (type != 0 && std::string_view{"bodxXn"}.find(type) == std::string_view::npos) {
            fail_code(type, value);
        }
        return format_integer(value.as_integer(), spec);
    }
    if (value.is_undefined() || value.is_none() || !value.is(Kind::big_integer)) {
        fail_type("unsupported format string passed to " + std::string{type_name(value)} +
                  ".__format__");
    }
    fail_limit("integers of more than 64 bits cannot be formatted");
}

}  // namespace tinkxx::text::jinja
