#include "text/jinja/convert/html.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/methods/methods.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace tinkxx::text::jinja {
namespace {

constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

std::string_view expect_text(std::string_view method, Value const& value) {
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_string()) {
        fail_type(std::string{method} + "() argument must be str, not " +
                  std::string{type_name(value)});
    }
    return value.view();
}

std::int64_t expect_integer(Value const& value) {
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_integer()) {
        fail_type("'" + std::string{type_name(value)} +
                  "' object cannot be interpreted as an integer");
    }
    return value.as_integer();
}

std::int64_t integer_or(Value const& value, std::int64_t otherwise) {
    return value.is_missing() ? otherwise : expect_integer(value);
}

/// The part of a text that `find`, `count` and `startswith` look at, and where it begins.
struct Part {
    std::string_view text;
    std::size_t offset{0};
    bool empty_range{false};
};

Part part_of(std::string_view text, Value const& start, Value const& end) {
    auto const given = [](Value const& bound) { return !bound.is_missing() && !bound.is_none(); };
    if (!given(start) && !given(end)) return {text};
    auto const size = static_cast<std::int64_t>(count_characters(text));
    auto const place = [&](Value const& bound, std::int64_t otherwise) {
        if (!given(bound)) return otherwise;
        auto index = expect_integer(bound);
        if (index < 0) index = std::max<std::int64_t>(index + size, 0);
        return index;
    };
    auto const from = place(start, 0);
    auto const to = std::min(place(end, size), size);
    if (from > to) return {{}, 0, true};
    auto const begin = offset_of_character(text, static_cast<std::size_t>(from));
    auto const stop =
        begin + offset_of_character(text.substr(begin), static_cast<std::size_t>(to - from));
    return {text.substr(begin, stop - begin), begin};
}

Value call_predicate(Attribute method, std::string_view text) {
    auto const all = [text](auto const& test) {
        for (std::size_t at = 0; at < text.size();) {
            if (!test(next_character(text, at))) return false;
        }
        return !text.empty();
    };
    switch (method) {
        case Attribute::isalpha:
            return boolean_value(all(python::is_alpha));
        case Attribute::isdigit:
            return boolean_value(all(python::is_digit));
        case Attribute::isdecimal:
            return boolean_value(all(python::is_decimal));
        case Attribute::isnumeric:
            return boolean_value(all(python::is_numeric));
        case Attribute::isspace:
            return boolean_value(all(python::is_space));
        case Attribute::isalnum:
            return boolean_value(all(python::is_alphanumeric));
        case Attribute::isascii:
            return boolean_value(is_ascii(text));
        case Attribute::isprintable:
            return boolean_value(text.empty() || all(python::is_printable));
        default: {
            std::size_t at = 0;
            bool const good = !text.empty() && python::starts_identifier(next_character(text, at));
            return boolean_value(
                good && (at == text.size() || [&] {
                    while (at < text.size()) {
                        if (!python::continues_identifier(next_character(text, at))) {
                            return false;
                        }
                    }
                    return true;
                }()));
        }
    }
}

/// `islower`, `isupper` and `istitle`.
bool has_case(Attribute method, std::string_view text) {
    bool cased = false;
    bool within = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const code = next_character(text, at);
        bool const up = python::is_upper(code) || python::is_title(code);
        bool const low = python::is_lower(code);
        if (method == Attribute::islower && up) return false;
        if (method == Attribute::isupper && (low || python::is_title(code))) return false;
        if (method == Attribute::istitle && ((up && within) || (low && !within))) return false;
        within = up || low;
        cased = cased || within;
    }
    return cased;
}

Value call_casing(Machine& machine, Attribute method, std::string_view text) {
    machine.charge(text.size() / 16);
    switch (method) {
        case Attribute::lower:
            return machine.text(python::lower_text(text));
        case Attribute::upper:
            return machine.text(python::upper_text(text));
        case Attribute::title:
            return machine.text(python::title_text(text));
        case Attribute::capitalize:
            return machine.text(python::capitalize_text(text));
        case Attribute::casefold:
            return machine.text(python::fold_text(text));
        default:
            return machine.text(python::swap_case(text));
    }
}

