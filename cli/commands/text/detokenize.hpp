#pragma once

#include "commands/text/text_command.hpp"

#include <tinkxx/types/model_input.hpp>

#include <vector>

namespace tinkxx::cli {

struct DetokenizeArguments {
    TokenizerArguments tokenizer{};
    /// Empty: stdin.
    std::vector<Token> ids{};
    bool jsonl{false};
    bool skip_special{false};
    unsigned threads{0};
};

/// Prints the text of tokens, or of each list of them on stdin.
[[nodiscard]] Exit detokenize(DetokenizeArguments const& arguments, Context& context);

[[nodiscard]] Command detokenize_command();

}  // namespace tinkxx::cli
