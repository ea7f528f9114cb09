#pragma once

#include "wire/json/json.hpp"
#include "wire/server/requests.hpp"

#include <cstdint>
#include <limits>
#include <optional>
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
    std::string why;
    auto const document = try_json(text, why);
    if (!document) {
        return refusal(operation, {}, {},
                       "the body is no JSON that can be read: " + why +
                           "; send a JSON object with Content-Type: application/json");
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

/// An integer from `from` to `to`; any other value is refused by an error that names both.
template <std::int64_t from, std::int64_t to>
struct Within {
    static constexpr std::int64_t least = from;
    static constexpr std::int64_t most = to;
    std::int64_t number{least};
};
template <std::int64_t from, std::int64_t to>
void read(JsonIn const& in, Within<from, to>& out) {
    read_within(in, from, to, out.number);
}
/// What clients number or count up, and what is a place in something. All that a double holds, so
/// that no client writes another one than it means, and none is near the end of 64 bits.
using Number = Within<0, (std::int64_t{1} << 53U) - 1>;
/// How many, or how many at most.
using Count = Within<0, std::numeric_limits<std::int32_t>::max()>;

template <class Range>
[[nodiscard]] std::optional<std::int64_t> optional_number(JsonIn const& in, std::string_view name) {
    auto const found = in.optional<Range>(name);
    return found ? std::optional{found->number} : std::nullopt;
}

/// A map of texts; other values are kept as JSON text.
[[nodiscard]] std::map<std::string, std::string> metadata(JsonIn const& in, std::string_view name);

/// What a prompt or a model input consists of (protocol §3.1).
struct Input {
    ModelInput input{};
};
void read(JsonIn const& in, Input& out);

}  // namespace tinkxx::wire::server
