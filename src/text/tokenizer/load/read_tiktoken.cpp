#include "text/errors/refuse.hpp"
#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/models/bpe_model.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::text {
namespace {

constexpr auto base64_digits = [] {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    }
    return table;
}();

bool from_base64(std::string_view text, std::string& bytes) {
    bytes.clear();
    std::uint32_t bits = 0;
    unsigned count = 0;
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    for (auto const c : text) {
        auto const digit = base64_digits[static_cast<unsigned char>(c)];
        if (digit < 0) return false;
        bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xffffffU;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xffU);
    }
    return true;
}

[[noreturn]] void refuse_line(std::size_t line, std::string_view what) {
    refuse("tiktoken: line " + std::to_string(line) + " " + std::string{what} +
               "; each line has to be a token in base64, a space and its rank",
           "ranks");
}

Vocabulary read_ranks(std::string_view ranks) {
    Vocabulary vocabulary;
    vocabulary.reserve(ranks.size() / 14, ranks.size() / 2);
    std::string bytes;
    std::size_t number = 0;
    while (!ranks.empty()) {
        auto const end = std::min(ranks.find('\n'), ranks.size());
        auto line = ranks.substr(0, end);
        ranks.remove_prefix(std::min(end + 1, ranks.size()));
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        auto const space = line.find(' ');
        if (space == std::string_view::npos || !from_base64(line.substr(0, space), bytes)) {
            refuse_line(number, "is not readable");
        }
        std::uint32_t rank = 0;
        auto const* const last = line.data() + line.size();
        auto const [stop, error] = std::from_chars(line.data() + space + 1, last, rank);
        if (error != std::errc{} || stop != last || rank >= token_limit) {
            refuse_line(number, "has no rank below 16777216");
        }
        if (bytes.empty() || vocabulary.add(bytes, rank) != Vocabulary::Added::yes) {
            refuse_line(number, "repeats a token or a rank, or has no token");
        }
    }
    return vocabulary;
}

/// All ways to make a token of two others; its rank is when.
PairTable pairs_of(Vocabulary const& vocabulary) {
    PairTable pairs;
    pairs.reserve(vocabulary.size() * 2);
    for (std::uint32_t id = 0; id < vocabulary.limit(); ++id) {
        if (!vocabulary.contains(id)) continue;
        auto const text = vocabulary.text(id);
        for (std::size_t i = 1; i < text.size(); ++i) {
            auto const left = vocabulary.find(text.substr(0, i));
            if (left == no_token) continue;
            auto const right = vocabulary.find(text.substr(i));
            if (right != no_token) pairs.add(left, right, id, id);
        }
    }
    return pairs;
}

AddedTokens special_tokens(Tiktoken const& tiktoken, Vocabulary const& vocabulary) {
    std::vector<AddedTokens::Entry> entries;
    for (auto const& [text, id] : tiktoken.special_tokens) {
        auto const known = id >= 0 && vocabulary.contains(static_cast<std::uint32_t>(id));
        auto const twice = std::ranges::any_of(entries, [&](AddedTokens::Entry const& entry) {
            return entry.token.id == id || entry.token.text == text;
        });
        auto const broken = text.empty() || find_invalid_utf8(text) != text.size();
        if (id < 0 || static_cast<std::uint32_t>(id) >= token_limit || known || twice || broken) {
            refuse("tiktoken: the special token \"" + text + "\" has the id " + std::to_string(id) +
                       "; text and id have to be valid, and different from those of other tokens",
                   "special_tokens", text);
        }
        entries.push_back({.token = {.id = id, .text = text, .special = true}, .normalized = text});
    }
    std::ranges::sort(entries, {}, [](AddedTokens::Entry const& entry) { return entry.token.id; });
    return AddedTokens{std::move(entries)};
}

}  // namespace

Parts read_tiktoken(Tiktoken const& tiktoken) {
    if (tiktoken.ranks.size() > std::numeric_limits<std::int32_t>::max()) {
        refuse("tiktoken: the file of ranks has 2 GiB or more; use a smaller one", "ranks");
    }
    auto vocabulary = read_ranks(tiktoken.ranks);
    for (unsigned byte = 0; byte < 256; ++byte) {
        auto const c = static_cast<char>(byte);
        if (vocabulary.find({&c, 1}) != no_token) continue;
        refuse("tiktoken: there is no token for the byte " + std::to_string(byte) +
                   "; use a complete file of ranks",
               "ranks");
    }
    Parts parts;
    parts.added = special_tokens(tiktoken, vocabulary);
    parts.pattern = known_pattern(tiktoken.pattern);
    if (parts.pattern) {
        parts.pre_tokenizers.push_back(std::make_unique<KnownPreTokenizer>(*parts.pattern));
    } else {
        parts.pre_tokenizers.push_back(std::make_unique<SplitPreTokenizer>(
            Pattern{tiktoken.pattern, Dialect::rust, "pattern"}, SplitBehavior::removed, true));
    }
    auto pairs = pairs_of(vocabulary);
    parts.model = std::make_unique<BpeModel>(
        BpeOptions{.byte_level = true, .ignore_merges = true}, std::move(vocabulary),
        std::unordered_map<std::string, std::uint32_t>{}, std::move(pairs));
    parts.decodes_bytes = true;
    parts.added_are_bytes = true;
    return parts;
}

}  // namespace tinkxx::text
