#include <tinkxx/text/load.hpp>

#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"
#include "text/files/places/tiktoken_kinds.hpp"

#include <algorithm>

namespace tinkxx::text {

namespace {

using Specials = std::vector<std::pair<std::string, Token>>;

constexpr std::string_view loading = "load_tokenizer";

/// As the Python class of Kimi has it: the ids behind the ranks have the names of the
/// configuration, and the others of them one that says that they are reserved.
Specials specials_behind(Token ranks, std::vector<AddedToken> const& added) {
    constexpr Token reserved = 256 + 2;
    Specials all;
    for (auto id = ranks; id < ranks + reserved; ++id) {
        auto const found = std::ranges::find(added, id, &AddedToken::id);
        all.emplace_back(
            found == added.end() ? "<|reserved_token_" + std::to_string(id) + "|>" : found->text,
            id);
    }
    return all;
}

Specials specials_of(std::vector<AddedToken> const& added) {
    Specials all;
    for (auto const& token : added) all.emplace_back(token.text, token.id);
    return all;
}

Token count_of_ranks(std::string_view text) {
    Token count = 0;
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        if (line.find(' ') != std::string_view::npos) ++count;
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return count;
}

struct Ranked {
    std::string pattern{};
    Specials special_tokens{};
};

Ranked ranked_of(TokenizerFiles const& from, TokenizerConfig const& config, std::string_view text) {
    auto const name = from.tokenizer.stem().string();
    if (auto const* const kind = files::tiktoken_kind(name);
        kind != nullptr && from.tokenizer.extension() == ".tiktoken") {
        return {kind->pattern, kind->special_tokens};
    }
    auto const ranks = count_of_ranks(text);
    if (config.tokenizer_class == "TikTokenTokenizer") {
        return {std::string{files::tiktoken_pattern_of_class(config.tokenizer_class)},
                specials_behind(ranks, config.added_tokens)};
    }
    if (auto const known = files::tiktoken_pattern_of_class(config.tokenizer_class);
        !known.empty()) {
        return {std::string{known}, specials_of(config.added_tokens)};
    }
    if (from.tokenizer.filename() == "tokenizer.model") {
        return {std::string{files::llama3_pattern()}, config.added_tokens.empty()
                                                          ? files::llama3_special_tokens(ranks)
                                                          : specials_of(config.added_tokens)};
    }
    return {{}, specials_of(config.added_tokens)};
}

TextTokenizer load_ranks(TokenizerFiles const& from, TokenizerConfig const& config,
                         LoadOptions const& options) {
    auto const text = files::read_text(from.tokenizer, files::largest_tokenizer, loading);
    auto known = ranked_of(from, config, text);
    if (!options.tiktoken_pattern.empty()) known.pattern = options.tiktoken_pattern;
    if (!options.tiktoken_special_tokens.empty()) {
        known.special_tokens = options.tiktoken_special_tokens;
    }
    if (known.pattern.empty()) {
        files::refuse_whole(
            "load_tokenizer: " + from.tokenizer.string() +
                " has no pattern that cuts a text into words, and its name tells none; "
                "give the pattern, or rename the file to that of its encoding, e.g. "
                "o200k_base.tiktoken",
            "tiktoken_pattern", from.tokenizer.string());
    }
    return TextTokenizer::from_tiktoken({.ranks = text,
                                         .pattern = known.pattern,
                                         .special_tokens = std::move(known.special_tokens)},
                                        config.named);
}

}  // namespace

LoadedTokenizer load_tokenizer(std::filesystem::path const& file_or_folder) {
    return load_tokenizer(file_or_folder, LoadOptions{});
}

LoadedTokenizer load_tokenizer(std::filesystem::path const& file_or_folder,
                               LoadOptions const& options) {
    auto from = find_tokenizer_files(file_or_folder);
    auto config = read_tokenizer_config(from);
    auto tokenizer = from.format == TokenizerFormat::tiktoken
                         ? load_ranks(from, config, options)
                         : TextTokenizer::from_file(from.tokenizer, config.named);
    return {
        .tokenizer = std::move(tokenizer), .config = std::move(config), .files = std::move(from)};
}

}  // namespace tinkxx::text
