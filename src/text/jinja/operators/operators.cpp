#include "text/jinja/operators/operators.hpp"

#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace tinkxx::text::jinja {
namespace {

[[noreturn]] void fail_operands(char const* operation, Value const& left, Value const& right) {
    if (left.is_undefined()) fail_undefined(left);
    if (right.is_undefined()) fail_undefined(right);
    if (left.is(Kind::big_integer) || right.is(Kind::big_integer)) {
        fail_limit("integers of more than 64 bits cannot be computed with");
    }
    fail_type("unsupported operand type(s) for " + std::string{operation} + ": '" +
              std::string{type_name(left)} + "' and '" + std::string{type_name(right)} + "'");
}

[[noreturn]] void fail_overflow() {
    fail_limit("integers of more than 64 bits cannot be computed with");
}

bool both_integers(Value const& left, Value const& right) noexcept {
    return left.is_integer() && right.is_integer();
}
bool both_numbers(Value const& left, Value const& right) noexcept {
    return left.is_number() && right.is_number();
}

/// Appends in place if nothing was made since the left text.
Value join(Machine& machine, Value const& left, Value const& right) {
    if (left.size == 0) return right;
    if (right.size == 0) return left;
    check_text_size(std::size_t{left.size} + right.size);
    auto& arena = machine.arena();
    char const* begin = left.text;
    if (arena.extend(left.text + left.size, right.size)) {
        std::memcpy(const_cast<char*>(left.text) + left.size, right.text, right.size);
    } else {
        auto* const made = arena.bytes(std::size_t{left.size} + right.size);
        std::memcpy(made, left.text, left.size);
        std::memcpy(made + left.size, right.text, right.size);
        begin = made;
    }
    return string_value({begin, std::size_t{left.size} + right.size});
}

Value join_markup(Machine& machine, Value const& left, Value const& right) {
    auto const escaped = [&](Value const& value) {
        return value.is_markup() ? value : machine.text(escape_html(value.view()));
    };
    return markup_value(join(machine, escaped(left), escaped(right)), true);
}

Value repeat(Machine& machine, Value const& value, std::int64_t count) {
    auto const times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
    auto const limit = longest_text / std::max<std::size_t>(value.size, 1);
    if (value.size != 0 && times > limit) check_text_size(longest_text + 1);
    if (value.is_string()) {
        auto* const made = machine.arena().bytes(value.size * times);
        for (std::size_t i = 0; i < times && value.size != 0; ++i) {
            std::memcpy(made + i * value.size, value.text, value.size);
        }
        return markup_value(string_value({made, value.size * times}), value.is_markup());
    }
    if (value.size == 0) return value;
    auto* const made = machine.arena().array<Value>(value.size * times);
    for (std::size_t i = 0; i < times; ++i) {
        std::copy_n(value.items, value.size, made + i * value.size);
    }
    return sequence_value(value.kind, made, value.size * times);
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
    std::int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            fail_overflow();
        }
    }
    return result;
}

double real_modulo(double left, double right) {
    auto rest = std::fmod(left, right);
    if (rest != 0) return (rest < 0) != (right < 0) ? rest + right : rest;
    return std::copysign(0.0, right);
}

struct Bounds {
    std::int64_t start{0};
    std::int64_t step{1};
    std::int64_t count{0};
};

std::int64_t slice_bound(Value const& bound, std::int64_t size, std::int64_t least,
                         std::int64_t most) {
    if (bound.is_undefined()) fail_undefined(bound);
    if (!bound.is_integer()) {
        fail_type("slice indices must be integers or None or have an __index__ method");
    }
    auto index = bound.as_integer();
    if (index < 0) index = index < -size ? least : index + size;
    return std::clamp(index, least, most);
}

bool is_left_out(Value const& bound) noexcept { return bound.is_missing() || bound.is_none(); }

Bounds slice_bounds(std::int64_t size, Value const& start, Value const& stop, Value const& step) {
    Bounds bounds;
    if (!is_left_out(step)) {
        if (!step.is_integer()) (void)slice_bound(step, 0, 0, 0);
        bounds.step = std::max(step.as_integer(), -std::numeric_limits<std::int64_t>::max());
        if (bounds.step == 0) fail_value("slice step cannot be zero");
    }
    bool const forward = bounds.step > 0;
    auto const least = forward ? 0 : -1;
    auto const most = forward ? size : size - 1;
    bounds.start =
        is_left_out(start) ? (forward ? 0 : size - 1) : slice_bound(start, size, least, most);
    auto const end =
        is_left_out(stop) ? (forward ? size : -1) : slice_bound(stop, size, least, most);
    auto const distance = forward ? end - bounds.start : bounds.start - end;
    auto const stride = forward ? bounds.step : -bounds.step;
    bounds.count = distance > 0 ? (distance - 1) / stride + 1 : 0;
    return bounds;
}

