#pragma once

#include <tinkxx/error.hpp>

#include <string>
#include <utility>

namespace tinkxx::engine {

/// An input that can never be right: a bad file, option or request. `field` names the culprit.
[[nodiscard]] inline Error invalid(std::string message, std::string field) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::move(message),
                              .category = ErrorCategory::user,
                              .field = std::move(field)}};
}

/// Something the machine refused: a file that cannot be read or written.
[[nodiscard]] inline Error broken(std::string message, std::string field) {
    return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                              .message = std::move(message),
                              .category = ErrorCategory::server,
                              .field = std::move(field)}};
}

}  // namespace tinkxx::engine
