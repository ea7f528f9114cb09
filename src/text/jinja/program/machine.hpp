#pragma once

#include "text/jinja/program/iteration.hpp"
#include "text/jinja/program/program.hpp"
#include "text/jinja/values/arena.hpp"
#include "text/jinja/values/call.hpp"
#include "text/jinja/values/names.hpp"
#include "text/jinja/values/value.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text::jinja {

using LocalTime = std::chrono::local_time<std::chrono::microseconds>;

/// Bounds of one rendering, and what it takes from outside.
struct RunOptions {
    std::int64_t max_steps{0};
    std::size_t max_output{0};
    int max_depth{0};
    /// For `strftime_now`; null: it fails.
    std::function<LocalTime()> const* clock{nullptr};
};

/// Runs a compiled template once. Throws `Failure`, whose line is set.
class Machine {
public:
    /// One more level of what runs within what, for as long as it lives.
    class Deeper {
    public:
        explicit Deeper(Machine& machine, int levels = 1) : machine_{machine}, levels_{levels} {
            machine_.depth_ += levels_;
            if (machine_.depth_ > machine_.options_.max_depth) machine_.refuse_depth();
        }
        ~Deeper() { machine_.depth_ -= levels_; }
        Deeper(Deeper const&) = delete;
        Deeper& operator=(Deeper const&) = delete;

    private:
        Machine& machine_;
        int levels_;
    };

    Machine(Program const& program, Arena& arena, RunOptions const& options);
    Machine(Machine const&) = delete;
    Machine& operator=(Machine const&) = delete;
    ~Machine();

    /// A variable for the template; names that it does not use are ignored.
    void set(std::string_view name, Value const& value);
    void run();