Value slice_text(Machine& machine, Value const& value, Value const& start, Value const& stop,
                 Value const& step) {
    auto const text = value.view();
    machine.charge(text.size() / 64);
    bool const ascii = is_ascii(text);
    auto const size = ascii ? text.size() : count_characters(text);
    auto const bounds = slice_bounds(static_cast<std::int64_t>(size), start, stop, step);
    auto const offset = [&](std::int64_t index) {
        auto const at = static_cast<std::size_t>(index);
        return ascii ? at : offset_of_character(text, at);
    };
    if (bounds.count == 0) return markup_value(string_value({}), value.is_markup());
    if (bounds.step == 1) {
        auto const from = offset(bounds.start);
        auto const to = ascii ? from + static_cast<std::size_t>(bounds.count)
                              : from + offset_of_character(text.substr(from),
                                                           static_cast<std::size_t>(bounds.count));
        return markup_value(string_value(text.substr(from, to - from)), value.is_markup());
    }
    std::vector<std::string_view> characters;
    for (std::size_t at = 0; at < text.size(); at += character_size(text[at])) {
        characters.push_back(text.substr(at, character_size(text[at])));
    }
    std::string chosen;
    for (std::int64_t i = 0; i < bounds.count; ++i) {
        chosen += characters[static_cast<std::size_t>(bounds.start + i * bounds.step)];
    }
    return markup_value(machine.text(chosen), value.is_markup());
}

Value slice_range(Machine& machine, RangeData const& range, Bounds const& bounds) {
    auto* const made = machine.arena().make<RangeData>();
    made->start = range.start + bounds.start * range.step;
    made->step = range.step * bounds.step;
    made->size = bounds.count;
    made->stop = made->start + made->step * made->size;
    auto value = plain_value(Kind::range);
    value.range = made;
    return value;
}

}  // namespace

std::string escape_html(std::string_view text) {
    std::string escaped;
    for (auto const c : text) {
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '\'':
                escaped += "&#39;";
                break;
            case '"':
                escaped += "&#34;";
                break;
            default:
                escaped += c;
        }
    }
    return escaped;
}

Value add(Machine& machine, Value const& left, Value const& right) {
    if (left.is_string() && right.is_string()) {
        if (left.is_markup() || right.is_markup()) return join_markup(machine, left, right);
        return join(machine, left, right);
    }
    if (both_integers(left, right)) {
        std::int64_t sum = 0;
        if (__builtin_add_overflow(left.as_integer(), right.as_integer(), &sum)) fail_overflow();
        return integer_value(sum);
    }
    if (both_numbers(left, right)) return real_value(left.as_real() + right.as_real());
    if (left.is_sequence() && left.kind == right.kind) {
        auto* const made = machine.arena().array<Value>(std::size_t{left.size} + right.size);
        std::copy_n(left.items, left.size, made);
        std::copy_n(right.items, right.size, made + left.size);
        machine.charge((std::size_t{left.size} + right.size) / 16);
        return sequence_value(left.kind, made, std::size_t{left.size} + right.size);
    }
    if (left.is_string() && !right.is_undefined()) {
        fail_type("can only concatenate str (not \"" + std::string{type_name(right)} +
                  "\") to str");
    }
    if (left.is_sequence() && !right.is_undefined()) {
        auto const name = std::string{type_name(left)};
        fail_type("can only concatenate " + name + " (not \"" + std::string{type_name(right)} +
                  "\") to " + name);
    }
    fail_operands("+", left, right);
}

Value subtract(Value const& left, Value const& right) {
    if (both_integers(left, right)) {
        std::int64_t difference = 0;
        if (__builtin_sub_overflow(left.as_integer(), right.as_integer(), &difference)) {
            fail_overflow();
        }
        return integer_value(difference);
    }
    if (both_numbers(left, right)) return real_value(left.as_real() - right.as_real());
    fail_operands("-", left, right);
}

Value multiply(Machine& machine, Value const& left, Value const& right) {
    if (both_integers(left, right)) {
        std::int64_t product = 0;
        if (__builtin_mul_overflow(left.as_integer(), right.as_integer(), &product)) {
            fail_overflow();
        }
        return integer_value(product);
    }
    if (both_numbers(left, right)) return real_value(left.as_real() * right.as_real());
    auto const repeats = [](Value const& value) {
        return value.is_string() || value.is_sequence();
    };
    if (repeats(left) && right.is_integer()) return repeat(machine, left, right.as_integer());
    if (repeats(right) && left.is_integer()) return repeat(machine, right, left.as_integer());
    if (!left.is_undefined() && !right.is_undefined() && (repeats(left) || repeats(right))) {
        auto const& other = repeats(left) ? right : left;
        fail_type("can't multiply sequence by non-int of type '" + std::string{type_name(other)} +
                  "'");
    }
    fail_operands("*", left, right);
}

Value divide(Value const& left, Value const& right) {
    if (!both_numbers(left, right)) fail_operands("/", left, right);
    if (right.as_real() == 0) {
        fail_value(both_integers(left, right) ? "division by zero" : "float division by zero");
    }
    return real_value(left.as_real() / right.as_real());
}

