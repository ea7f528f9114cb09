#pragma once

#include "engine/kernels/isa/isa.hpp"

#include <string_view>

namespace tinkxx::engine {

/// The rule behind `chosen_isa`: what is `wanted` if it can be had, else the best, with a warning.
/// Empty asks for the best.
IsaChoice choose_isa(std::string_view wanted, bool (*supported)(Isa) noexcept);

}  // namespace tinkxx::engine
