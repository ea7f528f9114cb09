#pragma once

#include "frame/context.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// Asks on stderr and reads the answer from stdin; only "y" and "yes" mean yes. Throws `BadUsage`
/// that names `option` where there is nobody to ask.
[[nodiscard]] bool ask(std::string_view question, std::string_view option, Context& context);

/// A line of a file without its newline; empty at the end. Reads no further than that line.
[[nodiscard]] std::optional<std::string> read_line(int file);

}  // namespace tinkxx::cli
