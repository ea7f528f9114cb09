#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/program/machine.hpp"

namespace tinkxx::text::jinja {

// Output

void Machine::put(Value const& value) {
    if (value.is_string()) {
        put(value.view());
        return;
    }
    append_text(output_, value);
    if (output_.size() > options_.max_output) refuse_output();
}

/// A sum that is put out: its texts are not joined before.
void Machine::put_sum(ListNode const& node) {
    auto const begin = output_.size();
    auto const is_plain = [](Value const& value) { return value.is_string() && value.flag == 0; };
    auto value = evaluate(*node.items[0]);
    std::uint32_t next = 1;
    if (is_plain(value)) {
        put(value.view());
        for (; next < node.items.size; ++next) {
            value = evaluate(*node.items[next]);
            if (!is_plain(value)) break;
            put(value.view());
        }
        if (next == node.items.size) return;
        auto const before = text(std::string_view{output_}.substr(begin));
        output_.resize(begin);
        value = add(*this, before, value);
        ++next;
    }
    for (; next < node.items.size; ++next) {
        auto const right = evaluate(*node.items[next]);
        value = add(*this, value, right);
    }
    put(value);
}

std::size_t Machine::begin_capture() noexcept {
    if (captures_++ == 0) outermost_capture_ = output_.size();
    return output_.size();
}

Value Machine::end_capture(std::size_t mark) {
    auto const captured = text(std::string_view{output_}.substr(mark));
    drop_capture(mark);
    return captured;
}

void Machine::drop_capture(std::size_t mark) noexcept {
    output_.erase(mark);
    --captures_;
}

// Statements

Machine::Flow Machine::execute(Nodes const& nodes) {
    for (auto const* node : nodes) {
        if (auto const flow = execute(*node); flow != Flow::normal) return flow;
    }
    return Flow::normal;
}

Machine::Flow Machine::execute(Node const& node) {
    charge(1);
    line_ = node.line;
    switch (node.kind) {
        case NodeKind::text:
            put(static_cast<TextNode const&>(node).text);
            return Flow::normal;
        case NodeKind::output:
            execute_output(*static_cast<OutputNode const&>(node).expression);
            return Flow::normal;
        case NodeKind::if_:
            return execute_if(static_cast<IfNode const&>(node));
        case NodeKind::assign:
            execute_assign(static_cast<AssignNode const&>(node));
            return Flow::normal;
        case NodeKind::for_:
            return execute_for(static_cast<ForNode const&>(node));
        case NodeKind::break_:
            return Flow::broken;
        case NodeKind::continue_:
            return Flow::continued;
        default:
            return execute_other(node);
    }
}

Machine::Flow Machine::execute_other(Node const& node) {
    switch (node.kind) {
        case NodeKind::assign_block:
            return execute_assign_block(static_cast<AssignBlockNode const&>(node));
        case NodeKind::macro:
            execute_macro(static_cast<MacroNode const&>(node));
            return Flow::normal;
        case NodeKind::call_block:
            execute_call_block(static_cast<CallBlockNode const&>(node));
            return Flow::normal;
        case NodeKind::generation:
            execute_generation(static_cast<CallBlockNode const&>(node));
            return Flow::normal;
        case NodeKind::filter_block:
            return execute_filter_block(static_cast<FilterBlockNode const&>(node));
        case NodeKind::with:
            return execute_with(static_cast<WithNode const&>(node));
        case NodeKind::scope:
            begin(static_cast<ScopeNode const&>(node).loads);
            return execute(static_cast<ScopeNode const&>(node).body);
        case NodeKind::block:
            execute_block(static_cast<BlockNode const&>(node));
            return Flow::normal;
        default:
            return Flow::normal;
    }
}

void Machine::execute_output(Node const& expression) {
    if (expression.kind == NodeKind::add) {
        put_sum(static_cast<ListNode const&>(expression));
    } else {
        put(evaluate(expression));
    }
}

Machine::Flow Machine::execute_if(IfNode const& node) {
    for (auto const& branch : node.branches) {
        if (is_true(evaluate(*branch.test))) return execute(branch.body);
    }
    return execute(node.otherwise);
}

Machine::Flow Machine::execute_for(ForNode const& node) {
    auto const iterable = evaluate(*node.iterable);
    if (!node.recursive) return loop(node, iterable, 0);
    put(recursive_loop(node, iterable, 0, activation_));
    return Flow::normal;
}

Machine::Flow Machine::loop(ForNode const& node, Value const& iterable, std::int64_t depth0) {
    bool const ran = node.uses_loop || node.test != nullptr ? full_loop(node, iterable, depth0)
                                                            : plain_loop(node, iterable);
    if (ran || node.otherwise.empty()) return Flow::normal;
    begin(node.otherwise_loads);
    return execute(node.otherwise);
}

/// Whether a turn came to its end: Jinja's `else` belongs to loops of which none did.
bool Machine::plain_loop(ForNode const& node, Value const& iterable) {
    Walk walk{iterable};
    Value item;
    bool ran = false;
    while (walk.next(*this, item)) {
        charge(1);
        assign(*node.target, item);
        begin(node.loads);
        auto const flow = execute(node.body);
        if (flow == Flow::broken) break;
        ran = ran || flow == Flow::normal;
    }
    return ran;
}

bool Machine::full_loop(ForNode const& node, Value const& iterable, std::int64_t depth0) {
    auto* const data = arena_.make<LoopData>();
    data->machine = this;
    data->iterable = iterable;
    data->walk = Walk{iterable};
    data->node = &node;
    data->activation = activation_;
    data->depth0 = depth0;
    data->before = missing_value();
    data->current = missing_value();
    data->after = missing_value();
    data->changed = missing_value();
    auto variable = plain_value(Kind::loop);
    variable.loop = data;
    bool ran = false;
    while (data->advance()) {
        charge(1);
        if (node.uses_loop) activation_->slots[node.loop_slot] = variable;
        assign(*node.target, data->current);
        begin(node.loads);
        auto const flow = execute(node.body);
        if (flow == Flow::broken) break;
        ran = ran || flow == Flow::normal;
    }
    return ran;
}

bool Machine::loop_test(LoopData& loop, Value const& item) {
    charge(1);
    auto* const before = std::exchange(activation_, loop.activation);
    begin(loop.node->test_loads);
    assign(*loop.node->test_target, item);
    bool const passes = is_true(evaluate(*loop.node->test));
    activation_ = before;
    return passes;
}

Value Machine::recursive_loop(ForNode const& node, Value const& iterable, std::int64_t depth0,
                              Activation* outer) {
    Deeper const deeper{*this, node.depth};
    auto* const before = std::exchange(activation_, activate(node.slots, outer));
    auto const mark = begin_capture();
    (void)loop(node, iterable, depth0);
    auto const captured = end_capture(mark);
    activation_ = before;
    return captured;
}

void Machine::execute_assign(AssignNode const& node) {
    if (node.target->kind == NodeKind::local) {
        assign_name(static_cast<NameNode const&>(*node.target), evaluate(*node.value));
        return;
    }
    check_namespaces(*node.target);
    assign(*node.target, evaluate(*node.value));
}

Machine::Flow Machine::execute_assign_block(AssignBlockNode const& node) {
    begin(node.loads);
    auto const mark = begin_capture();
    auto const flow = execute(node.body);
    if (flow != Flow::normal) {
        drop_capture(mark);
        return flow;
    }
    auto value = end_capture(mark);
    if (node.filter != nullptr) value = evaluate_filter(*node.filter, value);
    check_namespaces(*node.target);
    assign(*node.target, value);
    return Flow::normal;
}

void Machine::execute_macro(MacroNode const& node) {
    auto value = plain_value(Kind::macro);
    value.macro = arena_.make<MacroData>(&node, activation_);
    assign_name(*node.target, value);
}

void Machine::execute_call_block(CallBlockNode const& node) {
    auto caller = plain_value(Kind::macro);
    caller.macro = arena_.make<MacroData>(node.body, activation_);
    put(evaluate_call(*node.call, &caller));
}

/// The body is a function of its own; its text is marked as what the assistant wrote.
void Machine::execute_generation(CallBlockNode const& node) {
    MacroData const body{node.body, activation_};
    auto const mark = output_.size();
    auto const text = call_macro(body, {});
    auto const begins = captures_ == 0 ? mark : outermost_capture_;
    generated_.emplace_back(begins, begins + text.size);
    put(text);
}

Machine::Flow Machine::execute_filter_block(FilterBlockNode const& node) {
    begin(node.loads);
    auto const mark = begin_capture();
    auto const flow = execute(node.body);
    if (flow != Flow::normal) {
        drop_capture(mark);
        return flow;
    }
    auto const captured = end_capture(mark);
    // A chain of filters begins with the one that has no operand.
    put(evaluate_filter(*node.filter, captured));
    return Flow::normal;
}

Machine::Flow Machine::execute_with(WithNode const& node) {
    std::vector<Value> values;
    for (auto const* value : node.values) values.push_back(evaluate(*value));
    for (std::uint32_t i = 0; i < node.targets.size; ++i) {
        check_namespaces(*node.targets[i]);
        assign(*node.targets[i], values[i]);
    }
    begin(node.loads);
    return execute(node.body);
}

void Machine::execute_block(BlockNode const& node) {
    auto* const before = std::exchange(activation_, activate(node.slots, nullptr));
    begin(node.loads);
    (void)execute(node.body);
    activation_ = before;
}

void Machine::begin(Loads const& loads) {
    for (auto const& load : loads) {
        auto& slot = activation_->slots[load.slot];
        if (load.from == Load::From::nothing) {
            slot = missing_value();
        } else if (load.from == Load::From::context) {
            slot = context_[load.source];
        } else {
            auto const* from = activation_;
            for (std::uint32_t i = 0; i < load.hops; ++i) from = from->outer;
            slot = from->slots[load.source];
        }
    }
}

void Machine::assign(Node const& target, Value const& value) {
    switch (target.kind) {
        case NodeKind::tuple:
            unpack(static_cast<ListNode const&>(target), value);
            return;
        case NodeKind::attribute_target:
            assign_attribute(static_cast<AttributeTargetNode const&>(target), value);
            return;
        default:
            assign_name(static_cast<NameNode const&>(target), value);
    }
}

void Machine::assign_name(NameNode const& target, Value const& value) {
    activation_->slots[target.slot] = value;
    if (target.exported) context_[target.id] = value;
}

void Machine::assign_attribute(AttributeTargetNode const& target, Value const& value) {
    auto const owner = variable(*target.name_space);
    if (target.attribute.view().starts_with('_')) {
        throw Failure{Failure::Kind::security,
                      "Chat templates cannot store underscore-prefixed attributes on a namespace, "
                      "but got " +
                          repr_of(target.attribute) + ". Please rename the attribute."};
    }
    jinja::assign(arena_, *owner.name_space, target.attribute, value);
}

void Machine::unpack(ListNode const& target, Value const& value) {
    if (!is_iterable(value)) {
        fail_type("cannot unpack non-iterable " + std::string{type_name(value)} + " object");
    }
    if (value.is_sequence() && value.size == target.items.size) {
        for (std::uint32_t i = 0; i < value.size; ++i) assign(*target.items[i], value.items[i]);
        return;
    }
    Walk walk{value};
    std::vector<Value> items;
    Value item;
    while (items.size() < target.items.size && walk.next(*this, item)) items.push_back(item);
    auto const expected = " (expected " + std::to_string(target.items.size);
    if (items.size() < target.items.size) {
        fail_value("not enough values to unpack" + expected + ", got " +
                   std::to_string(items.size()) + ")");
    }
    if (walk.next(*this, item)) fail_value("too many values to unpack" + expected + ")");
    for (std::uint32_t i = 0; i < target.items.size; ++i) assign(*target.items[i], items[i]);
}

void Machine::check_namespaces(Node const& target) {
    if (target.kind == NodeKind::tuple) {
        for (auto const* item : static_cast<ListNode const&>(target).items) {
            check_namespaces(*item);
        }
    }
    if (target.kind != NodeKind::attribute_target) return;
    auto const& name = *static_cast<AttributeTargetNode const&>(target).name_space;
    if (!variable(name).is(Kind::name_space)) {
        fail_type("cannot assign attribute on non-namespace object");
    }
}

Activation* Machine::activate(std::uint32_t slots, Activation* outer) {
    auto* const made = arena_.make<Activation>();
    made->outer = outer;
    made->slots = arena_.array<Value>(slots);
    std::fill_n(made->slots, slots, missing_value());
    return made;
}

}  // namespace tinkxx::text::jinja
