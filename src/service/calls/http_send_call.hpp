#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>

#include "service/calls/http_entry.hpp"
#include "service/core/call_book.hpp"
#include "service/http/http_call.hpp"

#include <memory>

namespace tinkxx::service {

/// One `HttpClient::send`: joins a call to its future. Made on the caller's thread, then lives on
/// the loop, which holds it until the call is over.
class HttpSendCall final : public std::enable_shared_from_this<HttpSendCall>,
                           private HttpCall::Listener {
public:
    HttpSendCall(std::shared_ptr<HttpContext> context, std::shared_ptr<CallBook> book,
                 Promise<HttpResponse> promise, HttpOrder order);

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    void begin();
    void stop() noexcept;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_standing() override { entry_.look(); }

    std::shared_ptr<HttpContext> const context_;  // outlives the call
    Promise<HttpResponse> promise_;
    HttpParcel parcel_;
    std::shared_ptr<HttpOrder const> const order_;
    HttpCall call_;
    HttpEntry entry_;
    std::shared_ptr<HttpSendCall> self_{};  // while under way; loop thread only
};

}  // namespace tinkxx::service
