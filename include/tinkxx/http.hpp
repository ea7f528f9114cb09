#pragma once

#include <tinkxx/query.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx {

/// Facts about a call for observers, such as a session id.
using Metadata = std::map<std::string, std::string>;

/// One call of an `HttpClient`. Every field has a working default.
struct HttpRequest {
    std::string method{"GET"};
    /// Appended to the base URL; may contain a query. An absolute URL is used unchanged; the API
    /// key and default headers are sent to it only if it has the same origin as the base URL.
    std::string path{};
    /// Replaces parameters with the same name in `path` and in `ClientOptions::default_query`.
    Query query{};
    /// Replaces headers with the same name among the standard ones and
    /// `ClientOptions::default_headers`.
    Headers headers{};
    std::string body{};
    /// The type of the body. Empty: `application/json` for every method except GET and HEAD.
    std::string content_type{};
    Purpose purpose{Purpose::rest};
    /// Empty: the client's.
    std::optional<Timeouts> timeouts{};
    std::optional<int> max_retries{};
    /// Lets the server recognise a repeated request. Empty: a random one for every method except
    /// GET and HEAD; an empty string: none.
    std::optional<std::string> idempotency_key{};
    Redirects redirects{Redirects::follow};
    /// Whether a status other than 2xx, after retries, is an error rather than an answer.
    bool fail_on_status{true};
    /// The maximum size of the decoded body; a longer one is an error.
    std::uint64_t max_response_bytes{std::uint64_t{1} << 30U};
    /// Passed to observers; overrides the client's entries.
    Metadata metadata{};
};

/// An answer to an HTTP call.
struct HttpResponse {
    int status{0};
    Headers headers{};
    /// The decoded body. Empty for `stream`, which passes it on in pieces.
    std::string body{};
    /// 11 for HTTP/1.1, 20 for HTTP/2.
    int http_version{0};
    /// The URL that answered, after redirects.
    std::string url{};
    /// The number of attempts after the first.
    int retries{0};
    /// The duration of the whole call, including retries and delays.
    std::chrono::nanoseconds elapsed{0};
    /// Timings of the last attempt.
    Timing timing{};
};

}  // namespace tinkxx
