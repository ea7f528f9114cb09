#pragma once

#include "text/jinja/values/value.hpp"

namespace tinkxx::text::jinja {

/// Python's `<`; throws for types that have no order. `depth` is how many containers were entered
/// so far.
[[nodiscard]] bool less(Value const& left, Value const& right, int depth = 0);

}  // namespace tinkxx::text::jinja
