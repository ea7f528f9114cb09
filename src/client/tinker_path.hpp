#pragma once

#include <string_view>

namespace tinkxx {

/// How the path of a checkpoint begins.
inline constexpr std::string_view path_scheme = "tinker://";

}  // namespace tinkxx
