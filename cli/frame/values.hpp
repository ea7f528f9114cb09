#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

namespace tinkxx::cli {

/// An empty value is mostly a variable of a script that was never set. Taken as it stands, it would
/// mean a free port, or a server without a key.
[[nodiscard]] CLI::Validator not_empty();
[[nodiscard]] CLI::Validator not_zero();
/// Digits only, in base ten: CLI11 reads an empty text as 0, and 010 as 8. To be used with
/// `transform`, since it takes leading zeros away.
[[nodiscard]] CLI::Validator number_up_to(std::uint64_t most);

}  // namespace tinkxx::cli
