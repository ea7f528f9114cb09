#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::fuzz {

/// How byte-level vocabularies spell a byte.
inline std::string spelt(unsigned byte) {
    bool const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    unsigned point = byte;
    if (!printable) {
        point = 0x100 + (byte <= 0x20 ? byte : byte <= 0xa0 ? byte - 0x7f + 0x21 : 0x43);
    }
    if (point < 0x80) return {static_cast<char>(point)};
    return {static_cast<char>(0xc0U | (point >> 6U)), static_cast<char>(0x80U | (point & 0x3fU))};
}

inline std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (auto const c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

/// Every byte, a few merges, and added tokens of each kind: small, and with all that can go wrong.
inline text::TextTokenizer byte_level() {
    std::string vocabulary;
    for (unsigned byte = 0; byte < 256; ++byte) {
        vocabulary += json_quoted(spelt(byte)) + ":" + std::to_string(byte) + ",";
    }
    return text::TextTokenizer::from_json(
        R"({"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "ByteLevel",
        "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel"}, "post_processor": null,
        "added_tokens": [
        {"id": 262, "content": "<|end|>", "special": true, "normalized": false},
        {"id": 263, "content": "<b>", "special": false, "lstrip": true, "rstrip": true,
         "normalized": true},
        {"id": 264, "content": "word", "special": false, "single_word": true, "normalized": false}],
        "model": {"type": "BPE", "vocab": {)" +
        vocabulary +
        R"("th": 256, "the": 257, "Ġthe": 258, "aa": 259, "aaaa": 260, "Ã©": 261},
        "merges": ["t h", "th e", "Ġ the", "a a", "aa aa", "Ã ©"]}})");
}

/// Pieces with byte fallback, as Llama 2 has them.
inline text::TextTokenizer byte_fallback() {
    std::string vocabulary = R"("<unk>": 0, "<s>": 1,)";
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; ++byte) {
        vocabulary += std::string{"\"<0x"} + digits[byte >> 4U] + digits[byte & 15U] +
                      ">\": " + std::to_string(byte + 2) + ",";
    }
    return text::TextTokenizer::from_json(
        R"({"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "added_tokens": [{"id": 1, "content": "<s>", "special": true, "normalized": false}],
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
        "vocab": {)" +
        vocabulary +
        R"("▁": 258, "a": 259, "b": 260, "▁a": 261, "ab": 262, "é": 263, "中": 264, "▁▁": 265},
        "merges": ["▁ ▁", "▁ a", "a b"]}})");
}

inline std::vector<text::TextTokenizer> const& tokenizers() {
    static std::vector<text::TextTokenizer> const all{byte_level(), byte_fallback()};
    return all;
}

}  // namespace tinkxx::fuzz
