#pragma once

#include "text/render/common/json.hpp"

#include <string>
#include <vector>

namespace tinkxx::text::render {

/// Declarations of functions as Kimi K2.5 reads them: types of TypeScript with comments.
[[nodiscard]] std::string kimi_typescript(std::vector<Json> const& functions);

}  // namespace tinkxx::text::render