Value call_search(Machine& machine, Attribute method, std::string_view name, std::string_view text,
                  Arguments const& arguments) {
    expect_positional(name, arguments, 1, 3);
    auto const argument = [&](std::uint32_t i) {
        return i < arguments.count ? arguments.positional[i] : missing_value();
    };
    auto const wanted = expect_text(name, argument(0));
    auto const part = part_of(text, argument(1), argument(2));
    machine.charge(part.text.size() / 64);
    bool const last = method == Attribute::rfind || method == Attribute::rindex;
    auto found = part.empty_range ? std::string_view::npos
                 : last           ? part.text.rfind(wanted)
                                  : part.text.find(wanted);
    if (found != std::string_view::npos) {
        return integer_value(
            static_cast<std::int64_t>(count_characters(text.substr(0, part.offset + found))));
    }
    if (method == Attribute::index || method == Attribute::rindex) {
        fail_value("substring not found");
    }
    return integer_value(-1);
}

Value call_count(Machine& machine, std::string_view text, Arguments const& arguments) {
    expect_positional("count", arguments, 1, 3);
    auto const argument = [&](std::uint32_t i) {
        return i < arguments.count ? arguments.positional[i] : missing_value();
    };
    auto const wanted = expect_text("count", argument(0));
    auto const part = part_of(text, argument(1), argument(2));
    if (part.empty_range) return integer_value(0);
    machine.charge(part.text.size() / 64);
    if (wanted.empty()) {
        return integer_value(static_cast<std::int64_t>(count_characters(part.text)) + 1);
    }
    std::int64_t count = 0;
    for (auto at = part.text.find(wanted); at != std::string_view::npos;
         at = part.text.find(wanted, at)) {
        ++count;
        at += wanted.size();
    }
    return integer_value(count);
}

Value call_affix(Attribute method, std::string_view name, std::string_view text,
                 Arguments const& arguments) {
    expect_positional(name, arguments, 1, 3);
    auto const argument = [&](std::uint32_t i) {
        return i < arguments.count ? arguments.positional[i] : missing_value();
    };
    auto const part = part_of(text, argument(1), argument(2));
    auto const matches = [&](Value const& affix) {
        if (affix.is_undefined()) fail_undefined(affix);
        if (!affix.is_string()) {
            fail_type(std::string{name} + " first arg must be str or a tuple of str, not " +
                      std::string{type_name(affix)});
        }
        if (part.empty_range) return false;
        return method == Attribute::startswith ? part.text.starts_with(affix.view())
                                               : part.text.ends_with(affix.view());
    };
    auto const& affixes = arguments.positional[0];
    if (!affixes.is(Kind::tuple)) return boolean_value(matches(affixes));
    return boolean_value(std::any_of(affixes.items, affixes.items + affixes.size, matches));
}

Value text_list(Machine& machine, std::vector<std::string_view> const& parts) {
    machine.charge(parts.size());
    auto* const made = machine.arena().array<Value>(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) made[i] = string_value(parts[i]);
    return list_value(made, parts.size());
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most) {
    std::vector<std::string_view> parts;
    std::size_t at = 0;
    while (at < text.size()) {
        auto begin = at;
        while (at < text.size() && python::is_space(next_character(text, at))) begin = at;
        if (begin == text.size()) break;
        at = begin;
        if (static_cast<std::int64_t>(parts.size()) >= most) {
            parts.push_back(text.substr(begin));
            return parts;
        }
        auto end = at;
        while (at < text.size()) {
            end = at;
            if (python::is_space(next_character(text, at))) break;
            end = at;
        }
        parts.push_back(text.substr(begin, end - begin));
    }
    return parts;
}

