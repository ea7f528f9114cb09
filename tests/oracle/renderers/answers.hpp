#pragma once

#include <tinkxx/text/renderer.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::text::render {
class Json;
}

namespace tinkxx::test {

/// What our renderers make of requests, each of which is a conversation and a few responses, as
/// JSON. cookbook.py does the same with the cookbook's.
class RendererAnswers {
public:
    explicit RendererAnswers(std::shared_ptr<text::RenderTokenizer const> tokenizer)
        : tokenizer_{std::move(tokenizer)} {}

    [[nodiscard]] std::string answer(std::string_view line);

private:
    text::Renderer const& renderer(text::render::Json const& request);
    void fill(text::render::Json& out, text::render::Json const& request);

    std::shared_ptr<text::RenderTokenizer const> tokenizer_;
    text::Renderers renderers_{};
    std::map<std::string, std::unique_ptr<text::Renderer>> made_{};
};

}  // namespace tinkxx::test
