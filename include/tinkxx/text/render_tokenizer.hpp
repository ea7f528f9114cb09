#pragma once

#include <tinkxx/text/renderer.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <memory>

namespace tinkxx::text {

/// The tokenizer of a model as renderers need it. Shares the vocabulary.
///
///     auto tokenizer = TextTokenizer::from_file("Qwen3-8B/tokenizer.json");
///     auto renderer = Renderers{}.make("qwen3", for_rendering(tokenizer));
[[nodiscard]] std::shared_ptr<RenderTokenizer const> for_rendering(TextTokenizer const& tokenizer);

}  // namespace tinkxx::text
