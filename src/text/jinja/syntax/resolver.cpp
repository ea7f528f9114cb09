#include "text/jinja/syntax/resolver.hpp"

#include "text/jinja/convert/text_of.hpp"

#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

// Jinja translates a template into Python and lets the rules of Python's variables do the rest. A
// part of a template that has variables of its own (a loop, a macro, a block of text) is a *frame*.
// When it begins, each name that it sets gets a variable, which is first a copy of what the name
// means outside. A macro, the body of a call block and a recursive loop are *functions*: their
// variables exist once for each call, and they see those of the function around them as these are
// when they run.

namespace tinkxx::text::jinja {
namespace {

struct Function {
    Function* outer{nullptr};
    std::uint32_t slots{0};
};

/// What a name means within a frame.
struct Symbol {
    enum class From : std::uint8_t {
        parameter,  ///< set before the frame begins
        nothing,    ///< has no value at first
        outer,      ///< copied from the frame around
        context,    ///< what the caller gave, or a global
    };
    From from{From::nothing};
    bool stored{false};
    std::uint32_t slot{0};
    Function* function{nullptr};
    Symbol const* source{nullptr};
    std::string_view name{};
};

struct Frame {
    Frame* outer{nullptr};
    Function* function{nullptr};
    std::unordered_map<std::string_view, Symbol*> symbols{};
    std::vector<Symbol*> in_order{};
    /// The outermost frame of the template.
    bool top{false};
    bool in_loop{false};
    /// Within the branch of an `if`, where Jinja puts up with filters that it does not know.
    bool soft{false};
};

/// Calls `seen` with each name below a node, in the order in which Jinja's visitors go.
template <class Seen>
class NameWalk {
public:
    explicit NameWalk(Seen seen) : seen_{std::move(seen)} {}

    void operator()(Nodes const& nodes) {
        for (auto* node : nodes) (*this)(node);
    }

    void operator()(Node* node) {
        if (node == nullptr) return;
        if (node->kind <= NodeKind::attribute_target) {
            leaf(node);
        } else if (node->kind < NodeKind::text) {
            expression(node);
        } else {
            statement(node);
        }
    }

private:
    template <class T>
    static T& as(Node* node) {
        return *static_cast<T*>(node);
    }

    void leaf(Node* node) {
        if (node->kind == NodeKind::name) seen_(as<NameNode>(node));
    }

    void arguments(CallArguments const& arguments) {
        (*this)(arguments.positional);
        for (auto const& keyword : arguments.keywords) (*this)(keyword.value);
        (*this)(arguments.more_positional);
        (*this)(arguments.more_keywords);
    }

    void expression(Node* node) {
        switch (node->kind) {
            case NodeKind::negate:
            case NodeKind::plus:
            case NodeKind::not_:
                return (*this)(as<UnaryNode>(node).operand);
            case NodeKind::dict:
                for (std::uint32_t i = 0; i < as<DictNode>(node).keys.size; ++i) {
                    (*this)(as<DictNode>(node).keys[i]);
                    (*this)(as<DictNode>(node).values[i]);
                }
                return;
            case NodeKind::tuple:
            case NodeKind::list:
            case NodeKind::add:
            case NodeKind::concat:
            case NodeKind::and_:
            case NodeKind::or_:
                return (*this)(as<ListNode>(node).items);
            case NodeKind::compare:
                (*this)(as<CompareNode>(node).first);
                for (auto const& step : as<CompareNode>(node).steps) (*this)(step.operand);
                return;
            case NodeKind::attribute:
                return (*this)(as<AttributeNode>(node).owner);
            case NodeKind::filter:
            case NodeKind::test:
                (*this)(as<FilterNode>(node).operand);
                return arguments(as<FilterNode>(node).arguments);
            case NodeKind::call:
                (*this)(as<CallNode>(node).callee);
                return arguments(as<CallNode>(node).arguments);
            default:
                return more_expressions(node);
        }
    }

