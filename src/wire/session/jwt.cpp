#include "wire/session/jwt.hpp"

#include "wire/json/base64.hpp"
#include "wire/json/json.hpp"

#include <algorithm>
#include <cmath>

namespace tinkxx::wire {

namespace {

ErrorDetails broken(std::string_view why) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.field = "jwt";
    details.message = "auth: the token is no JSON web token: " + std::string{why} +
                      "; check the API key or the credential command";
    return details;
}

std::optional<std::string> claim(boost::json::object const& claims, std::string_view name) {
    auto const* claim = claims.if_contains({name.data(), name.size()});
    if (claim == nullptr || !claim->is_string()) return std::nullopt;
    return std::string{claim->get_string().data(), claim->get_string().size()};
}

std::optional<WallTime> time(boost::json::object const& claims, std::string_view name) {
    auto const* claim = claims.if_contains({name.data(), name.size()});
    if (claim == nullptr) return std::nullopt;
    JsonIn::Failure failure;
    auto const seconds = JsonIn{claim, failure}.as<double>();
    if (failure.noted || std::isnan(seconds)) return std::nullopt;
    // Whatever a server says, a time must not overflow: within a hundred years of 1970.
    constexpr double most = 100.0 * 365.25 * 86400;
    return WallTime{std::chrono::duration_cast<WallTime::duration>(
        std::chrono::duration<double>{std::clamp(seconds, -most, most)})};
}

}  // namespace

Result<JwtClaims> decode_jwt(std::string_view token) {
    auto const first = token.find('.');
    if (first == std::string_view::npos) return broken("it has no second part");
    auto part = token.substr(first + 1);
    part = part.substr(0, part.find('.'));
    auto const payload = decode_base64url(part);
    if (!payload) return broken("its second part is not base64url");
    auto const document = parse_json("auth", *payload);
    if (!document || !document->is_object()) return broken("its second part is no JSON object");
    auto const& claims = document->get_object();
    return JwtClaims{.exp = time(claims, "exp"),
                     .sub = claim(claims, "sub"),
                     .email = claim(claims, "email"),
                     .org_id = claim(claims, "org_id"),
                     .iss = claim(claims, "iss")};
}

}  // namespace tinkxx::wire
