#include "text/render/characters.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::text::render {

namespace {

constexpr char32_t replacement = 0xfffd;

unsigned byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<unsigned char>(text[at]);
}

bool continues(std::string_view text, std::size_t at) noexcept {
    return at < text.size() && (byte_at(text, at) & 0xc0U) == 0x80U;
}

}  // namespace

bool is_space(char32_t c) noexcept {
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Decoded decode_at(std::string_view text, std::size_t at) noexcept {
    auto const lead = byte_at(text, at);
    if (lead < 0x80U) return {static_cast<char32_t>(lead), 1};
    std::size_t const size = lead >= 0xf0U ? 4 : lead >= 0xe0U ? 3 : 2;
    if (lead < 0xc2U || lead > 0xf4U) return {replacement, 1};
    auto code = static_cast<char32_t>(lead & (0x7fU >> size));
    for (std::size_t i = 1; i < size; ++i) {
        if (!continues(text, at + i)) return {replacement, 1};
        code = (code << 6U) | (byte_at(text, at + i) & 0x3fU);
    }
    constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10ffff) return {replacement, 1};
    return {code, size};
}

Decoded decode_before(std::string_view text, std::size_t end) noexcept {
    auto start = end - 1;
    for (int i = 0; i < 3 && start > 0 && (byte_at(text, start) & 0xc0U) == 0x80U; ++i) --start;
    auto const found = decode_at(text, start);
    if (start + found.size == end) return found;
    return {replacement, 1};
}

void append_utf8(std::string& out, char32_t code) {
    auto const put = [&out](char32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0U | (code >> 6U));
        put(0x80U | (code & 0x3fU));
    } else if (code < 0x10000) {
        put(0xe0U | (code >> 12U));
        put(0x80U | ((code >> 6U) & 0x3fU));
        put(0x80U | (code & 0x3fU));
    } else {
        put(0xf0U | (code >> 18U));
        put(0x80U | ((code >> 12U) & 0x3fU));
        put(0x80U | ((code >> 6U) & 0x3fU));
        put(0x80U | (code & 0x3fU));
    }
}

std::size_t first_invalid(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (byte_at(text, at) < 0x80U) {
            ++at;
            continue;
        }
        auto const found = decode_at(text, at);
        if (found.size == 1 || (found.code >= 0xd800 && found.code <= 0xdfff)) return at;
        at += found.size;
    }
    return at;
}

std::size_t count_characters(std::string_view text) noexcept {
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size(); ++characters) at += decode_at(text, at).size;
    return characters;
}

std::string_view strip_left(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const first = decode_at(text, 0);
        if (!is_space(first.code)) break;
        text.remove_prefix(first.size);
    }
    return text;
}

std::string_view strip_right(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const last = decode_before(text, text.size());
        if (!is_space(last.code)) break;
        text.remove_suffix(last.size);
    }
    return text;
}

std::string_view strip(std::string_view text) noexcept { return strip_right(strip_left(text)); }

std::string_view strip_left(std::string_view text, char c) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(c), text.size()));
    return text;
}

std::string_view strip(std::string_view text, char c) noexcept {
    text = strip_left(text, c);
    while (!text.empty() && text.back() == c) text.remove_suffix(1);
    return text;
}

std::size_t count(std::string_view text, std::string_view part) noexcept {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + part.size())) {
        ++found;
    }
    return found;
}

}  // namespace tinkxx::text::render
