#include "text/jinja/convert/order.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/filters/filters.hpp"
#include "text/jinja/methods/methods.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/program/machine.hpp"

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

}  // namespace tinkxx::text::jinja
