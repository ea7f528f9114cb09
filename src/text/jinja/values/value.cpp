#include "text/jinja/values/value.hpp"

#include "text/jinja/values/budget.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace tinkxx::text::jinja {
namespace {

/// Up to here a dict is searched from its beginning.
constexpr std::uint32_t few_entries = 12;

bool equal_numbers(Value const& left, Value const& right) {
    if (left.kind == Kind::real || right.kind == Kind::real) {
        return left.as_real() == right.as_real();
    }
    return left.as_integer() == right.as_integer();
}

bool equal_dicts(DictData const& left, DictData const& right, int depth) {
    if (&left == &right) return true;
    if (left.size != right.size) return false;
    for (std::uint32_t i = 0; i < left.size; ++i) {
        auto const* const other = find(right, left.entries[i].key);
        if (other == nullptr || !equal(left.entries[i].value, *other, depth)) return false;
    }
    return true;
}

bool equal_ranges(RangeData const& left, RangeData const& right) {
    if (left.size != right.size) return false;
    if (left.size == 0) return true;
    return left.start == right.start && (left.size == 1 || left.step == right.step);
}

/// A total order of keys in which equal keys are neighbours, whatever their types.
int key_class(Value const& key) noexcept {
    if (key.is_number()) return 1;
    return static_cast<int>(key.kind) + 2;
}

int compare_keys(Value const& left, Value const& right, int depth = 0);

int compare_numbers(Value const& left, Value const& right) noexcept {
    if (left.kind != Kind::real && right.kind != Kind::real) {
        auto const a = left.as_integer();
        auto const b = right.as_integer();
        return a < b ? -1 : (a > b ? 1 : 0);
    }
    auto const a = left.as_real();
    auto const b = right.as_real();
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? (std::isnan(b) ? 0 : 1) : -1;
    return a < b ? -1 : (a > b ? 1 : 0);
}

int compare_key_items(Value const& left, Value const& right, int depth) {
    auto const size = std::min(left.size, right.size);
    for (std::uint32_t i = 0; i < size; ++i) {
        if (auto const order = compare_keys(left.items[i], right.items[i], depth); order != 0) {
            return order;
        }
    }
    return left.size < right.size ? -1 : (left.size > right.size ? 1 : 0);
}

int compare_keys(Value const& left, Value const& right, int depth) {
    if (depth > 0) check_depth(depth);
    auto const left_class = key_class(left);
    auto const right_class = key_class(right);
    if (left_class != right_class) return left_class < right_class ? -1 : 1;
    switch (left.kind) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::real:
            return compare_numbers(left, right);
        case Kind::string:
        case Kind::big_integer:
            if (left.size != right.size) return left.size < right.size ? -1 : 1;
            return left.size == 0 ? 0 : std::memcmp(left.text, right.text, left.size);
        case Kind::tuple:
            return compare_key_items(left, right, depth + 1);
        case Kind::none:
        case Kind::undefined:
            return 0;
        default:
            return left.integer < right.integer ? -1 : (left.integer > right.integer ? 1 : 0);
    }
}

bool same_text(Value const& key, std::string_view text) noexcept {
    return key.kind == Kind::string && key.size == text.size() &&
           (text.empty() || std::memcmp(key.text, text.data(), text.size()) == 0);
}

Value const* find_sorted(DictData const& dict, Value const& key) {
    auto const* const end = dict.sorted + dict.size;
    auto const* const place =
        std::lower_bound(dict.sorted, end, key, [&](std::uint32_t at, Value const& wanted) {
            return compare_keys(dict.entries[at].key, wanted) < 0;
        });
    if (place == end || compare_keys(dict.entries[*place].key, key) != 0) return nullptr;
    return &dict.entries[*place].value;
}

/// Puts the last value of each key in the place of the first; gives the number of those that stay.
std::size_t drop_doubles(DictData::Entry* entries, std::uint32_t* sorted, std::size_t size) {
    std::vector<bool> dropped(size, false);
    for (std::size_t i = 0; i + 1 < size; ++i) {
        if (compare_keys(entries[sorted[i]].key, entries[sorted[i + 1]].key) != 0) continue;
        // Equal keys stand in the order of their places.
        entries[sorted[i]].value = entries[sorted[i + 1]].value;
        dropped[sorted[i + 1]] = true;
        std::swap(sorted[i], sorted[i + 1]);
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (!dropped[i]) entries[left++] = entries[i];
    }
    return left;
}

void sort_places(DictData::Entry const* entries, std::uint32_t* sorted, std::size_t size) {
    std::iota(sorted, sorted + size, std::uint32_t{0});
    // (Stable, since that stays within bounds even for numbers whose order is not transitive.)
    std::stable_sort(sorted, sorted + size, [&](std::uint32_t left, std::uint32_t right) {
        auto const order = compare_keys(entries[left].key, entries[right].key);
        return order != 0 ? order < 0 : left < right;
    });
}

std::size_t drop_few_doubles(DictData::Entry* entries, std::size_t size) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < size; ++i) {
        std::size_t same = 0;
        while (same < left && compare_keys(entries[same].key, entries[i].key) != 0) ++same;
        if (same < left) {
            entries[same].value = entries[i].value;
        } else {
            entries[left++] = entries[i];
        }
    }
    return left;
}

}  // namespace