std::vector<std::string_view> split_at_space_right(std::string_view text, std::int64_t most) {
    std::vector<std::string_view> parts;
    auto at = text.size();
    auto const space_before = [&](std::size_t end) {
        auto place = previous_character(text, end);
        return python::is_space(next_character(text, place));
    };
    while (true) {
        while (at > 0 && space_before(at)) at = previous_character(text, at);
        if (at == 0) break;
        if (static_cast<std::int64_t>(parts.size()) >= most) {
            parts.push_back(text.substr(0, at));
            break;
        }
        auto const end = at;
        while (at > 0 && !space_before(at)) at = previous_character(text, at);
        parts.push_back(text.substr(at, end - at));
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t most, bool from_right) {
    std::vector<std::string_view> parts;
    while (static_cast<std::int64_t>(parts.size()) < most) {
        auto const at = from_right ? text.rfind(separator) : text.find(separator);
        if (at == std::string_view::npos) break;
        if (from_right) {
            parts.push_back(text.substr(at + separator.size()));
            text = text.substr(0, at);
        } else {
            parts.push_back(text.substr(0, at));
            text = text.substr(at + separator.size());
        }
    }
    parts.push_back(text);
    if (from_right) std::reverse(parts.begin(), parts.end());
    return parts;
}

Value call_split(Machine& machine, Attribute method, std::string_view text,
                 Arguments const& arguments) {
    static constexpr Signature signature{"split", 0, {"sep", "maxsplit"}};
    auto const bound = bind(signature, arguments);
    auto most = integer_or(bound[1], -1);
    if (most < 0) most = no_limit;
    bool const right = method == Attribute::rsplit;
    machine.charge(text.size() / 64);
    if (bound[0].is_missing() || bound[0].is_none()) {
        return text_list(machine,
                         right ? split_at_space_right(text, most) : split_at_space(text, most));
    }
    auto const separator = expect_text("split", bound[0]);
    if (separator.empty()) fail_value("empty separator");
    return text_list(machine, split_at(text, separator, most, right));
}

Value call_partition(Machine& machine, Attribute method, std::string_view name,
                     std::string_view text, Arguments const& arguments) {
    expect_positional(name, arguments, 1, 1);
    auto const separator = expect_text(name, arguments.positional[0]);
    if (separator.empty()) fail_value("empty separator");
    bool const right = method == Attribute::rpartition;
    auto const at = right ? text.rfind(separator) : text.find(separator);
    std::array<Value, 3> parts{string_value(text), string_value({}), string_value({})};
    if (at != std::string_view::npos) {
        parts = {string_value(text.substr(0, at)), string_value(text.substr(at, separator.size())),
                 string_value(text.substr(at + separator.size()))};
    } else if (right) {
        std::swap(parts[0], parts[2]);
    }
    return machine.tuple(parts);
}

Value call_strip(Attribute method, std::string_view name, std::string_view text,
                 Arguments const& arguments) {
    expect_positional(name, arguments, 0, 1);
    auto const characters = arguments.count == 1 ? arguments.positional[0] : missing_value();
    return string_value(
        strip_text(text, characters, method != Attribute::rstrip, method != Attribute::lstrip));
}

Value call_join(Machine& machine, std::string_view separator, Arguments const& arguments) {
    expect_positional("join", arguments, 1, 1);
    if (!is_iterable(arguments.positional[0])) fail_type("can only join an iterable");
    std::string joined;
    std::size_t place = 0;
    Walk walk{arguments.positional[0]};
    Value item;
    while (walk.next(machine, item)) {
        machine.charge(1);
        if (!item.is_string()) {
            fail_type("sequence item " + std::to_string(place) + ": expected str instance, " +
                      std::string{type_name(item)} + " found");
        }
        if (place++ > 0) joined += separator;
        joined += item.view();
        check_text_size(joined.size());
    }
    return machine.text(joined);
}

std::string_view fill_of(Value const& fill) {
    if (fill.is_missing()) return " ";
    auto const text = expect_text("The fill character", fill);
    if (count_characters(text) != 1) {
        fail_type("The fill character must be exactly one character long");
    }
    return text;
}

Value padded(Machine& machine, std::string_view text, std::size_t before, std::size_t after,
             std::string_view fill) {
    check_text_size(text.size() + (before + after) * fill.size());
    std::string made;
    for (std::size_t i = 0; i < before; ++i) made += fill;
    made += text;
    for (std::size_t i = 0; i < after; ++i) made += fill;
    return machine.text(made);
}

Value call_justify(Machine& machine, Attribute method, std::string_view name, std::string_view text,
                   Arguments const& arguments) {
    expect_positional(name, arguments, 1, 2);
    auto const width = expect_integer(arguments.positional[0]);
    auto const fill = fill_of(arguments.count == 2 ? arguments.positional[1] : missing_value());
    if (method == Attribute::center) return center_text(machine, text, width, fill);
    auto const size = static_cast<std::int64_t>(count_characters(text));
    if (width > static_cast<std::int64_t>(longest_text)) check_text_size(longest_text + 1);
    auto const room = static_cast<std::size_t>(std::max<std::int64_t>(width - size, 0));
    return method == Attribute::ljust ? padded(machine, text, 0, room, fill)
                                      : padded(machine, text, room, 0, fill);
}

Value call_zfill(Machine& machine, std::string_view text, Arguments const& arguments) {
    expect_positional("zfill", arguments, 1, 1);
    auto const width = expect_integer(arguments.positional[0]);
    auto const size = static_cast<std::int64_t>(count_characters(text));
    if (width <= size) return string_value(text);
    if (width > static_cast<std::int64_t>(longest_text)) check_text_size(longest_text + 1);
    bool const sign = text.starts_with('-') || text.starts_with('+');
    std::string made{text.substr(0, sign ? 1 : 0)};
    made.append(static_cast<std::size_t>(width - size), '0');
    made += text.substr(sign ? 1 : 0);
    return machine.text(made);
}

Value call_expandtabs(Machine& machine, std::string_view text, Arguments const& arguments) {
    static constexpr Signature signature{"expandtabs", 0, {"tabsize"}};
    auto const size = integer_or(bind(signature, arguments)[0], 8);
    std::string made;
    std::int64_t column = 0;
    for (auto const c : text) {
        if (c == '\t') {
            auto const spaces = size > 0 ? size - column % size : 0;
            check_text_size(made.size() + static_cast<std::size_t>(spaces));
            made.append(static_cast<std::size_t>(spaces), ' ');
            column += spaces;
            continue;
        }
        made += c;
        if (!continues_character(c)) ++column;
        if (c == '\n' || c == '\r') column = 0;
    }
    return machine.text(made);
}

/// A table maps codes of characters to codes, texts or none.
Value call_translate(Machine& machine, std::string_view text, Arguments const& arguments) {
    expect_positional("translate", arguments, 1, 1);
    auto const& table = arguments.positional[0];
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = static_cast<std::int64_t>(next_character(text, at));
        auto const found = machine.item(table, integer_value(code));
        if (found.is_undefined()) {
            made += text.substr(begin, at - begin);
        } else if (found.is_string()) {
            made += found.view();
        } else if (found.is_integer()) {
            auto const becomes = found.as_integer();
            if (becomes < 0 || becomes > 0x10FFFF || (becomes >= 0xD800 && becomes < 0xE000)) {
                fail_value("character mapping must be in range(0x110000)");
            }
            append_utf8(made, static_cast<char32_t>(becomes));
        } else if (!found.is_none()) {
            fail_type("character mapping must return integer, None or str");
        }
        check_text_size(made.size());
    }
    return machine.text(made);
}

