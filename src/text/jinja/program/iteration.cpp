#include "text/jinja/program/iteration.hpp"

#include "text/jinja/program/machine.hpp"
#include "text/unicode/utf8.hpp"

#include <string>
#include <vector>

namespace tinkxx::text::jinja {

bool is_iterable(Value const& value) noexcept {
    switch (value.kind) {
        case Kind::undefined:
        case Kind::string:
        case Kind::tuple:
        case Kind::list:
        case Kind::dict:
        case Kind::dict_view:
        case Kind::range:
        case Kind::generator:
            return true;
        default:
            return false;
    }
}

std::int64_t length_of(Value const& value) {
    switch (value.kind) {
        case Kind::undefined:
            return 0;
        case Kind::string:
            return static_cast<std::int64_t>(count_characters(value.view()));
        case Kind::tuple:
        case Kind::list:
            return value.size;
        case Kind::dict:
        case Kind::dict_view:
            return value.dict->size;
        case Kind::range:
            return value.range->size;
        case Kind::loop:
            return value.loop->length();
        default:
            return -1;
    }
}

Walk::Walk(Value const& over) : over_{over} {
    if (!is_iterable(over)) {
        fail_type("'" + std::string{type_name(over)} + "' object is not iterable");
    }
}

bool Walk::next_other(Machine& machine, Value& value) {
    switch (over_.kind) {
        case Kind::string: {
            if (position_ >= over_.size) return false;
            auto const size = character_size(over_.text[position_]);
            value = string_value(over_.view().substr(static_cast<std::size_t>(position_), size));
            position_ += static_cast<std::int64_t>(size);
            return true;
        }
        case Kind::dict:
        case Kind::dict_view:
            return next_of_dict(machine, value);
        case Kind::range:
            if (position_ >= over_.range->size) return false;
            value = integer_value(over_.range->start + position_++ * over_.range->step);
            return true;
        case Kind::generator: {
            Machine::Deeper const deeper{machine};
            return over_.generator->next(machine, value);
        }
        default:
            return false;
    }
}

bool Walk::next_of_dict(Machine& machine, Value& value) {
    auto const& dict = *over_.dict;
    if (position_ >= dict.size) return false;
    auto const& entry = dict.entries[position_++];
    if (over_.is(Kind::dict) || over_.flag == static_cast<std::uint8_t>(ViewOf::keys)) {
        value = entry.key;
    } else if (over_.flag == static_cast<std::uint8_t>(ViewOf::values)) {
        value = entry.value;
    } else {
        value = machine.pair(entry.key, entry.value);
    }
    return true;
}

bool LoopData::pull(Value& value) {
    if (ended) return false;
    while (walk.next(*machine, value)) {
        if (node->test == nullptr || tested || machine->loop_test(*this, value)) return true;
    }
    ended = true;
    return false;
}

bool LoopData::advance() {
    Value value;
    if (!after.is_missing()) {
        value = after;
        after = missing_value();
    } else if (!pull(value)) {
        return false;
    }
    ++index0;
    before = current;
    current = value;
    return true;
}

Value LoopData::peek() {
    if (after.is_missing()) {
        Value value;
        if (pull(value)) after = value;
    }
    return after;
}

std::int64_t LoopData::length() {
    if (known_length >= 0) return known_length;
    if (node->test == nullptr) known_length = length_of(iterable);
    if (known_length >= 0) return known_length;
    // What is left has to be taken out to be counted.
    std::vector<Value> rest;
    Value value;
    while (pull(value)) {
        machine->charge(1);
        rest.push_back(value);
    }
    auto const list = machine->list(rest);
    known_length = list.size + index0 + 1 + (after.is_missing() ? 0 : 1);
    walk = Walk{list};
    tested = true;
    ended = false;
    return known_length;
}

}  // namespace tinkxx::text::jinja
