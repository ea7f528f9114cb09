#pragma once

#include <tinkxx/error.hpp>

namespace tinkxx::service {

/// Whether errors of this kind are never repeated, whatever the settings say.
[[nodiscard]] constexpr bool never_repeated(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::validation:
        case ErrorKind::request_failed:
        case ErrorKind::cancelled:
        case ErrorKind::closed:
        case ErrorKind::usage:
        case ErrorKind::callback:
            return true;
        default:
            return false;
    }
}

}  // namespace tinkxx::service
