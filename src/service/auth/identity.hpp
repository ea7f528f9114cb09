#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/service.hpp>

#include <string_view>

namespace tinkxx::service {

/// Whether a key is a token that says whom it stands for: issued by the service's passport.
[[nodiscard]] bool names_its_user(std::string_view key);

/// Read from the claims of `token`, which nobody checked; no request is made (R-AUTH-30,
/// R-AUTH-31). An empty token means that there is none, only a plain key.
[[nodiscard]] Result<Identity> whoami(std::string_view token);

}  // namespace tinkxx::service