    void more_expressions(Node* node) {
        switch (node->kind) {
            case NodeKind::item:
                (*this)(as<ItemNode>(node).owner);
                (*this)(as<ItemNode>(node).index);
                return;
            case NodeKind::slice: {
                auto const& slice = as<SliceNode>(node);
                for (auto* part : {slice.owner, slice.start, slice.stop, slice.step}) (*this)(part);
                return;
            }
            case NodeKind::conditional: {
                auto const& choice = as<ConditionalNode>(node);
                for (auto* part : {choice.test, choice.then, choice.otherwise}) (*this)(part);
                return;
            }
            default:
                (*this)(as<BinaryNode>(node).left);
                (*this)(as<BinaryNode>(node).right);
        }
    }

    void statement(Node* node) {
        switch (node->kind) {
            case NodeKind::output:
                return (*this)(as<OutputNode>(node).expression);
            case NodeKind::if_:
                for (auto const& branch : as<IfNode>(node).branches) {
                    (*this)(branch.test);
                    (*this)(branch.body);
                }
                return (*this)(as<IfNode>(node).otherwise);
            case NodeKind::for_: {
                auto const& loop = as<ForNode>(node);
                (*this)(loop.target);
                (*this)(loop.iterable);
                (*this)(loop.body);
                (*this)(loop.otherwise);
                return (*this)(loop.test);
            }
            case NodeKind::assign:
                (*this)(as<AssignNode>(node).target);
                return (*this)(as<AssignNode>(node).value);
            case NodeKind::assign_block:
                (*this)(as<AssignBlockNode>(node).target);
                (*this)(as<AssignBlockNode>(node).filter);
                return (*this)(as<AssignBlockNode>(node).body);
            case NodeKind::macro: {
                auto const& macro = as<MacroNode>(node);
                for (auto* parameter : macro.parameters) seen_(*parameter);
                (*this)(macro.defaults);
                return (*this)(macro.body);
            }
            default:
                return more_statements(node);
        }
    }

    void more_statements(Node* node) {
        switch (node->kind) {
            case NodeKind::call_block:
            case NodeKind::generation:
                (*this)(as<CallBlockNode>(node).call);
                return (*this)(as<CallBlockNode>(node).body);
            case NodeKind::filter_block:
                (*this)(as<FilterBlockNode>(node).body);
                return (*this)(as<FilterBlockNode>(node).filter);
            case NodeKind::with:
                (*this)(as<WithNode>(node).targets);
                (*this)(as<WithNode>(node).values);
                return (*this)(as<WithNode>(node).body);
            case NodeKind::scope:
                return (*this)(as<ScopeNode>(node).body);
            default:
                return;  // texts, jumps; blocks see nothing of what is around them
        }
    }

    Seen seen_;
};

/// Which of the names a part of a template uses before it sets them.
std::set<std::string_view> undeclared(Nodes const& nodes, std::set<std::string_view> names) {
    std::set<std::string_view> found;
    NameWalk walk{[&](NameNode& name) {
        auto const text = name.name.view();
        if (name.use == NameNode::Use::load && names.contains(text)) {
            found.insert(text);
        } else {
            names.erase(text);
        }
    }};
    walk(nodes);
    return found;
}

class Resolver {
public:
    explicit Resolver(Program& program) : program_{program} {}

    void run() {
        auto& function = functions_.emplace_back();
        auto& frame = frames_.emplace_back();
        frame.function = &function;
        frame.top = true;
        analyze(frame, program_.body);
        nodes(program_.body, frame);
        program_.loads = loads_of(frame);
        program_.slots = function.slots;
    }

private:
    template <class T>
    static T& as(Node* node) {
        return *static_cast<T*>(node);
    }

    [[noreturn]] static void fail(std::string message, std::uint32_t line) {
        throw Failure{Failure::Kind::syntax, std::move(message), line};
    }

    // Symbols

