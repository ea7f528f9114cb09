#pragma once

#include "text/jinja/values/arena.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tinkxx::text::jinja {

class Iteration;
struct DictData;
struct MacroData;
struct LoopData;
struct NamespaceData;
struct CyclerData;
struct JoinerData;
struct MethodData;
struct RangeData;
struct UndefinedData;
struct Value;

/// The types that a template can meet.
enum class Kind : std::uint8_t {
    missing,    ///< no value at all: a variable that is not set, an argument that is not given
    undefined,  ///< Jinja's undefined, with what it is that is not there
    none,
    boolean,
    integer,
    big_integer,  ///< an integer of the input that needs more than 64 bits, as its digits
    real,
    string,
    tuple,
    list,
    dict,
    dict_view,  ///< what `keys()`, `values()` and `items()` of a dict give
    range,
    generator,  ///< what can be iterated over once
    name_space,
    macro,
    loop,
    function,
    method,  ///< of some value, e.g. `text.strip` without a call
    cycler,
    joiner,
};

enum class ViewOf : std::uint8_t { keys, values, items };

/// What a template computes with: 16 bytes, passed around by value. Whatever it points to is
/// immutable and lives in an `Arena`, in the input or in the compiled template.
struct Value {
    Kind kind;
    /// Kind `boolean`: the value. `string`: whether it is markup. `dict_view`: a `ViewOf`.
    std::uint8_t flag;
    /// Kind `function`: which one.
    std::uint16_t number;
    /// Kinds `string` and `big_integer`: bytes. `tuple`, `list`: elements.
    std::uint32_t size;
    union {
        std::int64_t integer;
        double real;
        char const* text;
        Value const* items;
        DictData const* dict;
        RangeData const* range;
        Iteration* generator;
        NamespaceData* name_space;
        MacroData const* macro;
        LoopData* loop;
        MethodData const* method;
        CyclerData* cycler;
        JoinerData* joiner;
        UndefinedData const* undefined;
    };

    [[nodiscard]] bool is(Kind other) const noexcept { return kind == other; }
    [[nodiscard]] bool is_string() const noexcept { return kind == Kind::string; }
    [[nodiscard]] bool is_undefined() const noexcept { return kind == Kind::undefined; }
    [[nodiscard]] bool is_missing() const noexcept { return kind == Kind::missing; }
    [[nodiscard]] bool is_none() const noexcept { return kind == Kind::none; }
    /// A list or a tuple.
    [[nodiscard]] bool is_sequence() const noexcept {
        return kind == Kind::list || kind == Kind::tuple;
    }
    /// An integer of 64 bits, or a boolean, which Python takes for one.
    [[nodiscard]] bool is_integer() const noexcept {
        return kind == Kind::integer || kind == Kind::boolean;
    }
    [[nodiscard]] bool is_number() const noexcept { return is_integer() || kind == Kind::real; }
    [[nodiscard]] bool is_markup() const noexcept { return kind == Kind::string && flag != 0; }

    [[nodiscard]] std::string_view view() const noexcept { return {text, size}; }
    [[nodiscard]] std::int64_t as_integer() const noexcept {
        return kind == Kind::boolean ? flag : integer;
    }
    [[nodiscard]] double as_real() const noexcept {
        return kind == Kind::real ? real : static_cast<double>(as_integer());
    }
};
static_assert(sizeof(Value) == 16 && std::is_trivially_copyable_v<Value>);

[[nodiscard]] inline Value plain_value(Kind kind) noexcept {
    Value value;
    value.kind = kind;
    value.flag = 0;
    value.number = 0;
    value.size = 0;
    value.integer = 0;
    return value;
}
[[nodiscard]] inline Value missing_value() noexcept { return plain_value(Kind::missing); }
[[nodiscard]] inline Value none_value() noexcept { return plain_value(Kind::none); }
[[nodiscard]] inline Value boolean_value(bool truth) noexcept {
    auto value = plain_value(Kind::boolean);
    value.flag = truth ? 1 : 0;
    return value;
}
[[nodiscard]] inline Value integer_value(std::int64_t number) noexcept {
    auto value = plain_value(Kind::integer);
    value.integer = number;
    return value;
}
[[nodiscard]] inline Value real_value(double number) noexcept {
    auto value = plain_value(Kind::real);
    value.real = number;
    return value;
}

