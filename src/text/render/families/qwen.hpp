#pragma once

#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"

namespace tinkxx::text::render {

/// What formats with <|im_start|> have in common: where a message ends, and how it is parsed.
class QwenRenderer : public Renderer {
public:
    [[nodiscard]] StopSequences stop_sequences() const override { return {.tokens = {end_}}; }
    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override;
    [[nodiscard]] bool supports_streaming() const override { return true; }
    [[nodiscard]] std::string to_openai_message(Message const& message) const override;
    /// Tools as JSON, calls as JSON.
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;

protected:
    /// `frames_thinking`: thinking stands between line breaks, which are no part of it.
    QwenRenderer(TokenizerPointer tokenizer, bool frames_thinking);

    [[nodiscard]] ParsedResponse parse_whole(std::span<Token const> response) const override;
    [[nodiscard]] Token end_of_message(std::span<Token const> /*response*/) const override {
        return end_;
    }
    /// Changes a message that was parsed as JSON into what the format means.
    virtual void finish_parsed(Message& /*message*/) const {}

    [[nodiscard]] Token end_token() const noexcept { return end_; }

private:
    bool frames_thinking_;
    Token end_;
};

/// "<tool_call>…</tool_call>" for each call, on lines of their own.
[[nodiscard]] std::string json_tool_calls(std::vector<ToolCall> const& calls);

}  // namespace tinkxx::text::render
