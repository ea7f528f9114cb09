#include "service/core/encoding_choice.hpp"

#include "service/http/http_error.hpp"

namespace tinkxx::service {

bool EncodingChoice::accepted(wire::Encoding encoding) noexcept {
    auto const found = encoding == wire::Encoding::json ? Known::json : Known::protobuf;
    return !fixed_ && known_.exchange(found) != found;
}

bool EncodingChoice::assume_old() noexcept {
    auto nothing = Known::nothing;
    return known_.compare_exchange_strong(nothing, Known::assumed_json);
}

std::optional<wire::Encoding> EncodingChoice::refused(wire::Encoding encoding,
                                                      Error const& error) const {
    if (fixed_ || error.kind() != ErrorKind::status) return std::nullopt;
    auto const status = error.http_status().value_or(0);
    if (encoding == wire::Encoding::json) {
        // Also from a server that took it once: a newer one may have taken its place.
        if (status == 415) return wire::Encoding::protobuf;
        return std::nullopt;
    }
    // What others found out meanwhile is no reason to give up, unless they found that it works.
    if (known_ == Known::protobuf) return std::nullopt;
    Headers lines;
    for (auto const& [name, value] : error.details().headers) lines.add(name, value);
    if (status == 400 || status == 415 || status == 422 || is_plain_500(status, lines)) {
        return wire::Encoding::json;
    }
    return std::nullopt;
}

}  // namespace tinkxx::service
