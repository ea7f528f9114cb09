#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tinkxx::text::jinja {
namespace {

/// Python's `text % values`, piece by piece.
class PercentFormat {
public:
    PercentFormat(std::string_view format, Value const& values, bool markup)
        : format_{format}, values_{values}, markup_{markup} {}

    std::string run() {
        while (at_ < format_.size()) {
            auto const percent = std::min(format_.find('%', at_), format_.size());
            made_ += format_.substr(at_, percent - at_);
            at_ = percent + 1;
            if (percent < format_.size()) conversion();
            check_text_size(made_.size());
        }
        bool const all =
            values_.is(Kind::dict) || used_ == count() || (mapped_ && !values_.is(Kind::tuple));
        if (!all) fail_type("not all arguments converted during string formatting");
        return std::move(made_);
    }

private:
    struct Spec {
        bool left{false};
        bool plus{false};
        bool space{false};
        bool alternate{false};
        bool zero{false};
        std::int64_t width{0};
        std::int64_t precision{-1};
    };

    [[nodiscard]] std::size_t count() const noexcept {
        return values_.is(Kind::tuple) ? values_.size : 1;
    }

    [[nodiscard]] char peek() const {
        if (at_ >= format_.size()) fail_value("incomplete format");
        return format_[at_];
    }

    Value next_value() {
        if (has_key_) return key_value_;
        if (used_ >= count()) fail_type("not enough arguments for format string");
        return values_.is(Kind::tuple) ? values_.items[used_++] : (++used_, values_);
    }

    void key() {
        has_key_ = false;
        if (peek() != '(') return;
        if (!values_.is(Kind::dict)) fail_type("format requires a mapping");
        int open = 1;
        auto const begin = ++at_;
        for (; open > 0; ++at_) {
            if (at_ >= format_.size()) fail_value("incomplete format key");
            if (format_[at_] == '(') ++open;
            if (format_[at_] == ')') --open;
        }
        auto const name = format_.substr(begin, at_ - 1 - begin);
        auto const* const found = find(*values_.dict, name);
        if (found == nullptr) fail_value(repr_of(string_value(name)));
        key_value_ = *found;
        has_key_ = true;
        mapped_ = true;
    }

    std::int64_t number() {
        if (peek() == '*') {
            ++at_;
            auto const value = next_value();
            if (!value.is_integer()) fail_type("* wants int");
            return value.as_integer();
        }
        std::int64_t number = 0;
        auto const [end, error] =
            std::from_chars(format_.data() + at_, format_.data() + format_.size(), number);
        if (format_[at_] < '0' || format_[at_] > '9') return 0;
        if (error != std::errc{}) fail_value("width too big");
        at_ = static_cast<std::size_t>(end - format_.data());
        return number;
    }

    void conversion() {
        key();
        Spec spec;
        for (;; ++at_) {
            auto const flag = peek();
            if (flag == '-') {
                spec.left = true;
            } else if (flag == '+') {
                spec.plus = true;
            } else if (flag == ' ') {
                spec.space = true;
            } else if (flag == '#') {
                spec.alternate = true;
            } else if (flag == '0') {
                spec.zero = true;
            } else {
                break;
            }
        }
        spec.width = number();
        if (spec.width < 0) {
            spec.left = true;
            spec.width = -std::max<std::int64_t>(spec.width, -(std::int64_t{1} << 40));
        }
        if (peek() == '.') {
            ++at_;
            spec.precision = std::max<std::int64_t>(number(), 0);
        }
        if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
        check_text_size(static_cast<std::size_t>(spec.width));
        auto const letter = peek();
        ++at_;
        show(letter, spec);
    }

    void show(char letter, Spec const& spec) {
        switch (letter) {
            case '%':
                made_ += '%';
                return;
            case 's':
            case 'r':
            case 'a':
                return text(shown(letter, next_value()), spec);
            case 'c':
                return character(next_value(), spec);
            case 'd':
            case 'i':
            case 'u':
                return integer(whole(next_value(), letter), 'd', spec);
            case 'x':
            case 'X':
            case 'o':
                return integer(strict_integer(next_value(), letter), letter, spec);
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G':
                return real(next_value(), letter, spec);
            default:
                fail_value("unsupported format character '" + std::string{letter} + "'");
        }
    }

    std::string shown(char letter, Value const& value) const {
        if (letter == 's') {
            auto const text = text_of(value);
            return markup_ && !value.is_markup() ? escape_html(text) : text;
        }
        return letter == 'r' ? repr_of(value) : ascii_of(value);
    }

