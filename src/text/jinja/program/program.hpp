#pragma once

#include "text/jinja/values/arena.hpp"
#include "text/jinja/values/names.hpp"
#include "text/jinja/values/value.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinkxx::text::jinja {

/// What a node of a compiled template is. Each kind has its struct below.
enum class NodeKind : std::uint8_t {
    // Expressions
    constant,
    name,     ///< as parsed; becomes one of the three below
    local,    ///< a variable of the running function
    outer,    ///< a variable of a function around it
    context,  ///< a variable of the caller of the template, or a global
    attribute_target,
    tuple,
    list,
    dict,
    negate,
    plus,
    not_,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    add,
    concat,
    and_,
    or_,
    compare,
    attribute,
    item,
    slice,
    filter,
    test,
    call,
    conditional,
    // Statements
    text,
    output,
    if_,
    for_,
    assign,
    assign_block,
    macro,
    call_block,
    generation,
    filter_block,
    with,
    scope,
    break_,
    continue_,
    block,
};

struct Node {
    NodeKind kind{};
    /// How deep the tree below it is.
    std::uint16_t depth{1};
    std::uint32_t line{0};
};

/// Nodes in the memory of the program.
template <class T>
struct Span {
    T* items{nullptr};
    std::uint32_t size{0};

    [[nodiscard]] T* begin() const noexcept { return items; }
    [[nodiscard]] T* end() const noexcept { return items + size; }
    [[nodiscard]] bool empty() const noexcept { return size == 0; }
    [[nodiscard]] T& operator[](std::uint32_t at) const noexcept { return items[at]; }
};
using Nodes = Span<Node*>;

struct ConstantNode : Node {
    Value value{};
};

struct NameNode : Node {
    enum class Use : std::uint8_t { load, store, parameter };
    Use use{Use::load};
    /// A store at the top of the template, which blocks see.
    bool exported{false};
    /// Of the variable within its function, or of the name within the context.
    std::uint32_t slot{0};
    /// How many functions further out.
    std::uint32_t hops{0};
    /// Of the name, within the template.
    std::uint32_t id{0};
    Value name{};
};

/// `namespace.attribute` as the target of a `set`.
struct AttributeTargetNode : Node {
    NameNode* name_space{nullptr};
    Value attribute{};
};

/// Kinds `tuple` and `list`, and the operators that chain: `add`, `concat`, `and_`, `or_`.
struct ListNode : Node {
    Nodes items{};
};

struct DictNode : Node {
    Nodes keys{};
    Nodes values{};
};

/// Kinds `negate`, `plus` and `not_`.
struct UnaryNode : Node {
    Node* operand{nullptr};
};

/// The other operators.
struct BinaryNode : Node {
    Node* left{nullptr};
    Node* right{nullptr};
};

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, in, not_in };

struct CompareNode : Node {
    struct Step {
        Comparison comparison{};
        Node* operand{nullptr};
    };
    Node* first{nullptr};
    Span<Step> steps{};
};

struct AttributeNode : Node {
    Attribute attribute{};
    Node* owner{nullptr};
    Value name{};
};

struct ItemNode : Node {
    Node* owner{nullptr};
    Node* index{nullptr};
};

struct SliceNode : Node {
    Node* owner{nullptr};
    Node* start{nullptr};
    Node* stop{nullptr};
    Node* step{nullptr};
};

struct KeywordNode {
    Value name{};
    Node* value{nullptr};
};

struct CallArguments {
    Nodes positional{};
    Span<KeywordNode> keywords{};
    Node* more_positional{nullptr};  ///< `*these`
    Node* more_keywords{nullptr};    ///< `**these`
};

struct CallNode : Node {
    Node* callee{nullptr};
    CallArguments arguments{};
};

/// Kinds `filter` and `test`. A filter of a block has no operand.
struct FilterNode : Node {
    /// A `Filter` or a `Test`.
    std::uint16_t which{0};
    Node* operand{nullptr};
    std::string_view name{};
    CallArguments arguments{};
};

struct ConditionalNode : Node {
    Node* test{nullptr};
    Node* then{nullptr};
    Node* otherwise{nullptr};
};

struct TextNode : Node {
    std::string_view text{};
};

struct OutputNode : Node {
    Node* expression{nullptr};
};

/// What a variable is when the part of a template begins to which it belongs.
struct Load {
    enum class From : std::uint8_t { nothing, outer, context };
    From from{From::nothing};
    std::uint32_t slot{0};
    std::uint32_t source{0};
    std::uint32_t hops{0};
};
using Loads = Span<Load>;

struct IfNode : Node {
    struct Branch {
        Node* test{nullptr};
        Nodes body{};
    };
    Span<Branch> branches{};
    Nodes otherwise{};
};

struct ForNode : Node {
    bool recursive{false};
    bool uses_loop{false};
    std::uint32_t loop_slot{0};
    /// Of the function that a recursive loop is.
    std::uint32_t slots{0};
    Node* target{nullptr};
    Node* iterable{nullptr};
    Node* test{nullptr};
    /// The target once more, with the variables that the test sees.
    Node* test_target{nullptr};
    Nodes body{};
    Nodes otherwise{};
    Loads loads{};
    Loads test_loads{};
    Loads otherwise_loads{};
};

struct AssignNode : Node {
    Node* target{nullptr};
    Node* value{nullptr};
};

struct AssignBlockNode : Node {
    Node* target{nullptr};
    FilterNode* filter{nullptr};
    Nodes body{};
    Loads loads{};
};

/// A macro; also the body of a call block and of a generation block.
struct MacroNode : Node {
    bool takes_caller{false};
    bool takes_keywords{false};
    bool takes_positional{false};
    std::uint32_t caller_slot{0};
    std::uint32_t keywords_slot{0};
    std::uint32_t positional_slot{0};
    std::uint32_t slots{0};
    /// Missing if it has none.
    Value name{};
    NameNode* target{nullptr};
    Span<NameNode*> parameters{};
    /// Of the last parameters.
    Nodes defaults{};
    Nodes body{};
    Loads loads{};
};

/// Kinds `call_block` and `generation`; the latter calls nothing.
struct CallBlockNode : Node {
    CallNode* call{nullptr};
    MacroNode* body{nullptr};
};

struct FilterBlockNode : Node {
    FilterNode* filter{nullptr};
    Nodes body{};
    Loads loads{};
};

struct WithNode : Node {
    Nodes targets{};
    Nodes values{};
    Nodes body{};
    Loads loads{};
};

struct ScopeNode : Node {
    Nodes body{};
    Loads loads{};
};

struct BlockNode : Node {
    std::uint32_t slots{0};
    std::string_view name{};
    Nodes body{};
    Loads loads{};
};

/// A compiled template. Immutable once it is made; any number of threads may run it.
struct Program {
    explicit Program(std::size_t memory) : arena{memory} {}

    Arena arena;
    Nodes body{};
    Loads loads{};
    std::uint32_t slots{0};
    /// The names that are looked up in what the caller gives, and then among the globals.
    std::vector<Value> context_names{};
    bool has_generation{false};
    bool has_blocks{false};
};

/// A running function: its variables, and those around it.
struct Activation {
    Activation* outer{nullptr};
    Value* slots{nullptr};
};

struct MacroData {
    MacroNode const* node{nullptr};
    Activation* outer{nullptr};
};

}  // namespace tinkxx::text::jinja
