#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace tinkxx::text {
namespace {

struct SecondByte {
    unsigned char low;
    unsigned char high;
    std::size_t length;  // of the whole character; 0: no lead byte
};

/// What may follow a lead byte: it keeps out overlong forms, surrogates and what is above U+10FFFF.
constexpr SecondByte second_byte(unsigned char lead) noexcept {
    if (lead < 0xc2) return {.low = 0, .high = 0, .length = 0};
    if (lead < 0xe0) return {.low = 0x80, .high = 0xbf, .length = 2};
    if (lead == 0xe0) return {.low = 0xa0, .high = 0xbf, .length = 3};
    if (lead == 0xed) return {.low = 0x80, .high = 0x9f, .length = 3};
    if (lead < 0xf0) return {.low = 0x80, .high = 0xbf, .length = 3};
    if (lead == 0xf0) return {.low = 0x90, .high = 0xbf, .length = 4};
    if (lead < 0xf4) return {.low = 0x80, .high = 0xbf, .length = 4};
    if (lead == 0xf4) return {.low = 0x80, .high = 0x8f, .length = 4};
    return {.low = 0, .high = 0, .length = 0};
}

constexpr std::uint64_t high_bits = 0x8080808080808080U;

}  // namespace

bool is_ascii(std::string_view text) noexcept {
    std::size_t at = 0;
    for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + at, sizeof word);
        if ((word & high_bits) != 0) return false;
    }
    return std::ranges::all_of(text.substr(at),
                               [](char byte) { return static_cast<unsigned char>(byte) < 0x80U; });
}

std::size_t count_characters(std::string_view text) noexcept {
    auto const continuing = std::ranges::count_if(text, continues_character);
    return text.size() - static_cast<std::size_t>(continuing);
}

std::size_t offset_of_character(std::string_view text, std::size_t index) noexcept {
    std::size_t at = 0;
    for (; index > 0 && at < text.size(); --index) at += character_size(text[at]);
    return at;
}

Utf8Step utf8_step(std::string_view text) noexcept {
    using Kind = Utf8Step::Kind;
    auto const at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (at(0) < 0x80) return {.length = 1, .kind = Kind::character};
    auto const second = second_byte(at(0));
    if (second.length == 0) return {.length = 1, .kind = Kind::broken};
    for (std::size_t i = 1; i < second.length; ++i) {
        if (i == text.size()) return {.length = i, .kind = Kind::cut};
        auto const low = i == 1 ? second.low : 0x80;
        auto const high = i == 1 ? second.high : 0xbf;
        if (at(i) < low || at(i) > high) return {.length = i, .kind = Kind::broken};
    }
    return {.length = second.length, .kind = Kind::character};
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
    std::size_t i = 0;
    while (i < text.size()) {
        if (i + 16 <= text.size()) {
            std::uint64_t words[2];
            std::memcpy(words, text.data() + i, sizeof words);
            if (((words[0] | words[1]) & high_bits) == 0) {
                i += 16;
                continue;
            }
        }
        // Several characters at once, since what is not ASCII rarely comes alone.
        for (auto const end = i + 16; i < end && i < text.size();) {
            auto const step = utf8_step(text.substr(i));
            if (step.kind != Utf8Step::Kind::character) return i;
            i += step.length;
        }
    }
    return i;
}

}  // namespace tinkxx::text
