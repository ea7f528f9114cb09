#pragma once

#include <tinkxx/text/load.hpp>

#include <filesystem>
#include <string>

namespace tinkxx::text::files {

/// Empty counts as not set.
[[nodiscard]] std::string variable(Environment const& environment, char const* name);
/// With `~` for the home of the user.
[[nodiscard]] std::filesystem::path path_of(std::string const& text,
                                            Environment const& environment);
/// Where programs of Hugging Face keep everything; empty if nothing says where.
[[nodiscard]] std::filesystem::path hub_home(Environment const& environment);

}  // namespace tinkxx::text::files
