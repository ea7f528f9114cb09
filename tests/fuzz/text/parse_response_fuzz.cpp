// What a model may write, by every renderer: at once and in pieces. The first byte says which
// renderer. Text between tags is what the tokens of a byte-level vocabulary spell; special tokens
// are spelled out.
#include <tinkxx/error.hpp>
#include <tinkxx/text/renderer.hpp>

#include "support/small_tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace tinkxx;

// One vocabulary with the special tokens of all families.
std::shared_ptr<test::SmallTokenizer const> all_tokens() {
    std::vector<test::SmallTokenizer::Added> added;
    for (auto const* text : {"<|begin_of_text|>",
                             "<|start_header_id|>",
                             "<|end_header_id|>",
                             "<|eot_id|>",
                             "<|endoftext|>",
                             "<|im_start|>",
                             "<|im_end|>",
                             "<tool_call>",
                             "</tool_call>",
                             "<think>",
                             "</think>",
                             "<｜begin▁of▁sentence｜>",
                             "<｜end▁of▁sentence｜>",
                             "<｜User｜>",
                             "<｜Assistant｜>",
                             "<｜System｜>",
                             "｜DSML｜",
                             "<｜tool▁calls▁begin｜>",
                             "<｜tool▁calls▁end｜>",
                             "<｜tool▁call▁begin｜>",
                             "<｜tool▁call▁end｜>",
                             "<｜tool▁sep｜>",
                             "<|tool_calls_section_begin|>",
                             "<|tool_calls_section_end|>",
                             "<|tool_call_begin|>",
                             "<|tool_call_argument_begin|>",
                             "<|tool_call_end|>",
                             "<|return|>",
                             "<|constrain|>",
                             "<|channel|>",
                             "<|start|>",
                             "<|end|>",
                             "<|message|>",
                             "<|call|>",
                             "[gMASK]",
                             "<sop>",
                             "<|system|>",
                             "<|user|>",
                             "<|assistant|>",
                             "<|observation|>",
                             "<arg_key>",
                             "</arg_key>",
                             "<arg_value>",
                             "</arg_value>"}) {
        added.push_back({text, false});
    }
    return std::make_shared<test::SmallTokenizer>(
        std::vector<std::pair<std::string, std::string>>{}, std::move(added), std::nullopt,
        "<|endoftext|>");
}

std::vector<std::unique_ptr<text::Renderer>> all_renderers() {
    text::Renderers const renderers;
    std::vector<std::unique_ptr<text::Renderer>> out;
    for (auto const& name : renderers.names()) {
        out.push_back(renderers.make(name, all_tokens(), {.current_date = "2025-03-09"}));
    }
    return out;
}

void check(text::ParsedResponse const& answer) {
    if (answer.message.role != "assistant") std::abort();
    if (answer.message.tool_calls && answer.message.tool_calls->empty()) std::abort();
    for (auto const& call : answer.message.unparsed_tool_calls) {
        if (call.error.empty()) std::abort();
    }
    // What was read can be written and is read as the same.
    if (text::read_message(to_json(answer.message)) != answer.message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static auto const renderers = all_renderers();
    if (size == 0) return 0;
    auto const& renderer = *renderers[data[0] % renderers.size()];
    std::string const text(reinterpret_cast<char const*>(data) + 1, size - 1);
    // Any bytes: a sampler gives any tokens.
    auto const tokens = renderer.tokenizer().encode(text);
    try {
        check(renderer.parse_response(tokens));
    } catch (ValidationError const& e) {
        if (e.field() != "response") std::abort();  // several ends
    }
    if (!renderer.supports_streaming()) return 0;
    std::size_t messages = 0;
    renderer.parse_response_streaming(tokens, [&messages](text::MessageDelta const& delta) {
        if (std::holds_alternative<text::Message>(delta)) ++messages;
    });
    if (messages != 1) std::abort();
    return 0;
}
