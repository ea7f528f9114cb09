#pragma once

#include <tinkxx/transport.hpp>

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::net {

/// Whether a header of that name carries a credential, which must not follow a redirect to
/// another origin nor enter a compression table.
[[nodiscard]] bool is_credential(std::string_view name) noexcept;

/// Whether the transport writes that header itself, so that a caller's line is left out.
[[nodiscard]] bool is_transport_header(std::string_view name) noexcept;

/// Why `headers` cannot be sent, naming the line; empty if they can. Line breaks in a value
/// would let a caller's data become headers of its own.
[[nodiscard]] std::string header_problem(Headers const& headers);

/// Header lines in the forms in which they go out, made once for many requests.
struct PreparedHeaders {
    std::shared_ptr<Headers const> source{};
    std::string problem{};
    std::string http1{};               ///< `Name: value\r\n` lines
    std::vector<std::string> names{};  ///< lower case, that `http2` points into
    std::vector<nghttp2_nv> http2{};   ///< not copied by nghttp2: keep this alive until sent
    bool has_accept_encoding{false};
};

[[nodiscard]] std::shared_ptr<PreparedHeaders const> prepare_headers(
    std::shared_ptr<Headers const> headers);

/// Remembers the prepared forms of the few header lists that a client shares among requests.
class HeaderCache {
public:
    /// Null for null.
    [[nodiscard]] std::shared_ptr<PreparedHeaders const> get(
        std::shared_ptr<Headers const> const& headers);

private:
    static constexpr std::size_t capacity = 16;
    std::vector<std::shared_ptr<PreparedHeaders const>> entries_;
    std::size_t oldest_{0};
};

}  // namespace tinkxx::net
