#include "text/jinja/filters/filters.hpp"

#include "text/jinja/convert/order.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <charconv>

namespace tinkxx::text::jinja {
namespace {

bool is_digits(std::string_view text) noexcept {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Value path_part(std::string_view part) {
    std::int64_t index = 0;
    if (is_digits(part) &&
        std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc{}) {
        return integer_value(index);
    }
    return string_value(part);
}

bool same_object(Value const& left, Value const& right) {
    if (left.kind != right.kind) return false;
    if (left.is_sequence()) return left.items == right.items && left.size == right.size;
    if (left.is(Kind::dict)) return left.dict == right.dict;
    if (left.is_undefined()) return left.undefined == right.undefined;
    return equal(left, right);
}

Value const& only_argument(std::string_view name, Arguments const& arguments) {
    if (arguments.count + arguments.keyword_count != 1) {
        fail_type("the test '" + std::string{name} + "' takes exactly one argument");
    }
    return arguments.count == 1 ? arguments.positional[0] : arguments.keywords[0].value;
}

bool is_callable(Value const& value) noexcept {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::macro:
        case Kind::loop:
        case Kind::function:
        case Kind::method:
        case Kind::joiner:
            return true;
        default:
            return false;
    }
}

bool type_test(Test which, Value const& value) {
    switch (which) {
        case Test::defined:
            return !value.is_undefined();
        case Test::undefined:
            return value.is_undefined();
        case Test::none:
            return value.is_none();
        case Test::boolean:
            return value.is(Kind::boolean);
        case Test::false_value:
            return value.is(Kind::boolean) && value.flag == 0;
        case Test::true_value:
            return value.is(Kind::boolean) && value.flag != 0;
        case Test::integer:
            return value.is(Kind::integer) || value.is(Kind::big_integer);
        case Test::real:
            return value.is(Kind::real);
        case Test::number:
            return value.is_number() || value.is(Kind::big_integer);
        case Test::string:
            return value.is_string();
        case Test::mapping:
            return value.is(Kind::dict);
        case Test::sequence:
            return value.is_string() || value.is_sequence() || value.is(Kind::dict) ||
                   value.is(Kind::range) || value.is_undefined();
        case Test::iterable:
            return is_iterable(value) || value.is(Kind::loop);
        case Test::callable:
            return is_callable(value);
        case Test::escaped:
            return value.is_markup();
        default:
            return false;
    }
}

/// `lower` and `upper`.
bool case_test(Test which, Value const& value) {
    auto const text = text_of(value);
    bool cased = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const code = next_character(text, at);
        bool const low = python::is_lower(code);
        bool const up = python::is_upper(code);
        if (python::is_title(code) || (which == Test::lower ? up : low)) return false;
        cased = cased || low || up;
    }
    return cased;
}

bool order_test(Test which, Value const& left, Value const& right) {
    switch (which) {
        case Test::lt:
        case Test::lessthan:
        case Test::less_sign:
            return less(left, right);
        case Test::gt:
        case Test::greaterthan:
        case Test::greater_sign:
            return less(right, left);
        case Test::le:
        case Test::less_equal_sign:
            return less(left, right) || equal(left, right);
        default:
            return less(right, left) || equal(left, right);
    }
}

}  // namespace

AttributePath::AttributePath(Value const& attribute) {
    if (attribute.is_missing() || attribute.is_none()) return;
    if (!attribute.is_string()) {
        parts_.push_back(attribute);
        return;
    }
    auto text = attribute.view();
    while (true) {
        auto const dot = std::min(text.find('.'), text.size());
        parts_.push_back(path_part(text.substr(0, dot)));
        if (dot == text.size()) return;
        text.remove_prefix(dot + 1);
    }
}

Value AttributePath::get(Machine& machine, Value item, Value const& instead) const {
    for (auto const& part : parts_) {
        machine.charge(1);
        item = machine.item(item, part);
        if (item.is_undefined() && !instead.is_missing() && !instead.is_none()) item = instead;
    }
    return item;
}

Value lower_key(Machine& machine, Value const& value) {
    return value.is_string() ? machine.text(python::lower_text(value.view())) : value;
}

Value Machine::filter(Filter which, std::string_view name, Value const& operand,
                      Arguments const& arguments) {
    charge(1);
    for (auto const group : {text_filter, list_filter, lazy_filter, number_filter}) {
        auto const made = group(*this, which, operand, arguments);
        if (!made.is_missing()) return made;
    }
    if (which == Filter::unknown) {
        throw Failure{Failure::Kind::value, "No filter named '" + std::string{name} + "' found."};
    }
    fail_value("the filter '" + std::string{name} + "' is not supported in chat templates");
}

bool Machine::test(Test which, std::string_view name, Value const& operand,
                   Arguments const& arguments) {
    switch (which) {
        case Test::unknown:
            fail_value("No test named '" + std::string{name} + "' found.");
        case Test::eq:
        case Test::equalto:
        case Test::equal_sign:
            return equal(operand, only_argument(name, arguments));
        case Test::ne:
        case Test::not_equal:
            return !equal(operand, only_argument(name, arguments));
        case Test::lt:
        case Test::lessthan:
        case Test::less_sign:
        case Test::gt:
        case Test::greaterthan:
        case Test::greater_sign:
        case Test::le:
        case Test::less_equal_sign:
        case Test::ge:
        case Test::greater_equal_sign:
            return order_test(which, operand, only_argument(name, arguments));
        case Test::in:
            return contains(only_argument(name, arguments), operand);
        case Test::sameas:
            return same_object(operand, only_argument(name, arguments));
        case Test::divisibleby:
            return equal(modulo(*this, operand, only_argument(name, arguments)), integer_value(0));
        default:
            break;
    }
    expect_positional(name, arguments, 0, 0);
    switch (which) {
        case Test::odd:
            return equal(modulo(*this, operand, integer_value(2)), integer_value(1));
        case Test::even:
            return equal(modulo(*this, operand, integer_value(2)), integer_value(0));
        case Test::lower:
        case Test::upper:
            return case_test(which, operand);
        case Test::filter:
            return operand.is_string() && filter_of(operand.view()) != Filter::unknown;
        case Test::test:
            return operand.is_string() && test_of(operand.view()) != Test::unknown;
        default:
            return type_test(which, operand);
    }
}

}  // namespace tinkxx::text::jinja
