#pragma once

#include <tinkxx/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::text::files {

/// Throws `ValidationError` with the whole `value`, which may be a long path. `message` is
/// "operation: what is wrong; what to do".
[[noreturn]] inline void refuse_whole(std::string message, std::string_view field,
                                      std::string value) {
    Error{{.kind = ErrorKind::validation,
           .message = std::move(message),
           .category = ErrorCategory::user,
           .field = std::string{field},
           .value = std::move(value)}}
        .raise();
}

/// Throws `ConnectionError`, which says that another attempt may help.
[[noreturn]] inline void give_up(std::string message) {
    Error{{.kind = ErrorKind::connection, .message = std::move(message), .retryable = true}}
        .raise();
}

}  // namespace tinkxx::text::files
