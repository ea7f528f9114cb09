#include "text/jinja/methods/methods.hpp"

#include "text/jinja/convert/text_of.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace tinkxx::text::jinja {
namespace {

bool is_text_method(Attribute name) noexcept {
    switch (name) {
        case Attribute::capitalize:
        case Attribute::casefold:
        case Attribute::center:
        case Attribute::count:
        case Attribute::encode:
        case Attribute::endswith:
        case Attribute::expandtabs:
        case Attribute::find:
        case Attribute::format:
        case Attribute::format_map:
        case Attribute::index:
        case Attribute::isalnum:
        case Attribute::isalpha:
        case Attribute::isascii:
        case Attribute::isdecimal:
        case Attribute::isdigit:
        case Attribute::isidentifier:
        case Attribute::islower:
        case Attribute::isnumeric:
        case Attribute::isprintable:
        case Attribute::isspace:
        case Attribute::istitle:
        case Attribute::isupper:
        case Attribute::join:
        case Attribute::ljust:
        case Attribute::lower:
        case Attribute::lstrip:
        case Attribute::maketrans:
        case Attribute::partition:
        case Attribute::removeprefix:
        case Attribute::removesuffix:
        case Attribute::replace:
        case Attribute::rfind:
        case Attribute::rindex:
        case Attribute::rjust:
        case Attribute::rpartition:
        case Attribute::rsplit:
        case Attribute::rstrip:
        case Attribute::split:
        case Attribute::splitlines:
        case Attribute::startswith:
        case Attribute::strip:
        case Attribute::swapcase:
        case Attribute::title:
        case Attribute::translate:
        case Attribute::upper:
        case Attribute::zfill:
            return true;
        default:
            return false;
    }
}

bool is_integer_method(Attribute name) noexcept {
    return name == Attribute::bit_length || name == Attribute::bit_count ||
           name == Attribute::conjugate || name == Attribute::as_integer_ratio;
}

Value items_view(Value const& dict, ViewOf what) noexcept {
    auto view = plain_value(Kind::dict_view);
    view.flag = static_cast<std::uint8_t>(what);
    view.dict = dict.dict;
    return view;
}

Value call_dict_method(Machine& machine, Value const& owner, Attribute method,
                       std::string_view name, Arguments const& arguments) {
    switch (method) {
        case Attribute::items:
        case Attribute::keys:
        case Attribute::values:
            expect_positional(name, arguments, 0, 0);
            return items_view(owner, method == Attribute::items  ? ViewOf::items
                                     : method == Attribute::keys ? ViewOf::keys
                                                                 : ViewOf::values);
        case Attribute::copy:
            expect_positional(name, arguments, 0, 0);
            return owner;
        case Attribute::get: {
            expect_positional(name, arguments, 1, 2);
            auto const& key = arguments.positional[0];
            if (!is_hashable(key)) {
                fail_type("unhashable type: '" + std::string{type_name(key)} + "'");
            }
            if (auto const* const found = find(*owner.dict, key)) return *found;
            return arguments.count == 2 ? arguments.positional[1] : none_value();
        }
        default: {
            auto function = plain_value(Kind::function);
            function.number = static_cast<std::uint16_t>(Function::dict_fromkeys);
            return machine.call(function, arguments);
        }
    }
}

/// `index` and `count` of lists, tuples and ranges.
Value call_sequence_method(Machine& machine, Value const& owner, Attribute method,
                           std::string_view name, Arguments const& arguments) {
    if (method == Attribute::copy) {
        expect_positional(name, arguments, 0, 0);
        return owner;
    }
    expect_positional(name, arguments, 1, method == Attribute::index ? 3 : 1);
    auto const bound = [&](std::uint32_t place, std::int64_t otherwise) {
        if (arguments.count <= place) return otherwise;
        auto const& value = arguments.positional[place];
        if (!value.is_integer()) fail_type("slice indices must be integers");
        auto const given = value.as_integer();
        return given < 0 ? given + owner.size : given;
    };
    auto const begin = bound(1, 0);
    auto const end = bound(2, std::numeric_limits<std::int64_t>::max());
    std::int64_t place = 0;
    std::int64_t found = 0;
    Walk walk{owner};
    Value item;
    for (; walk.next(machine, item); ++place) {
        machine.charge(1);
        if (!equal(item, arguments.positional[0])) continue;
        if (method == Attribute::index && place >= begin && place < end)
            return integer_value(place);
        ++found;
    }
    if (method == Attribute::count) return integer_value(found);
    fail_value(repr_of(arguments.positional[0]) + " is not in " + std::string{type_name(owner)});
}

Value call_loop_method(Machine& machine, LoopData& loop, Attribute method,
                       Arguments const& arguments) {
    if (arguments.keyword_count != 0) fail_type("a method of loop takes no keyword arguments");
    if (method == Attribute::cycle) {
        if (arguments.count == 0) fail_type("no items for cycling given");
        return arguments.positional[static_cast<std::uint64_t>(loop.index0) % arguments.count];
    }
    auto const given = machine.tuple({arguments.positional, arguments.count});
    if (!loop.changed.is_missing() && equal(loop.changed, given)) return boolean_value(false);
    loop.changed = given;
    return boolean_value(true);
}

Value call_cycler_method(CyclerData& cycler, Attribute method, std::string_view name,
                         Arguments const& arguments) {
    expect_positional(name, arguments, 0, 0);
    if (method == Attribute::reset) {
        cycler.position = 0;
        return none_value();
    }
    auto const value = cycler.items[cycler.position];
    cycler.position = (cycler.position + 1) % cycler.size;
    return value;
}

Value ratio(Machine& machine, double number) {
    if (!std::isfinite(number)) fail_value("cannot convert NaN or infinity to integer ratio");
    int exponent = 0;
    auto mantissa = std::frexp(number, &exponent);
    for (int i = 0; i < 60 && std::floor(mantissa) != mantissa; ++i) {
        mantissa *= 2;
        --exponent;
    }
    if (exponent > 0) {
        mantissa = std::ldexp(mantissa, exponent);
        exponent = 0;
    }
    if (exponent < -62 || std::abs(mantissa) > 9e18) {
        fail_limit("integers of more than 64 bits cannot be computed with");
    }
    return machine.pair(integer_value(static_cast<std::int64_t>(mantissa)),
                        integer_value(std::int64_t{1} << -exponent));
}

Value call_number_method(Machine& machine, Value const& owner, Attribute method,
                         std::string_view name, Arguments const& arguments) {
    expect_positional(name, arguments, 0, 0);
    if (owner.is(Kind::real)) {
        if (method == Attribute::is_integer) {
            return boolean_value(std::isfinite(owner.real) && std::floor(owner.real) == owner.real);
        }
        return method == Attribute::conjugate ? owner : ratio(machine, owner.real);
    }
    auto const number = owner.as_integer();
    auto const size = number < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(number)
                                 : static_cast<std::uint64_t>(number);
    if (method == Attribute::bit_length)
        return integer_value(static_cast<std::int64_t>(std::bit_width(size)));
    if (method == Attribute::bit_count) return integer_value(std::popcount(size));
    if (method == Attribute::conjugate) return integer_value(number);
    return machine.pair(integer_value(number), integer_value(1));
}

bool disjoint(Machine& machine, Value const& owner, Arguments const& arguments) {
    expect_positional("isdisjoint", arguments, 1, 1);
    for (auto const& item : machine.items_of(arguments.positional[0])) {
        Walk walk{owner};
        Value own;
        while (walk.next(machine, own)) {
            machine.charge(1);
            if (equal(own, item)) return false;
        }
    }
    return true;
}

}  // namespace

