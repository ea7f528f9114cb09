#include "service/http/http_order.hpp"

#include "base/common/invalid.hpp"
#include "service/text/checks.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

ErrorDetails invalid(HttpRequest const& request, std::string const& field, std::string value,
                     std::string_view rule) {
    return base::invalid(request.method + ' ' + request.path, field, std::move(value),
                         field + ' ' + std::string{rule});
}

ErrorDetails in_request(HttpRequest const& request, ErrorDetails problem) {
    problem.message = request.method + ' ' + request.path + ": " + problem.message;
    return problem;
}

bool is_method(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    });
}

// R-EXT-20: never in place of a line that is there, and all or nothing.
void add_trace_context(Headers& headers, Headers const& common, TracePropagator const& propagator) {
    if (!propagator) return;
    try {
        Headers traced;
        auto const lines = propagator();
        for (auto const* name : {"traceparent", "tracestate"}) {
            auto const* value = lines.find(name);
            if (value == nullptr || headers.contains(name) || common.contains(name)) continue;
            traced.add(name, *value);
        }
        if (check_headers(traced, "trace_propagator")) return;
        for (auto const& [name, value] : traced) headers.add(name, value);
    } catch (...) {
        // The call matters more than its trace.
    }
}

std::optional<ErrorDetails> problem_of(HttpRequest const& request) {
    if (!is_method(request.method)) {
        return invalid(request, "method", request.method, "must be a word such as GET");
    }
    auto problem = check_headers(request.headers, "headers");
    if (!problem) problem = check_headers({{"Content-Type", request.content_type}}, "content_type");
    if (!problem && request.idempotency_key) {
        problem =
            check_headers({{"X-Idempotency-Key", *request.idempotency_key}}, "idempotency_key");
    }
    if (!problem && request.timeouts) problem = check_timeouts(*request.timeouts);
    if (!problem && request.max_retries) problem = check_retries(*request.max_retries);
    if (!problem) return std::nullopt;
    return in_request(request, *std::move(problem));
}

// The lines that all requests of the client have, but for those that this one has of its own.
std::shared_ptr<Headers const> common_headers(HttpRequest const& request,
                                              HttpContext const& context, bool own) {
    bool const reads = request.method == "GET" || request.method == "HEAD";
    bool const typed = request.headers.contains("content-type");
    auto common = own ? context.headers() : context.foreign_headers();
    if (!typed && own && (!reads || !request.body.empty())) common = context.json_headers();
    bool const overlaps = std::ranges::any_of(
        request.headers, [&](Header const& line) { return common->contains(line.name); });
    if (!overlaps) return common;
    auto rest = *common;
    for (auto const& line : request.headers) rest.remove(line.name);
    return std::make_shared<Headers const>(std::move(rest));
}

}  // namespace

Result<HttpOrder> make_order(HttpRequest request, HttpContext const& context,
                             TracePropagator const& propagator) {
    auto const& config = context.config();
    if (auto problem = problem_of(request)) return *std::move(problem);

    HttpOrder order;
    bool const absolute = is_absolute_url(request.path);
    bool const own = !absolute || config.endpoint.owns(request.path);
    order.url =
        config.endpoint.url(request.path, own ? config.default_query : Query{}, request.query);
    order.send_credential = own;
    order.operation.path = request.path.substr(0, request.path.find('?'));
    if (!request.content_type.empty()) {
        request.headers.set("Content-Type", std::move(request.content_type));
    }
    order.common_headers = common_headers(request, context, own);
    order.operation.method = std::move(request.method);
    order.headers = std::move(request.headers);
    add_trace_context(order.headers, *order.common_headers, propagator);

    if (!request.body.empty()) {
        order.body.tail = std::make_shared<std::string const>(std::move(request.body));
    }
    order.purpose = request.purpose;
    order.timeouts = request.timeouts.value_or(config.timeouts);
    order.max_retries = request.max_retries.value_or(config.max_retries);
    order.idempotency_key = std::move(request.idempotency_key);
    order.redirects = request.redirects;
    order.fail_on_status = request.fail_on_status;
    order.max_response_bytes = request.max_response_bytes;
    order.metadata = std::move(request.metadata);
    return order;
}

Headers trace_headers(HttpContext const& context, TracePropagator const& propagator) {
    Headers headers;
    add_trace_context(headers, *context.headers(), propagator);
    return headers;
}

HttpOrder post_order(HttpContext const& context, std::string_view path, std::string body,
                     Purpose purpose) {
    auto order = get_order(context, path, purpose);
    order.operation.method = "POST";
    order.common_headers = context.json_headers();
    order.body.tail = std::make_shared<std::string const>(std::move(body));
    return order;
}

HttpOrder get_order(HttpContext const& context, std::string_view path, Purpose purpose) {
    auto const& config = context.config();
    HttpOrder order;
    order.operation = {.method = "GET", .path = std::string{path}};
    order.url = config.url(path);
    order.purpose = purpose;
    order.timeouts = config.timeouts;
    order.max_retries = config.max_retries;
    return order;
}

void add_method(HttpOrder& order, std::string_view sdk_version, std::string_view method) {
    order.headers.add("x-sdk-version", std::string{sdk_version});
    order.headers.add("x-sdk-method", std::string{method});
}

}  // namespace tinkxx::service
