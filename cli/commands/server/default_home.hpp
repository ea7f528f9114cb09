#pragma once

#include "frame/context.hpp"

#include <filesystem>

namespace tinkxx::cli {

/// Where a server keeps everything if it is not told otherwise: `$TINKXX_HOME`, then `tinkxx` in
/// `$XDG_DATA_HOME`, then `.local/share/tinkxx` in `$HOME`. Throws `Error` if none of them is set.
[[nodiscard]] std::filesystem::path default_home(Environment const& environment);

}  // namespace tinkxx::cli
