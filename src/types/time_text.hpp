#pragma once

#include <chrono>
#include <string>

namespace tinkxx::types {

/// `1.2 s`, `14 s`, `3 min`.
[[nodiscard]] std::string span_text(std::chrono::nanoseconds span);

/// `90 s`.
[[nodiscard]] inline std::string whole_seconds(std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace tinkxx::types