Value floor_divide(Value const& left, Value const& right) {
    if (!both_numbers(left, right)) fail_operands("//", left, right);
    if (right.as_real() == 0) {
        fail_value(both_integers(left, right) ? "integer division or modulo by zero"
                                              : "float floor division by zero");
    }
    if (!both_integers(left, right)) {
        // As Python: from the rest, so that both agree.
        auto const rest = real_modulo(left.as_real(), right.as_real());
        auto const quotient = (left.as_real() - rest) / right.as_real();
        if (quotient == 0) return real_value(std::copysign(0.0, left.as_real() / right.as_real()));
        auto const floor = std::floor(quotient);
        return real_value(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    auto const a = left.as_integer();
    auto const b = right.as_integer();
    if (b == -1) return negate(integer_value(a));
    auto const quotient = a / b;
    return integer_value(a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
}

Value modulo(Machine& machine, Value const& left, Value const& right) {
    if (left.is_string()) return format_percent(machine, left, right);
    if (!both_numbers(left, right)) fail_operands("%", left, right);
    if (right.as_real() == 0) {
        fail_value(both_integers(left, right) ? "integer division or modulo by zero"
                                              : "float modulo");
    }
    if (!both_integers(left, right)) {
        return real_value(real_modulo(left.as_real(), right.as_real()));
    }
    auto const b = right.as_integer();
    if (b == -1) return integer_value(0);
    auto const rest = left.as_integer() % b;
    return integer_value(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

Value power(Value const& left, Value const& right) {
    if (!both_numbers(left, right)) fail_operands("** or pow()", left, right);
    if (both_integers(left, right) && right.as_integer() >= 0) {
        auto const base = left.as_integer();
        // These never overflow, and would be multiplied for ever.
        if (base == 0 || base == 1) return integer_value(right.as_integer() == 0 ? 1 : base);
        if (base == -1) return integer_value(right.as_integer() % 2 == 0 ? 1 : -1);
        return integer_value(integer_power(base, right.as_integer()));
    }
    auto const base = left.as_real();
    auto const exponent = right.as_real();
    if (base == 0 && exponent < 0) fail_value("0.0 cannot be raised to a negative power");
    if (base < 0 && std::floor(exponent) != exponent && std::isfinite(exponent)) {
        fail_value("complex numbers are not supported");
    }
    auto const result = std::pow(base, exponent);
    if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
        fail_value("(34, 'Numerical result out of range')");
    }
    return real_value(result);
}

Value negate(Value const& value) {
    if (value.is_integer()) {
        std::int64_t result = 0;
        if (__builtin_sub_overflow(std::int64_t{0}, value.as_integer(), &result)) fail_overflow();
        return integer_value(result);
    }
    if (value.is(Kind::real)) return real_value(-value.real);
    if (value.is_undefined()) fail_undefined(value);
    fail_type("bad operand type for unary -: '" + std::string{type_name(value)} + "'");
}

Value plus(Value const& value) {
    if (value.is_integer()) return integer_value(value.as_integer());
    if (value.is(Kind::real) || value.is(Kind::big_integer)) return value;
    if (value.is_undefined()) fail_undefined(value);
    fail_type("bad operand type for unary +: '" + std::string{type_name(value)} + "'");
}

Value slice(Machine& machine, Value const& value, Value const& start, Value const& stop,
            Value const& step) {
    switch (value.kind) {
        case Kind::undefined:
            fail_undefined(value);
        case Kind::string:
            return slice_text(machine, value, start, stop, step);
        case Kind::tuple:
        case Kind::list: {
            auto const bounds = slice_bounds(value.size, start, stop, step);
            auto const count = static_cast<std::size_t>(bounds.count);
            if (bounds.step == 1) {
                return sequence_value(value.kind, value.items + bounds.start, count);
            }
            machine.charge(count / 16);
            auto* const made = machine.arena().array<Value>(count);
            for (std::int64_t i = 0; i < bounds.count; ++i) {
                made[i] = value.items[bounds.start + i * bounds.step];
            }
            return sequence_value(value.kind, made, count);
        }
        case Kind::range:
            return slice_range(machine, *value.range,
                               slice_bounds(value.range->size, start, stop, step));
        case Kind::dict:
            fail_type("unhashable type: 'slice'");
        default:
            fail_type("'" + std::string{type_name(value)} + "' object is not subscriptable");
    }
}

Value element(Value const& sequence, std::int64_t index) {
    if (sequence.is_sequence()) {
        if (index < 0) index += sequence.size;
        return index >= 0 && index < sequence.size ? sequence.items[index] : missing_value();
    }
    if (sequence.is(Kind::range)) {
        auto const& range = *sequence.range;
        if (index < 0) index += range.size;
        return index >= 0 && index < range.size ? integer_value(range.start + index * range.step)
                                                : missing_value();
    }
    auto const text = sequence.view();
    if (index < 0) index += static_cast<std::int64_t>(count_characters(text));
    if (index < 0) return missing_value();
    auto const at = offset_of_character(text, static_cast<std::size_t>(index));
    if (at >= text.size()) return missing_value();
    return string_value(text.substr(at, character_size(text[at])));
}

}  // namespace tinkxx::text::jinja
