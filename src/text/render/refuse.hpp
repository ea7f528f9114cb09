#pragma once

#include <string>
#include <string_view>

namespace tinkxx::text::render {

/// Throws the `ValidationError` "operation: why", with the field that is wrong and its value.
[[noreturn]] void refuse(std::string_view operation, std::string field, std::string value,
                         std::string const& why);

}  // namespace tinkxx::text::render
