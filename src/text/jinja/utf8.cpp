#include "text/jinja/utf8.hpp"

#include <algorithm>

namespace tinkxx::text::jinja {
namespace {

constexpr std::uint64_t high_bits = 0x8080808080808080U;

std::uint64_t eight_bytes(char const* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

/// The size of the valid character at `at`, or 0.
std::size_t valid_size(std::string_view text, std::size_t at) noexcept {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    auto const first = byte(0);
    if (first < 0x80U) return 1;
    if (first < 0xC2U || first > 0xF4U) return 0;
    auto const size = character_size(text[at]);
    if (text.size() - at < size) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if (!continues_character(text[at + i])) return 0;
    }
    auto const second = byte(1);
    bool const bad = (first == 0xE0U && second < 0xA0U) || (first == 0xEDU && second > 0x9FU) ||
                     (first == 0xF0U && second < 0x90U) || (first == 0xF4U && second > 0x8FU);
    return bad ? 0 : size;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (text.size() - at >= 8 && (eight_bytes(text.data() + at) & high_bits) == 0) {
            at += 8;
            continue;
        }
        auto const size = valid_size(text, at);
        if (size == 0) return at;
        at += size;
    }
    return std::string_view::npos;
}

bool is_ascii(std::string_view text) noexcept {
    std::size_t at = 0;
    for (; text.size() - at >= 8; at += 8) {
        if ((eight_bytes(text.data() + at) & high_bits) != 0) return false;
    }
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(),
                       [](char byte) { return static_cast<unsigned char>(byte) < 0x80U; });
}

std::size_t count_characters(std::string_view text) noexcept {
    auto const continuing = std::count_if(text.begin(), text.end(), continues_character);
    return text.size() - static_cast<std::size_t>(continuing);
}

std::size_t offset_of_character(std::string_view text, std::size_t index) noexcept {
    std::size_t at = 0;
    while (index > 0 && at < text.size()) {
        at += character_size(text[at]);
        --index;
    }
    return at;
}

void append_utf8(std::string& to, char32_t code) {
    auto const add = [&](char32_t bits) { to.push_back(static_cast<char>(bits)); };
    if (code < 0x80U) {
        add(code);
    } else if (code < 0x800U) {
        add(0xC0U | (code >> 6U));
        add(0x80U | (code & 0x3FU));
    } else if (code < 0x10000U) {
        add(0xE0U | (code >> 12U));
        add(0x80U | ((code >> 6U) & 0x3FU));
        add(0x80U | (code & 0x3FU));
    } else {
        add(0xF0U | (code >> 18U));
        add(0x80U | ((code >> 12U) & 0x3FU));
        add(0x80U | ((code >> 6U) & 0x3FU));
        add(0x80U | (code & 0x3FU));
    }
}

}  // namespace tinkxx::text::jinja
