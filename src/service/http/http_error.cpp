#include "service/http/http_error.hpp"

#include "base/common/ascii.hpp"
#include "service/text/retry_after.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace tinkxx::service {

namespace {

namespace json = boost::json;

constexpr std::size_t message_body_bytes = 1024;
// Larger bodies are not worth parsing for a message.
constexpr std::size_t parsed_body_bytes = std::size_t{64} * 1024;

std::string_view member(json::value const& body, std::string_view name) {
    auto const* object = body.if_object();
    if (object == nullptr) return {};
    auto const* found = object->if_contains({name.data(), name.size()});
    if (found == nullptr || !found->is_string()) return {};
    auto const& text = found->get_string();
    return {text.data(), text.size()};
}

std::string_view way_out(int status) noexcept {
    switch (status) {
        case 401:
            return "set TINKER_API_KEY or ClientOptions::api_key";
        case 402:
            return "check the billing of the account";
        case 403:
            return "check what the API key may do";
        case 404:
            return "check the path, and TINKER_BASE_URL or ClientOptions::base_url";
        case 413:
            return "send less in one request";
        case 429:
            return "send fewer requests at once, or later";
        default:
            return status >= 500 ? "try again later" : std::string_view{};
    }
}

std::string_view way_out(Failure const& failure) noexcept {
    switch (failure.kind) {
        case FailureKind::resolve:
        case FailureKind::connect:
            return "check the network, and TINKER_BASE_URL or ClientOptions::base_url";
        case FailureKind::proxy:
            return "check TINKXX_PROXY or ClientOptions::proxy";
        case FailureKind::tls:
            if (failure.permanent) return {};  // the transport knows better, and has said it
            return "check the certificate of the server and NetOptions::tls";
        case FailureKind::connect_timeout:
        case FailureKind::read_timeout:
        case FailureKind::write_timeout:
        case FailureKind::pool_timeout:
        case FailureKind::total_timeout:
            return "try again later, or raise ClientOptions::timeouts";
        case FailureKind::too_large:
            return "raise HttpRequest::max_response_bytes, or stream the answer";
        case FailureKind::reset:
        case FailureKind::protocol:
        case FailureKind::decoding:
            if (failure.permanent) return {};
            return "try again later";
        case FailureKind::invalid_request:
        case FailureKind::redirect:
        case FailureKind::closed:
            return {};
    }
    return {};
}

void append(std::string& message, std::string_view between, std::string_view text) {
    if (text.empty()) return;
    message += between;
    message += text;
}

}  // namespace

std::string_view cut(std::string_view text, std::size_t most) noexcept {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
    return text.substr(0, most);
}

std::string one_line(std::string_view text) {
    std::string out;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte != 0x7f) {
            out += c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    return out;
}

std::string with_operation(std::string_view operation, std::string_view message) {
    if (message.starts_with(operation) && message.substr(operation.size()).starts_with(": ")) {
        return std::string{message};
    }
    std::string text{operation};
    text += ": ";
    text += message;
    return text;
}

bool is_success(int status) noexcept { return status >= 200 && status < 300; }

std::string_view reason_phrase(int status) noexcept {
    switch (status) {
        case 301:
            return "moved permanently";
        case 302:
            return "found";
        case 303:
            return "see other";
        case 307:
            return "temporary redirect";
        case 308:
            return "permanent redirect";
        case 400:
            return "bad request";
        case 401:
            return "unauthorized";
        case 402:
            return "payment required";
        case 403:
            return "forbidden";
        case 404:
            return "not found";
        case 405:
            return "method not allowed";
        case 408:
            return "request timeout";
        case 409:
            return "conflict";
        case 410:
            return "gone";
        case 413:
            return "content too large";
        case 415:
            return "unsupported media type";
        case 422:
            return "unprocessable content";
        case 425:
            return "too early";
        case 429:
            return "too many requests";
        case 500:
            return "internal server error";
        case 501:
            return "not implemented";
        case 502:
            return "bad gateway";
        case 503:
            return "service unavailable";
        case 504:
            return "gateway timeout";
        default:
            return {};
    }
}

bool is_passing(int status) noexcept {
    return status == 408 || status == 409 || status == 429 || status >= 500;
}

