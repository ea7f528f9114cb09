#include "text/jinja/syntax/parser.hpp"

#include "text/jinja/convert/numbers.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text::jinja {

Parser::Parser(Program& program, std::string_view source, std::uint16_t most_nested)
    : program_{program}, tokens_{tokenize(source, program.arena)}, most_nested_{most_nested} {}

Token const& Parser::next() noexcept {
    auto const& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
}

bool Parser::skip_if(TokenKind kind) noexcept {
    if (!is(kind)) return false;
    next();
    return true;
}

bool Parser::skip_if_name(std::string_view name) noexcept {
    if (!is_name(name)) return false;
    next();
    return true;
}

Token const& Parser::expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) {
        if (is(TokenKind::end)) {
            fail("unexpected end of template, expected '" + std::string{what} + "'.");
        }
        fail("expected token '" + std::string{what} + "', got '" + std::string{describe(now())} +
             "'");
    }
    return next();
}

void Parser::expect_name(std::string_view name) {
    if (!skip_if_name(name)) {
        fail("expected token '" + std::string{name} + "', got '" + std::string{describe(now())} +
             "'");
    }
}

void Parser::fail(std::string message) const { fail(std::move(message), now().line); }

void Parser::fail(std::string message, std::uint32_t line) {
    throw Failure{Failure::Kind::syntax, std::move(message), line};
}

void Parser::holds(Node& parent, Node const* child) const {
    if (child == nullptr || child->depth < parent.depth) return;
    parent.depth = static_cast<std::uint16_t>(child->depth + 1);
    if (parent.depth > most_nested_) {
        fail("nested more than " + std::to_string(most_nested_) + " levels deep", parent.line);
    }
}

void Parser::holds(Node& parent, Nodes const& children) const {
    for (auto const* child : children) holds(parent, child);
}

Node* Parser::constant(Value const& value, std::uint32_t line) {
    auto* const node = make<ConstantNode>(NodeKind::constant, line);
    node->value = value;
    return node;
}

Node* Parser::conditional() {
    Deeper const deeper{*this};
    auto line = now().line;
    auto* expression = chain(NodeKind::or_);
    while (skip_if_name("if")) {
        auto* const node = make<ConditionalNode>(NodeKind::conditional, line);
        node->then = expression;
        node->test = chain(NodeKind::or_);
        if (skip_if_name("else")) node->otherwise = conditional();
        holds(*node, node->test);
        holds(*node, node->then);
        holds(*node, node->otherwise);
        expression = node;
        line = now().line;
    }
    return expression;
}

bool Parser::skip_chain_word(NodeKind kind) {
    if (kind == NodeKind::or_) return skip_if_name("or");
    return kind == NodeKind::and_ ? skip_if_name("and") : skip_if(TokenKind::tilde);
}

Node* Parser::chain_part(NodeKind kind) {
    if (kind == NodeKind::or_) return chain(NodeKind::and_);
    return kind == NodeKind::and_ ? not_expression() : product();
}

/// Operators of one kind in a row: `or_`, `and_` and `concat`.
Node* Parser::chain(NodeKind kind) {
    auto const line = now().line;
    auto* const first = chain_part(kind);
    if (!skip_chain_word(kind)) return first;
    std::vector<Node*> items{first, chain_part(kind)};
    while (skip_chain_word(kind)) items.push_back(chain_part(kind));
    auto* const node = make<ListNode>(kind, line);
    node->items = keep(items);
    holds(*node, node->items);
    return node;
}

Node* Parser::not_expression() {
    if (!is_name("not")) return comparison();
    Deeper const deeper{*this};
    auto* const node = make<UnaryNode>(NodeKind::not_, next().line);
    node->operand = not_expression();
    holds(*node, node->operand);
    return node;
}

bool Parser::comparison_ahead(Comparison& which) {
    switch (now().kind) {
        case TokenKind::eq:
            which = Comparison::eq;
            break;
        case TokenKind::ne:
            which = Comparison::ne;
            break;
        case TokenKind::lt:
            which = Comparison::lt;
            break;
        case TokenKind::le:
            which = Comparison::le;
            break;
        case TokenKind::gt:
            which = Comparison::gt;
            break;
        case TokenKind::ge:
            which = Comparison::ge;
            break;
        default:
            which = Comparison::in;
            if (skip_if_name("in")) return true;
            if (!is_name("not") || ahead().kind != TokenKind::name || ahead().text != "in") {
                return false;
            }
            which = Comparison::not_in;
            next();
            break;
    }
    next();
    return true;
}

