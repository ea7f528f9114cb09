#include "text/jinja/convert/html.hpp"

#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace tinkxx::text::jinja {
namespace {

void remove_between(std::string& text, std::string_view open, std::string_view close) {
    std::string kept;
    std::size_t begin = 0;
    while (true) {
        auto const at = text.find(open, begin);
        auto const end =
            at == std::string_view::npos ? std::string_view::npos : text.find(close, at);
        if (end == std::string_view::npos) break;
        kept.append(text, begin, at - begin);
        begin = end + close.size();
    }
    kept.append(text, begin);
    text = std::move(kept);
}

/// The character of an entity without `&` and `;`; 0 if it is not known.
char32_t entity(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, char32_t>, 6> names{{{"amp", U'&'},
                                                                          {"lt", U'<'},
                                                                          {"gt", U'>'},
                                                                          {"quot", U'"'},
                                                                          {"apos", U'\''},
                                                                          {"nbsp", 0xA0}}};
    for (auto const& [one, code] : names) {
        if (one == name) return code;
    }
    if (!name.starts_with('#') || name.size() < 2) return 0;
    bool const hex = name[1] == 'x' || name[1] == 'X';
    auto const digits = name.substr(hex ? 2 : 1);
    std::uint32_t code = 0;
    auto const [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    bool const good = error == std::errc{} && end == digits.data() + digits.size() &&
                      code <= 0x10FFFFU && (code < 0xD800U || code >= 0xE000U);
    return good ? static_cast<char32_t>(code) : 0;
}

}  // namespace

std::string unescape_html(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = text[at] == '&' ? text.find(';', at) : std::string_view::npos;
        auto const code = end != std::string_view::npos && end - at < 12
                              ? entity(text.substr(at + 1, end - at - 1))
                              : 0;
        if (code == 0) {
            plain += text[at++];
        } else {
            append_utf8(plain, code);
            at = end + 1;
        }
    }
    return plain;
}

std::string strip_tags(std::string_view text) {
    std::string kept{text};
    remove_between(kept, "<!--", "-->");
    remove_between(kept, "<", ">");
    std::string words;
    bool space = false;
    std::string_view const rest{kept};
    for (std::size_t at = 0; at < rest.size();) {
        auto const begin = at;
        if (python::is_space(next_character(rest, at))) {
            space = true;
            continue;
        }
        if (space && !words.empty()) words += ' ';
        space = false;
        words += rest.substr(begin, at - begin);
    }
    return unescape_html(words);
}

std::string quote_url(std::string_view text, bool for_query) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    std::string quoted;
    for (auto const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte < 0x80U && (std::isalnum(byte) != 0 ||
                             std::string_view{"_.-~"}.find(c) != std::string_view::npos ||
                             (c == '/' && !for_query))) {
            quoted += c;
        } else if (c == ' ' && for_query) {
            quoted += '+';
        } else {
            quoted += '%';
            quoted += hex[byte >> 4U];
            quoted += hex[byte & 0xFU];
        }
    }
    return quoted;
}

}  // namespace tinkxx::text::jinja