    Frame& inner(Frame& outer, Function* function = nullptr) {
        auto& frame = frames_.emplace_back();
        frame.outer = &outer;
        frame.function = function != nullptr ? function : outer.function;
        return frame;
    }

    Function& new_function(Frame& outer) {
        auto& function = functions_.emplace_back();
        function.outer = outer.function;
        return function;
    }

    static Symbol* find(Frame const* frame, std::string_view name) {
        for (; frame != nullptr; frame = frame->outer) {
            auto const found = frame->symbols.find(name);
            if (found != frame->symbols.end()) return found->second;
        }
        return nullptr;
    }

    Symbol& define(Frame& frame, std::string_view name, Symbol::From from) {
        auto& symbol = symbols_.emplace_back();
        symbol.from = from;
        symbol.name = name;
        symbol.function = frame.function;
        symbol.slot = frame.function->slots++;
        frame.symbols[name] = &symbol;
        frame.in_order.push_back(&symbol);
        return symbol;
    }

    Symbol& parameter(Frame& frame, std::string_view name) {
        auto const found = frame.symbols.find(name);
        auto& symbol = found != frame.symbols.end() ? *found->second
                                                    : define(frame, name, Symbol::From::parameter);
        symbol.from = Symbol::From::parameter;
        symbol.stored = true;
        return symbol;
    }

    void load(Frame& frame, std::string_view name) {
        if (find(&frame, name) == nullptr) define(frame, name, Symbol::From::context);
    }

    /// `in_branch`: within an `if`, where it is not certain that the name is set.
    void store(Frame& frame, std::string_view name, bool in_branch) {
        auto const found = frame.symbols.find(name);
        if (found != frame.symbols.end()) {
            found->second->stored = true;
            return;
        }
        auto const* const outside = find(frame.outer, name);
        auto from = in_branch ? Symbol::From::context : Symbol::From::nothing;
        if (outside != nullptr) from = Symbol::From::outer;
        auto& symbol = define(frame, name, from);
        symbol.source = outside;
        symbol.stored = true;
    }

    // What the names of one frame are

    void analyze(Frame& frame, Nodes const& body, bool in_branch = false) {
        for (auto* node : body) analyze(frame, node, in_branch);
    }

    void analyze(Frame& frame, Node* node, bool in_branch) {
        if (node == nullptr) return;
        switch (node->kind) {
            case NodeKind::if_:
                for (auto const& branch : as<IfNode>(node).branches) {
                    analyze(frame, branch.test, in_branch);
                    analyze(frame, branch.body, true);
                }
                return analyze(frame, as<IfNode>(node).otherwise, true);
            case NodeKind::macro:
                return store(frame, as<MacroNode>(node).name.view(), in_branch);
            case NodeKind::assign:
                names(frame, as<AssignNode>(node).value, in_branch);
                return names(frame, as<AssignNode>(node).target, in_branch);
            case NodeKind::for_:
                return names(frame, as<ForNode>(node).iterable, in_branch);
            case NodeKind::call_block:
            case NodeKind::generation:
                return names(frame, as<CallBlockNode>(node).call, in_branch);
            case NodeKind::filter_block:
                return names(frame, as<FilterBlockNode>(node).filter, in_branch);
            case NodeKind::with:
                for (auto* value : as<WithNode>(node).values) names(frame, value, in_branch);
                return;
            case NodeKind::assign_block:
                return names(frame, as<AssignBlockNode>(node).target, in_branch);
            case NodeKind::scope:
            case NodeKind::block:
                return;
            default:
                return names(frame, node, in_branch);
        }
    }

    /// Of an expression, a target or an output.
    void names(Frame& frame, Node* node, bool in_branch) {
        NameWalk walk{[&](NameNode& name) {
            if (name.use == NameNode::Use::store) {
                store(frame, name.name.view(), in_branch);
            } else {
                load(frame, name.name.view());
            }
        }};
        targets_load(frame, node);
        walk(node);
    }

