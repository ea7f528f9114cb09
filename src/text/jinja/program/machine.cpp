#include "text/jinja/program/machine.hpp"

#include "text/jinja/values/budget.hpp"

#include <algorithm>

namespace tinkxx::text::jinja {

Machine::Machine(Program const& program, Arena& arena, RunOptions const& options)
    : program_{program},
      arena_{arena},
      options_{options},
      steps_left_{options.max_steps},
      looks_before_{looks_left} {
    looks_left = options.max_steps;
    context_.reserve(program.context_names.size());
    for (auto const& name : program.context_names) context_.push_back(global_of(name.view()));
}

Machine::~Machine() { looks_left = looks_before_; }

void Machine::set(std::string_view name, Value const& value) {
    for (std::size_t i = 0; i < context_.size(); ++i) {
        if (program_.context_names[i].view() == name) {
            context_[i] = value;
            return;
        }
    }
}

void Machine::run() {
    try {
        activation_ = activate(program_.slots, nullptr);
        begin(program_.loads);
        (void)execute(program_.body);
    } catch (Failure& failure) {
        if (failure.line() == 0) failure.set_line(line_);
        throw;
    }
}

void Machine::refuse_steps() const {
    fail_limit("more than " + std::to_string(options_.max_steps) +
               " steps are needed; raise max_steps if the conversation is that large");
}

void Machine::refuse_depth() const {
    fail_limit("calls are nested more than " + std::to_string(options_.max_depth) +
               " levels deep; does a macro call itself without an end?");
}

void Machine::refuse_output() const {
    fail_limit("the text has more than " + std::to_string(options_.max_output) +
               " bytes; raise max_output_bytes if the conversation is that large");
}

Value Machine::list(std::span<Value const> items) {
    auto* const made = arena_.array<Value>(items.size());
    std::copy(items.begin(), items.end(), made);
    return list_value(made, items.size());
}

Value Machine::tuple(std::span<Value const> items) {
    auto made = list(items);
    made.kind = Kind::tuple;
    return made;
}

Value Machine::pair(Value const& first, Value const& second) {
    auto* const made = arena_.array<Value>(2);
    made[0] = first;
    made[1] = second;
    return sequence_value(Kind::tuple, made, 2);
}

Value Machine::generator(Iteration* iteration) const noexcept {
    auto value = plain_value(Kind::generator);
    value.generator = iteration;
    return value;
}

Value Machine::undefined_text(std::string_view text) {
    return undefined_value(arena_,
                           {.reason = UndefinedData::Reason::text, .text = arena_.copy(text)});
}

std::vector<Value> Machine::items_of(Value const& value) {
    std::vector<Value> items;
    Walk walk{value};
    Value item;
    while (walk.next(*this, item)) {
        charge(1);
        items.push_back(item);
    }
    return items;
}

std::span<Value const> Machine::span_of(Value const& value) {
    if (value.is_sequence()) return {value.items, value.size};
    auto const made = list(items_of(value));
    return {made.items, made.size};
}

}  // namespace tinkxx::text::jinja
