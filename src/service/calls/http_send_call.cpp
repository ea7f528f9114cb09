#include "service/calls/http_send_call.hpp"

#include <utility>

namespace tinkxx::service {

HttpSendCall::HttpSendCall(std::shared_ptr<HttpContext> context, std::shared_ptr<CallBook> book,
                           Promise<HttpResponse> promise, HttpOrder order)
    : context_{std::move(context)},
      promise_{std::move(promise)},
      parcel_{.headers = std::move(order.headers), .body = std::move(order.body)},
      order_{std::make_shared<HttpOrder const>(std::move(order))},
      call_{*context_, *this},
      entry_{std::move(book), *context_, call_} {}

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
    entry_.begin(order_);
    call_.start(order_, std::move(parcel_));
    entry_.look();
}

void HttpSendCall::stop() noexcept {
    auto const keep_alive = std::move(self_);
    call_.cancel();
    entry_.end();
}

void HttpSendCall::on_response(HttpResponse response) {
    auto const keep_alive = std::move(self_);
    entry_.end();
    if (response.url.empty()) response.url = order_->url;
    promise_.set_value(std::move(response));
}

void HttpSendCall::on_error(Error error) {
    auto const keep_alive = std::move(self_);
    entry_.end();
    promise_.set_error(std::move(error));
}

}  // namespace tinkxx::service
