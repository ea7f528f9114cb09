#pragma once

#include "text/jinja/call.hpp"
#include "text/jinja/machine.hpp"
#include "text/jinja/names.hpp"

namespace tinkxx::text::jinja {

[[nodiscard]] Value call_function(Machine& machine, Function function, Arguments const& arguments);

}  // namespace tinkxx::text::jinja
