#pragma once

#include "wire/json.hpp"
#include "wire/server_requests.hpp"

#include <string>
#include <string_view>

/// What the readers of requests share.
namespace tinkxx::wire::server {

[[nodiscard]] ErrorDetails refusal(std::string_view operation, std::string field, std::string value,
                                   std::string const& why);
/// The error for a body in which something else stands than what was expected.
[[nodiscard]] ErrorDetails request_error(std::string_view operation,
                                         JsonIn::Failure const& failure);

/// Reads a `T` from a body by `fill(JsonIn, T&)`.
template <class T, class Fill>
[[nodiscard]] Result<T> read_request(std::string_view operation, std::string_view text,
                                     Fill const& fill) {
    auto const document = parse_json(operation, text);
    if (!document) {
        return refusal(operation, {}, {},
                       "the body is no JSON; send a JSON object with Content-Type: "
                       "application/json");
    }
    JsonIn::Failure failure;
    JsonIn const in{&*document, failure};
    T out{};
    if (document->is_object()) {
        fill(in, out);
    } else {
        in.fail("an object");
    }
    if (failure.noted) return request_error(operation, failure);
    return out;
}

/// The member, or `otherwise` if it is missing or null.
template <class T>
[[nodiscard]] T either(JsonIn const& in, std::string_view name, T otherwise) {
    return in.optional<T>(name).value_or(std::move(otherwise));
}

/// A map of texts; other values are kept as JSON text.
[[nodiscard]] std::map<std::string, std::string> metadata(JsonIn const& in, std::string_view name);

/// What a prompt or a model input consists of (protocol §3.1).
struct Input {
    ModelInput input{};
};
void read(JsonIn const& in, Input& out);

}  // namespace tinkxx::wire::server