Node* Parser::comparison() {
    auto const line = now().line;
    auto* const first = sum();
    std::vector<CompareNode::Step> steps;
    Comparison which{};
    while (comparison_ahead(which)) steps.push_back({which, sum()});
    if (steps.empty()) return first;
    auto* const node = make<CompareNode>(NodeKind::compare, line);
    node->first = first;
    node->steps = keep(steps);
    holds(*node, first);
    for (auto const& step : steps) holds(*node, step.operand);
    return node;
}

Node* Parser::binary(NodeKind kind, Node* left, Node* right, std::uint32_t line) {
    auto* const node = make<BinaryNode>(kind, line);
    node->left = left;
    node->right = right;
    holds(*node, left);
    holds(*node, right);
    return node;
}

Node* Parser::sum() {
    auto line = now().line;
    auto* left = chain(NodeKind::concat);
    while (is(TokenKind::add) || is(TokenKind::subtract)) {
        if (skip_if(TokenKind::subtract)) {
            left = binary(NodeKind::subtract, left, chain(NodeKind::concat), line);
        } else {
            std::vector<Node*> items{left};
            while (skip_if(TokenKind::add)) items.push_back(chain(NodeKind::concat));
            auto* const node = make<ListNode>(NodeKind::add, line);
            node->items = keep(items);
            holds(*node, node->items);
            left = node;
        }
        line = now().line;
    }
    return left;
}

Node* Parser::product() {
    auto line = now().line;
    auto* left = power();
    while (true) {
        NodeKind kind{};
        if (skip_if(TokenKind::multiply)) {
            kind = NodeKind::multiply;
        } else if (skip_if(TokenKind::divide)) {
            kind = NodeKind::divide;
        } else if (skip_if(TokenKind::floor_divide)) {
            kind = NodeKind::floor_divide;
        } else if (skip_if(TokenKind::modulo)) {
            kind = NodeKind::modulo;
        } else {
            return left;
        }
        left = binary(kind, left, power(), line);
        line = now().line;
    }
}

Node* Parser::power() {
    auto const line = now().line;
    auto* left = unary(true);
    // From the left, unlike Python.
    while (skip_if(TokenKind::power)) left = binary(NodeKind::power, left, unary(true), line);
    return left;
}

Node* Parser::unary(bool with_filters) {
    Deeper const deeper{*this};
    auto const line = now().line;
    Node* node = nullptr;
    if (is(TokenKind::subtract) || is(TokenKind::add)) {
        auto const kind = is(TokenKind::subtract) ? NodeKind::negate : NodeKind::plus;
        next();
        auto* const made = make<UnaryNode>(kind, line);
        made->operand = unary(false);
        holds(*made, made->operand);
        node = made;
    } else {
        node = primary(false);
    }
    node = postfix(node);
    return with_filters ? filters_and_tests(node) : node;
}

Node* Parser::name_or_constant(bool with_namespace) {
    auto const& token = next();
    if (token.text == "true" || token.text == "True") {
        return constant(boolean_value(true), token.line);
    }
    if (token.text == "false" || token.text == "False") {
        return constant(boolean_value(false), token.line);
    }
    if (token.text == "none" || token.text == "None") return constant(none_value(), token.line);
    auto* const name = make<NameNode>(NodeKind::name, token.line);
    name->name = string_value(token.text);
    if (!with_namespace || !skip_if(TokenKind::dot)) return name;
    auto* const target = make<AttributeTargetNode>(NodeKind::attribute_target, token.line);
    target->name_space = name;
    target->attribute = string_value(expect(TokenKind::name, "name").text);
    holds(*target, name);
    return target;
}

Node* Parser::string_constant() {
    auto const line = now().line;
    auto text = next().text;
    if (is(TokenKind::string)) {
        std::string joined{text};
        while (is(TokenKind::string)) joined += next().text;
        text = program_.arena.copy(joined);
    }
    return constant(string_value(text), line);
}

Node* Parser::number_constant() {
    auto const& token = next();
    std::string digits{token.text};
    std::erase(digits, '_');
    if (token.kind == TokenKind::real) {
        return constant(real_value(parse_real(digits).value_or(0)), token.line);
    }
    return constant(parse_integer_literal(program_.arena, digits), token.line);
}

Node* Parser::primary(bool with_namespace) {
    auto const& token = now();
    switch (token.kind) {
        case TokenKind::name:
            return name_or_constant(with_namespace);
        case TokenKind::string:
            return string_constant();
        case TokenKind::integer:
        case TokenKind::real:
            return number_constant();
        case TokenKind::left_paren: {
            Deeper const deeper{*this};
            next();
            auto* const inside = tuple({.in_parentheses = true});
            expect(TokenKind::right_paren, ")");
            return inside;
        }
        case TokenKind::left_bracket:
            return list();
        case TokenKind::left_brace:
            return dict();
        default:
            fail("unexpected '" + std::string{describe(token)} + "'");
    }
}

