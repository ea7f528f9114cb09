#include "text/render/common/characters.hpp"

#include "text/python/characters.hpp"

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

std::string_view strip_left(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const first = decode_at(text, 0);
        if (!python::is_space(first.code)) break;
        text.remove_prefix(first.size);
    }
    return text;
}

std::string_view strip_right(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const last = decode_before(text, text.size());
        if (!python::is_space(last.code)) break;
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