Value call_replace(Machine& machine, Value const& owner, Arguments const& arguments) {
    static constexpr Signature signature{"replace", 2, {"old", "new", "count"}};
    auto const bound = bind(signature, arguments);
    auto const before = expect_text("replace", bound[0]);
    auto after = expect_text("replace", bound[1]);
    std::string escaped;
    if (owner.is_markup() && !bound[1].is_markup()) {
        escaped = escape_html(after);
        after = escaped;
    }
    return replace_text(machine, owner.view(), before, after, integer_or(bound[2], -1));
}

Value call_remove(Attribute method, std::string_view name, std::string_view text,
                  Arguments const& arguments) {
    expect_positional(name, arguments, 1, 1);
    auto const affix = expect_text(name, arguments.positional[0]);
    if (method == Attribute::removeprefix) {
        return string_value(text.starts_with(affix) ? text.substr(affix.size()) : text);
    }
    return string_value(text.ends_with(affix) ? text.substr(0, text.size() - affix.size()) : text);
}

Value call_splitlines(Machine& machine, std::string_view text, Arguments const& arguments) {
    static constexpr Signature signature{"splitlines", 0, {"keepends"}};
    auto const keep = bind(signature, arguments)[0];
    return text_list(machine, split_lines(text, !keep.is_missing() && is_true(keep)));
}

