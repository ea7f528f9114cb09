#include "wire/json/base64.hpp"

#include <array>
#include <cstdint>

namespace tinkxx::wire {

namespace {

using Alphabet = std::array<char, 64>;

constexpr Alphabet alphabet(char c62, char c63) {
    Alphabet out{};
    std::size_t at = 0;
    for (char c = 'A'; c <= 'Z'; ++c) out[at++] = c;
    for (char c = 'a'; c <= 'z'; ++c) out[at++] = c;
    for (char c = '0'; c <= '9'; ++c) out[at++] = c;
    out[at++] = c62;
    out[at] = c63;
    return out;
}

constexpr std::uint8_t no_digit = 64;

using Values = std::array<std::uint8_t, 256>;

constexpr Values values_of(Alphabet const& digits) {
    Values out{};
    out.fill(no_digit);
    for (std::size_t i = 0; i < digits.size(); ++i) {
        out[static_cast<unsigned char>(digits[i])] = static_cast<std::uint8_t>(i);
    }
    return out;
}

constexpr Alphabet standard = alphabet('+', '/');
constexpr Alphabet of_urls = alphabet('-', '_');
constexpr Values standard_values = values_of(standard);
constexpr Values url_values = values_of(of_urls);

void append(std::string& out, std::string_view bytes, Alphabet const& digits, bool padded) {
    auto const at = out.size();
    out.resize(at + (bytes.size() + 2) / 3 * 4);
    auto* to = out.data() + at;
    auto const byte = [bytes](std::size_t i) {
        return std::uint32_t{static_cast<unsigned char>(bytes[i])};
    };
    std::size_t i = 0;
    for (; i + 3 <= bytes.size(); i += 3) {
        auto const bits = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
        *to++ = digits[bits >> 18U];
        *to++ = digits[bits >> 12U & 63U];
        *to++ = digits[bits >> 6U & 63U];
        *to++ = digits[bits & 63U];
    }
    auto const left = bytes.size() - i;
    if (left == 0) return;
    auto const bits = byte(i) << 16U | (left == 2 ? byte(i + 1) << 8U : 0U);
    *to++ = digits[bits >> 18U];
    *to++ = digits[bits >> 12U & 63U];
    *to++ = left == 2 ? digits[bits >> 6U & 63U] : '=';
    *to = '=';
    if (!padded) out.resize(out.size() - (3 - left));
}

std::optional<std::string> decode(std::string_view text, Values const& values) {
    if (text.size() % 4 == 0) {
        for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
    }
    auto const left = text.size() % 4;
    if (left == 1) return std::nullopt;
    std::string out(text.size() / 4 * 3 + (left == 0 ? 0 : left - 1), '\0');
    auto* to = out.data();
    std::uint8_t worst = 0;
    auto const digit = [&](std::size_t i) {
        auto const value = values[static_cast<unsigned char>(text[i])];
        worst |= value;
        return std::uint32_t{value};
    };
    std::size_t i = 0;
    for (; i + 4 <= text.size(); i += 4) {
        auto const bits = digit(i) << 18U | digit(i + 1) << 12U | digit(i + 2) << 6U | digit(i + 3);
        *to++ = static_cast<char>(bits >> 16U);
        *to++ = static_cast<char>(bits >> 8U);
        *to++ = static_cast<char>(bits);
    }
    if (left != 0) {
        auto const bits =
            digit(i) << 18U | digit(i + 1) << 12U | (left == 3 ? digit(i + 2) << 6U : 0U);
        *to++ = static_cast<char>(bits >> 16U);
        if (left == 3) *to = static_cast<char>(bits >> 8U);
        if ((bits & (left == 3 ? 0xffU : 0xffffU)) != 0) return std::nullopt;
    }
    if ((worst & no_digit) != 0) return std::nullopt;
    return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
    std::string out;
    append(out, bytes, standard, true);
    return out;
}

void append_base64(std::string& out, std::string_view bytes) { append(out, bytes, standard, true); }

std::string base64url(std::string_view bytes) {
    std::string out;
    append(out, bytes, of_urls, false);
    return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
    return decode(text, standard_values);
}

std::optional<std::string> decode_base64url(std::string_view text) {
    return decode(text, url_values);
}

}  // namespace tinkxx::wire
