#pragma once

#include <chrono>
#include <string>

namespace tinkxx::service {

/// "90 s", for a log line.
[[nodiscard]] inline std::string whole_seconds(std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace tinkxx::service
