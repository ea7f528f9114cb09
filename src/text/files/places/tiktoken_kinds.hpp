#pragma once

#include <tinkxx/types/model_input.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text::files {

/// What a file of ranks does not say: the pattern that cuts a text into words, and the special
/// tokens.
struct TiktokenKind {
    std::string pattern{};
    std::vector<std::pair<std::string, Token>> special_tokens{};
};

/// By the name of the file without its extension, such as `o200k_base`. Null if it is not known.
[[nodiscard]] TiktokenKind const* tiktoken_kind(std::string_view stem);

/// Of the models whose Python class is that: `TikTokenTokenizer` (Kimi) and `ChatGLM4Tokenizer`.
/// Empty if the class is not known.
[[nodiscard]] std::string_view tiktoken_pattern_of_class(std::string_view tokenizer_class);

/// That of the `tokenizer.model` files in the format of tiktoken: those of Llama 3.
[[nodiscard]] std::string_view llama3_pattern();
/// Their special tokens, which follow the ranks.
[[nodiscard]] std::vector<std::pair<std::string, Token>> llama3_special_tokens(Token first);

}  // namespace tinkxx::text::files