    /// The namespaces whose attributes a target sets.
    void targets_load(Frame& frame, Node* node) {
        if (node == nullptr) return;
        if (node->kind == NodeKind::attribute_target) {
            load(frame, as<AttributeTargetNode>(node).name_space->name.view());
        } else if (node->kind == NodeKind::tuple) {
            for (auto* item : as<ListNode>(node).items) targets_load(frame, item);
        }
    }

    void target_parameters(Frame& frame, Node* target) {
        NameWalk walk{[&](NameNode& name) { parameter(frame, name.name.view()); }};
        targets_load(frame, target);
        walk(target);
    }

    /// What happens when the frame begins.
    Loads loads_of(Frame const& frame) {
        std::vector<Load> loads;
        for (auto const* symbol : frame.in_order) {
            Load load;
            load.slot = symbol->slot;
            switch (symbol->from) {
                case Symbol::From::parameter:
                    continue;
                case Symbol::From::nothing:
                    break;
                case Symbol::From::context:
                    if (!symbol->stored) continue;  // is read from there each time
                    load.from = Load::From::context;
                    load.source = context_id(symbol->name);
                    break;
                case Symbol::From::outer:
                    source_of(*symbol->source, *frame.function, load);
                    break;
            }
            loads.push_back(load);
        }
        Loads kept{program_.arena.array<Load>(loads.size()),
                   static_cast<std::uint32_t>(loads.size())};
        std::copy(loads.begin(), loads.end(), kept.items);
        return kept;
    }

    void source_of(Symbol const& symbol, Function const& function, Load& load) {
        if (symbol.from == Symbol::From::context && !symbol.stored) {
            load.from = Load::From::context;
            load.source = context_id(symbol.name);
            return;
        }
        load.from = Load::From::outer;
        load.source = symbol.slot;
        load.hops = hops(function, symbol);
    }

    static std::uint32_t hops(Function const& from, Symbol const& symbol) {
        std::uint32_t count = 0;
        for (auto const* function = &from; function != symbol.function;
             function = function->outer) {
            ++count;
        }
        return count;
    }

    std::uint32_t context_id(std::string_view name) {
        auto const [place, added] =
            context_ids_.try_emplace(name, static_cast<std::uint32_t>(context_ids_.size()));
        if (added) program_.context_names.push_back(string_value(name));
        return place->second;
    }

    // Which variable each name is

    void name(NameNode& node, Frame& frame) {
        auto const* symbol = find(&frame, node.name.view());
        if (symbol == nullptr) {
            // The argument of a filter on a `set` block, which Jinja does not look at.
            node.kind = NodeKind::context;
            node.slot = context_id(node.name.view());
            return;
        }
        if (symbol->from == Symbol::From::context && !symbol->stored) {
            node.kind = NodeKind::context;
            node.slot = context_id(node.name.view());
            return;
        }
        node.slot = symbol->slot;
        node.hops = hops(*frame.function, *symbol);
        node.kind = node.hops == 0 ? NodeKind::local : NodeKind::outer;
        if (node.use != NameNode::Use::load && frame.top && program_.has_blocks) {
            node.exported = true;
            node.id = context_id(node.name.view());
        }
    }

    void expression(Node* node, Frame& frame) {
        NameWalk walk{[&](NameNode& one) { name(one, frame); }};
        walk(node);
        target_names(node, frame);
        check_filters(node, frame);
    }

    void target_names(Node* node, Frame& frame) {
        if (node == nullptr) return;
        if (node->kind == NodeKind::attribute_target) {
            name(*as<AttributeTargetNode>(node).name_space, frame);
        } else if (node->kind == NodeKind::tuple) {
            for (auto* item : as<ListNode>(node).items) target_names(item, frame);
        }
    }

    /// Refuses filters and tests that do not exist, where Jinja does so before the template runs.
    void check_filters(Node* node, Frame& frame) {
        if (node == nullptr || frame.soft) return;
        FilterNode const* wrong = nullptr;
        find_unknown(node, wrong);
        if (wrong == nullptr) return;
        fail("No " + std::string{wrong->kind == NodeKind::filter ? "filter" : "test"} + " named '" +
                 std::string{wrong->name} + "'.",
             wrong->line);
    }

