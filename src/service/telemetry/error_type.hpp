#pragma once

#include <tinkxx/error.hpp>

#include <string_view>

namespace tinkxx::service {

/// What the official SDK calls an error of this kind, e.g. `BadRequestError`: the word that the
/// service's statistics know.
[[nodiscard]] std::string_view error_type(Error const& error) noexcept;

}  // namespace tinkxx::service
