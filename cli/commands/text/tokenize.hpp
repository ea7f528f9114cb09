#pragma once

#include "commands/text/text_command.hpp"

#include <optional>
#include <string>

namespace tinkxx::cli {

struct TokenizeArguments {
    TokenizerArguments tokenizer{};
    /// Empty: stdin.
    std::optional<std::string> text{};
    bool ids{false};
    bool jsonl{false};
    bool no_special{false};
    bool count{false};
    bool offsets{false};
    /// "parse", "text" or "forbid".
    std::string special_text{"parse"};
    bool lossy{false};
    unsigned threads{0};
};

/// Shows the tokens of a text, or of each line of stdin.
[[nodiscard]] Exit tokenize(TokenizeArguments const& arguments, Context& context);

[[nodiscard]] Command tokenize_command();

}  // namespace tinkxx::cli
