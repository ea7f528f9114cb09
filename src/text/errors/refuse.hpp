#pragma once

#include <tinkxx/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::text {

/// Throws `ValidationError`. `field` is the member that is wrong, `message` all that is to be said.
[[noreturn]] inline void refuse(std::string message, std::string field, std::string value = {}) {
    constexpr std::size_t longest = 80;  // a value may be a whole file
    if (value.size() > longest) value.resize(longest);
    Error{{.kind = ErrorKind::validation,
           .message = std::move(message),
           .category = ErrorCategory::user,
           .field = std::move(field),
           .value = std::move(value)}}
        .raise();
}

/// As above, "OPERATION: WHY".
[[noreturn]] inline void refuse(std::string_view operation, std::string field, std::string value,
                                std::string const& why) {
    Error{{.kind = ErrorKind::validation,
           .message = std::string{operation} + ": " + why,
           .category = ErrorCategory::user,
           .field = std::move(field),
           .value = std::move(value)}}
        .raise();
}

/// As above, for a `tokenizer.json`: "tokenizer.json: FIELD WHAT".
[[noreturn]] inline void refuse_file(std::string field, std::string_view what,
                                     std::string value = {}) {
    auto message = "tokenizer.json: " + field + " ";
    message += what;
    refuse(std::move(message), std::move(field), std::move(value));
}

}  // namespace tinkxx::text
