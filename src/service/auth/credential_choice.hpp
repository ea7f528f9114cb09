#pragma once

#include <tinkxx/result.hpp>

#include "service/http/client_config.hpp"
#include "wire/session/service_messages.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// `tml-` for a key, `eyJ` for a JSON web token used directly (R-AUTH-02).
[[nodiscard]] bool has_key_prefix(std::string_view key) noexcept;
[[nodiscard]] bool is_jwt_key(std::string_view key) noexcept;

/// One source of credentials.
struct CredentialChoice {
    enum class Kind : std::uint8_t { key, command };
    Kind kind{Kind::key};
    /// The key itself, or the text of the command. A secret.
    std::string value{};

    bool operator==(CredentialChoice const&) const = default;
};

/// The source before the server has said anything (R-AUTH-23). An error names all of them; it
/// shows no more of a wrong key than its ends.
[[nodiscard]] Result<CredentialChoice> choose_credential(CredentialConfig const& config);

/// The source once the server's flags are known (R-AUTH-21, R-AUTH-22).
[[nodiscard]] Result<CredentialChoice> choose_credential(CredentialConfig const& config,
                                                         wire::ClientFlags const& flags);

}  // namespace tinkxx::service