    void pad(std::string_view text, Spec const& spec) {
        auto const size = static_cast<std::int64_t>(count_characters(text));
        auto const room = static_cast<std::size_t>(std::max<std::int64_t>(spec.width - size, 0));
        if (!spec.left) made_.append(room, ' ');
        made_ += text;
        if (spec.left) made_.append(room, ' ');
    }

    void text(std::string_view text, Spec const& spec) {
        if (spec.precision >= 0) {
            auto const end = offset_of_character(text, static_cast<std::size_t>(spec.precision));
            text = text.substr(0, end);
        }
        pad(text, spec);
    }

    void character(Value const& value, Spec const& spec) {
        std::string shown;
        if (value.is_string() && count_characters(value.view()) == 1) {
            shown = value.view();
        } else if (value.is_integer() && value.as_integer() >= 0 &&
                   value.as_integer() <= 0x10FFFF &&
                   (value.as_integer() < 0xD800 || value.as_integer() >= 0xE000)) {
            append_utf8(shown, static_cast<char32_t>(value.as_integer()));
        } else {
            fail_type("%c requires int or char");
        }
        pad(shown, spec);
    }

    static std::int64_t whole(Value const& value, char letter) {
        if (value.is_integer()) return value.as_integer();
        if (value.is_undefined()) fail_undefined(value);
        if (!value.is(Kind::real)) {
            fail_type("%" + std::string{letter} + " format: a real number is required, not " +
                      std::string{type_name(value)});
        }
        if (std::isnan(value.real)) fail_value("cannot convert float NaN to integer");
        if (!(std::abs(value.real) < 9.2e18)) {
            fail_limit("integers of more than 64 bits cannot be formatted");
        }
        return static_cast<std::int64_t>(value.real);
    }

    static std::int64_t strict_integer(Value const& value, char letter) {
        if (value.is_integer()) return value.as_integer();
        if (value.is_undefined()) fail_undefined(value);
        fail_type("%" + std::string{letter} + " format: an integer is required, not " +
                  std::string{type_name(value)});
    }

    void number_text(bool negative, std::string prefix, std::string digits, Spec const& spec) {
        auto sign = negative ? "-" : (spec.plus ? "+" : (spec.space ? " " : ""));
        prefix.insert(0, sign);
        auto const size = static_cast<std::int64_t>(prefix.size() + digits.size());
        if (spec.zero && !spec.left && spec.width > size) {
            digits.insert(0, static_cast<std::size_t>(spec.width - size), '0');
        }
        pad(prefix + digits, spec);
    }

    void integer(std::int64_t value, char letter, Spec const& spec) {
        auto const size = value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                                    : static_cast<std::uint64_t>(value);
        std::array<char, 72> buffer;
        auto const base = letter == 'd' ? 10 : (letter == 'o' ? 8 : 16);
        auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, base);
        std::string digits{buffer.data(), end.ptr};
        if (letter == 'X') {
            for (auto& c : digits) c = static_cast<char>(c >= 'a' ? c - 32 : c);
        }
        if (spec.precision > static_cast<std::int64_t>(digits.size())) {
            check_text_size(static_cast<std::size_t>(spec.precision));
            digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
        }
        std::string prefix;
        if (spec.alternate && letter != 'd') prefix = std::string{"0"} + letter;
        number_text(value < 0, prefix, digits, spec);
    }

    void real(Value const& value, char letter, Spec const& spec) {
        if (value.is_undefined()) fail_undefined(value);
        if (!value.is_number()) {
            fail_type("must be real number, not " + std::string{type_name(value)});
        }
        auto const number = value.as_real();
        bool const negative = std::signbit(number) && !std::isnan(number);
        number_text(negative, {},
                    show_real(std::abs(number), letter, spec.precision < 0 ? 6 : spec.precision,
                              spec.alternate),
                    spec);
    }

    std::string_view format_;
    Value values_;
    bool markup_;
    std::size_t at_{0};
    std::size_t used_{0};
    bool mapped_{false};
    bool has_key_{false};
    Value key_value_{};
    std::string made_;
};

}  // namespace

Value format_percent(Machine& machine, Value const& left, Value const& right) {
    machine.charge(left.size / 16);
    auto const made = machine.text(PercentFormat{left.view(), right, left.is_markup()}.run());
    return markup_value(made, left.is_markup());
}

}  // namespace tinkxx::text::jinja
