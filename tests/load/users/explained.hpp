#pragma once

#include <tinkxx/error.hpp>

namespace tinkxx::load {

/// Whether a call may fail so because of faults that were asked for: refusals and lost answers.
[[nodiscard]] inline bool chaos_explains(Error const& error) {
    auto const status = error.http_status().value_or(0);
    return error.kind() == ErrorKind::connection || error.kind() == ErrorKind::timeout ||
           (error.kind() == ErrorKind::status && (status == 429 || status == 500));
}

}  // namespace tinkxx::load
