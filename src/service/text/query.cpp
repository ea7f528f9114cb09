#include "service/text/query.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tinkxx {

QueryValue::QueryValue(List values) : content_{std::move(values)} {}
QueryValue::QueryValue(Parts parts) : content_{std::move(parts)} {}

}  // namespace tinkxx

namespace tinkxx::service {

namespace {

// As the official SDK prints it: shortest, with a point or an exponent.
std::string python_number(double value) {
    std::array<char, 32> buffer{};
    auto const magnitude = std::abs(value);
    bool const plain = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
    auto const format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
    std::string text{buffer.data(), end};
    if (plain && text.find('.') == std::string::npos && std::isfinite(value)) text += ".0";
    return text;
}

std::string list_text(QueryValue::List const& values) {
    std::string text;
    bool first = true;
    for (auto const& value : values) {
        auto const item = text_of(value);
        if (!item) continue;
        if (!first) text += ',';
        first = false;
        text += *item;
    }
    return text;
}

struct Pair {
    std::string name;
    std::string encoded;  // name=value, as it goes out
};

void flatten(std::vector<Pair>& out, std::string const& name, QueryValue const& value) {
    if (auto const* parts = std::get_if<QueryValue::Parts>(&value.content())) {
        for (auto const& [key, part] : *parts) {
            flatten(out, std::string{name}.append(1, '[').append(key).append(1, ']'), part);
        }
        return;
    }
    auto const text = text_of(value);
    bool const is_list = std::holds_alternative<QueryValue::List>(value.content());
    if (!text || (text->empty() && !is_list)) return;
    out.push_back({name, form_encode(name) + '=' + form_encode(*text)});
}

std::vector<Pair> flatten(Query const& query) {
    std::vector<Pair> pairs;
    pairs.reserve(query.size());
    for (auto const& [name, value] : query) flatten(pairs, name, value);
    return pairs;
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

std::string form_decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+') {
            out += ' ';
        } else if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                   hex_digit(text[i + 2]) >= 0) {
            out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::vector<Pair> split(std::string_view text) {
    std::vector<Pair> pairs;
    while (!text.empty()) {
        auto const end = std::min(text.find('&'), text.size());
        auto const item = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!item.empty()) {
            pairs.push_back({form_decode(item.substr(0, item.find('='))), std::string{item}});
        }
    }
    return pairs;
}

// Names repeated within one source stay; a later source replaces all of an earlier one.
void overlay(std::vector<Pair>& below, std::vector<Pair> above) {
    std::erase_if(below, [&above](Pair const& old) {
        return std::ranges::any_of(above, [&old](Pair const& p) { return p.name == old.name; });
    });
    std::ranges::move(above, std::back_inserter(below));
}

std::string join(std::vector<Pair> const& pairs) {
    std::string text;
    for (auto const& pair : pairs) {
        if (!text.empty()) text += '&';
        text += pair.encoded;
    }
    return text;
}

}  // namespace

std::optional<std::string> text_of(QueryValue const& value) {
    struct Visitor {
        std::optional<std::string> operator()(std::nullptr_t) const { return std::nullopt; }
        std::optional<std::string> operator()(bool v) const { return v ? "true" : "false"; }
        std::optional<std::string> operator()(std::int64_t v) const { return std::to_string(v); }
        std::optional<std::string> operator()(double v) const { return python_number(v); }
        std::optional<std::string> operator()(std::string const& v) const { return v; }
        std::optional<std::string> operator()(QueryValue::List const& v) const {
            return list_text(v);
        }
        std::optional<std::string> operator()(QueryValue::Parts const&) const {
            return std::nullopt;
        }
    };
    return std::visit(Visitor{}, value.content());
}

std::string form_encode(std::string_view text) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size());
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            c == '-' || c == '.' || c == '_' || c == '~') {
            out += c;
        } else if (c == ' ') {
            out += '+';
        } else {
            out += {'%', hex[byte >> 4U], hex[byte & 15U]};
        }
    }
    return out;
}

std::string query_string(Query const& query) { return join(flatten(query)); }

std::string merged_query(Query const& defaults, std::string_view in_path, Query const& of_request) {
    if (defaults.empty() && of_request.empty()) return std::string{in_path};
    auto pairs = flatten(defaults);
    overlay(pairs, split(in_path));
    overlay(pairs, flatten(of_request));
    return join(pairs);
}

}  // namespace tinkxx::service
