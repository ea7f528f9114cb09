#pragma once

#include "text/jinja/program/machine.hpp"

#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// Python's `time.strftime(format)` with English names.
[[nodiscard]] std::string format_time(LocalTime time, std::string_view format);

}  // namespace tinkxx::text::jinja
