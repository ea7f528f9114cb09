#include "text/render/common/json.hpp"

#include "text/python/characters.hpp"
#include "text/render/common/characters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace tinkxx::text::render {

Json Json::boolean(bool truth) {
    Json out;
    out.kind_ = Kind::boolean;
    out.truth_ = truth;
    return out;
}

Json Json::integer(std::string digits) {
    Json out;
    out.kind_ = Kind::integer;
    out.text_ = digits == "-0" ? "0" : std::move(digits);
    return out;
}

Json Json::real(double number) {
    Json out;
    out.kind_ = Kind::real;
    out.number_ = number;
    return out;
}

Json Json::string(std::string text) {
    Json out;
    out.kind_ = Kind::string;
    out.text_ = std::move(text);
    return out;
}

Json Json::array() {
    Json out;
    out.kind_ = Kind::array;
    return out;
}

Json Json::object() {
    Json out;
    out.kind_ = Kind::object;
    return out;
}

bool Json::is(bool truth) const noexcept { return kind_ == Kind::boolean && truth_ == truth; }

bool Json::truthy() const noexcept {
    switch (kind_) {
        case Kind::null:
            return false;
        case Kind::boolean:
            return truth_;
        case Kind::integer:
            return text_ != "0";
        case Kind::real:
            return number_ != 0;
        case Kind::string:
            return !text_.empty();
        case Kind::array:
            return !items_.empty();
        case Kind::object:
            return !members_.empty();
    }
    return false;
}

Json const* Json::find(std::string_view name) const noexcept {
    for (auto const& [key, value] : members_) {
        if (key == name) return &value;
    }
    return nullptr;
}

void Json::set(std::string name, Json value) {
    for (auto& [key, old] : members_) {
        if (key == name) {
            old = std::move(value);
            return;
        }
    }
    append(std::move(name), std::move(value));
}

void Json::sort_members() {
    // Bytes of UTF-8 sort as their code points do.
    std::ranges::sort(members_, {}, &Member::first);
    for (auto& member : members_) member.second.sort_members();
    for (auto& item : items_) item.sort_members();
}

// Writing ---------------------------------------------------------------------------------------

namespace {

void append_hex(std::string& out, char32_t code, int digits) {
    constexpr std::string_view hex = "0123456789abcdef";
    for (auto shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
        out += hex[(code >> static_cast<unsigned>(shift)) & 0xfU];
    }
}

// One UTF-16 unit as an escape.
void append_unit(std::string& out, char32_t unit) {
    out += "\\u";
    append_hex(out, unit, 4);
}

void append_character(std::string& out, char32_t code, std::string_view bytes, bool ascii) {
    constexpr std::string_view named = "\"\\\n\r\t\f\b";
    constexpr std::string_view letters = "\"\\nrtfb";
    auto const place = code < 0x80 ? named.find(static_cast<char>(code)) : std::string_view::npos;
    if (place != std::string_view::npos) {
        out += '\\';
        out += letters[place];
    } else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000)) {
        append_unit(out, code);
    } else if (ascii && code >= 0x10000) {
        append_unit(out, 0xd800 + ((code - 0x10000) >> 10U));
        append_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ffU));
    } else {
        out += bytes;
    }
}

void append_json_string(std::string& out, std::string_view text, bool ascii) {
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
        auto const found = decode_at(text, at);
        append_character(out, found.code, text.substr(at, found.size), ascii);
        at += found.size;
    }
    out += '"';
}

// As Python's repr of a finite float: the shortest digits that read as the same number.
std::string float_text(double number) {
    std::array<char, 40> buffer{};
    auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                   std::chars_format::scientific)
                         .ptr;
    std::string_view const text{buffer.data(), static_cast<std::size_t>(end - buffer.data())};
    auto const e = text.find('e');
    int exponent = 0;
    auto const* from = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(from, end, exponent);
    std::string digits;
    for (char const c : text.substr(0, e)) {
        if (c >= '0' && c <= '9') digits += c;
    }
    std::string out = std::signbit(number) ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (digits.size() > 1) out += "." + digits.substr(1);
        out += exponent < 0 ? "e-" : "e+";
        auto const power = std::to_string(std::abs(exponent));
        return out + (power.size() < 2 ? "0" : "") + power;
    }
    if (exponent < 0) {
        return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    auto const whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    out += digits.substr(0, whole) + ".";
    return out + (digits.size() > whole ? digits.substr(whole) : "0");
}

