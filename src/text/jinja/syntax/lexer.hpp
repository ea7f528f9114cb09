#pragma once

#include "text/jinja/values/arena.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinkxx::text::jinja {

enum class TokenKind : std::uint8_t {
    end,
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    add,
    subtract,
    divide,
    floor_divide,
    multiply,
    modulo,
    power,
    tilde,
    left_bracket,
    right_bracket,
    left_paren,
    right_paren,
    left_brace,
    right_brace,
    eq,
    ne,
    gt,
    ge,
    lt,
    le,
    assign,
    dot,
    colon,
    pipe,
    comma,
    semicolon,
};

struct Token {
    TokenKind kind{TokenKind::end};
    std::uint32_t line{1};
    /// Of data and names as they are, of strings without quotes and escapes, of numbers as written.
    std::string_view text{};
};

/// Cuts a template into tokens, with the white space rules of `trim_blocks` and `lstrip_blocks`.
/// Texts that are not in `source` are made in the arena. Throws `Failure`.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source, Arena& arena);

/// As messages name it, e.g. "end of print statement".
[[nodiscard]] std::string_view describe(Token const& token) noexcept;

}  // namespace tinkxx::text::jinja
