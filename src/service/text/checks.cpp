#include "service/text/checks.hpp"

#include <tinkxx/redaction.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace tinkxx::service {

namespace {

bool is_token(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
    });
}

}  // namespace

ErrorDetails invalid_field(std::string_view field, std::string value, std::string rule) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.field = field;
    details.message = std::string{field} + ' ' + std::move(rule) + ", got \"" + value + '"';
    details.value = std::move(value);
    return details;
}

bool is_field_value(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) {
        auto const byte = static_cast<unsigned char>(c);
        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    });
}

std::optional<ErrorDetails> check_timeouts(Timeouts const& timeouts) {
    std::array<std::pair<char const*, std::chrono::milliseconds>, 5> const all{{
        {"timeouts.connect", timeouts.connect},
        {"timeouts.read", timeouts.read},
        {"timeouts.write", timeouts.write},
        {"timeouts.pool", timeouts.pool},
        {"timeouts.total", timeouts.total},
    }};
    for (auto const& [name, limit] : all) {
        if (limit.count() < 0) {
            return invalid_field(name, std::to_string(limit.count()) + " ms",
                                 "must not be negative (0 means no limit)");
        }
    }
    return std::nullopt;
}

std::optional<ErrorDetails> check_retries(int max_retries) {
    if (max_retries >= 0) return std::nullopt;
    return invalid_field(
        "max_retries", std::to_string(max_retries),
        "must not be negative (0 turns retries off, a very large number means for ever)");
}

std::optional<ErrorDetails> check_headers(Headers const& headers, std::string_view field) {
    for (auto const& [name, value] : headers) {
        if (!is_token(name)) {
            return invalid_field(field, name, "must have names of letters, digits and -");
        }
        if (!is_field_value(value)) {
            return invalid_field(std::string{field} + '.' + name, std::string{redaction_marker},
                                 "must have no control characters in its value");
        }
    }
    return std::nullopt;
}

}  // namespace tinkxx::service
