#include "text/jinja/values/names.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace tinkxx::text::jinja {
namespace {

// In the order of the enumerations, which is that of the alphabet.
constexpr std::string_view attribute_names[] = {
    "append",
    "arguments",
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "caller",
    "capitalize",
    "casefold",
    "catch_kwargs",
    "catch_varargs",
    "center",
    "changed",
    "clear",
    "conjugate",
    "copy",
    "count",
    "current",
    "cycle",
    "denominator",
    "depth",
    "depth0",
    "difference_update",
    "encode",
    "endswith",
    "expandtabs",
    "explicit_caller",
    "extend",
    "find",
    "first",
    "format",
    "format_map",
    "fromkeys",
    "get",
    "grouper",
    "imag",
    "index",
    "index0",
    "insert",
    "is_integer",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isdisjoint",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "items",
    "join",
    "keys",
    "last",
    "length",
    "list",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "mapping",
    "name",
    "next",
    "nextitem",
    "numerator",
    "partition",
    "pop",
    "popitem",
    "pos",
    "previtem",
    "real",
    "remove",
    "removeprefix",
    "removesuffix",
    "replace",
    "reset",
    "reverse",
    "revindex",
    "revindex0",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "sep",
    "setdefault",
    "sort",
    "split",
    "splitlines",
    "start",
    "startswith",
    "step",
    "stop",
    "strip",
    "striptags",
    "swapcase",
    "title",
    "translate",
    "unescape",
    "update",
    "upper",
    "used",
    "values",
    "zfill",
};
constexpr std::string_view filter_names[] = {
    "abs",    "attr",       "batch",       "capitalize", "center",   "count",
    "d",      "default",    "dictsort",    "e",          "escape",   "filesizeformat",
    "first",  "float",      "forceescape", "format",     "groupby",  "indent",
    "int",    "items",      "join",        "last",       "length",   "list",
    "lower",  "map",        "max",         "min",        "pprint",   "random",
    "reject", "rejectattr", "replace",     "reverse",    "round",    "safe",
    "select", "selectattr", "slice",       "sort",       "string",   "striptags",
    "sum",    "title",      "tojson",      "trim",       "truncate", "unique",
    "upper",  "urlencode",  "urlize",      "wordcount",  "wordwrap", "xmlattr",
};
constexpr std::string_view test_names[] = {
    "!=",       "<",        "<=",          "==",       ">",           ">=",       "boolean",
    "callable", "defined",  "divisibleby", "eq",       "equalto",     "escaped",  "even",
    "false",    "filter",   "float",       "ge",       "greaterthan", "gt",       "in",
    "integer",  "iterable", "le",          "lessthan", "lower",       "lt",       "mapping",
    "ne",       "none",     "number",      "odd",      "sameas",      "sequence", "string",
    "test",     "true",     "undefined",   "upper",
};
constexpr std::pair<std::string_view, Function> globals[] = {
    {"range", Function::range},
    {"dict", Function::dict},
    {"lipsum", Function::lipsum},
    {"cycler", Function::cycler},
    {"joiner", Function::joiner},
    {"namespace", Function::name_space},
    {"raise_exception", Function::raise_exception},
    {"strftime_now", Function::strftime_now},
};
static_assert(std::ranges::is_sorted(attribute_names));
static_assert(std::ranges::is_sorted(filter_names));
static_assert(std::ranges::is_sorted(test_names));

/// One more than its place among the names; 0 if it is not there.
std::uint16_t place_of(std::span<std::string_view const> names, std::string_view name) noexcept {
    auto const found = std::lower_bound(names.begin(), names.end(), name);
    if (found == names.end() || *found != name) return 0;
    return static_cast<std::uint16_t>(found - names.begin() + 1);
}

}  // namespace

Attribute attribute_of(std::string_view name) noexcept {
    return static_cast<Attribute>(place_of(attribute_names, name));
}
Filter filter_of(std::string_view name) noexcept {
    return static_cast<Filter>(place_of(filter_names, name));
}
Test test_of(std::string_view name) noexcept {
    return static_cast<Test>(place_of(test_names, name));
}

std::string_view function_name(std::uint16_t function) noexcept {
    for (auto const& [name, which] : globals) {
        if (static_cast<std::uint16_t>(which) == function) return name;
    }
    return "fromkeys";
}

Value global_of(std::string_view name) noexcept {
    for (auto const& [one, which] : globals) {
        if (one != name) continue;
        auto value = plain_value(Kind::function);
        value.number = static_cast<std::uint16_t>(which);
        return value;
    }
    return missing_value();
}

}  // namespace tinkxx::text::jinja