    static void find_unknown(Node* node, FilterNode const*& wrong) {
        if (node == nullptr || wrong != nullptr) return;
        auto const below = [&](auto const& nodes) {
            for (auto* one : nodes) find_unknown(one, wrong);
        };
        auto const arguments = [&](CallArguments const& given) {
            below(given.positional);
            for (auto const& keyword : given.keywords) find_unknown(keyword.value, wrong);
            find_unknown(given.more_positional, wrong);
            find_unknown(given.more_keywords, wrong);
        };
        switch (node->kind) {
            case NodeKind::filter:
            case NodeKind::test: {
                auto const& filter = as<FilterNode>(node);
                find_unknown(filter.operand, wrong);
                if (wrong == nullptr && filter.which == 0) wrong = &filter;
                return arguments(filter.arguments);
            }
            case NodeKind::call:
                find_unknown(as<CallNode>(node).callee, wrong);
                return arguments(as<CallNode>(node).arguments);
            case NodeKind::tuple:
            case NodeKind::list:
            case NodeKind::add:
            case NodeKind::concat:
            case NodeKind::and_:
            case NodeKind::or_:
                return below(as<ListNode>(node).items);
            case NodeKind::dict:
                below(as<DictNode>(node).keys);
                return below(as<DictNode>(node).values);
            default:
                return find_more_unknown(node, wrong);
        }
    }

    static void find_more_unknown(Node* node, FilterNode const*& wrong) {
        switch (node->kind) {
            case NodeKind::negate:
            case NodeKind::plus:
            case NodeKind::not_:
                return find_unknown(as<UnaryNode>(node).operand, wrong);
            case NodeKind::subtract:
            case NodeKind::multiply:
            case NodeKind::divide:
            case NodeKind::floor_divide:
            case NodeKind::modulo:
            case NodeKind::power:
                find_unknown(as<BinaryNode>(node).left, wrong);
                return find_unknown(as<BinaryNode>(node).right, wrong);
            case NodeKind::compare:
                find_unknown(as<CompareNode>(node).first, wrong);
                for (auto const& step : as<CompareNode>(node).steps) {
                    find_unknown(step.operand, wrong);
                }
                return;
            case NodeKind::attribute:
                return find_unknown(as<AttributeNode>(node).owner, wrong);
            case NodeKind::item:
                find_unknown(as<ItemNode>(node).owner, wrong);
                return find_unknown(as<ItemNode>(node).index, wrong);
            case NodeKind::slice:
                for (auto* part : {as<SliceNode>(node).owner, as<SliceNode>(node).start,
                                   as<SliceNode>(node).stop, as<SliceNode>(node).step}) {
                    find_unknown(part, wrong);
                }
                return;
            default:
                return;  // names and constants; in a conditional Jinja asks only when it runs
        }
    }

    // Statements

    /// Joins texts, and constants that are put out, with the texts beside them.
    void join_texts(Nodes& body) {
        std::uint32_t kept = 0;
        for (std::uint32_t i = 0; i < body.size;) {
            auto* const first = body[i];
            joined_.clear();
            auto const begin = i;
            while (i < body.size && add_constant(*body[i])) ++i;
            if (i == begin) {
                body[kept++] = body[i++];
                continue;
            }
            auto* const text = program_.arena.make<TextNode>();
            text->kind = NodeKind::text;
            text->line = first->line;
            text->text = program_.arena.copy(joined_);
            if (!joined_.empty()) body[kept++] = text;
        }
        body.size = kept;
    }

    bool add_constant(Node& node) {
        if (node.kind == NodeKind::text) {
            joined_ += static_cast<TextNode&>(node).text;
            return true;
        }
        if (node.kind != NodeKind::output) return false;
        auto* const expression = static_cast<OutputNode&>(node).expression;
        if (expression->kind != NodeKind::constant) return false;
        append_text(joined_, as<ConstantNode>(expression).value);
        return true;
    }