Node* Parser::tuple(TupleRules const& rules) {
    auto const line = now().line;
    std::vector<Node*> items;
    bool is_tuple = false;
    while (true) {
        if (!items.empty()) expect(TokenKind::comma, ",");
        if (is(TokenKind::variable_end) || is(TokenKind::block_end) || is(TokenKind::right_paren) ||
            (!rules.end.empty() && is_name(rules.end))) {
            break;
        }
        if (rules.simplified) {
            items.push_back(primary(rules.with_namespace));
        } else {
            items.push_back(rules.with_condition ? expression() : chain(NodeKind::or_));
        }
        if (!is(TokenKind::comma)) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!items.empty()) return items.front();
        if (!rules.in_parentheses) {
            fail("Expected an expression, got '" + std::string{describe(now())} + "'");
        }
    }
    auto* const node = make<ListNode>(NodeKind::tuple, line);
    node->items = keep(items);
    holds(*node, node->items);
    return node;
}

Node* Parser::list() {
    Deeper const deeper{*this};
    auto const line = next().line;
    std::vector<Node*> items;
    while (!is(TokenKind::right_bracket)) {
        if (!items.empty()) expect(TokenKind::comma, ",");
        if (is(TokenKind::right_bracket)) break;
        items.push_back(expression());
    }
    next();
    auto* const node = make<ListNode>(NodeKind::list, line);
    node->items = keep(items);
    holds(*node, node->items);
    return node;
}

Node* Parser::dict() {
    Deeper const deeper{*this};
    auto* const node = make<DictNode>(NodeKind::dict, next().line);
    std::vector<Node*> keys;
    std::vector<Node*> values;
    while (!is(TokenKind::right_brace)) {
        if (!keys.empty()) expect(TokenKind::comma, ",");
        if (is(TokenKind::right_brace)) break;
        keys.push_back(expression());
        expect(TokenKind::colon, ":");
        values.push_back(expression());
    }
    next();
    node->keys = keep(keys);
    node->values = keep(values);
    holds(*node, node->keys);
    holds(*node, node->values);
    return node;
}

Node* Parser::postfix(Node* node) {
    while (true) {
        if (is(TokenKind::dot) || is(TokenKind::left_bracket)) {
            node = subscript(node);
        } else if (is(TokenKind::left_paren)) {
            node = call(node);
        } else {
            return node;
        }
    }
}

Node* Parser::subscript(Node* owner) {
    Deeper const deeper{*this};
    auto const line = now().line;
    if (next().kind == TokenKind::dot) {
        auto const& token = next();
        if (token.kind == TokenKind::name) {
            auto* const node = make<AttributeNode>(NodeKind::attribute, line);
            node->owner = owner;
            node->name = string_value(token.text);
            node->attribute = attribute_of(token.text);
            holds(*node, owner);
            return node;
        }
        if (token.kind != TokenKind::integer) fail("expected name or number", token.line);
        --at_;
        auto* const node = make<ItemNode>(NodeKind::item, line);
        node->owner = owner;
        node->index = number_constant();
        holds(*node, owner);
        return node;
    }
    std::vector<Node*> parts;
    bool is_slice = false;
    while (!is(TokenKind::right_bracket)) {
        if (!parts.empty()) expect(TokenKind::comma, ",");
        parts.push_back(subscribed(owner, line, is_slice));
    }
    next();
    if (is_slice && parts.size() > 1) fail("a slice cannot be part of a tuple", line);
    if (is_slice) return parts.front();
    auto* const node = make<ItemNode>(NodeKind::item, line);
    node->owner = owner;
    node->index = parts.empty() ? nullptr : parts.front();
    if (parts.size() != 1) {
        auto* const index = make<ListNode>(NodeKind::tuple, line);
        index->items = keep(parts);
        holds(*index, index->items);
        node->index = index;
    }
    holds(*node, owner);
    holds(*node, node->index);
    return node;
}

Node* Parser::subscribed(Node* owner, std::uint32_t line, bool& is_slice) {
    Node* start = nullptr;
    if (!is(TokenKind::colon)) {
        start = expression();
        if (!is(TokenKind::colon)) return start;
    }
    next();
    is_slice = true;
    auto* const slice = make<SliceNode>(NodeKind::slice, line);
    slice->owner = owner;
    slice->start = start;
    auto const ends = [this] {
        return is(TokenKind::colon) || is(TokenKind::right_bracket) || is(TokenKind::comma);
    };
    if (!ends()) slice->stop = expression();
    if (skip_if(TokenKind::colon) && !ends()) slice->step = expression();
    for (auto const* part : {slice->owner, slice->start, slice->stop, slice->step}) {
        holds(*slice, part);
    }
    return slice;
}

