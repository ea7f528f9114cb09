#include "text/errors/growth.hpp"
#include "text/errors/refuse.hpp"
#include "text/tokenizer/load/json_reader.hpp"
#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/models/bpe_model.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tinkxx::text {
namespace {

/// The sections of a file, as text.
struct Sections {
    std::string_view normalizer{"null"};
    std::string_view pre_tokenizer{"null"};
    std::string_view post_processor{"null"};
    std::string_view decoder{"null"};
    std::optional<ModelSection> model{};
    std::string_view added_tokens{"[]"};
};

void check_size(std::string_view json) {
    if (json.size() <= std::numeric_limits<std::int32_t>::max()) return;
    refuse("tokenizer.json: the file has " + std::to_string(json.size()) +
               " bytes; use one of less than 2 GiB",
           "json");
}

Sections find_sections(std::string_view json) {
    Sections sections;
    JsonReader reader{json};
    if (reader.peek() != '{') reader.fail("expected an object");
    reader.object([&](std::string_view key) {
        if (key == "version") {
            auto const version = reader.skip();
            if (version == "\"1.0\"") return;
            refuse_file("version", "is " + std::string{version} + "; only \"1.0\" is known",
                        std::string{version});
        }
        if (key == "model") {
            sections.model = read_model_section(reader);
            return;
        }
        auto const value = reader.skip();
        if (key == "normalizer") sections.normalizer = value;
        if (key == "pre_tokenizer") sections.pre_tokenizer = value;
        if (key == "post_processor") sections.post_processor = value;
        if (key == "decoder") sections.decoder = value;
        if (key == "added_tokens" && value != "null") sections.added_tokens = value;
    });
    reader.expect_end();
    if (!sections.model) refuse_file("model", "is missing; is this a tokenizer.json?");
    return sections;
}

std::vector<AddedToken> read_added_tokens(std::string_view json) {
    std::vector<AddedToken> tokens;
    JsonReader reader{json, "added_tokens"};
    if (reader.peek() != '[') refuse_file("added_tokens", "has to be a list");
    reader.array([&] {
        AddedToken token{.normalized = true};
        auto has_normalized = false;
        auto const path = "added_tokens[" + std::to_string(tokens.size()) + "]";
        if (reader.peek() != '{') refuse_file(path, "has to be an object");
        reader.object([&](std::string_view key) {
            auto const flag = [&](bool& target) { target = reader.skip() == "true"; };
            if (key == "content") {
                token.text = reader.string();
            } else if (key == "special") {
                flag(token.special);
            } else if (key == "lstrip") {
                flag(token.lstrip);
            } else if (key == "rstrip") {
                flag(token.rstrip);
            } else if (key == "single_word") {
                flag(token.single_word);
            } else if (key == "normalized") {
                flag(token.normalized);
                has_normalized = true;
            } else {
                (void)reader.skip();
            }
        });
        if (!has_normalized) token.normalized = !token.special;
        if (find_invalid_utf8(token.text) != token.text.size()) {
            refuse_file(path + ".content", "is not UTF-8; the file is damaged");
        }
        tokens.push_back(std::move(token));
    });
    return tokens;
}

void check_post_steps(Parts const& parts) {
    auto limit = parts.model->limit();
    if (!parts.added.entries().empty()) {
        auto const last = parts.added.entries().back().token.id;
        limit = std::max(limit, static_cast<std::size_t>(last) + 1);
    }
    for (auto const& step : parts.post_steps) {
        for (auto const& tokens : step.around) {
            for (auto const token : tokens) {
                if (static_cast<std::size_t>(token) < limit) continue;
                refuse_file("post_processor", "adds the token " + std::to_string(token) +
                                                  ", but ids end at " + std::to_string(limit - 1));
            }
        }
    }
}

}  // namespace

AddedTokens make_added_tokens(std::vector<AddedToken> tokens, Model const& model,
                              Normalizers const& normalizers) {
    std::unordered_map<std::string, std::size_t> known;  // place in `entries`
    std::unordered_set<std::uint32_t> ids;
    std::vector<AddedTokens::Entry> entries;
    // New tokens are numbered from the size of the model on, whatever the file says.
    auto next_id = static_cast<std::uint32_t>(model.size());
    for (auto& token : tokens) {
        if (token.text.empty()) continue;
        if (auto const found = known.find(token.text); found != known.end()) {
            auto& entry = entries[found->second];
            token.id = entry.token.id;
            token.special = token.special || entry.token.special;
            entry.token = std::move(token);
            continue;
        }
        auto id = model.find(token.text);
        if (id == no_token) id = next_id++;
        token.id = static_cast<Token>(id);
        if (!ids.insert(id).second || id >= token_limit) {
            refuse_file("added_tokens",
                        "gives the id " + std::to_string(id) + " to \"" + token.text +
                            "\", which another token has; number them anew",
                        token.text);
        }
        known.emplace(token.text, entries.size());
        entries.push_back({.token = std::move(token)});
    }
    std::size_t given = 0;
    std::size_t made = 0;
    for (auto& entry : entries) {
        entry.normalized = entry.token.text;
        if (!entry.token.normalized || normalizers.empty()) continue;
        AlignedText text;
        text.assign(entry.token.text, 0, false);
        for (auto const& normalizer : normalizers) normalizer->apply(text);
        entry.normalized = text.text();
        given += entry.token.text.size();
        made += entry.normalized.size();
        if (auto const limit = longest_result(given); made > limit) {
            refuse_growth("tokenizer.json", "normalizer", limit);
        }
    }
    std::ranges::sort(entries, {}, [](AddedTokens::Entry const& entry) { return entry.token.id; });
    return AddedTokens{std::move(entries)};
}

Parts read_tokenizer_json(std::string_view json) {
    check_size(json);
    auto const sections = find_sections(json);
    Parts parts;
    parts.normalizers = read_normalizers(sections.normalizer);
    auto pre_tokenizers = read_pre_tokenizers(sections.pre_tokenizer);
    auto byte_level = pre_tokenizers.ends_with_bytes;
    parts.model = make_model(*sections.model, byte_level);
    parts.pre_tokenizers = std::move(pre_tokenizers.steps);
    if (pre_tokenizers.ends_with_bytes && !byte_level) {
        parts.pre_tokenizers.push_back(std::make_unique<MapBytesPreTokenizer>());
    } else {
        parts.pattern = pre_tokenizers.pattern;
    }
    parts.needs_ranges = pre_tokenizers.has_first_metaspace && !parts.normalizers.empty();
    parts.added = make_added_tokens(read_added_tokens(sections.added_tokens), *parts.model,
                                    parts.normalizers);
    parts.post_steps = read_post_steps(sections.post_processor);
    check_post_steps(parts);
    auto decoders = read_decoders(sections.decoder);
    parts.decoders = std::move(decoders.decoders);
    parts.decodes_bytes = decoders.only_bytes;
    return parts;
}

}  // namespace tinkxx::text