bool is_true(Value const& value) {
    switch (value.kind) {
        case Kind::missing:
        case Kind::undefined:
        case Kind::none:
            return false;
        case Kind::boolean:
            return value.flag != 0;
        case Kind::integer:
            return value.integer != 0;
        case Kind::real:
            return value.real != 0;
        case Kind::string:
        case Kind::tuple:
        case Kind::list:
            return value.size != 0;
        case Kind::dict:
        case Kind::dict_view:
            return value.dict->size != 0;
        case Kind::range:
            return value.range->size != 0;
        default:
            return true;
    }
}

std::string_view type_name(Value const& value) noexcept {
    switch (value.kind) {
        case Kind::missing:
        case Kind::undefined:
            return "Undefined";
        case Kind::none:
            return "NoneType";
        case Kind::boolean:
            return "bool";
        case Kind::integer:
        case Kind::big_integer:
            return "int";
        case Kind::real:
            return "float";
        case Kind::string:
            return value.is_markup() ? "Markup" : "str";
        case Kind::tuple:
            return "tuple";
        case Kind::list:
            return "list";
        case Kind::dict:
            return "dict";
        case Kind::dict_view: {
            constexpr std::string_view names[] = {"dict_keys", "dict_values", "dict_items"};
            return names[value.flag];
        }
        case Kind::range:
            return "range";
        case Kind::generator:
            return "generator";
        case Kind::name_space:
            return "Namespace";
        case Kind::macro:
            return "Macro";
        case Kind::loop:
            return "LoopContext";
        case Kind::function:
            return "function";
        case Kind::method:
            return "builtin_function_or_method";
        case Kind::cycler:
            return "Cycler";
        case Kind::joiner:
            return "Joiner";
    }
    return "object";
}

bool equal(Value const& left, Value const& right, int depth) {
    if (left.is_number() && right.is_number()) return equal_numbers(left, right);
    if (left.kind != right.kind) return false;
    switch (left.kind) {
        case Kind::string:
        case Kind::big_integer:
            return left.size == right.size &&
                   (left.size == 0 || std::memcmp(left.text, right.text, left.size) == 0);
        case Kind::none:
        case Kind::undefined:
            return true;
        case Kind::tuple:
        case Kind::list:
            check_depth(depth);
            return left.size == right.size &&
                   (left.items == right.items ||
                    std::equal(left.items, left.items + left.size, right.items,
                               [depth](Value const& a, Value const& b) {
                                   return equal(a, b, depth + 1);
                               }));
        case Kind::dict:
            check_depth(depth);
            return equal_dicts(*left.dict, *right.dict, depth + 1);
        case Kind::range:
            return equal_ranges(*left.range, *right.range);
        case Kind::dict_view:
            return left.flag == right.flag && left.dict == right.dict;
        case Kind::function:
            return left.number == right.number;
        default:
            return left.integer == right.integer;  // the same object
    }
}

bool is_hashable(Value const& value, int depth) {
    switch (value.kind) {
        case Kind::list:
        case Kind::dict:
            return false;
        case Kind::dict_view:
            return value.flag == static_cast<std::uint8_t>(ViewOf::values);
        case Kind::tuple:
            check_depth(depth);
            return std::all_of(value.items, value.items + value.size,
                               [depth](Value const& item) { return is_hashable(item, depth + 1); });
        default:
            return true;
    }
}

Value dict_value(DictData const* dict) noexcept {
    auto value = plain_value(Kind::dict);
    value.dict = dict;
    return value;
}

Value const* find(DictData const& dict, Value const& key) {
    if (key.is_string()) return find(dict, key.view());
    if (dict.sorted != nullptr) return find_sorted(dict, key);
    for (std::uint32_t i = 0; i < dict.size; ++i) {
        if (compare_keys(dict.entries[i].key, key) == 0) return &dict.entries[i].value;
    }
    return nullptr;
}

Value const* find(DictData const& dict, std::string_view key) {
    if (dict.sorted != nullptr) return find_sorted(dict, string_value(key));
    for (std::uint32_t i = 0; i < dict.size; ++i) {
        if (same_text(dict.entries[i].key, key)) return &dict.entries[i].value;
    }
    return nullptr;
}

Value make_dict(Arena& arena, DictData::Entry* entries, std::size_t size) {
    check_size(size);
    auto* const dict = arena.make<DictData>();
    dict->entries = entries;
    if (size <= few_entries) {
        dict->size = static_cast<std::uint32_t>(drop_few_doubles(entries, size));
        return dict_value(dict);
    }
    auto* const sorted = arena.array<std::uint32_t>(size);
    sort_places(entries, sorted, size);
    auto const left = drop_doubles(entries, sorted, size);
    if (left != size) sort_places(entries, sorted, left);
    dict->size = static_cast<std::uint32_t>(left);
    dict->sorted = sorted;
    return dict_value(dict);
}

Value const* find(NamespaceData const& name_space, std::string_view name) noexcept {
    for (auto const* one = name_space.first; one != nullptr; one = one->next) {
        if (same_text(one->name, name)) return &one->value;
    }
    return nullptr;
}

void assign(Arena& arena, NamespaceData& name_space, Value const& name, Value const& value) {
    for (auto* one = name_space.first; one != nullptr; one = one->next) {
        if (!equal(one->name, name)) continue;
        one->value = value;
        return;
    }
    auto* const added = arena.make<NamespaceData::Attribute>(name, value, nullptr);
    (name_space.last != nullptr ? name_space.last->next : name_space.first) = added;
    name_space.last = added;
}

Value undefined_value(Arena& arena, UndefinedData const& data) {
    auto value = plain_value(Kind::undefined);
    value.undefined = arena.make<UndefinedData>(data);
    return value;
}

Value text_value(Arena& arena, std::string_view text) { return string_value(arena.copy(text)); }

}  // namespace tinkxx::text::jinja
