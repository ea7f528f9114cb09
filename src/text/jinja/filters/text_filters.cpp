#include "text/jinja/convert/html.hpp"
#include "text/jinja/convert/json_text.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/filters/filters.hpp"
#include "text/jinja/methods/methods.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tinkxx::text::jinja {
namespace {

/// What is no text becomes one.
Value as_text(Machine& machine, Value const& value) {
    return value.is_string() ? value : machine.text(text_of(value));
}

bool flag_of(Value const& value) { return !value.is_missing() && is_true(value); }

std::int64_t size_argument(Value const& value, std::int64_t otherwise) {
    if (value.is_missing()) return otherwise;
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_integer()) {
        fail_type("'" + std::string{type_name(value)} +
                  "' object cannot be interpreted as an integer");
    }
    return value.as_integer();
}

std::string text_argument(Value const& value, std::string_view otherwise) {
    if (value.is_missing()) return std::string{otherwise};
    if (!value.is_string()) {
        fail_type("expected str, got " + std::string{type_name(value)});
    }
    return std::string{value.view()};
}

Value to_json(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{
        "tojson", 0, {"ensure_ascii", "indent", "separators", "sort_keys"}};
    JsonStyle style;
    if (!arguments.empty()) {
        auto const bound = bind(signature, arguments);
        style.ascii = flag_of(bound[0]);
        style.sorted = flag_of(bound[3]);
        auto const& indent = bound[1];
        if (!indent.is_missing() && !indent.is_none()) {
            style.indents = true;
            style.item_separator = ",";
            if (indent.is_string()) {
                style.indent = indent.view();
            } else {
                auto const width = size_argument(indent, 0);
                check_text_size(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)));
                style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)),
                                    ' ');
            }
        }
        if (auto const& separators = bound[2]; !separators.is_missing() && !separators.is_none()) {
            auto const parts = machine.items_of(separators);
            if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) {
                fail_value("tojson: separators must be two strings");
            }
            style.item_separator = parts[0].view();
            style.key_separator = parts[1].view();
        }
    }
    std::string text;
    write_json(text, operand, style);
    machine.charge(text.size() / 32);
    return machine.text(text);
}

Value trim(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"trim", 0, {"chars"}};
    auto const characters = arguments.empty() ? missing_value() : bind(signature, arguments)[0];
    auto const text = as_text(machine, operand);
    machine.charge(1);
    return markup_value(string_value(strip_text(text.view(), characters, true, true)),
                        text.is_markup());
}

Value replace(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"replace", 2, {"old", "new", "count"}};
    auto const bound = bind(signature, arguments);
    auto const text = as_text(machine, operand);
    auto const before = as_text(machine, bound[0]);
    auto const after = as_text(machine, bound[1]);
    auto const count = bound[2].is_none() ? -1 : size_argument(bound[2], -1);
    return replace_text(machine, text.view(), before.view(), after.view(), count);
}

Value indent(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"indent", 0, {"width", "first", "blank"}};
    auto const bound = bind(signature, arguments);
    if (operand.is_undefined()) fail_undefined(operand);
    if (!operand.is_string()) {
        fail_type("unsupported operand type(s) for +=: '" + std::string{type_name(operand)} +
                  "' and 'str'");
    }
    std::string indention;
    if (bound[0].is_string()) {
        indention = bound[0].view();
    } else {
        auto const width = std::max<std::int64_t>(size_argument(bound[0], 4), 0);
        check_text_size(static_cast<std::size_t>(width));
        indention.assign(static_cast<std::size_t>(width), ' ');
    }
    bool const blank = flag_of(bound[2]);
    // With a line end behind it, the text has at least one line, and an empty last one counts.
    auto const text = std::string{operand.view()} + "\n";
    std::string made = flag_of(bound[1]) ? indention : std::string{};
    bool first = true;
    for (auto const line : split_lines(text, false)) {
        if (!first) made += '\n';
        if (!first && (blank || !line.empty())) made += indention;
        made += line;
        first = false;
        check_text_size(made.size());
    }
    return markup_value(machine.text(made), operand.is_markup());
}