Value call_editing(Machine& machine, Value const& owner, Attribute method, std::string_view name,
                   Arguments const& arguments) {
    auto const text = owner.view();
    switch (method) {
        case Attribute::replace:
            return call_replace(machine, owner, arguments);
        case Attribute::join:
            return call_join(machine, text, arguments);
        case Attribute::center:
        case Attribute::ljust:
        case Attribute::rjust:
            return call_justify(machine, method, name, text, arguments);
        case Attribute::zfill:
            return call_zfill(machine, text, arguments);
        case Attribute::expandtabs:
            return call_expandtabs(machine, text, arguments);
        case Attribute::removeprefix:
        case Attribute::removesuffix:
            return call_remove(method, name, text, arguments);
        case Attribute::format:
            return format_braces(machine, owner, arguments);
        case Attribute::format_map: {
            expect_positional(name, arguments, 1, 1);
            return format_braces(machine, owner, arguments.positional[0]);
        }
        case Attribute::translate:
            return call_translate(machine, text, arguments);
        case Attribute::striptags:
            return machine.text(strip_tags(text));
        case Attribute::unescape:
            return machine.text(unescape_html(text));
        default:
            fail_type("str." + std::string{name} + "() is not supported in chat templates");
    }
}

}  // namespace

std::string_view strip_text(std::string_view text, Value const& characters, bool left, bool right) {
    bool const space = characters.is_missing() || characters.is_none();
    if (characters.is_undefined()) fail_undefined(characters);
    if (!space && !characters.is_string()) fail_type("strip arg must be None or str");
    auto const strips = [&](std::size_t at) {
        auto end = at;
        auto const code = next_character(text, end);
        return space ? python::is_space(code)
                     : characters.view().find(text.substr(at, end - at)) != std::string_view::npos;
    };
    while (left && !text.empty() && strips(0)) text.remove_prefix(character_size(text.front()));
    while (right && !text.empty()) {
        auto const last = previous_character(text, text.size());
        if (!strips(last)) break;
        text = text.substr(0, last);
    }
    return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
    std::vector<std::string_view> lines;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = at;
        auto const code = next_character(text, at);
        if (!python::is_line_end(code)) continue;
        if (code == U'\r' && at < text.size() && text[at] == '\n') ++at;
        lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
        begin = at;
    }
    if (begin < text.size()) lines.push_back(text.substr(begin));
    return lines;
}

