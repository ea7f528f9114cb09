#include "text/jinja/filters.hpp"
#include "text/jinja/functions.hpp"
#include "text/jinja/machine.hpp"
#include "text/jinja/methods.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/text_of.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tinkxx::text::jinja {

Value Machine::unset(NameNode const& node) {
    return undefined_value(arena_, {.reason = UndefinedData::Reason::name, .name = node.name});
}

Value Machine::variable(NameNode const& node) {
    Value value;
    if (node.kind == NodeKind::local) {
        value = activation_->slots[node.slot];
    } else if (node.kind == NodeKind::context) {
        value = context_[node.slot];
    } else {
        auto const* from = activation_;
        for (std::uint32_t i = 0; i < node.hops; ++i) from = from->outer;
        value = from->slots[node.slot];
    }
    return value.is_missing() ? unset(node) : value;
}

Value Machine::evaluate(Node const& node) {
    charge(1);
    switch (node.kind) {
        case NodeKind::constant:
            return static_cast<ConstantNode const&>(node).value;
        case NodeKind::local:
        case NodeKind::outer:
        case NodeKind::context:
            return variable(static_cast<NameNode const&>(node));
        case NodeKind::attribute: {
            auto const& attribute_node = static_cast<AttributeNode const&>(node);
            auto const owner = evaluate(*attribute_node.owner);
            return attribute(owner, attribute_node.name, attribute_node.attribute);
        }
        case NodeKind::item: {
            auto const& item_node = static_cast<ItemNode const&>(node);
            auto const owner = evaluate(*item_node.owner);
            return item(owner, evaluate(*item_node.index));
        }
        case NodeKind::compare:
            return evaluate_compare(static_cast<CompareNode const&>(node));
        case NodeKind::and_:
        case NodeKind::or_:
            return evaluate_choice(static_cast<ListNode const&>(node));
        case NodeKind::not_:
            return boolean_value(!is_true(evaluate(*static_cast<UnaryNode const&>(node).operand)));
        case NodeKind::add:
            return evaluate_sum(static_cast<ListNode const&>(node));
        case NodeKind::call:
            return evaluate_call(static_cast<CallNode const&>(node), nullptr);
        case NodeKind::test:
            return evaluate_test(static_cast<FilterNode const&>(node));
        case NodeKind::filter:
            return evaluate_filter(static_cast<FilterNode const&>(node));
        default:
            return evaluate_other(node);
    }
}

Value Machine::evaluate_other(Node const& node) {
    switch (node.kind) {
        case NodeKind::conditional:
            return evaluate_conditional(static_cast<ConditionalNode const&>(node));
        case NodeKind::concat:
            return evaluate_concat(static_cast<ListNode const&>(node));
        case NodeKind::slice:
            return evaluate_slice(static_cast<SliceNode const&>(node));
        case NodeKind::list:
            return evaluate_items(static_cast<ListNode const&>(node), Kind::list);
        case NodeKind::tuple:
            return evaluate_items(static_cast<ListNode const&>(node), Kind::tuple);
        case NodeKind::dict:
            return evaluate_dict(static_cast<DictNode const&>(node));
        case NodeKind::negate:
            return negate(evaluate(*static_cast<UnaryNode const&>(node).operand));
        case NodeKind::plus:
            return plus(evaluate(*static_cast<UnaryNode const&>(node).operand));
        default:
            return evaluate_operator(node);
    }
}

Value Machine::evaluate_operator(Node const& node) {
    auto const& binary = static_cast<BinaryNode const&>(node);
    auto const left = evaluate(*binary.left);
    auto const right = evaluate(*binary.right);
    switch (node.kind) {
        case NodeKind::subtract:
            return subtract(left, right);
        case NodeKind::multiply:
            return multiply(*this, left, right);
        case NodeKind::divide:
            return divide(left, right);
        case NodeKind::floor_divide:
            return floor_divide(left, right);
        case NodeKind::modulo:
            return modulo(*this, left, right);
        default:
            return power(left, right);
    }
}

Value Machine::evaluate_items(ListNode const& node, Kind kind) {
    auto* const items = arena_.array<Value>(node.items.size);
    for (std::uint32_t i = 0; i < node.items.size; ++i) items[i] = evaluate(*node.items[i]);
    return sequence_value(kind, items, node.items.size);
}

