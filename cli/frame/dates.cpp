#include "frame/dates.hpp"

#include "frame/troubles.hpp"

#include <optional>

namespace tinkxx::cli {

Timestamp date_of(std::string const& text, std::string_view name) {
    // A bare number would be taken as seconds since 1970.
    bool const dated =
        text.size() >= 10 && text[0] >= '0' && text[0] <= '9' && text[4] == '-' && text[7] == '-';
    auto const time = dated ? parse_timestamp(text) : std::nullopt;
    if (time) return *time;
    throw BadUsage{std::string{name} + ": '" + text + "' is not a date",
                   "write it as 2026-01-31 or 2026-01-31T12:00:00Z"};
}

}  // namespace tinkxx::cli
