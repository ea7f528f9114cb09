#include "text/jinja/methods/methods.hpp"

#include "text/jinja/convert/clock_text.hpp"
#include "text/jinja/convert/text_of.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace tinkxx::text::jinja {
namespace {

constexpr std::int64_t longest_range = 100'000;
/// More attributes than anybody writes; they are searched one by one.
constexpr std::uint32_t most_attributes = 1000;

std::int64_t range_bound(Value const& value) {
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_integer()) {
        fail_type("'" + std::string{type_name(value)} +
                  "' object cannot be interpreted as an integer");
    }
    return value.as_integer();
}

Value make_range(Machine& machine, Arguments const& arguments) {
    if (arguments.count == 0) fail_type("range expected at least 1 argument, got 0");
    expect_positional("range", arguments, 1, 3);
    auto* const range = machine.arena().make<RangeData>();
    range->stop = range_bound(arguments.positional[arguments.count == 1 ? 0 : 1]);
    if (arguments.count > 1) range->start = range_bound(arguments.positional[0]);
    if (arguments.count > 2) range->step = range_bound(arguments.positional[2]);
    if (range->step == 0) fail_value("range() arg 3 must not be zero");
    bool const forward = range->step > 0;
    auto const from = forward ? range->start : range->stop;
    auto const to = forward ? range->stop : range->start;
    if (from < to) {
        auto const distance = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
        auto const step = forward ? static_cast<std::uint64_t>(range->step)
                                  : std::uint64_t{0} - static_cast<std::uint64_t>(range->step);
        auto const size = (distance - 1) / step + 1;
        if (size > static_cast<std::uint64_t>(longest_range)) {
            fail_limit("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
        }
        range->size = static_cast<std::int64_t>(size);
    }
    auto value = plain_value(Kind::range);
    value.range = range;
    return value;
}

/// The entries of `dict(…)`: those of a mapping or of pairs, then the keywords.
std::vector<DictData::Entry> dict_entries(Machine& machine, Arguments const& arguments) {
    std::vector<DictData::Entry> entries;
    if (arguments.count > 1) {
        fail_type("dict expected at most 1 argument, got " + std::to_string(arguments.count));
    }
    if (arguments.count == 1) {
        auto const& given = arguments.positional[0];
        if (given.is(Kind::dict)) {
            entries.assign(given.dict->entries, given.dict->entries + given.dict->size);
        } else {
            for (auto const& pair : machine.items_of(given)) {
                auto const parts = machine.items_of(pair);
                if (parts.size() != 2) {
                    fail_value("dictionary update sequence element #" +
                               std::to_string(entries.size()) + " has length " +
                               std::to_string(parts.size()) + "; 2 is required");
                }
                if (!is_hashable(parts[0])) {
                    fail_type("unhashable type: '" + std::string{type_name(parts[0])} + "'");
                }
                entries.push_back({parts[0], parts[1]});
            }
        }
    }
    for (std::uint32_t i = 0; i < arguments.keyword_count; ++i) {
        entries.push_back({arguments.keywords[i].name, arguments.keywords[i].value});
    }
    return entries;
}

Value keep_entries(Machine& machine, std::vector<DictData::Entry> const& entries) {
    machine.charge(entries.size());
    auto* const kept = machine.arena().array<DictData::Entry>(entries.size());
    std::copy(entries.begin(), entries.end(), kept);
    return make_dict(machine.arena(), kept, entries.size());
}

Value make_namespace(Machine& machine, Arguments const& arguments) {
    auto const attributes = keep_entries(machine, dict_entries(machine, arguments));
    if (attributes.dict->size > most_attributes) {
        fail_limit("a namespace cannot have more than " + std::to_string(most_attributes) +
                   " attributes");
    }
    auto value = plain_value(Kind::name_space);
    value.name_space = machine.arena().make<NamespaceData>();
    for (std::uint32_t i = 0; i < attributes.dict->size; ++i) {
        auto const& entry = attributes.dict->entries[i];
        if (entry.key.is_string() && entry.key.view().starts_with('_')) {
            throw Failure{
                Failure::Kind::security,
                "Chat templates cannot store underscore-prefixed attributes on a namespace, but "
                "got " +
                    repr_of(entry.key) + ". Please rename the attribute."};
        }
        assign(machine.arena(), *value.name_space, entry.key, entry.value);
    }
    return value;
}

Value dict_from_keys(Machine& machine, Arguments const& arguments) {
    expect_positional("fromkeys", arguments, 1, 2);
    auto const value = arguments.count == 2 ? arguments.positional[1] : none_value();
    std::vector<DictData::Entry> entries;
    for (auto const& key : machine.items_of(arguments.positional[0])) {
        if (!is_hashable(key)) {
            fail_type("unhashable type: '" + std::string{type_name(key)} + "'");
        }
        entries.push_back({key, value});
    }
    return keep_entries(machine, entries);
}

Value make_cycler(Machine& machine, Arguments const& arguments) {
    if (arguments.keyword_count != 0) fail_type("Cycler() takes no keyword arguments");
    if (arguments.count == 0) fail_value("at least one item has to be provided");
    auto value = plain_value(Kind::cycler);
    value.cycler = machine.arena().make<CyclerData>(arguments.positional, arguments.count);
    return value;
}

Value make_joiner(Machine& machine, Arguments const& arguments) {
    static constexpr Signature signature{"Joiner", 0, {"sep"}};
    auto const separator = bind(signature, arguments)[0];
    auto value = plain_value(Kind::joiner);
    value.joiner = machine.arena().make<JoinerData>();
    value.joiner->separator = separator.is_missing() ? string_value(", ") : separator;
    return value;
}

Value time_now(Machine& machine, Arguments const& arguments) {
    static constexpr Signature signature{"strftime_now", 1, {"format"}};
    auto const format = bind(signature, arguments)[0];
    if (!format.is_string()) {
        fail_type("strftime() argument 1 must be str, not " + std::string{type_name(format)});
    }
    auto const* const clock = machine.options().clock;
    if (clock == nullptr || !*clock) {
        fail_value(
            "the template asks for the date (strftime_now), and no clock is given; set clock");
    }
    return machine.text(format_time((*clock)(), format.view()));
}

}  // namespace

Value call_function(Machine& machine, Function function, Arguments const& arguments) {
    switch (function) {
        case Function::range:
            return make_range(machine, arguments);
        case Function::dict:
            return keep_entries(machine, dict_entries(machine, arguments));
        case Function::dict_fromkeys:
            return dict_from_keys(machine, arguments);
        case Function::cycler:
            return make_cycler(machine, arguments);
        case Function::joiner:
            return make_joiner(machine, arguments);
        case Function::name_space:
            return make_namespace(machine, arguments);
        case Function::strftime_now:
            return time_now(machine, arguments);
        case Function::raise_exception: {
            static constexpr Signature signature{"raise_exception", 1, {"message"}};
            throw Failure{Failure::Kind::raised, text_of(bind(signature, arguments)[0])};
        }
        case Function::lipsum:
            break;
    }
    fail_value("lipsum() is not supported: the text of a chat template must not depend on chance");
}

}  // namespace tinkxx::text::jinja
