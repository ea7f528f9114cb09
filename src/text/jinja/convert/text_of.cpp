#include "text/jinja/convert/text_of.hpp"

#include "text/jinja/program/iteration.hpp"
#include "text/jinja/program/program.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/jinja/values/names.hpp"
#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tinkxx::text::jinja {
namespace {

constexpr int deepest_shown = 400;

void append_hex(std::string& to, char const* prefix, char32_t code, int digits) {
    constexpr std::string_view hex = "0123456789abcdef";
    to += prefix;
    for (int i = digits - 1; i >= 0; --i) {
        to += hex[(code >> static_cast<unsigned>(i * 4)) & 0xFU];
    }
}

void append_escaped(std::string& to, char32_t code) {
    if (code < 0x100U) {
        append_hex(to, "\\x", code, 2);
    } else if (code < 0x10000U) {
        append_hex(to, "\\u", code, 4);
    } else {
        append_hex(to, "\\U", code, 8);
    }
}

void append_quoted(std::string& to, std::string_view text) {
    bool const single = text.find('\'') == std::string_view::npos;
    char const quote = single || text.find('"') != std::string_view::npos ? '\'' : '"';
    to += quote;
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = next_character(text, at);
        if (code == static_cast<char32_t>(quote) || code == U'\\') {
            to += '\\';
            to += static_cast<char>(code);
        } else if (code == U'\n') {
            to += "\\n";
        } else if (code == U'\r') {
            to += "\\r";
        } else if (code == U'\t') {
            to += "\\t";
        } else if (python::is_printable(code)) {
            to += text.substr(begin, at - begin);
        } else {
            append_escaped(to, code);
        }
    }
    to += quote;
}

void append_items(std::string& to, Value const* items, std::size_t size, int depth) {
    for (std::size_t i = 0; i < size; ++i) {
        if (i != 0) to += ", ";
        append_repr(to, items[i], depth);
    }
}

void append_entry(std::string& to, DictData::Entry const& entry, int depth) {
    append_repr(to, entry.key, depth);
    to += ": ";
    append_repr(to, entry.value, depth);
}

void append_dict(std::string& to, DictData const& dict, int depth) {
    to += '{';
    for (std::uint32_t i = 0; i < dict.size; ++i) {
        if (i != 0) to += ", ";
        append_entry(to, dict.entries[i], depth);
    }
    to += '}';
}

void append_view(std::string& to, Value const& view, int depth) {
    to += type_name(view);
    to += "([";
    for (std::uint32_t i = 0; i < view.dict->size; ++i) {
        auto const& entry = view.dict->entries[i];
        if (i != 0) to += ", ";
        if (view.flag == static_cast<std::uint8_t>(ViewOf::keys)) {
            append_repr(to, entry.key, depth);
        } else if (view.flag == static_cast<std::uint8_t>(ViewOf::values)) {
            append_repr(to, entry.value, depth);
        } else {
            to += '(';
            append_repr(to, entry.key, depth);
            to += ", ";
            append_repr(to, entry.value, depth);
            to += ')';
        }
    }
    to += "])";
}

void append_range(std::string& to, RangeData const& range) {
    to += "range(";
    append_integer(to, range.start);
    to += ", ";
    append_integer(to, range.stop);
    if (range.step != 1) {
        to += ", ";
        append_integer(to, range.step);
    }
    to += ')';
}

void append_namespace(std::string& to, NamespaceData const& name_space, int depth) {
    to += "<Namespace {";
    for (auto const* one = name_space.first; one != nullptr; one = one->next) {
        if (one != name_space.first) to += ", ";
        append_repr(to, one->name, depth);
        to += ": ";
        append_repr(to, one->value, depth);
    }
    to += "}>";
}

/// Those of which Python shows an address, or something else of no use to anybody.
void append_object(std::string& to, Value const& value) {
    switch (value.kind) {
        case Kind::macro:
            to += "<Macro ";
            if (value.macro->node->name.is_missing()) {
                to += "anonymous";
            } else {
                append_repr(to, value.macro->node->name);
            }
            to += '>';
            return;
        case Kind::loop:
            to += "<LoopContext ";
            append_integer(to, value.loop->index0 + 1);
            to += '/';
            append_integer(to, value.loop->length());
            to += '>';
            return;
        case Kind::function:
            to += "<function " + std::string{function_name(value.number)} + ">";
            return;
        case Kind::method:
            to += "<built-in method " + std::string{value.method->name} + " of " +
                  std::string{type_name(value.method->owner)} + " object>";
            return;
        default:
            to += "<" + std::string{type_name(value)} + " object>";
    }
}

}  // namespace

void append_integer(std::string& to, std::int64_t number) {
    std::array<char, 24> digits;
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    to.append(digits.data(), end);
}