Value replace_text(Machine& machine, std::string_view text, std::string_view before,
                   std::string_view after, std::int64_t count) {
    machine.charge(text.size() / 64);
    auto left = count < 0 ? no_limit : count;
    std::string made;
    if (before.empty()) {
        for (std::size_t at = 0; at <= text.size();) {
            if (left-- > 0) made += after;
            auto const size = at < text.size() ? character_size(text[at]) : 1;
            if (at < text.size()) made += text.substr(at, size);
            at += size;
            check_text_size(made.size());
        }
        return machine.text(made);
    }
    std::size_t begin = 0;
    for (auto at = text.find(before); at != std::string_view::npos && left > 0;
         at = text.find(before, begin)) {
        made += text.substr(begin, at - begin);
        made += after;
        begin = at + before.size();
        --left;
        check_text_size(made.size());
    }
    if (begin == 0) return string_value(text);
    made += text.substr(begin);
    return machine.text(made);
}

Value center_text(Machine& machine, std::string_view text, std::int64_t width,
                  std::string_view fill) {
    auto const size = static_cast<std::int64_t>(count_characters(text));
    if (width <= size) return string_value(text);
    if (width > static_cast<std::int64_t>(longest_text)) check_text_size(longest_text + 1);
    auto const room = width - size;
    // As Python: the odd one goes to the left if the width is odd too.
    auto const left = room / 2 + (room & width & 1);
    return padded(machine, text, static_cast<std::size_t>(left),
                  static_cast<std::size_t>(room - left), fill);
}

namespace {

Value call_plain_method(Machine& machine, Value const& owner, Attribute method,
                        std::string_view name, Arguments const& arguments) {
    auto const text = owner.view();
    switch (method) {
        case Attribute::isalpha:
        case Attribute::isalnum:
        case Attribute::isascii:
        case Attribute::isdecimal:
        case Attribute::isdigit:
        case Attribute::isidentifier:
        case Attribute::isnumeric:
        case Attribute::isprintable:
        case Attribute::isspace:
            expect_positional(name, arguments, 0, 0);
            return call_predicate(method, text);
        case Attribute::islower:
        case Attribute::isupper:
        case Attribute::istitle:
            expect_positional(name, arguments, 0, 0);
            return boolean_value(has_case(method, text));
        case Attribute::lower:
        case Attribute::upper:
        case Attribute::title:
        case Attribute::capitalize:
        case Attribute::casefold:
        case Attribute::swapcase:
            expect_positional(name, arguments, 0, 0);
            return call_casing(machine, method, text);
        case Attribute::find:
        case Attribute::rfind:
        case Attribute::index:
        case Attribute::rindex:
            return call_search(machine, method, name, text, arguments);
        case Attribute::count:
            return call_count(machine, text, arguments);
        case Attribute::startswith:
        case Attribute::endswith:
            return call_affix(method, name, text, arguments);
        case Attribute::split:
        case Attribute::rsplit:
            return call_split(machine, method, text, arguments);
        case Attribute::splitlines:
            return call_splitlines(machine, text, arguments);
        case Attribute::partition:
        case Attribute::rpartition:
            return call_partition(machine, method, name, text, arguments);
        case Attribute::strip:
        case Attribute::lstrip:
        case Attribute::rstrip:
            return call_strip(method, name, text, arguments);
        default:
            return call_editing(machine, owner, method, name, arguments);
    }
}

}  // namespace

Value call_text_method(Machine& machine, Value const& owner, Attribute method,
                       std::string_view name, Arguments const& arguments) {
    auto made = call_plain_method(machine, owner, method, name, arguments);
    if (!owner.is_markup()) return made;
    // Methods of markup give markup.
    if (made.is_string() && method != Attribute::striptags && method != Attribute::unescape) {
        return markup_value(made, true);
    }
    if (!made.is_sequence()) return made;
    auto* const items = machine.arena().array<Value>(made.size);
    for (std::uint32_t i = 0; i < made.size; ++i) items[i] = markup_value(made.items[i], true);
    made.items = items;
    return made;
}

}  // namespace tinkxx::text::jinja