std::string real_text(double number, std::string_view nan, std::string_view infinity) {
    if (std::isnan(number)) return std::string{nan};
    if (std::isinf(number)) return (number < 0 ? "-" : "") + std::string{infinity};
    return float_text(number);
}

void append_json(std::string& out, Json const& value, JsonStyle const& style) {
    switch (value.kind()) {
        case Json::Kind::null:
            out += "null";
            return;
        case Json::Kind::boolean:
            out += value.is(true) ? "true" : "false";
            return;
        case Json::Kind::integer:
            out += value.text();
            return;
        case Json::Kind::real:
            out += real_text(value.number(), "NaN", "Infinity");
            return;
        case Json::Kind::string:
            append_json_string(out, value.text(), style.ascii);
            return;
        case Json::Kind::array: {
            out += '[';
            for (std::size_t i = 0; i < value.items().size(); ++i) {
                if (i > 0) out += style.item_separator;
                append_json(out, value.items()[i], style);
            }
            out += ']';
            return;
        }
        case Json::Kind::object: {
            out += '{';
            for (std::size_t i = 0; i < value.members().size(); ++i) {
                if (i > 0) out += style.item_separator;
                append_json_string(out, value.members()[i].first, style.ascii);
                out += style.key_separator;
                append_json(out, value.members()[i].second, style);
            }
            out += '}';
            return;
        }
    }
}

void append_repr_character(std::string& out, char32_t code, std::string_view bytes, char quote) {
    constexpr std::string_view named = "\\\n\r\t";
    constexpr std::string_view letters = "\\nrt";
    auto const place = code < 0x80 ? named.find(static_cast<char>(code)) : std::string_view::npos;
    if (place != std::string_view::npos) {
        out += '\\';
        out += letters[place];
    } else if (code == static_cast<char32_t>(quote)) {
        out += '\\';
        out += quote;
    } else if (python::is_printable(code)) {
        out += bytes;
    } else if (code < 0x100) {
        out += "\\x";
        append_hex(out, code, 2);
    } else if (code < 0x10000) {
        append_unit(out, code);
    } else {
        out += "\\U";
        append_hex(out, code, 8);
    }
}

void append_repr_string(std::string& out, std::string_view text) {
    auto const quote = contains(text, "'") && !contains(text, "\"") ? '"' : '\'';
    out += quote;
    for (std::size_t at = 0; at < text.size();) {
        auto const found = decode_at(text, at);
        append_repr_character(out, found.code, text.substr(at, found.size), quote);
        at += found.size;
    }
    out += quote;
}

void append_repr(std::string& out, Json const& value) {
    switch (value.kind()) {
        case Json::Kind::null:
            out += "None";
            return;
        case Json::Kind::boolean:
            out += value.is(true) ? "True" : "False";
            return;
        case Json::Kind::integer:
            out += value.text();
            return;
        case Json::Kind::real:
            out += real_text(value.number(), "nan", "inf");
            return;
        case Json::Kind::string:
            append_repr_string(out, value.text());
            return;
        case Json::Kind::array:
            out += '[';
            for (std::size_t i = 0; i < value.items().size(); ++i) {
                if (i > 0) out += ", ";
                append_repr(out, value.items()[i]);
            }
            out += ']';
            return;
        case Json::Kind::object:
            out += '{';
            for (std::size_t i = 0; i < value.members().size(); ++i) {
                if (i > 0) out += ", ";
                append_repr_string(out, value.members()[i].first);
                out += ": ";
                append_repr(out, value.members()[i].second);
            }
            out += '}';
            return;
    }
}

}  // namespace

std::string write_json(Json const& value, JsonStyle const& style) {
    std::string out;
    append_json(out, value, style);
    return out;
}

std::string to_text(Json const& value) { return value.is_string() ? value.text() : to_repr(value); }

std::string to_repr(Json const& value) {
    std::string out;
    append_repr(out, value);
    return out;
}

}  // namespace tinkxx::text::render
