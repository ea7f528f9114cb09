#include "text/jinja/convert/numbers.hpp"

#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace tinkxx::text::jinja {
namespace {

std::string_view without_space(std::string_view text) noexcept {
    while (!text.empty()) {
        std::size_t at = 0;
        if (!python::is_space(next_character(text, at))) break;
        text.remove_prefix(at);
    }
    while (!text.empty()) {
        auto const last = previous_character(text, text.size());
        auto at = last;
        if (!python::is_space(next_character(text, at))) break;
        text = text.substr(0, last);
    }
    return text;
}

/// With digits of all scripts made those of ASCII, and single underscores between digits left out;
/// empty if an underscore stands elsewhere.
std::string plain_digits(std::string_view text) {
    std::string plain;
    bool digit_before = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const code = next_character(text, at);
        if (code == U'_') {
            auto after = at;
            if (!digit_before || at >= text.size()) return {};
            auto const following = next_character(text, after);
            if (following == U'_') return {};
            digit_before = false;
            continue;
        }
        if (code >= 0x80U && python::is_decimal(code)) {
            plain += static_cast<char>('0' + python::decimal_value(code));
        } else {
            append_utf8(plain, code);
        }
        digit_before = true;
    }
    return plain;
}

int prefix_base(std::string_view digits) noexcept {
    if (digits.size() < 2 || digits[0] != '0') return 10;
    switch (digits[1] | 0x20) {
        case 'x':
            return 16;
        case 'o':
            return 8;
        case 'b':
            return 2;
        default:
            return 10;
    }
}

}  // namespace

Value parse_integer(Arena& arena, std::string_view digits) {
    auto number = digits;
    if (number.starts_with('+')) number.remove_prefix(1);
    std::int64_t value = 0;
    auto const [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value, 10);
    if (error == std::errc{} && end == number.data() + number.size()) return integer_value(value);
    bool const negative = number.starts_with('-');
    if (negative) number.remove_prefix(1);
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    if (number.size() < 19) {
        // Zeros in front made it long.
        std::from_chars(number.data(), number.data() + number.size(), value, 10);
        return integer_value(negative ? -value : value);
    }
    auto big = text_value(arena, (negative ? "-" : "") + std::string{number});
    big.kind = Kind::big_integer;
    return big;
}

Value parse_integer_literal(Arena& arena, std::string_view digits) {
    auto const base = prefix_base(digits);
    if (base == 10) return parse_integer(arena, digits);
    std::int64_t value = 0;
    auto const [end, error] =
        std::from_chars(digits.data() + 2, digits.data() + digits.size(), value, base);
    if (error != std::errc{}) {
        throw Failure{Failure::Kind::syntax,
                      "the number " + std::string{digits} + " needs more than 64 bits"};
    }
    return integer_value(value);
}

std::optional<double> parse_real(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || text.empty()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
        // Too large or too small: what `strtod` gives for it.
        return std::strtod(std::string{text}.c_str(), nullptr);
    }
    if (error != std::errc{}) return std::nullopt;
    return value;
}

std::optional<Value> python_integer(Arena& arena, std::string_view text, int base) {
    auto const plain = plain_digits(without_space(text));
    std::string_view digits{plain};
    bool const negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    auto const prefix = prefix_base(digits);
    if (base == 0) {
        base = prefix;
        bool const zeros = digits.find_first_not_of('0') == std::string_view::npos;
        if (base == 10 && digits.size() > 1 && digits[0] == '0' && !zeros) return std::nullopt;
    }
    if (base < 2 || base > 36 || digits.empty()) return std::nullopt;
    if (prefix == base && prefix != 10) digits.remove_prefix(2);
    std::int64_t value = 0;
    auto const signed_digits = (negative ? "-" : "") + std::string{digits};
    auto const [end, error] = std::from_chars(
        signed_digits.data(), signed_digits.data() + signed_digits.size(), value, base);
    if (digits.empty() || digits.front() == '-' ||
        end != signed_digits.data() + signed_digits.size()) {
        return std::nullopt;
    }
    if (error == std::errc{}) return integer_value(value);
    if (base == 10) return parse_integer(arena, signed_digits);
    fail_value("the integer " + signed_digits + " needs more than 64 bits");
}

std::optional<double> python_real(std::string_view text) {
    auto const plain = plain_digits(without_space(text));
    std::string_view digits{plain};
    if (digits.empty()) return std::nullopt;
    bool const negative = digits.starts_with('-');
    auto const unsigned_digits = digits.substr(negative || digits.starts_with('+') ? 1 : 0);
    auto const lower = python::lower_text(unsigned_digits);
    if (lower == "inf" || lower == "infinity") {
        auto const infinity = std::numeric_limits<double>::infinity();
        return negative ? -infinity : infinity;
    }
    if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (lower.empty() || lower.find_first_not_of("0123456789.e+-") != std::string::npos ||
        lower.front() == '-' || lower.front() == '+') {
        return std::nullopt;
    }
    auto const value = parse_real(lower);
    if (!value) return std::nullopt;
    return negative ? -*value : *value;
}

}  // namespace tinkxx::text::jinja
