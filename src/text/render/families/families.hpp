#pragma once

#include <tinkxx/text/renderer.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

/// The built-in renderers, by family. Each maker takes what the names of its family differ in.
namespace tinkxx::text::render {

using TokenizerPointer = std::shared_ptr<RenderTokenizer const>;
using RendererPointer = std::unique_ptr<Renderer>;

[[nodiscard]] RendererPointer make_role_colon(TokenizerPointer tokenizer);
[[nodiscard]] RendererPointer make_llama3(TokenizerPointer tokenizer);

enum class Qwen3Mode : std::uint8_t { thinking, no_thinking, instruct };
[[nodiscard]] RendererPointer make_qwen3(TokenizerPointer tokenizer, Qwen3Mode mode,
                                         bool strip_thinking);

/// Formats with <|im_start|> that came with Qwen3-VL and after it.
enum class ImFormat : std::uint8_t {
    qwen3_vl,
    qwen3_vl_instruct,
    qwen3_5,
    qwen3_8,
    nemotron3,
    nemotron3_ultra,
};
inline constexpr std::string_view nemotron_low_effort = "\n\n{reasoning effort: low}";
inline constexpr std::string_view nemotron_medium_effort = "\n\n{reasoning effort: efficient}";
struct ImOptions {
    ImFormat format{ImFormat::qwen3_5};
    bool thinks{true};
    bool strip_thinking{true};
    /// Qwen3.8: a sentence in front of the system's message. Nemotron: a line behind the last
    /// message of the user.
    std::string_view effort{};
};
[[nodiscard]] RendererPointer make_im(TokenizerPointer tokenizer, ImOptions const& options);

[[nodiscard]] RendererPointer make_deepseek_v3(TokenizerPointer tokenizer, bool thinks,
                                               bool strip_thinking, bool system_role_as_user);
/// An effort of 0: no thinking.
[[nodiscard]] RendererPointer make_deepseek_v4_1(TokenizerPointer tokenizer, int effort,
                                                 bool strip_thinking);
[[nodiscard]] RendererPointer make_glm5_3(TokenizerPointer tokenizer, std::string_view effort,
                                          bool strip_thinking);

enum class KimiFormat : std::uint8_t { k2, k2_5, k2_5_no_thinking };
[[nodiscard]] RendererPointer make_kimi(TokenizerPointer tokenizer, KimiFormat format,
                                        bool strip_thinking);

/// No effort: no system prompt. No date: today.
[[nodiscard]] RendererPointer make_gpt_oss(TokenizerPointer tokenizer, std::string_view effort,
                                           std::string_view date);

}  // namespace tinkxx::text::render