    void nodes(Nodes& body, Frame& frame) {
        join_texts(body);
        for (auto* node : body) statement(node, frame);
    }

    void statement(Node* node, Frame& frame) {
        switch (node->kind) {
            case NodeKind::output:
                return expression(as<OutputNode>(node).expression, frame);
            case NodeKind::if_:
                return if_statement(as<IfNode>(node), frame);
            case NodeKind::for_:
                return for_statement(as<ForNode>(node), frame);
            case NodeKind::assign:
                expression(as<AssignNode>(node).value, frame);
                return expression(as<AssignNode>(node).target, frame);
            case NodeKind::assign_block:
                return assign_block(as<AssignBlockNode>(node), frame);
            case NodeKind::macro:
                macro(as<MacroNode>(node), frame);
                return name(*as<MacroNode>(node).target, frame);
            case NodeKind::call_block:
            case NodeKind::generation:
                macro(*as<CallBlockNode>(node).body, frame);
                return expression(as<CallBlockNode>(node).call, frame);
            case NodeKind::filter_block:
                return filter_block(as<FilterBlockNode>(node), frame);
            case NodeKind::with:
                return with(as<WithNode>(node), frame);
            case NodeKind::scope:
                return scope(as<ScopeNode>(node), frame);
            case NodeKind::block:
                return block(as<BlockNode>(node));
            case NodeKind::break_:
            case NodeKind::continue_:
                if (!frame.in_loop) {
                    fail(node->kind == NodeKind::break_ ? "'break' outside loop"
                                                        : "'continue' not properly in loop",
                         node->line);
                }
                return;
            default:
                return;
        }
    }

    void if_statement(IfNode& node, Frame& frame) {
        auto const soft = std::exchange(frame.soft, true);
        for (auto& branch : node.branches) {
            expression(branch.test, frame);
            nodes(branch.body, frame);
        }
        nodes(node.otherwise, frame);
        frame.soft = soft;
    }

    Node* copy_target(Node const& target) {
        if (target.kind == NodeKind::tuple) {
            auto* const tuple = program_.arena.make<ListNode>(static_cast<ListNode const&>(target));
            auto* const items = program_.arena.array<Node*>(tuple->items.size);
            for (std::uint32_t i = 0; i < tuple->items.size; ++i) {
                items[i] = copy_target(*tuple->items[i]);
            }
            tuple->items.items = items;
            return tuple;
        }
        if (target.kind == NodeKind::name) {
            return program_.arena.make<NameNode>(static_cast<NameNode const&>(target));
        }
        fail("can't assign to an attribute in a loop", target.line);
    }

    void for_statement(ForNode& node, Frame& frame) {
        NameWalk check{[&](NameNode& one) {
            if (one.use == NameNode::Use::store && one.name.view() == "loop") {
                fail("Can't assign to special loop variable in for-loop target", one.line);
            }
        }};
        check(&node);
        auto* const function = node.recursive ? &new_function(frame) : frame.function;
        auto& body = inner(frame, function);
        auto& otherwise = inner(frame, function);
        body.in_loop = true;
        otherwise.in_loop = frame.in_loop && !node.recursive;
        node.uses_loop = node.recursive || undeclared(node.body, {"loop"}).contains("loop");
        if (node.uses_loop) node.loop_slot = parameter(body, "loop").slot;
        target_parameters(body, node.target);
        analyze(body, node.body);
        analyze(otherwise, node.otherwise);
        if (node.test != nullptr) {
            auto& test = inner(frame, function);
            node.test_target = copy_target(*node.target);
            target_parameters(test, node.test_target);
            names(test, node.test, false);
            expression(node.test_target, test);
            expression(node.test, test);
            node.test_loads = loads_of(test);
        }
        expression(node.target, body);
        expression(node.iterable, frame);
        nodes(node.body, body);
        nodes(node.otherwise, otherwise);
        node.loads = loads_of(body);
        node.otherwise_loads = loads_of(otherwise);
        if (node.recursive) node.slots = function->slots;
    }

