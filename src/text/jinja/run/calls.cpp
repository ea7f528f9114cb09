#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/filters/filters.hpp"
#include "text/jinja/methods/methods.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/program/machine.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tinkxx::text::jinja {

namespace {

/// What every Python object has, and the sandbox hides.
bool is_special_name(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 27> names{
        "__class__",  "__delattr__",   "__dir__",          "__doc__",
        "__eq__",     "__format__",    "__ge__",           "__getattribute__",
        "__gt__",     "__hash__",      "__init__",         "__init_subclass__",
        "__le__",     "__lt__",        "__ne__",           "__new__",
        "__reduce__", "__reduce_ex__", "__repr__",         "__setattr__",
        "__sizeof__", "__str__",       "__subclasshook__", "__len__",
        "__iter__",   "__getitem__",   "__contains__"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Value Machine::missing_attribute(Value const& owner, Value const& name) {
    auto const reason = name.view().starts_with("__") && is_special_name(name.view())
                            ? UndefinedData::Reason::unsafe
                            : UndefinedData::Reason::attribute;
    return undefined_value(arena_, {.reason = reason, .owner = owner, .name = name});
}

Value Machine::attribute(Value const& owner, Value const& name, Attribute known) {
    if (owner.is(Kind::dict)) {
        if (known == Attribute::other || !is_attribute(owner, known)) {
            auto const* const found = find(*owner.dict, name.view());
            return found != nullptr ? *found : missing_attribute(owner, name);
        }
        return other_attribute(owner, name, known);
    }
    if (owner.is(Kind::loop)) return loop_attribute(*owner.loop, name, known);
    if (owner.is(Kind::name_space)) {
        auto const* const found = find(*owner.name_space, name.view());
        return found != nullptr ? *found : missing_attribute(owner, name);
    }
    return other_attribute(owner, name, known);
}

Value Machine::other_attribute(Value const& owner, Value const& name, Attribute known) {
    if (owner.is_undefined()) fail_undefined(owner);
    if (known == Attribute::other) return missing_attribute(owner, name);
    if (is_unsafe(owner, known)) {
        return undefined_value(
            arena_, {.reason = UndefinedData::Reason::unsafe, .owner = owner, .name = name});
    }
    if (has_method(owner, known)) {
        auto method = plain_value(Kind::method);
        method.method =
            arena_.make<MethodData>(owner, static_cast<std::uint16_t>(known), name.view());
        return method;
    }
    auto const data = data_attribute(*this, owner, known);
    return data.is_missing() ? missing_attribute(owner, name) : data;
}

Value Machine::loop_attribute(LoopData& loop, Value const& name, Attribute known) {
    switch (known) {
        case Attribute::index0:
            return integer_value(loop.index0);
        case Attribute::index:
            return integer_value(loop.index0 + 1);
        case Attribute::first:
            return boolean_value(loop.index0 == 0);
        case Attribute::last:
            return boolean_value(loop.peek().is_missing());
        case Attribute::length:
            return integer_value(loop.length());
        case Attribute::revindex0:
            return integer_value(loop.length() - loop.index0 - 1);
        case Attribute::revindex:
            return integer_value(loop.length() - loop.index0);
        case Attribute::depth:
            return integer_value(loop.depth0 + 1);
        case Attribute::depth0:
            return integer_value(loop.depth0);
        case Attribute::previtem:
            return loop.index0 == 0 ? undefined_text("there is no previous item") : loop.before;
        case Attribute::nextitem: {
            auto const next = loop.peek();
            return next.is_missing() ? undefined_text("there is no next item") : next;
        }
        default: {
            auto owner = plain_value(Kind::loop);
            owner.loop = &loop;
            return other_attribute(owner, name, known);
        }
    }
}

Value Machine::item(Value const& owner, Value const& index) {
    switch (owner.kind) {
        case Kind::undefined:
            fail_undefined(owner);
        case Kind::dict:
            if (is_hashable(index)) {
                if (auto const* const found = find(*owner.dict, index)) return *found;
            }
            break;
        case Kind::string:
        case Kind::list:
        case Kind::tuple:
        case Kind::range:
            if (index.is_integer()) {
                auto const found = element(owner, index.as_integer());
                if (!found.is_missing()) return found;
            }
            break;
        default:
            break;
    }
    return missing_item(owner, index);
}

/// A text may also be the name of an attribute.
Value Machine::missing_item(Value const& owner, Value const& index) {
    if (!index.is_string()) {
        return undefined_value(
            arena_, {.reason = UndefinedData::Reason::element, .owner = owner, .name = index});
    }
    auto const known = attribute_of(index.view());
    if (owner.is(Kind::dict) && !is_attribute(owner, known)) return missing_attribute(owner, index);
    return attribute(owner, index, known);
}

Value Machine::call(Value const& callee, Arguments const& arguments) {
    switch (callee.kind) {
        case Kind::undefined:
            fail_undefined(callee);
        case Kind::macro:
            return call_macro(*callee.macro, arguments);
        case Kind::function:
            return call_function(*this, static_cast<Function>(callee.number), arguments);
        case Kind::method:
            return call_method(*this, callee.method->owner,
                               static_cast<Attribute>(callee.method->method), callee.method->name,
                               arguments);
        case Kind::joiner: {
            expect_positional("Joiner", arguments, 0, 0);
            if (std::exchange(callee.joiner->used, true)) return callee.joiner->separator;
            return string_value({});
        }
        case Kind::loop: {
            expect_positional("loop", arguments, 1, 1);
            auto const& loop = *callee.loop;
            if (!loop.node->recursive) {
                fail_type("The loop must have the 'recursive' marker to be called recursively.");
            }
            return recursive_loop(*loop.node, arguments.positional[0], loop.depth0 + 1,
                                  loop.activation->outer);
        }
        default:
            fail_type("'" + std::string{type_name(callee)} + "' object is not callable");
    }
}

namespace {

[[noreturn]] void fail_macro_keyword(MacroNode const& node, std::string_view keyword) {
    auto const name = node.name.is_missing() ? std::string{"None"} : repr_of(node.name);
    if (keyword == "caller") {
        fail_type("macro " + name +
                  " was invoked with two values for the special caller argument. This is most "
                  "likely a bug.");
    }
    fail_type("macro " + name + " takes no keyword argument '" + std::string{keyword} + "'");
}

}  // namespace

/// Puts what a call gives where the macro expects it.
void Machine::bind_macro(MacroData const& macro, Arguments const& arguments, Value* slots) {
    auto const& node = *macro.node;
    auto const parameters = node.parameters.size;
    std::vector<bool> taken(arguments.keyword_count, false);
    auto const take = [&](std::string_view name) {
        for (std::uint32_t k = 0; k < arguments.keyword_count; ++k) {
            if (taken[k] || arguments.keywords[k].name.view() != name) continue;
            taken[k] = true;
            return arguments.keywords[k].value;
        }
        return missing_value();
    };
    bool has_caller = false;
    for (std::uint32_t i = 0; i < parameters; ++i) {
        auto const& parameter = *node.parameters[i];
        auto& slot = slots[parameter.slot];
        slot = i < arguments.count ? arguments.positional[i] : take(parameter.name.view());
        has_caller = has_caller || parameter.name.view() == "caller";
    }
    if (node.takes_caller && !has_caller) {
        auto const caller = take("caller");
        slots[node.caller_slot] =
            caller.is_missing() || caller.is_none() ? undefined_text("No caller defined") : caller;
    }
    std::vector<DictData::Entry> left;
    for (std::uint32_t k = 0; k < arguments.keyword_count; ++k) {
        if (taken[k]) continue;
        if (!node.takes_keywords) fail_macro_keyword(node, arguments.keywords[k].name.view());
        left.push_back({arguments.keywords[k].name, arguments.keywords[k].value});
    }
    if (node.takes_keywords) {
        auto* const entries = arena_.array<DictData::Entry>(left.size());
        std::copy(left.begin(), left.end(), entries);
        slots[node.keywords_slot] = make_dict(arena_, entries, left.size());
    }
    auto const extra = arguments.count > parameters ? arguments.count - parameters : 0;
    if (node.takes_positional) {
        slots[node.positional_slot] = sequence_value(
            Kind::tuple, arguments.positional + (extra != 0 ? parameters : 0), extra);
    } else if (extra != 0) {
        fail_type("macro " + (node.name.is_missing() ? std::string{"None"} : repr_of(node.name)) +
                  " takes not more than " + std::to_string(parameters) + " argument(s)");
    }
}

Value Machine::call_macro(MacroData const& macro, Arguments const& arguments) {
    auto const& node = *macro.node;
    Deeper const deeper{*this, node.depth};
    auto* const made = activate(node.slots, macro.outer);
    bind_macro(macro, arguments, made->slots);
    auto* const before = std::exchange(activation_, made);
    auto const line = line_;
    begin(node.loads);
    auto const without_default = node.parameters.size - node.defaults.size;
    for (std::uint32_t i = 0; i < node.parameters.size; ++i) {
        auto const& parameter = *node.parameters[i];
        if (!made->slots[parameter.slot].is_missing()) continue;
        auto const value =
            i >= without_default
                ? evaluate(*node.defaults[i - without_default])
                : undefined_text("parameter " + repr_of(parameter.name) + " was not provided");
        made->slots[parameter.slot] = value;
    }
    auto const mark = begin_capture();
    (void)execute(node.body);
    auto const captured = end_capture(mark);
    activation_ = before;
    line_ = line;
    return captured;
}

}  // namespace tinkxx::text::jinja
