#pragma once

#include "commands/text/text_command.hpp"

#include <string>

namespace tinkxx::cli {

struct RenderArguments {
    TokenizerArguments tokenizer{};
    std::string renderer{};
    /// The chat template of the tokenizer's folder in place of a renderer.
    bool use_template{false};
    /// What comes before the answer of the assistant, in place of the whole conversation.
    bool prompt{false};
    bool jsonl{false};
    std::string train_on{"last_assistant_message"};
    /// As 2025-11-30. Empty: today.
    std::string date{};
    unsigned threads{0};
};

/// Turns conversations into what a model was trained with.
[[nodiscard]] Exit render(RenderArguments const& arguments, Context& context);

[[nodiscard]] Command render_command();

}  // namespace tinkxx::cli
