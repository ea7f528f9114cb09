#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tinkxx::base {

/// Lower case of an ASCII letter, whatever the locale.
[[nodiscard]] constexpr char ascii_lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string ascii_lower(std::string_view text) {
    std::string out{text};
    for (auto& c : out) c = ascii_lower(c);
    return out;
}

[[nodiscard]] constexpr bool equal_in_any_case(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

/// What `trim` takes off a text that may have several lines.
inline constexpr std::string_view white_space{" \t\r\n"};

/// `text` without spaces and tabs (or `what`) at its ends.
[[nodiscard]] constexpr std::string_view trim(std::string_view text,
                                              std::string_view what = " \t") noexcept {
    auto const begin = text.find_first_not_of(what);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

}  // namespace tinkxx::base
