#pragma once

#include <tinkxx/query.hpp>
#include <tinkxx/transport.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

/// Builds a `multipart/form-data` body.
///
///     auto form = Multipart{}.field("purpose", "eval").file("data", {.name = "a.txt", .content =
///     text})
///                     .encode();
///     http.send({.method = "POST", .path = "/upload", .body = form.body,
///                .content_type = form.content_type});
class Multipart {
public:
    struct File {
        /// The file name sent to the server.
        std::string name{};
        std::string content{};
        std::string content_type{"application/octet-stream"};
        /// Additional headers of this part.
        Headers headers{};
    };
    struct Encoded {
        std::string body{};
        /// Contains the boundary; for `HttpRequest::content_type`.
        std::string content_type{};
    };

    /// Adds a field. Parts become `name[part]`, and each element of a list `name[]`. Nulls are
    /// omitted.
    Multipart& field(std::string_view name, QueryValue const& value);
    Multipart& file(std::string name, File file);
    /// Uses this boundary instead of a generated one.
    Multipart& boundary(std::string text);

    /// Throws `ValidationError` for a given boundary that is malformed or occurs in the content,
    /// and for invalid headers. A generated boundary depends only on `seed` and the content, in
    /// which it never occurs.
    [[nodiscard]] Encoded encode(std::uint64_t seed = 0) const;

private:
    struct Part {
        std::string name{};
        bool is_file{false};
        File file{};
    };
    [[nodiscard]] bool occurs(std::string_view boundary) const noexcept;

    std::vector<Part> parts_{};
    std::string boundary_{};
};

}  // namespace tinkxx
