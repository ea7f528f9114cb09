#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>

#include "service/http/http_call.hpp"

#include <memory>

namespace tinkxx::client {

/// One `HttpClient::send`: joins a call to its future. Made on the caller's thread, then lives on
/// the loop, which holds it until the call is over.
class SendOperation final : public std::enable_shared_from_this<SendOperation>,
                            private service::HttpCall::Listener {
public:
    SendOperation(std::shared_ptr<service::HttpContext> context, Promise<HttpResponse> promise,
                  service::HttpOrder order);

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    void begin();
    void stop() noexcept;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;

    std::shared_ptr<service::HttpContext> const context_;  // outlives the call
    Promise<HttpResponse> promise_;
    service::HttpOrder order_;
    std::string url_{};
    service::HttpCall call_;
    std::shared_ptr<SendOperation> self_{};  // while under way; loop thread only
};

}  // namespace tinkxx::client
