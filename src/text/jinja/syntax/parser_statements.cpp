#include "text/jinja/syntax/parser.hpp"

#include <algorithm>

namespace tinkxx::text::jinja {

Nodes Parser::parse() { return parse_until({}); }

Node* Parser::output(Node* expression, std::uint32_t line) {
    auto* const node = make<OutputNode>(NodeKind::output, line);
    node->expression = expression;
    holds(*node, expression);
    return node;
}

/// Up to one of the tags in `ends`, which is the current token then; to the end if there are none.
Nodes Parser::parse_until(std::initializer_list<std::string_view> ends) {
    std::vector<Node*> nodes;
    if (ends.size() != 0) ends_.emplace_back(ends);
    while (!is(TokenKind::end)) {
        auto const& token = next();
        if (token.kind == TokenKind::data) {
            auto* const text = make<TextNode>(NodeKind::text, token.line);
            text->text = token.text;
            nodes.push_back(text);
        } else if (token.kind == TokenKind::variable_begin) {
            auto const line = token.line;
            nodes.push_back(output(tuple({}), line));
            expect(TokenKind::variable_end, "end of print statement");
        } else {
            if (std::any_of(ends.begin(), ends.end(),
                            [this](std::string_view end) { return is_name(end); })) {
                ends_.pop_back();
                return keep(nodes);
            }
            nodes.push_back(statement());
            expect(TokenKind::block_end, "end of statement block");
        }
    }
    if (ends.size() != 0) fail_end({});
    return keep(nodes);
}

void Parser::fail_end(std::string_view unknown) {
    std::string message = unknown.empty()
                              ? "Unexpected end of template."
                              : "Encountered unknown tag '" + std::string{unknown} + "'.";
    if (!ends_.empty()) {
        bool nesting = false;
        for (auto const& ends : ends_) {
            nesting = nesting || std::find(ends.begin(), ends.end(), unknown) != ends.end();
        }
        message += nesting && !unknown.empty()
                       ? " You probably made a nesting mistake. Jinja is expecting this tag, but "
                         "currently looking for "
                       : " Jinja was looking for the following tags: ";
        for (std::size_t i = 0; i < ends_.back().size(); ++i) {
            message += (i == 0 ? "'" : " or '") + std::string{ends_.back()[i]} + "'";
        }
        message += '.';
    }
    if (!tags_.empty()) {
        message +=
            " The innermost block that needs to be closed is '" + std::string{tags_.back()} + "'.";
    }
    fail(message);
}

Nodes Parser::statements(std::initializer_list<std::string_view> ends) {
    skip_if(TokenKind::colon);
    expect(TokenKind::block_end, "end of statement block");
    return parse_until(ends);
}

Nodes Parser::body(Node& owner, std::string_view end) {
    auto const nodes = statements({end});
    next();
    holds(owner, nodes);
    return nodes;
}

Node* Parser::statement() {
    if (!is(TokenKind::name)) fail("tag name expected");
    Deeper const deeper{*this};
    auto const tag = now();
    tags_.push_back(tag.text);
    auto* const node = dispatch(tag);
    tags_.pop_back();
    return node;
}

Node* Parser::dispatch(Token const& tag) {
    auto const name = tag.text;
    if (name == "if") return if_statement();
    if (name == "for") return for_statement();
    if (name == "set") return set_statement();
    if (name == "macro") return macro_statement();
    if (name == "call") return call_statement();
    if (name == "filter") return filter_statement();
    if (name == "generation") return generation_statement();
    if (name == "with") return with_statement();
    if (name == "print") return print_statement();
    if (name == "block") return block_statement();
    if (name == "autoescape") return autoescape_statement();
    return other_statement(tag);
}

Node* Parser::other_statement(Token const& tag) {
    if (tag.text == "break") return make<Node>(NodeKind::break_, next().line);
    if (tag.text == "continue") return make<Node>(NodeKind::continue_, next().line);
    if (tag.text == "include" || tag.text == "import" || tag.text == "from" ||
        tag.text == "extends") {
        fail("'" + std::string{tag.text} +
             "' is not supported: a chat template is one text and has no others to take from");
    }
    tags_.pop_back();
    fail_end(tag.text);
}

void Parser::check_target(Node* target) {
    switch (target->kind) {
        case NodeKind::name:
            static_cast<NameNode*>(target)->use = NameNode::Use::store;
            return;
        case NodeKind::attribute_target:
            return;
        case NodeKind::tuple:
            for (auto* item : static_cast<ListNode*>(target)->items) check_target(item);
            return;
        default:
            fail("can't assign to an expression that is no name", target->line);
    }
}

Node* Parser::assign_target(TupleRules rules) {
    rules.simplified = true;
    auto* const target = tuple(rules);
    check_target(target);
    return target;
}

NameNode* Parser::name_target() {
    auto const& token = expect(TokenKind::name, "name");
    auto* const name = make<NameNode>(NodeKind::name, token.line);
    name->name = string_value(token.text);
    name->use = NameNode::Use::store;
    return name;
}

Node* Parser::set_statement() {
    auto const line = next().line;
    auto* const target = assign_target({.with_namespace = true});
    if (skip_if(TokenKind::assign)) {
        auto* const node = make<AssignNode>(NodeKind::assign, line);
        node->target = target;
        node->value = tuple({});
        holds(*node, target);
        holds(*node, node->value);
        return node;
    }
    auto* const node = make<AssignBlockNode>(NodeKind::assign_block, line);
    node->target = target;
    node->filter = static_cast<FilterNode*>(filters(nullptr, false));
    holds(*node, target);
    holds(*node, node->filter);
    node->body = body(*node, "endset");
    return node;
}

Node* Parser::for_statement() {
    auto* const node = make<ForNode>(NodeKind::for_, next().line);
    node->target = assign_target({.end = "in"});
    expect_name("in");
    node->iterable = tuple({.with_condition = false, .end = "recursive"});
    if (skip_if_name("if")) node->test = expression();
    node->recursive = skip_if_name("recursive");
    node->body = statements({"endfor", "else"});
    if (next().text == "else") node->otherwise = body(*node, "endfor");
    for (auto const* part : {node->target, node->iterable, node->test}) holds(*node, part);
    holds(*node, node->body);
    return node;
}

Node* Parser::if_statement() {
    auto* const node = make<IfNode>(NodeKind::if_, next().line);
    std::vector<IfNode::Branch> branches;
    while (true) {
        IfNode::Branch branch;
        branch.test = tuple({.with_condition = false});
        branch.body = statements({"elif", "else", "endif"});
        branches.push_back(branch);
        holds(*node, branch.test);
        holds(*node, branch.body);
        auto const end = next().text;
        if (end == "elif") continue;
        if (end == "else") node->otherwise = body(*node, "endif");
        break;
    }
    node->branches = keep(branches);
    return node;
}

Node* Parser::with_statement() {
    auto* const node = make<WithNode>(NodeKind::with, next().line);
    std::vector<Node*> targets;
    std::vector<Node*> values;
    while (!is(TokenKind::block_end)) {
        if (!targets.empty()) expect(TokenKind::comma, ",");
        targets.push_back(assign_target({}));
        expect(TokenKind::assign, "=");
        values.push_back(expression());
    }
    node->targets = keep(targets);
    node->values = keep(values);
    holds(*node, node->targets);
    holds(*node, node->values);
    node->body = body(*node, "endwith");
    return node;
}

Node* Parser::autoescape_statement() {
    auto* const node = make<ScopeNode>(NodeKind::scope, next().line);
    auto* const choice = expression();
    if (choice->kind != NodeKind::constant ||
        is_true(static_cast<ConstantNode const*>(choice)->value)) {
        fail("'autoescape' is not supported: a chat template makes text, not HTML", node->line);
    }
    node->body = body(*node, "endautoescape");
    return node;
}

Node* Parser::block_statement() {
    auto* const node = make<BlockNode>(NodeKind::block, next().line);
    node->name = expect(TokenKind::name, "name").text;
    if (is_name("scoped") || is_name("required")) {
        fail("'" + std::string{now().text} +
             "' blocks are not supported: a chat template has no others that extend it");
    }
    node->body = body(*node, "endblock");
    skip_if_name(node->name);
    program_.has_blocks = true;
    return node;
}

void Parser::signature(MacroNode& macro) {
    std::vector<NameNode*> parameters;
    std::vector<Node*> defaults;
    expect(TokenKind::left_paren, "(");
    while (!is(TokenKind::right_paren)) {
        if (!parameters.empty()) expect(TokenKind::comma, ",");
        auto* const parameter = name_target();
        parameter->use = NameNode::Use::parameter;
        for (auto const* other : parameters) {
            if (equal(other->name, parameter->name)) {
                fail("parameter '" + std::string{parameter->name.view()} + "' is named twice");
            }
        }
        if (skip_if(TokenKind::assign)) {
            defaults.push_back(expression());
        } else if (!defaults.empty()) {
            fail("non-default argument follows default argument");
        }
        parameters.push_back(parameter);
    }
    next();
    macro.parameters = keep(parameters);
    macro.defaults = keep(defaults);
    holds(macro, macro.defaults);
}

Node* Parser::macro_statement() {
    auto* const node = make<MacroNode>(NodeKind::macro, next().line);
    node->target = name_target();
    node->name = node->target->name;
    signature(*node);
    node->body = body(*node, "endmacro");
    return node;
}

Node* Parser::call_statement() {
    auto* const node = make<CallBlockNode>(NodeKind::call_block, next().line);
    node->body = make<MacroNode>(NodeKind::macro, node->line);
    node->body->name = missing_value();
    if (is(TokenKind::left_paren)) signature(*node->body);
    auto* const called = expression();
    if (called->kind != NodeKind::call) fail("expected call", node->line);
    node->call = static_cast<CallNode*>(called);
    node->body->body = body(*node->body, "endcall");
    holds(*node, called);
    holds(*node, node->body);
    return node;
}

Node* Parser::filter_statement() {
    auto* const node = make<FilterBlockNode>(NodeKind::filter_block, next().line);
    node->filter = static_cast<FilterNode*>(filters(nullptr, true));
    holds(*node, node->filter);
    node->body = body(*node, "endfilter");
    return node;
}

Node* Parser::generation_statement() {
    auto* const node = make<CallBlockNode>(NodeKind::generation, next().line);
    node->body = make<MacroNode>(NodeKind::macro, node->line);
    node->body->name = missing_value();
    node->body->body = body(*node->body, "endgeneration");
    holds(*node, node->body);
    program_.has_generation = true;
    return node;
}

Node* Parser::print_statement() {
    auto* const node = make<ScopeNode>(NodeKind::scope, next().line);
    std::vector<Node*> outputs;
    while (!is(TokenKind::block_end)) {
        if (!outputs.empty()) expect(TokenKind::comma, ",");
        outputs.push_back(output(expression(), node->line));
    }
    node->body = keep(outputs);
    holds(*node, node->body);
    return node;
}

}  // namespace tinkxx::text::jinja