    [[nodiscard]] std::string take_output() noexcept { return std::move(output_); }
    /// The bytes of the output that stand in generation blocks.
    [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> const& generated()
        const noexcept {
        return generated_;
    }

    // For filters, methods and functions
    [[nodiscard]] Arena& arena() noexcept { return arena_; }
    [[nodiscard]] RunOptions const& options() const noexcept { return options_; }
    /// Counts work that is done at once.
    void charge(std::size_t steps) {
        steps_left_ -= static_cast<std::int64_t>(steps);
        if (steps_left_ < 0) refuse_steps();
    }
    /// A copy of a text.
    [[nodiscard]] Value text(std::string_view text) { return text_value(arena_, text); }
    [[nodiscard]] Value list(std::span<Value const> items);
    [[nodiscard]] Value tuple(std::span<Value const> items);
    [[nodiscard]] Value pair(Value const& first, Value const& second);
    [[nodiscard]] Value generator(Iteration* iteration) const noexcept;
    [[nodiscard]] Value undefined_text(std::string_view text);
    /// All that a value gives when it is iterated over.
    [[nodiscard]] std::vector<Value> items_of(Value const& value);
    /// As above; what is a list or a tuple already is not copied.
    [[nodiscard]] std::span<Value const> span_of(Value const& value);

    /// `owner.name` and `owner[index]`, with Jinja's fallbacks and the rules of the sandbox.
    [[nodiscard]] Value attribute(Value const& owner, Value const& name, Attribute known);
    [[nodiscard]] Value item(Value const& owner, Value const& index);
    [[nodiscard]] Value call(Value const& callee, Arguments const& arguments);
    [[nodiscard]] Value filter(Filter which, std::string_view name, Value const& operand,
                               Arguments const& arguments);
    [[nodiscard]] bool test(Test which, std::string_view name, Value const& operand,
                            Arguments const& arguments);

    /// Whether an item passes the `if` of a loop.
    [[nodiscard]] bool loop_test(LoopData& loop, Value const& item);

private:
    /// How a statement ended.
    enum class Flow : std::uint8_t { normal, broken, continued };

    [[noreturn]] void refuse_steps() const;
    [[noreturn]] void refuse_depth() const;
    [[noreturn]] void refuse_output() const;

    // Output
    void put(std::string_view text) {
        output_.append(text);
        if (output_.size() > options_.max_output) refuse_output();
    }
    void put(Value const& value);
    void put_sum(ListNode const& node);
    [[nodiscard]] std::size_t begin_capture() noexcept;
    [[nodiscard]] Value end_capture(std::size_t mark);
    void drop_capture(std::size_t mark) noexcept;

    // Statements
    [[nodiscard]] Flow execute(Nodes const& nodes);
    [[nodiscard]] Flow execute(Node const& node);
    [[nodiscard]] Flow execute_other(Node const& node);
    void execute_output(Node const& expression);
    [[nodiscard]] Flow execute_if(IfNode const& node);
    [[nodiscard]] Flow execute_for(ForNode const& node);
    [[nodiscard]] Flow loop(ForNode const& node, Value const& iterable, std::int64_t depth0);
    [[nodiscard]] bool plain_loop(ForNode const& node, Value const& iterable);
    [[nodiscard]] bool full_loop(ForNode const& node, Value const& iterable, std::int64_t depth0);
    [[nodiscard]] Value recursive_loop(ForNode const& node, Value const& iterable,
                                       std::int64_t depth0, Activation* outer);
    void execute_assign(AssignNode const& node);
    [[nodiscard]] Flow execute_assign_block(AssignBlockNode const& node);
    void execute_macro(MacroNode const& node);
    void execute_call_block(CallBlockNode const& node);
    void execute_generation(CallBlockNode const& node);
    [[nodiscard]] Flow execute_filter_block(FilterBlockNode const& node);
    [[nodiscard]] Flow execute_with(WithNode const& node);
    void execute_block(BlockNode const& node);
    void begin(Loads const& loads);
    void assign(Node const& target, Value const& value);
    void assign_name(NameNode const& target, Value const& value);
    void assign_attribute(AttributeTargetNode const& target, Value const& value);
    void unpack(ListNode const& target, Value const& value);
    void check_namespaces(Node const& target);

    // Expressions
    [[nodiscard]] Value evaluate(Node const& node);
    [[nodiscard]] Value evaluate_other(Node const& node);
    [[nodiscard]] Value evaluate_operator(Node const& node);
    [[nodiscard]] Value variable(NameNode const& node);
    [[nodiscard]] Value unset(NameNode const& node);
    [[nodiscard]] Value evaluate_items(ListNode const& node, Kind kind);
    [[nodiscard]] Value evaluate_dict(DictNode const& node);
    [[nodiscard]] Value evaluate_sum(ListNode const& node);
    [[nodiscard]] Value evaluate_concat(ListNode const& node);
    [[nodiscard]] Value evaluate_choice(ListNode const& node);
    [[nodiscard]] Value evaluate_compare(CompareNode const& node);
    [[nodiscard]] bool compare(Comparison comparison, Value const& left, Value const& right);
    [[nodiscard]] bool contains(Value const& container, Value const& value);
    [[nodiscard]] Value evaluate_slice(SliceNode const& node);
    [[nodiscard]] Value evaluate_filter(FilterNode const& node);
    [[nodiscard]] Value evaluate_filter(FilterNode const& node, Value const& operand);
    [[nodiscard]] Value evaluate_test(FilterNode const& node);
    [[nodiscard]] bool simple_test(FilterNode const& node, Value const& operand, bool& result);
    [[nodiscard]] Value evaluate_call(CallNode const& node, Value const* caller);
    [[nodiscard]] Value evaluate_conditional(ConditionalNode const& node);
    [[nodiscard]] Arguments evaluate_arguments(CallArguments const& arguments,
                                               Value const* caller = nullptr);
    void more_arguments(CallArguments const& given, Value const* caller, Arguments& arguments);

    // Values
    [[nodiscard]] Value missing_attribute(Value const& owner, Value const& name);
    [[nodiscard]] Value loop_attribute(LoopData& loop, Value const& name, Attribute known);
    [[nodiscard]] Value other_attribute(Value const& owner, Value const& name, Attribute known);
    [[nodiscard]] Value missing_item(Value const& owner, Value const& index);
    [[nodiscard]] Value call_macro(MacroData const& macro, Arguments const& arguments);
    void bind_macro(MacroData const& macro, Arguments const& arguments, Value* slots);
    [[nodiscard]] Activation* activate(std::uint32_t slots, Activation* outer);

    Program const& program_;
    Arena& arena_;
    RunOptions options_;
    std::int64_t steps_left_;
    std::int64_t looks_before_;
    int depth_{0};
    std::uint32_t line_{0};
    Activation* activation_{nullptr};
    std::vector<Value> context_;
    std::string output_;
    std::size_t captures_{0};
    std::size_t outermost_capture_{0};
    std::vector<std::pair<std::size_t, std::size_t>> generated_;
};

}  // namespace tinkxx::text::jinja
