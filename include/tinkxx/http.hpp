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

/// Facts about a call that observers are given, such as a session id.
using Metadata = std::map<std::string, std::string>;

/// One call of an `HttpClient`. Every field has a working default.
struct HttpRequest {
    std::string method{"GET"};
    /// Appended to the base URL; may carry a query. An absolute URL is taken as it is, and the
    /// API key and default headers are sent there only if it is of the base URL's origin.
    std::string path{};
    /// Replaces parameters of the same name in `path` and in `ClientOptions::default_query`.
    Query query{};
    /// Replaces lines of the same name among the standard ones and
    /// `ClientOptions::default_headers`.
    Headers headers{};
    std::string body{};
    /// Of the body. Empty: `application/json` for every method but GET and HEAD.
    std::string content_type{};
    Purpose purpose{Purpose::rest};
    /// Empty: those of the client.
    std::optional<Timeouts> timeouts{};
    std::optional<int> max_retries{};
    /// By which the server recognises a repeat. Empty: a random one for every method but GET and
    /// HEAD; an empty string: none.
    std::optional<std::string> idempotency_key{};
    Redirects redirects{Redirects::follow};
    /// Whether a status other than 2xx, after its retries, is an error or an answer.
    bool fail_on_status{true};
    /// A longer body, decoded, is an error.
    std::uint64_t max_response_bytes{std::uint64_t{1} << 30U};
    /// Given to observers; wins over the client's.
    Metadata metadata{};
};

/// An answer as it came.
struct HttpResponse {
    int status{0};
    Headers headers{};
    /// Decoded. Empty for `stream`, which gave it away in pieces.
    std::string body{};
    /// 11 for HTTP/1.1, 20 for HTTP/2.
    int http_version{0};
    /// Where the answer came from, redirects followed.
    std::string url{};
    /// Attempts after the first.
    int retries{0};
    /// The whole call, retries and waits included.
    std::chrono::nanoseconds elapsed{0};
    /// Of the last attempt.
    Timing timing{};
};

}  // namespace tinkxx
