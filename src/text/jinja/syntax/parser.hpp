#pragma once

#include "text/jinja/program/program.hpp"
#include "text/jinja/syntax/lexer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text::jinja {

/// Makes a tree of tokens. Names are not resolved yet; `resolve` does that. Throws `Failure`.
class Parser {
public:
    Parser(Program& program, std::string_view source, std::uint16_t most_nested);

    [[nodiscard]] Nodes parse();

private:
    /// One more level of what is being parsed, for as long as it lives.
    class Deeper {
    public:
        explicit Deeper(Parser& parser) : parser_{parser} {
            if (++parser_.nested_ > parser_.most_nested_) {
                parser_.fail("nested more than " + std::to_string(parser_.most_nested_) +
                             " levels deep");
            }
        }
        ~Deeper() { --parser_.nested_; }
        Deeper(Deeper const&) = delete;
        Deeper& operator=(Deeper const&) = delete;

    private:
        Parser& parser_;
    };

    // Tokens
    [[nodiscard]] Token const& now() const noexcept { return tokens_[at_]; }
    [[nodiscard]] Token const& ahead() const noexcept {
        return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
    }
    Token const& next() noexcept;
    [[nodiscard]] bool is(TokenKind kind) const noexcept { return now().kind == kind; }
    [[nodiscard]] bool is_name(std::string_view name) const noexcept {
        return is(TokenKind::name) && now().text == name;
    }
    bool skip_if(TokenKind kind) noexcept;
    bool skip_if_name(std::string_view name) noexcept;
    Token const& expect(TokenKind kind, std::string_view what);
    void expect_name(std::string_view name);
    [[noreturn]] void fail(std::string message) const;
    [[noreturn]] static void fail(std::string message, std::uint32_t line);

    // Nodes
    template <class T>
    [[nodiscard]] T* make(NodeKind kind, std::uint32_t line) {
        auto* const made = program_.arena.make<T>();
        made->kind = kind;
        made->line = line;
        return made;
    }
    /// Makes `parent` deeper than what it holds.
    void holds(Node& parent, Node const* child) const;
    void holds(Node& parent, Nodes const& children) const;
    template <class T>
    [[nodiscard]] Span<T> keep(std::vector<T> const& items) {
        Span<T> kept{program_.arena.array<T>(items.size()),
                     static_cast<std::uint32_t>(items.size())};
        std::copy(items.begin(), items.end(), kept.items);
        return kept;
    }
    [[nodiscard]] Node* constant(Value const& value, std::uint32_t line);

    // Expressions
    [[nodiscard]] Node* expression() { return conditional(); }
    [[nodiscard]] Node* conditional();
    [[nodiscard]] Node* chain(NodeKind kind);
    [[nodiscard]] Node* chain_part(NodeKind kind);
    [[nodiscard]] bool skip_chain_word(NodeKind kind);
    [[nodiscard]] Node* not_expression();
    [[nodiscard]] Node* comparison();
    [[nodiscard]] bool comparison_ahead(Comparison& which);
    [[nodiscard]] Node* sum();
    [[nodiscard]] Node* product();
    [[nodiscard]] Node* power();
    [[nodiscard]] Node* binary(NodeKind kind, Node* left, Node* right, std::uint32_t line);
    [[nodiscard]] Node* unary(bool with_filters);
    [[nodiscard]] Node* primary(bool with_namespace);
    [[nodiscard]] Node* name_or_constant(bool with_namespace);
    [[nodiscard]] Node* string_constant();
    [[nodiscard]] Node* number_constant();
    [[nodiscard]] Node* list();
    [[nodiscard]] Node* dict();
    [[nodiscard]] Node* postfix(Node* node);
    [[nodiscard]] Node* subscript(Node* node);
    [[nodiscard]] Node* subscribed(Node* owner, std::uint32_t line, bool& is_slice);
    [[nodiscard]] Node* filters_and_tests(Node* node);
    [[nodiscard]] Node* filters(Node* node, bool inline_first);
    [[nodiscard]] Node* test(Node* node);
    [[nodiscard]] bool argument_follows() const;
    [[nodiscard]] Node* call(Node* callee);
    [[nodiscard]] CallArguments call_arguments(Node& owner);
    void call_argument(std::vector<Node*>& positional, std::vector<KeywordNode>& keywords,
                       CallArguments& arguments, std::uint32_t line);
    struct TupleRules {
        bool simplified{false};
        bool with_condition{true};
        bool in_parentheses{false};
        bool with_namespace{false};
        std::string_view end{};
    };
    [[nodiscard]] Node* tuple(TupleRules const& rules);
    [[nodiscard]] std::string dotted_name();

    // Statements
    [[nodiscard]] Nodes parse_until(std::initializer_list<std::string_view> ends);
    [[nodiscard]] Nodes statements(std::initializer_list<std::string_view> ends);
    /// Of which the end tag is skipped.
    [[nodiscard]] Nodes body(Node& owner, std::string_view end);
    [[nodiscard]] Node* statement();
    [[nodiscard]] Node* dispatch(Token const& tag);
    [[nodiscard]] Node* other_statement(Token const& tag);
    [[noreturn]] void fail_end(std::string_view unknown);
    [[nodiscard]] Node* assign_target(TupleRules rules);
    void check_target(Node* target);
    [[nodiscard]] NameNode* name_target();
    [[nodiscard]] Node* set_statement();
    [[nodiscard]] Node* for_statement();
    [[nodiscard]] Node* if_statement();
    [[nodiscard]] Node* with_statement();
    [[nodiscard]] Node* autoescape_statement();
    [[nodiscard]] Node* block_statement();
    [[nodiscard]] Node* macro_statement();
    [[nodiscard]] Node* call_statement();
    [[nodiscard]] Node* filter_statement();
    [[nodiscard]] Node* generation_statement();
    [[nodiscard]] Node* print_statement();
    void signature(MacroNode& macro);
    [[nodiscard]] Node* output(Node* expression, std::uint32_t line);

    Program& program_;
    std::vector<Token> tokens_;
    std::size_t at_{0};
    std::uint16_t most_nested_;
    std::uint16_t nested_{0};
    std::vector<std::string_view> tags_;
    std::vector<std::vector<std::string_view>> ends_;
};

}  // namespace tinkxx::text::jinja
