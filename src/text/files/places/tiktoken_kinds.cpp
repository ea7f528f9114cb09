#include "text/files/places/tiktoken_kinds.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::text::files {

namespace {

using Specials = std::vector<std::pair<std::string, Token>>;

// They are data: each has to be, character by character, what the vocabulary was trained with.
constexpr std::string_view gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view cl100k_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view o200k_words =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kimi_words =
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Specials numbered(std::string_view begin, Token first, Token end) {
    Specials all;
    for (auto id = first; id < end; ++id) {
        all.emplace_back(std::string{begin} + std::to_string(id) + "|>", id);
    }
    return all;
}

TiktokenKind harmony() {
    Specials all{{"<|startoftext|>", 199998}, {"<|endoftext|>", 199999}};
    auto const reserved = numbered("<|reserved_", 200000, 201088);
    all.insert(all.end(), reserved.begin(), reserved.end());
    for (auto const& [name, id] : Specials{{"<|return|>", 200002},
                                           {"<|constrain|>", 200003},
                                           {"<|channel|>", 200005},
                                           {"<|start|>", 200006},
                                           {"<|end|>", 200007},
                                           {"<|message|>", 200008},
                                           {"<|call|>", 200012}}) {
        std::ranges::find(all, id, &Specials::value_type::second)->first = name;
    }
    // This id has two names, of which the first one is what it decodes to.
    std::ranges::find(all, Token{200018}, &Specials::value_type::second)->first = "<|endofprompt|>";
    return {std::string{o200k_words}, std::move(all)};
}

struct NamedKind {
    std::string_view name{};
    TiktokenKind kind{};
};

std::array<NamedKind, 8> make_kinds() {
    Specials const end{{"<|endoftext|>", 50256}};
    Specials edit = end;
    edit.insert(edit.end(),
                {{"<|fim_prefix|>", 50281}, {"<|fim_middle|>", 50282}, {"<|fim_suffix|>", 50283}});
    Specials cl100k{{"<|endoftext|>", 100257},
                    {"<|fim_prefix|>", 100258},
                    {"<|fim_middle|>", 100259},
                    {"<|fim_suffix|>", 100260},
                    {"<|endofprompt|>", 100276}};
    Specials qwen{{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}};
    for (Token extra = 0; extra < 205; ++extra) {
        qwen.emplace_back("<|extra_" + std::to_string(extra) + "|>", 151646 + extra);
    }
    return {{{"gpt2", {std::string{gpt2_words}, end}},
             {"r50k_base", {std::string{gpt2_words}, end}},
             {"p50k_base", {std::string{gpt2_words}, end}},
             {"p50k_edit", {std::string{gpt2_words}, std::move(edit)}},
             {"cl100k_base", {std::string{cl100k_words}, std::move(cl100k)}},
             {"o200k_base",
              {std::string{o200k_words}, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}}},
             {"o200k_harmony", harmony()},
             {"qwen", {std::string{qwen_words}, std::move(qwen)}}}};
}

}  // namespace

TiktokenKind const* tiktoken_kind(std::string_view stem) {
    static auto const kinds = make_kinds();
    auto const* const found = std::ranges::find(kinds, stem, &NamedKind::name);
    return found == kinds.end() ? nullptr : &found->kind;
}

std::string_view tiktoken_pattern_of_class(std::string_view tokenizer_class) {
    if (tokenizer_class == "TikTokenTokenizer") return kimi_words;
    if (tokenizer_class == "ChatGLM4Tokenizer") return cl100k_words;
    return {};
}

std::string_view llama3_pattern() { return cl100k_words; }

std::vector<std::pair<std::string, Token>> llama3_special_tokens(Token first) {
    // As in Llama 3.1 and later, which gave names to three that were reserved before.
    constexpr std::array<std::string_view, 11> named{
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|reserved_special_token_0|>",
        "<|reserved_special_token_1|>",
        "<|finetune_right_pad_id|>",
        "<|step_id|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
    };
    constexpr Token count = 256;
    Specials all;
    for (auto const name : named) {
        all.emplace_back(name, first + static_cast<Token>(all.size()));
    }
    for (int reserved = 2; all.size() < count; ++reserved) {
        all.emplace_back("<|reserved_special_token_" + std::to_string(reserved) + "|>",
                         first + static_cast<Token>(all.size()));
    }
    return all;
}

}  // namespace tinkxx::text::files