Value title(Machine& machine, Value const& operand) {
    auto const value = as_text(machine, operand);
    auto const text = value.view();
    std::string made;
    std::size_t begin = 0;
    auto const word = [&](std::size_t end) {
        if (end == begin) return;
        auto rest = begin;
        python::append_cased(made, next_character(text, rest), python::Casing::upper);
        made += python::lower_text(text.substr(rest, end - rest));
    };
    for (std::size_t at = 0; at < text.size();) {
        auto const here = at;
        auto const code = next_character(text, at);
        bool const splits = code == U'-' || code == U'(' || code == U'{' || code == U'[' ||
                            code == U'<' || python::is_space(code);
        if (!splits) continue;
        word(here);
        made += text.substr(here, at - here);
        begin = at;
    }
    word(text.size());
    return markup_value(machine.text(made), value.is_markup());
}

Value truncate(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"truncate", 0, {"length", "killwords", "end", "leeway"}};
    auto const bound = bind(signature, arguments);
    auto const length = size_argument(bound[0], 255);
    auto const end = text_argument(bound[2], "...");
    auto const leeway = bound[3].is_none() ? 5 : size_argument(bound[3], 5);
    auto const end_size = static_cast<std::int64_t>(count_characters(end));
    if (length < end_size) {
        fail_value("expected length >= " + std::to_string(end_size) + ", got " +
                   std::to_string(length));
    }
    if (leeway < 0) fail_value("expected leeway >= 0, got " + std::to_string(leeway));
    if (operand.is_undefined()) return operand;
    if (!operand.is_string()) {
        fail_type("truncate needs a text, not " + std::string{type_name(operand)});
    }
    auto const text = operand.view();
    auto const size = static_cast<std::int64_t>(count_characters(text));
    if (size <= length || size - length <= leeway) return operand;
    auto kept =
        text.substr(0, offset_of_character(text, static_cast<std::size_t>(length - end_size)));
    if (!flag_of(bound[1])) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
    return machine.text(std::string{kept} + end);
}

Value word_count(Machine& machine, Value const& operand) {
    auto const value = as_text(machine, operand);
    std::int64_t words = 0;
    bool within = false;
    for (std::size_t at = 0; at < value.size;) {
        auto const code = next_character(value.view(), at);
        bool const part = python::is_word(code);
        if (part && !within) ++words;
        within = part;
    }
    return integer_value(words);
}

Value format(Machine& machine, Value const& operand, Arguments const& arguments) {
    if (arguments.count != 0 && arguments.keyword_count != 0) {
        fail_value("can't handle positional and keyword arguments at the same time");
    }
    auto const text = as_text(machine, operand);
    if (arguments.keyword_count == 0) {
        return format_percent(machine, text,
                              machine.tuple({arguments.positional, arguments.count}));
    }
    auto* const entries = machine.arena().array<DictData::Entry>(arguments.keyword_count);
    for (std::uint32_t i = 0; i < arguments.keyword_count; ++i) {
        entries[i] = {arguments.keywords[i].name, arguments.keywords[i].value};
    }
    return format_percent(machine, text,
                          make_dict(machine.arena(), entries, arguments.keyword_count));
}

Value url_encode(Machine& machine, Value const& operand) {
    if (operand.is_string() || !is_iterable(operand)) {
        return machine.text(quote_url(text_of(operand), false));
    }
    std::string made;
    auto const add = [&](Value const& key, Value const& value) {
        if (!made.empty()) made += '&';
        made += quote_url(text_of(key), true) + "=" + quote_url(text_of(value), true);
    };
    if (operand.is(Kind::dict)) {
        for (std::uint32_t i = 0; i < operand.dict->size; ++i) {
            add(operand.dict->entries[i].key, operand.dict->entries[i].value);
        }
        return machine.text(made);
    }
    for (auto const& pair : machine.items_of(operand)) {
        auto const parts = machine.items_of(pair);
        if (parts.size() != 2) fail_value("urlencode needs pairs of a key and a value");
        add(parts[0], parts[1]);
    }
    return machine.text(made);
}