Value Machine::evaluate_dict(DictNode const& node) {
    auto* const entries = arena_.array<DictData::Entry>(node.keys.size);
    for (std::uint32_t i = 0; i < node.keys.size; ++i) {
        entries[i].key = evaluate(*node.keys[i]);
        entries[i].value = evaluate(*node.values[i]);
        if (!is_hashable(entries[i].key)) {
            fail_type("unhashable type: '" + std::string{type_name(entries[i].key)} + "'");
        }
    }
    return make_dict(arena_, entries, node.keys.size);
}

Value Machine::evaluate_sum(ListNode const& node) {
    auto sum = evaluate(*node.items[0]);
    for (std::uint32_t i = 1; i < node.items.size; ++i) {
        auto const right = evaluate(*node.items[i]);
        sum = jinja::add(*this, sum, right);
    }
    return sum;
}

Value Machine::evaluate_concat(ListNode const& node) {
    auto* const parts = arena_.array<Value>(node.items.size);
    for (std::uint32_t i = 0; i < node.items.size; ++i) parts[i] = evaluate(*node.items[i]);
    std::string joined;
    for (std::uint32_t i = 0; i < node.items.size; ++i) append_text(joined, parts[i]);
    return text(joined);
}

Value Machine::evaluate_choice(ListNode const& node) {
    bool const until = node.kind == NodeKind::or_;
    auto const last = node.items.size - 1;
    for (std::uint32_t i = 0; i < last; ++i) {
        auto const value = evaluate(*node.items[i]);
        if (is_true(value) == until) return value;
    }
    return evaluate(*node.items[last]);
}

Value Machine::evaluate_compare(CompareNode const& node) {
    auto left = evaluate(*node.first);
    for (auto const& step : node.steps) {
        auto const right = evaluate(*step.operand);
        if (!compare(step.comparison, left, right)) return boolean_value(false);
        left = right;
    }
    return boolean_value(true);
}

bool Machine::compare(Comparison comparison, Value const& left, Value const& right) {
    switch (comparison) {
        case Comparison::eq:
            return equal(left, right);
        case Comparison::ne:
            return !equal(left, right);
        case Comparison::lt:
            return less(left, right);
        case Comparison::gt:
            return less(right, left);
        case Comparison::le:
            return less(left, right) || equal(left, right);
        case Comparison::ge:
            return less(right, left) || equal(left, right);
        case Comparison::in:
            return contains(right, left);
        case Comparison::not_in:
            return !contains(right, left);
    }
    return false;
}

bool Machine::contains(Value const& container, Value const& value) {
    switch (container.kind) {
        case Kind::string:
            if (!value.is_string()) {
                fail_type("'in <string>' requires string as left operand, not " +
                          std::string{type_name(value)});
            }
            charge(container.size / 64);
            return container.view().find(value.view()) != std::string_view::npos;
        case Kind::dict:
            if (!is_hashable(value)) {
                fail_type("unhashable type: '" + std::string{type_name(value)} + "'");
            }
            return find(*container.dict, value) != nullptr;
        default:
            break;
    }
    if (!is_iterable(container)) {
        fail_type("argument of type '" + std::string{type_name(container)} + "' is not iterable");
    }
    Walk walk{container};
    Value one;
    while (walk.next(*this, one)) {
        charge(1);
        if (equal(one, value)) return true;
    }
    return false;
}

Value Machine::evaluate_slice(SliceNode const& node) {
    auto const owner = evaluate(*node.owner);
    auto const bound = [&](Node const* part) {
        return part == nullptr ? missing_value() : evaluate(*part);
    };
    auto const start = bound(node.start);
    auto const stop = bound(node.stop);
    return slice(*this, owner, start, stop, bound(node.step));
}

Value Machine::evaluate_conditional(ConditionalNode const& node) {
    if (is_true(evaluate(*node.test))) return evaluate(*node.then);
    if (node.otherwise != nullptr) return evaluate(*node.otherwise);
    return undefined_text("the inline if-expression on line " + std::to_string(node.line) +
                          " evaluated to false and no else section was defined.");
}

Value Machine::evaluate_filter(FilterNode const& node) {
    auto const operand = evaluate(*node.operand);
    return filter(static_cast<Filter>(node.which), node.name, operand,
                  evaluate_arguments(node.arguments));
}