Node* Parser::filters_and_tests(Node* node) {
    while (true) {
        if (is(TokenKind::pipe)) {
            node = filters(node, false);
        } else if (is_name("is")) {
            node = test(node);
        } else if (is(TokenKind::left_paren)) {
            node = call(node);
        } else {
            return node;
        }
    }
}

std::string Parser::dotted_name() {
    std::string name{expect(TokenKind::name, "name").text};
    while (skip_if(TokenKind::dot)) {
        name += '.';
        name += expect(TokenKind::name, "name").text;
    }
    return name;
}

Node* Parser::filters(Node* node, bool inline_first) {
    while (inline_first || is(TokenKind::pipe)) {
        if (!inline_first) next();
        inline_first = false;
        auto* const filter = make<FilterNode>(NodeKind::filter, now().line);
        filter->name = program_.arena.copy(dotted_name());
        filter->which = static_cast<std::uint16_t>(filter_of(filter->name));
        filter->operand = node;
        holds(*filter, node);
        if (is(TokenKind::left_paren)) filter->arguments = call_arguments(*filter);
        node = filter;
    }
    return node;
}

bool Parser::argument_follows() const {
    switch (now().kind) {
        case TokenKind::string:
        case TokenKind::integer:
        case TokenKind::real:
        case TokenKind::left_bracket:
        case TokenKind::left_brace:
            return true;
        case TokenKind::name:
            return !is_name("else") && !is_name("or") && !is_name("and");
        default:
            return false;
    }
}

Node* Parser::test(Node* operand) {
    Deeper const deeper{*this};
    auto const line = next().line;
    bool const negated = skip_if_name("not");
    auto* const node = make<FilterNode>(NodeKind::test, line);
    node->name = program_.arena.copy(dotted_name());
    node->which = static_cast<std::uint16_t>(test_of(node->name));
    node->operand = operand;
    holds(*node, operand);
    if (is(TokenKind::left_paren)) {
        node->arguments = call_arguments(*node);
    } else if (argument_follows()) {
        if (is_name("is")) fail("You cannot chain multiple tests with is");
        std::vector<Node*> const argument{postfix(primary(false))};
        node->arguments.positional = keep(argument);
        holds(*node, node->arguments.positional);
    }
    if (!negated) return node;
    auto* const opposite = make<UnaryNode>(NodeKind::not_, line);
    opposite->operand = node;
    holds(*opposite, node);
    return opposite;
}

Node* Parser::call(Node* callee) {
    Deeper const deeper{*this};
    auto* const node = make<CallNode>(NodeKind::call, now().line);
    node->callee = callee;
    holds(*node, callee);
    node->arguments = call_arguments(*node);
    return node;
}

void Parser::call_argument(std::vector<Node*>& positional, std::vector<KeywordNode>& keywords,
                           CallArguments& arguments, std::uint32_t line) {
    auto const check = [line](bool good) {
        if (!good) fail("invalid syntax for function call expression", line);
    };
    bool const before_keywords = arguments.more_keywords == nullptr;
    if (skip_if(TokenKind::multiply)) {
        check(arguments.more_positional == nullptr && before_keywords);
        arguments.more_positional = expression();
    } else if (skip_if(TokenKind::power)) {
        check(before_keywords);
        arguments.more_keywords = expression();
    } else if (is(TokenKind::name) && ahead().kind == TokenKind::assign) {
        check(before_keywords);
        auto const name = string_value(next().text);
        next();
        for (auto const& other : keywords) {
            if (equal(other.name, name)) {
                fail("keyword argument repeated: " + std::string{name.view()}, line);
            }
        }
        keywords.push_back({name, expression()});
    } else {
        check(arguments.more_positional == nullptr && before_keywords && keywords.empty());
        positional.push_back(expression());
    }
}

CallArguments Parser::call_arguments(Node& owner) {
    auto const line = expect(TokenKind::left_paren, "(").line;
    CallArguments arguments;
    std::vector<Node*> positional;
    std::vector<KeywordNode> keywords;
    bool first = true;
    while (!is(TokenKind::right_paren)) {
        if (!first) {
            expect(TokenKind::comma, ",");
            if (is(TokenKind::right_paren)) break;
        }
        first = false;
        call_argument(positional, keywords, arguments, line);
    }
    next();
    arguments.positional = keep(positional);
    arguments.keywords = keep(keywords);
    holds(owner, arguments.positional);
    for (auto const& keyword : keywords) holds(owner, keyword.value);
    holds(owner, arguments.more_positional);
    holds(owner, arguments.more_keywords);
    return arguments;
}

}  // namespace tinkxx::text::jinja
