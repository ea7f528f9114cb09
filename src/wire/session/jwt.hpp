#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

/// What a token says about itself. Nobody checked its signature: good for planning and for showing,
/// never for trust. A claim of another type than expected counts as absent.
struct JwtClaims {
    /// When it ends (R-AUTH-11).
    std::optional<WallTime> exp{};
    std::optional<std::string> sub{};
    std::optional<std::string> email{};
    std::optional<std::string> org_id{};
    std::optional<std::string> iss{};
};

/// The claims of a JSON web token. Errors are of kind validation and never show any of the token.
[[nodiscard]] Result<JwtClaims> decode_jwt(std::string_view token);

}  // namespace tinkxx::wire