Value xml_attributes(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"xmlattr", 0, {"autospace"}};
    auto const space = bind(signature, arguments)[0];
    if (operand.is_undefined()) fail_undefined(operand);
    if (!operand.is(Kind::dict)) fail_type("xmlattr needs a mapping");
    std::string made;
    for (std::uint32_t i = 0; i < operand.dict->size; ++i) {
        auto const& [key, value] = operand.dict->entries[i];
        if (value.is_none() || value.is_undefined()) continue;
        auto const name = text_of(key);
        if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
            fail_value("Invalid character in attribute name: " + repr_of(key));
        }
        made += (made.empty() ? "" : " ") + escape_html(name) + "=\"";
        made += (value.is_markup() ? text_of(value) : escape_html(text_of(value))) + "\"";
    }
    if ((space.is_missing() || is_true(space)) && !made.empty()) made.insert(0, 1, ' ');
    return machine.text(made);
}

Value file_size(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"filesizeformat", 0, {"binary"}};
    bool const binary = flag_of(bind(signature, arguments)[0]);
    auto const number = machine.filter(Filter::real, "float", operand, {});
    auto const bytes = number.as_real();
    double const base = binary ? 1024 : 1000;
    if (bytes == 1) return string_value("1 Byte");
    if (bytes < base) {
        return machine.text(std::to_string(static_cast<std::int64_t>(bytes)) + " Bytes");
    }
    double unit = base;
    for (auto const letter : std::string_view{"kMGTPEZY"}) {
        unit *= base;
        if (bytes >= unit && letter != 'Y') continue;
        std::string const prefix =
            binary ? std::string{letter == 'k' ? 'K' : letter} + "iB" : std::string{letter} + "B";
        return machine.text(show_real(base * bytes / unit, 'f', 1, false) + " " + prefix);
    }
    return missing_value();
}

Value escaped(Machine& machine, Value const& operand, bool again) {
    if (operand.is_markup() && !again) return operand;
    return markup_value(machine.text(escape_html(text_of(operand))), true);
}

Value cased(Machine& machine, Filter which, Value const& operand) {
    auto const text = as_text(machine, operand);
    machine.charge(text.size / 16);
    auto const view = text.view();
    auto const made = which == Filter::lower   ? python::lower_text(view)
                      : which == Filter::upper ? python::upper_text(view)
                                               : python::capitalize_text(view);
    return markup_value(machine.text(made), text.is_markup());
}

Value center(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"center", 0, {"width"}};
    auto const width = size_argument(bind(signature, arguments)[0], 80);
    auto const text = as_text(machine, operand);
    return markup_value(center_text(machine, text.view(), width, " "), text.is_markup());
}

Value markup_filter(Machine& machine, Filter which, Value const& operand,
                    Arguments const& arguments) {
    switch (which) {
        case Filter::e:
        case Filter::escape:
            return escaped(machine, operand, false);
        case Filter::forceescape:
            return escaped(machine, operand, true);
        case Filter::safe:
            return markup_value(as_text(machine, operand), true);
        case Filter::striptags:
            return machine.text(strip_tags(text_of(operand)));
        case Filter::urlencode:
            return url_encode(machine, operand);
        case Filter::xmlattr:
            return xml_attributes(machine, operand, arguments);
        default:
            return missing_value();
    }
}

}  // namespace

Value text_filter(Machine& machine, Filter which, Value const& operand,
                  Arguments const& arguments) {
    switch (which) {
        case Filter::tojson:
            return to_json(machine, operand, arguments);
        case Filter::trim:
            return trim(machine, operand, arguments);
        case Filter::string:
            return as_text(machine, operand);
        case Filter::replace:
            return replace(machine, operand, arguments);
        case Filter::indent:
            return indent(machine, operand, arguments);
        case Filter::lower:
        case Filter::upper:
        case Filter::capitalize:
            return cased(machine, which, operand);
        case Filter::title:
            return title(machine, operand);
        case Filter::center:
            return center(machine, operand, arguments);
        case Filter::truncate:
            return truncate(machine, operand, arguments);
        case Filter::wordcount:
            return word_count(machine, operand);
        case Filter::format:
            return format(machine, operand, arguments);
        case Filter::filesizeformat:
            return file_size(machine, operand, arguments);
        default:
            return markup_filter(machine, which, operand, arguments);
    }
}

}  // namespace tinkxx::text::jinja
