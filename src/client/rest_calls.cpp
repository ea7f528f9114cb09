#include "client/rest_calls.hpp"

#include "service/http/http_order.hpp"

namespace tinkxx::client {

std::optional<ErrorDetails> RestCalls::problem(std::string_view operation) const {
    if (call_.deadline.count() < 0) {
        auto const ms = std::to_string(call_.deadline.count());
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = std::string{operation} + ": CallOptions::deadline is " + ms +
                                       " ms; it must not be negative (0: the client's)",
                            .category = ErrorCategory::user,
                            .field = "CallOptions::deadline",
                            .value = ms + " ms"};
    }
    if (runtime().shut_down()) {
        return ErrorDetails{.kind = ErrorKind::cancelled,
                            .message = std::string{operation} + ": the runtime was shut down"};
    }
    return std::nullopt;
}

Future<DownloadedCheckpoint> RestCalls::download(std::string_view operation,
                                                 service::DownloadOrder order) const {
    if (auto no = problem(operation)) {
        return make_failed_future<DownloadedCheckpoint>(Error{*std::move(no)});
    }
    return service::launch_prepared<service::DownloadCall>(
        runtime(), [this](auto& call) { call.set_call(call_.deadline, call_.metadata); },
        service_.impl_->sessionless(), std::string{operation}, runtime(), std::move(order));
}

RestCalls::MakeOrder RestCalls::order(service::ClientCore const& core,
                                      service::RestRequest request) const {
    request.headers = core.trace_headers();
    return [request = std::move(request)](service::ClientCore& ready) {
        return service::rest_order(ready, request);
    };
}

}  // namespace tinkxx::client