bool has_method(Value const& owner, Attribute name) noexcept {
    if (name == Attribute::other) return false;
    switch (owner.kind) {
        case Kind::string:
            return is_text_method(name) || (owner.is_markup() && (name == Attribute::unescape ||
                                                                  name == Attribute::striptags));
        case Kind::dict:
            return name == Attribute::get || name == Attribute::items || name == Attribute::keys ||
                   name == Attribute::values || name == Attribute::copy ||
                   name == Attribute::fromkeys;
        case Kind::list:
            return name == Attribute::index || name == Attribute::count || name == Attribute::copy;
        case Kind::tuple:
        case Kind::range:
            return name == Attribute::index || name == Attribute::count;
        case Kind::integer:
        case Kind::boolean:
            return is_integer_method(name);
        case Kind::real:
            return name == Attribute::is_integer || name == Attribute::conjugate ||
                   name == Attribute::as_integer_ratio;
        case Kind::loop:
            return name == Attribute::cycle || name == Attribute::changed;
        case Kind::cycler:
            return name == Attribute::next || name == Attribute::reset;
        case Kind::dict_view:
            return name == Attribute::isdisjoint &&
                   owner.flag != static_cast<std::uint8_t>(ViewOf::values);
        case Kind::function:
            return name == Attribute::fromkeys &&
                   owner.number == static_cast<std::uint16_t>(Function::dict);
        default:
            return false;
    }
}

