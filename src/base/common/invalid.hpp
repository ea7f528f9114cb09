#pragma once

#include <tinkxx/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::base {

/// What the user gave for `field` cannot be used: `OPERATION: WHY`.
[[nodiscard]] inline ErrorDetails invalid(std::string_view operation, std::string field,
                                          std::string value, std::string_view why) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.message = operation;
    details.message += ": ";
    details.message += why;
    details.field = std::move(field);
    details.value = std::move(value);
    return details;
}

[[noreturn]] inline void refuse(std::string_view operation, std::string field, std::string value,
                                std::string_view why) {
    throw ValidationError{invalid(operation, std::move(field), std::move(value), why)};
}

}  // namespace tinkxx::base
