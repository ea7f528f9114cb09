#include "text/render/refuse.hpp"

#include <tinkxx/error.hpp>

#include <utility>

namespace tinkxx::text::render {

void refuse(std::string_view operation, std::string field, std::string value,
            std::string const& why) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.message = std::string{operation} + ": " + why;
    details.field = std::move(field);
    details.value = std::move(value);
    throw ValidationError{std::move(details)};
}

}  // namespace tinkxx::text::render
