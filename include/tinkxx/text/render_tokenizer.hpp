#pragma once

#include <tinkxx/text/renderer.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <memory>

namespace tinkxx::text {

/// A tokenizer as renderers need it.
///
///     auto loaded = load_tokenizer("models/Qwen3-8B");
///     auto renderer = Renderers{}.make("qwen3", make_render_tokenizer(loaded.tokenizer));
///
/// Cheap; shares the vocabulary. Any thread.
[[nodiscard]] std::shared_ptr<RenderTokenizer const> make_render_tokenizer(TextTokenizer tokenizer);

}  // namespace tinkxx::text
