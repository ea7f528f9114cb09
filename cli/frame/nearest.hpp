#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// The word that was probably meant: the one with the fewest letters added, left out, replaced or
/// swapped. Empty if none is near.
[[nodiscard]] std::string nearest(std::string_view word, std::span<std::string const> known);

}  // namespace tinkxx::cli