/// Of a block: the first filter of a chain gets its text.
Value Machine::evaluate_filter(FilterNode const& node, Value const& operand) {
    auto const first =
        node.operand == nullptr
            ? operand
            : evaluate_filter(static_cast<FilterNode const&>(*node.operand), operand);
    return filter(static_cast<Filter>(node.which), node.name, first,
                  evaluate_arguments(node.arguments));
}

/// The tests that every template uses, which need no arguments.
bool Machine::simple_test(FilterNode const& node, Value const& operand, bool& result) {
    if (!node.arguments.positional.empty()) return false;
    switch (static_cast<Test>(node.which)) {
        case Test::defined:
            result = !operand.is_undefined();
            return true;
        case Test::undefined:
            result = operand.is_undefined();
            return true;
        case Test::none:
            result = operand.is_none();
            return true;
        case Test::string:
            result = operand.is_string();
            return true;
        case Test::mapping:
            result = operand.is(Kind::dict);
            return true;
        default:
            return false;
    }
}

Value Machine::evaluate_test(FilterNode const& node) {
    auto const operand = evaluate(*node.operand);
    bool result = false;
    if (simple_test(node, operand, result)) return boolean_value(result);
    return boolean_value(test(static_cast<Test>(node.which), node.name, operand,
                              evaluate_arguments(node.arguments)));
}

Arguments Machine::evaluate_arguments(CallArguments const& given, Value const* caller) {
    Arguments arguments;
    if (given.positional.size != 0) {
        auto* const values = arena_.array<Value>(given.positional.size);
        for (auto const* node : given.positional) values[arguments.count++] = evaluate(*node);
        arguments.positional = values;
    }
    if (given.keywords.size != 0 || caller != nullptr) {
        auto* const keywords = arena_.array<Keyword>(given.keywords.size + 1U);
        for (auto const& keyword : given.keywords) {
            keywords[arguments.keyword_count++] = {keyword.name, evaluate(*keyword.value)};
        }
        if (caller != nullptr) {
            keywords[arguments.keyword_count++] = {string_value("caller"), *caller};
        }
        arguments.keywords = keywords;
    }
    if (given.more_positional != nullptr || given.more_keywords != nullptr) {
        more_arguments(given, caller, arguments);
    }
    return arguments;
}

void Machine::more_arguments(CallArguments const& given, Value const* caller,
                             Arguments& arguments) {
    if (given.more_positional != nullptr) {
        auto const more = items_of(evaluate(*given.more_positional));
        std::vector<Value> all{arguments.positional, arguments.positional + arguments.count};
        all.insert(all.end(), more.begin(), more.end());
        auto const kept = list(all);
        arguments.positional = kept.items;
        arguments.count = kept.size;
    }
    if (given.more_keywords == nullptr) return;
    auto const more = evaluate(*given.more_keywords);
    if (!more.is(Kind::dict)) {
        fail_type("argument after ** must be a mapping, not " + std::string{type_name(more)});
    }
    auto* const keywords = arena_.array<Keyword>(arguments.keyword_count + more.dict->size);
    std::copy_n(arguments.keywords, arguments.keyword_count, keywords);
    for (std::uint32_t i = 0; i < more.dict->size; ++i) {
        auto const& entry = more.dict->entries[i];
        if (!entry.key.is_string()) fail_type("keywords must be strings");
        if (arguments.keyword(entry.key.view()) != nullptr) {
            fail_type("got multiple values for keyword argument '" + std::string{entry.key.view()} +
                      "'");
        }
        keywords[arguments.keyword_count + i] = {entry.key, entry.value};
    }
    arguments.keywords = keywords;
    arguments.keyword_count += more.dict->size;
    (void)caller;
}

Value Machine::evaluate_call(CallNode const& node, Value const* caller) {
    if (node.callee->kind == NodeKind::attribute) {
        auto const& attribute_node = static_cast<AttributeNode const&>(*node.callee);
        auto const owner = evaluate(*attribute_node.owner);
        if (has_method(owner, attribute_node.attribute)) {
            auto const arguments = evaluate_arguments(node.arguments, caller);
            line_ = node.line;
            return call_method(*this, owner, attribute_node.attribute, attribute_node.name.view(),
                               arguments);
        }
        auto const callee = attribute(owner, attribute_node.name, attribute_node.attribute);
        return call(callee, evaluate_arguments(node.arguments, caller));
    }
    auto const callee = evaluate(*node.callee);
    auto const arguments = evaluate_arguments(node.arguments, caller);
    line_ = node.line;
    return call(callee, arguments);
}

// Values

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