/// The longest text and list that a value can hold.
inline constexpr std::size_t max_size = 0xFFFFFFFFU;
inline void check_size(std::size_t size) {
    if (size > max_size) fail_limit("a text or list has more than 4294967295 bytes or elements");
}

/// Of a text that lives long enough.
[[nodiscard]] inline Value string_value(std::string_view text) {
    check_size(text.size());
    auto value = plain_value(Kind::string);
    value.size = static_cast<std::uint32_t>(text.size());
    value.text = text.data();
    return value;
}
[[nodiscard]] inline Value markup_value(Value text, bool markup) noexcept {
    text.flag = markup ? 1 : 0;
    return text;
}
[[nodiscard]] inline Value sequence_value(Kind kind, Value const* items, std::size_t size) {
    check_size(size);
    auto value = plain_value(kind);
    value.size = static_cast<std::uint32_t>(size);
    value.items = items;
    return value;
}
[[nodiscard]] inline Value list_value(Value const* items, std::size_t size) {
    return sequence_value(Kind::list, items, size);
}

/// A dict: pairs in the order in which they were added. Does not change once it is made.
struct DictData {
    struct Entry {
        Value key;
        Value value;
    };
    Entry const* entries{nullptr};
    std::uint32_t size{0};
    /// Places of the entries, in the order of their keys; null for a dict of few.
    std::uint32_t const* sorted{nullptr};
};

struct RangeData {
    std::int64_t start{0};
    std::int64_t step{1};
    std::int64_t size{0};
    std::int64_t stop{0};
};

/// What is not there, for the message of whoever uses it.
struct UndefinedData {
    enum class Reason : std::uint8_t { name, attribute, element, text, unsafe };
    Reason reason{Reason::name};
    Value owner{};            ///< of an attribute or element
    Value name{};             ///< of the variable, attribute or element
    std::string_view text{};  ///< said instead
};

/// Jinja's namespace: the one thing whose attributes a template may set.
struct NamespaceData {
    struct Attribute {
        Value name;
        Value value;
        Attribute* next;
    };
    Attribute* first{nullptr};
    Attribute* last{nullptr};
};

struct CyclerData {
    Value const* items{nullptr};
    std::uint32_t size{0};
    std::uint32_t position{0};
};

struct JoinerData {
    Value separator{};
    bool used{false};
};

struct MethodData {
    Value owner{};
    std::uint16_t method{0};
    std::string_view name{};
};

/// Python's `bool(value)`.
[[nodiscard]] bool is_true(Value const& value);
/// The name of the type as Python has it, e.g. "dict".
[[nodiscard]] std::string_view type_name(Value const& value) noexcept;

/// Python's `==`; `depth` is how many containers were entered so far.
[[nodiscard]] bool equal(Value const& left, Value const& right, int depth = 0);
/// Whether it can be the key of a dict.
[[nodiscard]] bool is_hashable(Value const& value, int depth = 0);

[[nodiscard]] Value dict_value(DictData const* dict) noexcept;
/// Null if there is none; any hashable value may be asked for.
[[nodiscard]] Value const* find(DictData const& dict, Value const& key);
[[nodiscard]] Value const* find(DictData const& dict, std::string_view key);
/// Makes a dict of entries in an arena; of those with equal keys, the last value stays, in the
/// place of the first. The entries are used, not copied.
[[nodiscard]] Value make_dict(Arena& arena, DictData::Entry* entries, std::size_t size);

[[nodiscard]] Value const* find(NamespaceData const& name_space, std::string_view name) noexcept;
void assign(Arena& arena, NamespaceData& name_space, Value const& name, Value const& value);

[[nodiscard]] Value undefined_value(Arena& arena, UndefinedData const& data);
/// A copy of the text in the arena.
[[nodiscard]] Value text_value(Arena& arena, std::string_view text);

}  // namespace tinkxx::text::jinja
