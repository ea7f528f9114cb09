#pragma once

#include "text/jinja/program/machine.hpp"
#include "text/jinja/values/call.hpp"
#include "text/jinja/values/names.hpp"

#include <string_view>
#include <vector>

namespace tinkxx::text::jinja {

/// How filters with the parameter `attribute` reach into an item: "a.b.0" step by step.
class AttributePath {
public:
    explicit AttributePath(Value const& attribute);

    [[nodiscard]] Value get(Machine& machine, Value item, Value const& instead) const;

private:
    std::vector<Value> parts_;
};

// Filters by what they are about; missing if the filter is not among them.
[[nodiscard]] Value text_filter(Machine& machine, Filter which, Value const& operand,
                                Arguments const& arguments);
[[nodiscard]] Value number_filter(Machine& machine, Filter which, Value const& operand,
                                  Arguments const& arguments);
[[nodiscard]] Value list_filter(Machine& machine, Filter which, Value const& operand,
                                Arguments const& arguments);
[[nodiscard]] Value lazy_filter(Machine& machine, Filter which, Value const& operand,
                                Arguments const& arguments);

/// Python's `sorted`, with lists of keys of the same size.
[[nodiscard]] Value lower_key(Machine& machine, Value const& value);

}  // namespace tinkxx::text::jinja
