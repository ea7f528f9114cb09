#pragma once

#include <chrono>
#include <string>

namespace tinkxx::service {

/// `1.2 s`, `14 s`, `3 min`.
[[nodiscard]] std::string span_text(std::chrono::nanoseconds span);

}  // namespace tinkxx::service
