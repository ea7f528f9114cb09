#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/jinja/values/budget.hpp"

#include <charconv>

namespace tinkxx::text::jinja {
namespace {

bool is_number(std::string_view text) noexcept {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::int64_t number_of(std::string_view text) {
    std::int64_t number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        fail_value("Too many decimal digits in format string");
    }
    return number;
}

/// Python's `str.format`, whose fields go through the sandbox.
class BraceFormat {
public:
    BraceFormat(Machine& machine, Arguments const& arguments, Value const& mapping, bool markup)
        : machine_{machine}, arguments_{arguments}, mapping_{mapping}, markup_{markup} {}

    std::string run(std::string_view format, int depth) {
        if (depth > 2) fail_value("Max string recursion exceeded");
        std::string made;
        for (std::size_t at = 0; at < format.size(); ++at) {
            auto const c = format[at];
            bool const twice = at + 1 < format.size() && format[at + 1] == c;
            if (c == '}' && !twice) fail_value("Single '}' encountered in format string");
            if ((c == '{' || c == '}') && twice) {
                made += c;
                ++at;
            } else if (c == '{') {
                if (at + 1 == format.size()) {
                    fail_value("Single '{' encountered in format string");
                }
                auto const end = closing(format, at + 1);
                made += field(format.substr(at + 1, end - at - 1), depth);
                at = end;
            } else {
                made += c;
            }
            check_text_size(made.size());
        }
        return made;
    }

private:
    static std::size_t closing(std::string_view format, std::size_t at) {
        int open = 1;
        bool in_index = false;
        bool in_spec = false;
        for (; at < format.size(); ++at) {
            auto const c = format[at];
            if (c == '[' && !in_spec) in_index = true;
            if (c == ']') in_index = false;
            if (in_index) continue;
            if (c == ':' || c == '!') in_spec = true;
            if (c == '{') ++open;
            if (c == '}' && --open == 0) return at;
        }
        fail_value("expected '}' before end of string");
    }

    /// Where the name of a field ends: at a conversion or a specification.
    static std::size_t name_end(std::string_view field) {
        bool in_index = false;
        for (std::size_t at = 0; at < field.size(); ++at) {
            if (field[at] == '[') in_index = true;
            if (field[at] == ']') in_index = false;
            if (!in_index && (field[at] == ':' || field[at] == '!')) return at;
        }
        return field.size();
    }

    std::string field(std::string_view field, int depth) {
        machine_.charge(1);
        auto const end = name_end(field);
        auto const name = field.substr(0, end);
        auto rest = field.substr(end);
        char conversion = 0;
        if (rest.starts_with('!')) {
            if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
                fail_value("expected ':' after conversion specifier");
            }
            conversion = rest[1];
            rest.remove_prefix(2);
        }
        if (rest.starts_with(':')) rest.remove_prefix(1);
        auto value = lookup(name);
        if (conversion != 0) value = converted(value, conversion);
        auto const spec = run(rest, depth + 1);
        auto const text = format_value(value, spec);
        return markup_ && !value.is_markup() ? escape_html(text) : text;
    }

    Value converted(Value const& value, char conversion) {
        if (conversion == 's') return machine_.text(text_of(value));
        if (conversion == 'r') return machine_.text(repr_of(value));
        if (conversion == 'a') return machine_.text(ascii_of(value));
        fail_value("Unknown conversion specifier " + std::string{conversion});
    }

    Value lookup(std::string_view name) {
        auto const first_end = std::min(name.find_first_of(".["), name.size());
        auto const first = name.substr(0, first_end);
        auto value = first_value(first);
        name.remove_prefix(first_end);
        while (!name.empty()) {
            machine_.charge(1);
            if (name.front() == '.') {
                auto const end = std::min(name.find_first_of(".[", 1), name.size());
                auto const attribute = name.substr(1, end - 1);
                if (attribute.empty()) fail_value("Empty attribute in format string");
                value = machine_.attribute(value, string_value(attribute), attribute_of(attribute));
                name.remove_prefix(end);
            } else if (name.front() == '[') {
                auto const end = name.find(']');
                if (end == std::string_view::npos) fail_value("Missing ']' in format string");
                auto const index = name.substr(1, end - 1);
                if (index.empty()) fail_value("Empty attribute in format string");
                value = machine_.item(value, is_number(index) ? integer_value(number_of(index))
                                                              : string_value(index));
                name.remove_prefix(end + 1);
            } else {
                fail_value("Only '.' or '[' may follow ']' in format field specifier");
            }
        }
        return value;
    }

    Value first_value(std::string_view name) {
        if (name.empty() || is_number(name)) {
            bool const automatic = name.empty();
            if (numbering_ != Numbering::none &&
                (numbering_ == Numbering::automatic) != automatic) {
                fail_value(automatic ? "cannot switch from manual field specification to automatic "
                                       "field numbering"
                                     : "cannot switch from automatic field numbering to manual "
                                       "field specification");
            }
            numbering_ = automatic ? Numbering::automatic : Numbering::manual;
            auto const place = automatic ? next_++ : number_of(name);
            if (place >= arguments_.count) {
                fail_value("Replacement index " + std::to_string(place) +
                           " out of range for positional args tuple");
            }
            return arguments_.positional[place];
        }
        if (mapping_.is(Kind::dict)) {
            if (auto const* const found = find(*mapping_.dict, name)) return *found;
        } else if (auto const* const found = arguments_.keyword(name)) {
            return *found;
        }
        fail_value(repr_of(string_value(name)));
    }

    enum class Numbering : std::uint8_t { none, automatic, manual };

    Machine& machine_;
    Arguments const& arguments_;
    Value mapping_;
    bool markup_;
    Numbering numbering_{Numbering::none};
    std::int64_t next_{0};
};

}  // namespace

Value format_braces(Machine& machine, Value const& text, Arguments const& arguments) {
    BraceFormat format{machine, arguments, missing_value(), text.is_markup()};
    return machine.text(format.run(text.view(), 0));
}

Value format_braces(Machine& machine, Value const& text, Value const& mapping) {
    if (!mapping.is(Kind::dict)) fail_type("format_map() needs a mapping");
    Arguments const none;
    BraceFormat format{machine, none, mapping, text.is_markup()};
    return machine.text(format.run(text.view(), 0));
}

}  // namespace tinkxx::text::jinja