void append_real(std::string& to, double number) {
    if (std::isnan(number)) {
        to += "nan";
        return;
    }
    if (std::isinf(number)) {
        to += number < 0 ? "-inf" : "inf";
        return;
    }
    std::array<char, 40> buffer;
    auto const size = std::abs(number);
    // Python shows an exponent below 1e-4 and from 1e16.
    bool const scientific = size != 0 && (size < 1e-4 || size >= 1e16);
    auto const end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                      scientific ? std::chars_format::scientific : std::chars_format::fixed)
            .ptr;
    std::string_view const text{buffer.data(), static_cast<std::size_t>(end - buffer.data())};
    to += text;
    if (!scientific && text.find('.') == std::string_view::npos) to += ".0";
}

void append_repr(std::string& to, Value const& value, int depth) {
    if (depth > deepest_shown) fail_limit("values are nested too deeply to be shown");
    if (depth > 0) {
        look();
        check_text_size(to.size());
    }
    switch (value.kind) {
        case Kind::string:
            if (value.is_markup()) {
                to += "Markup(";
                append_quoted(to, value.view());
                to += ')';
                return;
            }
            append_quoted(to, value.view());
            return;
        case Kind::undefined:
        case Kind::missing:
            to += "Undefined";
            return;
        case Kind::tuple:
            to += '(';
            append_items(to, value.items, value.size, depth + 1);
            to += value.size == 1 ? ",)" : ")";
            return;
        case Kind::list:
            to += '[';
            append_items(to, value.items, value.size, depth + 1);
            to += ']';
            return;
        case Kind::dict:
            append_dict(to, *value.dict, depth + 1);
            return;
        case Kind::dict_view:
            append_view(to, value, depth + 1);
            return;
        case Kind::name_space:
            append_namespace(to, *value.name_space, depth + 1);
            return;
        default:
            append_text(to, value);
    }
}

void append_text(std::string& to, Value const& value) {
    switch (value.kind) {
        case Kind::missing:
        case Kind::undefined:
            return;
        case Kind::none:
            to += "None";
            return;
        case Kind::boolean:
            to += value.flag != 0 ? "True" : "False";
            return;
        case Kind::integer:
            append_integer(to, value.integer);
            return;
        case Kind::real:
            append_real(to, value.real);
            return;
        case Kind::string:
        case Kind::big_integer:
            to += value.view();
            return;
        case Kind::range:
            append_range(to, *value.range);
            return;
        case Kind::tuple:
        case Kind::list:
        case Kind::dict:
        case Kind::dict_view:
        case Kind::name_space:
            append_repr(to, value);
            return;
        default:
            append_object(to, value);
    }
}

std::string text_of(Value const& value) {
    std::string text;
    append_text(text, value);
    return text;
}

std::string repr_of(Value const& value) {
    std::string text;
    append_repr(text, value);
    return text;
}

std::string ascii_of(Value const& value) {
    auto const text = repr_of(value);
    std::string escaped;
    for (std::size_t at = 0; at < text.size();) {
        auto const code = next_character(text, at);
        if (code < 0x80U) {
            escaped += static_cast<char>(code);
        } else {
            append_escaped(escaped, code);
        }
    }
    return escaped;
}

namespace {

/// An owner as messages about what it lacks name it.
std::string owner_name(Value const& owner) {
    if (owner.is_none()) return "None";
    switch (owner.kind) {
        case Kind::name_space:
        case Kind::cycler:
        case Kind::joiner:
            return "jinja2.utils." + std::string{type_name(owner)} + " object";
        case Kind::macro:
        case Kind::loop:
        case Kind::undefined:
            return "jinja2.runtime." + std::string{type_name(owner)} + " object";
        default:
            return std::string{type_name(owner)} + " object";
    }
}

/// What an error says when an undefined value is used.
std::string undefined_message(UndefinedData const& undefined) {
    switch (undefined.reason) {
        case UndefinedData::Reason::text:
            return std::string{undefined.text};
        case UndefinedData::Reason::name:
            return repr_of(undefined.name) + " is undefined";
        case UndefinedData::Reason::attribute:
            return "'" + owner_name(undefined.owner) + "' has no attribute " +
                   repr_of(undefined.name);
        case UndefinedData::Reason::element:
            return owner_name(undefined.owner) + " has no element " + repr_of(undefined.name);
        case UndefinedData::Reason::unsafe:
            return "access to attribute " + repr_of(undefined.name) + " of '" +
                   std::string{type_name(undefined.owner)} + "' object is unsafe.";
    }
    return {};
}

}  // namespace

void fail_undefined(Value const& value) {
    auto const& undefined = *value.undefined;
    throw Failure{undefined.reason == UndefinedData::Reason::unsafe ? Failure::Kind::security
                                                                    : Failure::Kind::undefined,
                  undefined_message(undefined)};
}

}  // namespace tinkxx::text::jinja
