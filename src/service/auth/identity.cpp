#include "service/auth/identity.hpp"

#include "service/auth/credential_choice.hpp"
#include "wire/session/jwt.hpp"

#include <utility>

namespace tinkxx::service {

bool names_its_user(std::string_view key) {
    if (!is_jwt_key(key)) return false;
    auto const claims = wire::decode_jwt(key);
    return claims && claims->iss && claims->iss->starts_with("passport-");
}

Result<Identity> whoami(std::string_view token) {
    if (token.empty()) {
        return ErrorDetails{
            .kind = ErrorKind::validation,
            .message =
                "whoami: the credential is a plain API key and this server exchanges none "
                "for a token, so nothing here says whom it stands for; use a JSON web "
                "token as key, or a server with token authentication",
            .category = ErrorCategory::user,
            .field = "api_key"};
    }
    auto claims = wire::decode_jwt(token);
    if (!claims) return claims.error();
    if (!claims->sub || claims->sub->empty()) {
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = "whoami: the token of the service names no user (claim sub)",
                            .field = "sub"};
    }
    Identity identity{.user_urn = std::move(*claims->sub)};
    auto const text = [](std::optional<std::string> const& claim) {
        return claim && claim->find_first_not_of(" \t\r\n") != std::string::npos;
    };
    if (text(claims->email)) identity.email = std::move(claims->email);
    if (text(claims->org_id)) identity.organization_urn = "tml:organization:" + *claims->org_id;
    return identity;
}

}  // namespace tinkxx::service
