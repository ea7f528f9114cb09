#include "text/jinja/convert/numbers.hpp"
#include "text/jinja/convert/order.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/filters/filters.hpp"
#include "text/jinja/methods/methods.hpp"
#include "text/jinja/operators/format.hpp"
#include "text/jinja/operators/operators.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace tinkxx::text::jinja {
namespace {

bool given_and_true(Value const& value) { return !value.is_missing() && is_true(value); }

Value default_filter(Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"default", 0, {"default_value", "boolean"}};
    auto const bound = bind(signature, arguments);
    if (!operand.is_undefined() && !(given_and_true(bound[1]) && !is_true(operand))) {
        return operand;
    }
    return bound[0].is_missing() ? string_value({}) : bound[0];
}

Value length(Value const& operand) {
    auto const size = length_of(operand);
    if (size < 0)
        fail_type("object of type '" + std::string{type_name(operand)} + "' has no len()");
    return integer_value(size);
}

Value first(Machine& machine, Value const& operand) {
    Walk walk{operand};
    Value item;
    if (walk.next(machine, item)) return item;
    return machine.undefined_text("No first item, sequence was empty.");
}

/// Python's `reversed`, as a list; missing for what has no order from its end.
bool reversed(Machine& machine, Value const& operand, std::vector<Value>& items) {
    if (operand.is(Kind::generator) || (!is_iterable(operand) && !operand.is_undefined())) {
        return false;
    }
    items = machine.items_of(operand);
    std::reverse(items.begin(), items.end());
    return true;
}

Value last(Machine& machine, Value const& operand) {
    if (operand.is_sequence() && operand.size != 0) return operand.items[operand.size - 1];
    std::vector<Value> items;
    if (!reversed(machine, operand, items)) {
        fail_type("'" + std::string{type_name(operand)} + "' object is not reversible");
    }
    if (!items.empty()) return items.front();
    return machine.undefined_text("No last item, sequence was empty.");
}

/// Gives what a list holds, once.
class ListIteration final : public Iteration {
public:
    explicit ListIteration(Value const& list) : list_{list} {}
    bool next(Machine& /*machine*/, Value& value) override {
        if (at_ == list_.size) return false;
        value = list_.items[at_++];
        return true;
    }

private:
    Value list_;
    std::uint32_t at_{0};
};

Value reverse(Machine& machine, Value const& operand) {
    std::vector<Value> items;
    if (operand.is_string()) {
        items = machine.items_of(operand);
        std::string text;
        for (auto one = items.rbegin(); one != items.rend(); ++one) text += one->view();
        return markup_value(machine.text(text), operand.is_markup());
    }
    if (reversed(machine, operand, items)) {
        return machine.generator(machine.arena().make<ListIteration>(machine.list(items)));
    }
    if (!is_iterable(operand)) fail_value("argument must be iterable");
    items = machine.items_of(operand);
    std::reverse(items.begin(), items.end());
    return machine.list(items);
}

Value join(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"join", 0, {"d", "attribute"}};
    auto const bound = bind(signature, arguments);
    auto const separator = bound[0].is_missing() ? std::string{} : text_of(bound[0]);
    AttributePath const path{bound[1]};
    std::string text;
    bool first_item = true;
    Walk walk{operand};
    Value item;
    while (walk.next(machine, item)) {
        machine.charge(1 + text.size() / 4096);
        if (!std::exchange(first_item, false)) text += separator;
        append_text(text, path.get(machine, item, missing_value()));
        if (text.size() > machine.options().max_output) {
            fail_limit("a joined text has more than " +
                       std::to_string(machine.options().max_output) + " bytes");
        }
    }
    return machine.text(text);
}

/// Items beside the keys by which they are sorted.
struct Keyed {
    Value key;
    Value item;
};

void sort_keyed(Machine& machine, std::vector<Keyed>& items, bool backwards) {
    machine.charge(items.size() * 4);
    std::stable_sort(items.begin(), items.end(), [backwards](Keyed const& a, Keyed const& b) {
        return backwards ? less(b.key, a.key) : less(a.key, b.key);
    });
}

Value items_of_keyed(Machine& machine, std::vector<Keyed> const& keyed) {
    std::vector<Value> items;
    items.reserve(keyed.size());
    for (auto const& one : keyed) items.push_back(one.item);
    return machine.list(items);
}