    void assign_block(AssignBlockNode& node, Frame& frame) {
        auto& body = inner(frame);
        body.in_loop = frame.in_loop;
        analyze(body, node.body);
        nodes(node.body, body);
        expression(node.target, frame);
        expression(node.filter, body);
        node.loads = loads_of(body);
    }

    void filter_block(FilterBlockNode& node, Frame& frame) {
        auto& body = inner(frame);
        body.in_loop = frame.in_loop;
        names(body, node.filter, false);
        analyze(body, node.body);
        nodes(node.body, body);
        expression(node.filter, body);
        node.loads = loads_of(body);
    }

    void with(WithNode& node, Frame& frame) {
        auto& body = inner(frame);
        body.in_loop = frame.in_loop;
        for (auto* target : node.targets) target_parameters(body, target);
        analyze(body, node.body);
        for (auto* value : node.values) expression(value, frame);
        for (auto* target : node.targets) expression(target, body);
        nodes(node.body, body);
        node.loads = loads_of(body);
    }

    void scope(ScopeNode& node, Frame& frame) {
        auto& body = inner(frame);
        body.in_loop = frame.in_loop;
        analyze(body, node.body);
        nodes(node.body, body);
        node.loads = loads_of(body);
    }

    void block(BlockNode& node) {
        if (!blocks_.insert(node.name).second) {
            fail("block '" + std::string{node.name} + "' defined twice", node.line);
        }
        auto& function = functions_.emplace_back();
        auto& frame = frames_.emplace_back();
        frame.function = &function;
        analyze(frame, node.body);
        nodes(node.body, frame);
        node.loads = loads_of(frame);
        node.slots = function.slots;
    }

    void macro(MacroNode& node, Frame& frame) {
        auto& function = new_function(frame);
        auto& body = inner(frame, &function);
        auto special = undeclared(node.body, {"caller", "kwargs", "varargs"});
        for (auto* one : node.parameters) {
            auto const text = one->name.view();
            parameter(body, text);
            if (text == "kwargs" || text == "varargs") special.erase(text);
        }
        if (special.contains("caller")) {
            node.takes_caller = true;
            check_caller(node, body);
        }
        if (special.contains("kwargs")) {
            node.takes_keywords = true;
            node.keywords_slot = parameter(body, "kwargs").slot;
        }
        if (special.contains("varargs")) {
            node.takes_positional = true;
            node.positional_slot = parameter(body, "varargs").slot;
        }
        for (auto* one : node.defaults) names(body, one, false);
        analyze(body, node.body);
        for (auto* one : node.parameters) name(*one, body);
        for (auto* one : node.defaults) expression(one, body);
        nodes(node.body, body);
        node.loads = loads_of(body);
        node.slots = function.slots;
    }

    void check_caller(MacroNode& node, Frame& body) {
        for (std::uint32_t i = 0; i < node.parameters.size; ++i) {
            if (node.parameters[i]->name.view() != "caller") continue;
            if (i + node.defaults.size < node.parameters.size) {
                fail(
                    "When defining macros or call blocks the special \"caller\" argument must be "
                    "omitted or be given a default.",
                    node.line);
            }
            node.caller_slot = body.symbols.at("caller")->slot;
            return;
        }
        node.caller_slot = parameter(body, "caller").slot;
    }

    Program& program_;
    std::deque<Function> functions_;
    std::deque<Frame> frames_;
    std::deque<Symbol> symbols_;
    std::unordered_map<std::string_view, std::uint32_t> context_ids_;
    std::set<std::string_view> blocks_;
    std::string joined_;
};

}  // namespace

void resolve(Program& program) { Resolver{program}.run(); }

}  // namespace tinkxx::text::jinja