bool is_plain_500(int status, Headers const& headers) noexcept {
    auto const* type = status == 500 ? headers.find("content-type") : nullptr;
    return type != nullptr && type->starts_with("text/plain");
}

ErrorCategory category_of(int status) noexcept {
    // A request that the server waited for in vain is not at fault either (R-RETRY-21).
    bool const waited = status == 408 || status == 429;
    if (waited || (status >= 500 && status < 600)) return ErrorCategory::server;
    if (status >= 400 && status < 500) return ErrorCategory::user;
    return ErrorCategory::unknown;
}

ErrorDetails status_error(Operation const& operation, Head const& head, std::string_view body,
                          WallTime now, Scrubber const& scrubber) {
    ErrorDetails details;
    details.kind = head.status == 402 ? ErrorKind::billing : ErrorKind::status;
    details.http_status = head.status;
    details.retryable = is_passing(head.status);
    details.category = category_of(head.status);
    if (auto const wait = retry_after(head.headers, now, std::chrono::hours{24 * 365})) {
        details.retry_after = std::chrono::ceil<std::chrono::milliseconds>(*wait);
    }
    if (auto const* id = head.headers.find("x-request-id")) details.request_id = *id;

    auto text = scrubber.scrub(base::trim(body, base::white_space));
    if (text.size() <= parsed_body_bytes) {
        json::error_code failed;
        auto const parsed = json::parse(text, failed);
        if (!failed) {
            if (details.request_id.empty()) details.request_id = member(parsed, "request_id");
            auto const category = base::ascii_lower(member(parsed, "category"));
            if (category == "user") details.category = ErrorCategory::user;
            if (category == "server") details.category = ErrorCategory::server;
            text = json::serialize(parsed);
        }
    }
    details.body = cut(text, error_body_bytes);
    for (auto& [name, value] : scrubber.scrub(head.headers))
        details.headers.emplace_back(name, value);

    details.message = operation.name() + ": " + std::to_string(head.status);
    append(details.message, " ", reason_phrase(head.status));
    text = one_line(text);
    auto const shown = cut(text, message_body_bytes);
    append(details.message, ": ", shown);
    if (shown.size() < text.size()) details.message += "...";
    if (!operation.feature.empty() && (head.status == 404 || head.status == 405)) {
        details.unsupported_feature = operation.feature;
        // Who knows the path says more than this of what is not there.
        bool const told =
            head.status == 404 && !text.empty() && text != R"({"detail":"Not Found"})";
        details.message += told ? "; if it exists, this server does not support "
                                : "; this server does not support ";
        details.message += operation.feature;
    } else {
        append(details.message, "; ", way_out(head.status));
    }
    return details;
}

ErrorDetails failure_error(Operation const& operation, Failure const& failure,
                           Scrubber const& scrubber) {
    ErrorDetails details;
    details.message = operation.name() + ": ";
    auto const cause = scrubber.scrub(failure.message);
    details.message += cause.empty() ? std::string{to_string(failure.kind)} : cause;
    append(details.message, "; ", way_out(failure));
    switch (failure.kind) {
        case FailureKind::invalid_request:
            details.kind = ErrorKind::validation;
            details.category = ErrorCategory::user;
            break;
        case FailureKind::closed:
            details.kind = ErrorKind::closed;
            break;
        case FailureKind::too_large:
            details.kind = ErrorKind::connection;
            break;
        default:
            details.kind = is_timeout(failure.kind) ? ErrorKind::timeout : ErrorKind::connection;
            details.retryable = !failure.permanent;
            break;
    }
    return details;
}

bool cannot_heal(Error const& error) noexcept {
    bool const no_answer =
        error.kind() == ErrorKind::connection || error.kind() == ErrorKind::timeout;
    return no_answer && !error.retryable() && error.stopped() == RetryEnd::permanent;
}

ErrorDetails rejection_error(Operation const& operation) {
    ErrorDetails details;
    details.kind = ErrorKind::connection;
    details.http_status = 400;
    details.retryable = true;
    details.message = operation.name() +
                      ": 400 bad request without a body: a proxy in front of the service "
                      "rejected the connection; try again later";
    return details;
}

}  // namespace tinkxx::service