Value dict_sort(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"dictsort", 0, {"case_sensitive", "by", "reverse"}};
    auto const bound = bind(signature, arguments);
    auto const by = bound[1].is_missing() ? std::string{"key"} : text_of(bound[1]);
    if (by != "key" && by != "value") {
        fail_value("You can only sort by either \"key\" or \"value\"");
    }
    if (operand.is_undefined()) fail_undefined(operand);
    if (!operand.is(Kind::dict)) {
        fail_type("'" + std::string{type_name(operand)} + "' object has no attribute 'items'");
    }
    bool const sensitive = given_and_true(bound[0]);
    std::vector<Keyed> items;
    for (std::uint32_t i = 0; i < operand.dict->size; ++i) {
        auto const& entry = operand.dict->entries[i];
        auto const& key = by == "key" ? entry.key : entry.value;
        items.push_back(
            {sensitive ? key : lower_key(machine, key), machine.pair(entry.key, entry.value)});
    }
    sort_keyed(machine, items, given_and_true(bound[2]));
    return items_of_keyed(machine, items);
}

Value sort(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"sort", 0, {"reverse", "case_sensitive", "attribute"}};
    auto const bound = bind(signature, arguments);
    bool const sensitive = given_and_true(bound[1]);
    std::vector<AttributePath> paths;
    if (bound[2].is_string()) {
        auto names = bound[2].view();
        while (true) {
            auto const comma = std::min(names.find(','), names.size());
            paths.emplace_back(string_value(names.substr(0, comma)));
            if (comma == names.size()) break;
            names.remove_prefix(comma + 1);
        }
    } else {
        paths.emplace_back(bound[2]);
    }
    std::vector<Keyed> items;
    for (auto const& item : machine.items_of(operand)) {
        std::vector<Value> keys;
        for (auto const& path : paths) {
            auto const key = path.get(machine, item, missing_value());
            keys.push_back(sensitive ? key : lower_key(machine, key));
        }
        items.push_back({machine.list(keys), item});
    }
    sort_keyed(machine, items, given_and_true(bound[0]));
    return items_of_keyed(machine, items);
}

Value extreme(Machine& machine, Filter which, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"min", 0, {"case_sensitive", "attribute"}};
    auto const bound = bind(signature, arguments);
    bool const sensitive = given_and_true(bound[0]);
    AttributePath const path{bound[1]};
    Value best_item = missing_value();
    Value best_key = missing_value();
    for (auto const& item : machine.items_of(operand)) {
        auto key = path.get(machine, item, missing_value());
        if (!sensitive) key = lower_key(machine, key);
        bool const better = best_item.is_missing() ||
                            (which == Filter::min ? less(key, best_key) : less(best_key, key));
        if (!better) continue;
        best_item = item;
        best_key = key;
    }
    if (!best_item.is_missing()) return best_item;
    return machine.undefined_text("No aggregated item, sequence was empty.");
}

Value group_by(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"groupby", 1, {"attribute", "default", "case_sensitive"}};
    auto const bound = bind(signature, arguments);
    bool const sensitive = given_and_true(bound[2]);
    AttributePath const path{bound[0]};
    std::vector<Keyed> items;
    for (auto const& item : machine.items_of(operand)) {
        auto const key = path.get(machine, item, bound[1]);
        items.push_back({sensitive ? key : lower_key(machine, key), item});
    }
    sort_keyed(machine, items, false);
    std::vector<Value> groups;
    for (std::size_t begin = 0; begin < items.size();) {
        std::vector<Value> members;
        auto end = begin;
        for (; end < items.size() && equal(items[end].key, items[begin].key); ++end) {
            members.push_back(items[end].item);
        }
        if (end == begin) members.push_back(items[end++].item);  // NaN is not even itself
        auto const name = sensitive ? items[begin].key : path.get(machine, members[0], bound[1]);
        auto group = machine.pair(name, machine.list(members));
        group.flag = 1;
        groups.push_back(group);
        begin = end;
    }
    return machine.list(groups);
}

Value sum(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"sum", 0, {"attribute", "start"}};
    auto const bound = bind(signature, arguments);
    AttributePath const path{bound[0]};
    auto total = bound[1].is_missing() ? integer_value(0) : bound[1];
    if (total.is_string()) fail_type("sum() can't sum strings [use ''.join(seq) instead]");
    for (auto const& item : machine.items_of(operand)) {
        total = add(machine, total, path.get(machine, item, missing_value()));
    }
    return total;
}

Value attribute(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"attr", 1, {"name"}};
    auto const name = bind(signature, arguments)[0];
    if (!name.is_string()) fail_type("attribute name must be string");
    auto const known = attribute_of(name.view());
    if (operand.is(Kind::dict) && !is_attribute(operand, known)) {
        return undefined_value(
            machine.arena(),
            {.reason = UndefinedData::Reason::attribute, .owner = operand, .name = name});
    }
    return machine.attribute(operand, name, known);
}

double real_of(Value const& value, std::string_view filter) {
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_number()) {
        fail_type("the filter '" + std::string{filter} + "' needs a number, not " +
                  std::string{type_name(value)});
    }
    return value.as_real();
}

Value absolute(Value const& operand) {
    if (operand.is_integer()) {
        return operand.as_integer() < 0 ? negate(operand) : integer_value(operand.as_integer());
    }
    return real_value(std::abs(real_of(operand, "abs")));
}