bool is_unsafe(Value const& owner, Attribute name) noexcept {
    if (owner.is(Kind::dict)) {
        return name == Attribute::clear || name == Attribute::pop || name == Attribute::popitem ||
               name == Attribute::setdefault || name == Attribute::update;
    }
    return owner.is(Kind::list) &&
           (name == Attribute::append || name == Attribute::clear || name == Attribute::pop ||
            name == Attribute::reverse || name == Attribute::insert || name == Attribute::sort ||
            name == Attribute::extend || name == Attribute::remove);
}

Value data_attribute(Machine& machine, Value const& owner, Attribute name) {
    switch (owner.kind) {
        case Kind::range:
            if (name == Attribute::start) return integer_value(owner.range->start);
            if (name == Attribute::stop) return integer_value(owner.range->stop);
            if (name == Attribute::step) return integer_value(owner.range->step);
            break;
        case Kind::integer:
        case Kind::boolean:
            if (name == Attribute::real || name == Attribute::numerator)
                return integer_value(owner.as_integer());
            if (name == Attribute::imag) return integer_value(0);
            if (name == Attribute::denominator) return integer_value(1);
            break;
        case Kind::real:
            if (name == Attribute::real) return owner;
            if (name == Attribute::imag) return real_value(0);
            break;
        case Kind::cycler:
            if (name == Attribute::current) return owner.cycler->items[owner.cycler->position];
            if (name == Attribute::pos) return integer_value(owner.cycler->position);
            if (name == Attribute::items)
                return machine.tuple({owner.cycler->items, owner.cycler->size});
            break;
        case Kind::tuple:
            // Of the filter `groupby`.
            if (owner.flag != 0 && name == Attribute::grouper) return owner.items[0];
            if (owner.flag != 0 && name == Attribute::list) return owner.items[1];
            break;
        case Kind::joiner:
            if (name == Attribute::sep) return owner.joiner->separator;
            if (name == Attribute::used) return boolean_value(owner.joiner->used);
            break;
        case Kind::macro: {
            auto const& node = *owner.macro->node;
            if (name == Attribute::name) {
                return node.name.is_missing() ? none_value() : node.name;
            }
            if (name == Attribute::arguments) {
                std::vector<Value> names;
                for (auto const* parameter : node.parameters) names.push_back(parameter->name);
                return machine.tuple(names);
            }
            if (name == Attribute::caller) return boolean_value(node.takes_caller);
            if (name == Attribute::catch_kwargs) return boolean_value(node.takes_keywords);
            if (name == Attribute::catch_varargs) return boolean_value(node.takes_positional);
            break;
        }
        default:
            break;
    }
    return missing_value();
}

Value call_method(Machine& machine, Value const& owner, Attribute method, std::string_view name,
                  Arguments const& arguments) {
    switch (owner.kind) {
        case Kind::string:
            return call_text_method(machine, owner, method, name, arguments);
        case Kind::dict:
            return call_dict_method(machine, owner, method, name, arguments);
        case Kind::list:
        case Kind::tuple:
        case Kind::range:
            return call_sequence_method(machine, owner, method, name, arguments);
        case Kind::loop:
            return call_loop_method(machine, *owner.loop, method, arguments);
        case Kind::cycler:
            return call_cycler_method(*owner.cycler, method, name, arguments);
        case Kind::dict_view:
            return boolean_value(disjoint(machine, owner, arguments));
        case Kind::function: {
            auto function = plain_value(Kind::function);
            function.number = static_cast<std::uint16_t>(Function::dict_fromkeys);
            return machine.call(function, arguments);
        }
        default:
            return call_number_method(machine, owner, method, name, arguments);
    }
}

}  // namespace tinkxx::text::jinja
