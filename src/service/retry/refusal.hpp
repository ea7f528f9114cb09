#pragma once

#include <tinkxx/error.hpp>

#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Throws the `ValidationError` for a field of a public struct that cannot be as it is.
[[noreturn]] inline void refuse_field(std::string_view type, std::string_view field,
                                      std::string const& value, std::string_view rule) {
    Error{{.kind = ErrorKind::validation,
           .message = std::string{type} + ": " + std::string{field} + " is " + value +
                      "; it must be " + std::string{rule},
           .category = ErrorCategory::user,
           .field = std::string{field},
           .value = value}}
        .raise();
}

/// As a message shows it, whatever the locale.
[[nodiscard]] inline std::string number_text(double value) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << value;
    return out.str();
}

}  // namespace tinkxx::service
