#pragma once

#include <tinkxx/text/renderer.hpp>

#include "support/small_tokenizer.hpp"

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::test {

inline std::shared_ptr<SmallTokenizer const> small_tokenizer(std::string const& family) {
    auto const path =
        std::string{TINKXX_SOURCE_DIR} + "/tests/golden/text/" + family + ".tokenizer";
    std::ifstream file{path};
    if (!file) throw std::runtime_error{"cannot read " + path};
    return SmallTokenizer::read(file);
}

/// The family of special tokens that a renderer reads.
inline std::string family_of(std::string const& renderer) {
    for (auto const& [start, family] :
         std::vector<std::pair<std::string, std::string>>{{"role_colon", "plain_eos"},
                                                          {"llama3", "llama3"},
                                                          {"qwen", "qwen"},
                                                          {"nemotron", "qwen"},
                                                          {"deepseek", "deepseek"},
                                                          {"kimi", "kimi"},
                                                          {"gpt_oss", "gpt_oss"},
                                                          {"glm", "glm"}}) {
        if (renderer.starts_with(start)) return family;
    }
    throw std::runtime_error{"no family for " + renderer};
}

inline std::unique_ptr<text::Renderer> make_renderer(std::string const& name,
                                                     text::RendererOptions options = {}) {
    options.current_date = "2025-03-09";
    return text::Renderers{}.make(name, small_tokenizer(family_of(name)), options);
}

inline std::vector<Token> encode(text::Renderer const& renderer, std::string_view text) {
    return renderer.tokenizer().encode(text);
}

inline std::vector<text::Message> short_conversation() {
    return {{.role = "user", .content = "What is 2 + 2?"},
            {.role = "assistant", .content = "4"},
            {.role = "user", .content = "And 3 + 3?"},
            {.role = "assistant", .content = "6"}};
}

}  // namespace tinkxx::test
