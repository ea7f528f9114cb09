#include "service/calls/http_send_call.hpp"

#include <utility>

namespace tinkxx::service {

HttpSendCall::HttpSendCall(std::shared_ptr<HttpContext> context, Promise<HttpResponse> promise,
                           HttpOrder order)
    : context_{std::move(context)},
      promise_{std::move(promise)},
      order_{std::move(order)},
      call_{*context_, *this} {}

void HttpSendCall::launch() {
    // Weak: a cancel that is never made must not keep the call.
    promise_.on_cancel([weak = weak_from_this(), context = context_] {
        context->scheduler().post([weak] {
            if (auto const operation = weak.lock()) operation->stop();
        });
    });
    context_->scheduler().post([operation = shared_from_this()] { operation->begin(); });
}

void HttpSendCall::begin() {
    if (promise_.done()) return;      // cancelled before it began
    if (!context_->usable()) return;  // the end of the promise says so
    self_ = shared_from_this();
    url_ = order_.url;
    call_.start(std::move(order_));
}

void HttpSendCall::stop() noexcept {
    auto const keep_alive = std::move(self_);
    call_.cancel();
}

void HttpSendCall::on_response(HttpResponse response) {
    auto const keep_alive = std::move(self_);
    if (response.url.empty()) response.url = std::move(url_);
    promise_.set_value(std::move(response));
}

void HttpSendCall::on_error(Error error) {
    auto const keep_alive = std::move(self_);
    promise_.set_error(std::move(error));
}

}  // namespace tinkxx::service
