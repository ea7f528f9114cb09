#pragma once

#include <tinkxx/types/timestamp.hpp>

#include <string>
#include <string_view>

namespace tinkxx::cli {

/// A date in ISO 8601; without a time of day it is midnight in UTC. Throws `BadUsage` that begins
/// with `name`, which is the option or argument.
[[nodiscard]] Timestamp date_of(std::string const& text, std::string_view name);

}  // namespace tinkxx::cli