Value to_integer(Machine& machine, Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"int", 0, {"default", "base"}};
    auto const bound = bind(signature, arguments);
    auto const otherwise = bound[0].is_missing() ? integer_value(0) : bound[0];
    auto const truncated = [&](double number) {
        if (!std::isfinite(number)) return otherwise;
        if (std::abs(number) >= 9.2e18) {
            fail_limit("integers of more than 64 bits cannot be computed with");
        }
        return integer_value(static_cast<std::int64_t>(number));
    };
    if (operand.is_undefined()) fail_undefined(operand);
    if (operand.is_integer()) return integer_value(operand.as_integer());
    if (operand.is(Kind::big_integer)) return operand;
    if (operand.is(Kind::real)) {
        if (std::isinf(operand.real)) fail_value("cannot convert float infinity to integer");
        return truncated(operand.real);
    }
    if (!operand.is_string()) return otherwise;
    auto const base = bound[1].is_integer() ? bound[1].as_integer() : 10;
    if (base < 0 || base > 36) return otherwise;
    if (auto const number =
            python_integer(machine.arena(), operand.view(), static_cast<int>(base))) {
        return *number;
    }
    auto const real = python_real(operand.view());
    return real ? truncated(*real) : otherwise;
}

Value to_real(Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"float", 0, {"default"}};
    auto const bound = bind(signature, arguments);
    if (operand.is_undefined()) fail_undefined(operand);
    if (operand.is_number()) return real_value(operand.as_real());
    if (operand.is_string() || operand.is(Kind::big_integer)) {
        if (auto const number = python_real(operand.view())) return real_value(*number);
    }
    return bound[0].is_missing() ? real_value(0) : bound[0];
}

Value round(Value const& operand, Arguments const& arguments) {
    static constexpr Signature signature{"round", 0, {"precision", "method"}};
    auto const bound = bind(signature, arguments);
    auto const method = bound[1].is_missing() ? std::string{"common"} : text_of(bound[1]);
    if (method != "common" && method != "ceil" && method != "floor") {
        fail_value("method must be common, ceil or floor");
    }
    auto const number = real_of(operand, "round");
    if (!bound[0].is_missing() && !bound[0].is_integer()) {
        fail_type("'" + std::string{type_name(bound[0])} +
                  "' object cannot be interpreted as an integer");
    }
    auto const digits = bound[0].is_missing() ? 0 : bound[0].as_integer();
    if (method == "common") {
        if (operand.is_integer() && digits >= 0) return integer_value(operand.as_integer());
        if (!std::isfinite(number) || digits > 320) return real_value(number);
        if (digits >= 0) return real_value(*parse_real(show_real(number, 'f', digits, false)));
        auto const scale =
            std::pow(10.0, static_cast<double>(std::min<std::int64_t>(-digits, 320)));
        auto const rounded = std::nearbyint(number / scale) * scale;
        return operand.is_integer() ? integer_value(static_cast<std::int64_t>(rounded))
                                    : real_value(rounded);
    }
    auto const scale = std::pow(10.0, static_cast<double>(digits));
    auto const scaled = number * scale;
    if (!std::isfinite(scaled)) fail_value("cannot convert float infinity or NaN to integer");
    return real_value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

}  // namespace

Value list_filter(Machine& machine, Filter which, Value const& operand,
                  Arguments const& arguments) {
    switch (which) {
        case Filter::count:
        case Filter::length:
            return length(operand);
        case Filter::d:
        case Filter::default_value:
            return default_filter(operand, arguments);
        case Filter::first:
            return first(machine, operand);
        case Filter::last:
            return last(machine, operand);
        case Filter::list:
            if (operand.is(Kind::list)) return operand;
            return machine.list(machine.items_of(operand));
        case Filter::join:
            return join(machine, operand, arguments);
        case Filter::reverse:
            return reverse(machine, operand);
        case Filter::dictsort:
            return dict_sort(machine, operand, arguments);
        case Filter::sort:
            return sort(machine, operand, arguments);
        case Filter::min:
        case Filter::max:
            return extreme(machine, which, operand, arguments);
        case Filter::groupby:
            return group_by(machine, operand, arguments);
        case Filter::sum:
            return sum(machine, operand, arguments);
        case Filter::attr:
            return attribute(machine, operand, arguments);
        default:
            return missing_value();
    }
}

Value number_filter(Machine& machine, Filter which, Value const& operand,
                    Arguments const& arguments) {
    switch (which) {
        case Filter::abs:
            return absolute(operand);
        case Filter::integer:
            return to_integer(machine, operand, arguments);
        case Filter::real:
            return to_real(operand, arguments);
        case Filter::round:
            return round(operand, arguments);
        default:
            return missing_value();
    }
}

}  // namespace tinkxx::text::jinja
