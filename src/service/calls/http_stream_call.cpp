#include "service/calls/http_stream_call.hpp"

#include <exception>
#include <utility>

namespace tinkxx::service {

namespace {

std::shared_ptr<HttpOrder const> streamed(HttpOrder order) {
    order.stream = true;
    return std::make_shared<HttpOrder const>(std::move(order));
}

}  // namespace

HttpStreamCall::HttpStreamCall(std::shared_ptr<HttpContext> context, std::shared_ptr<CallBook> book,
                               Promise<HttpResponse> promise, HttpOrder order, DataHandler on_data)
    : context_{std::move(context)},
      promise_{std::move(promise)},
      parcel_{.headers = std::move(order.headers), .body = std::move(order.body)},
      order_{streamed(std::move(order))},
      on_data_{std::move(on_data)},
      call_{*context_, *this},
      entry_{std::move(book), *context_, call_} {}

void HttpStreamCall::launch() {
    promise_.on_cancel([weak = weak_from_this(), context = context_] {
        context->scheduler().post([weak] {
            if (auto const operation = weak.lock()) operation->stop();
        });
    });
    context_->scheduler().post([operation = shared_from_this()] { operation->begin(); });
}

void HttpStreamCall::begin() {
    if (promise_.done() || !context_->usable()) return;
    self_ = shared_from_this();
    entry_.begin(order_);
    call_.start(order_, std::move(parcel_));
    entry_.look();
}

void HttpStreamCall::stop() noexcept {
    auto const keep_alive = std::move(self_);
    call_.cancel();
    entry_.end();
}

void HttpStreamCall::resume() noexcept {
    {
        std::lock_guard const lock{mutex_};
        if (paused_) return;  // full again; the drain that is on its way resumes
    }
    call_.pause(false);
}

void HttpStreamCall::on_body(std::span<char const> data) {
    if (!std::exchange(flows_, true)) {
        if (reader_) reader_(call_.coming());
        on_standing();
    }
    entry_.flow();
    bool pause = false;
    {
        std::lock_guard const lock{mutex_};
        buffer_.append(data.data(), data.size());
        if (buffer_.size() >= high_water && !paused_) pause = paused_ = true;
        if (std::exchange(draining_, true)) {
            if (pause) call_.pause(true);
            return;
        }
    }
    if (pause) call_.pause(true);
    drain_later();
}

void HttpStreamCall::on_response(HttpResponse response) {
    if (response.url.empty()) response.url = order_->url;
    finish(std::move(response));
}

void HttpStreamCall::on_error(Error error) { finish(std::move(error)); }

void HttpStreamCall::finish(Result<HttpResponse> result) {
    auto const keep_alive = std::move(self_);
    entry_.end();
    {
        std::lock_guard const lock{mutex_};
        result_.emplace(std::move(result));
        if (std::exchange(draining_, true)) return;
    }
    drain_later();
}

void HttpStreamCall::drain_later() {
    // If the runtime shuts down, the promise ends with the call.
    context_->runtime().run_callback([operation = shared_from_this()] { operation->drain(); },
                                     [operation = shared_from_this()](Error error) {
                                         operation->promise_.set_error(std::move(error));
                                         operation->stop();
                                     });
}

void HttpStreamCall::drain() {
    for (;;) {
        std::string piece;
        bool unpause = false;
        std::optional<Result<HttpResponse>> result;
        {
            std::lock_guard const lock{mutex_};
            piece.swap(buffer_);
            if (piece.empty()) {
                draining_ = false;
                result.swap(result_);
            }
            unpause = std::exchange(paused_, false);
        }
        if (unpause) {
            context_->scheduler().post([operation = shared_from_this()] { operation->resume(); });
        }
        if (piece.empty()) {
            if (result) promise_.set_result(std::move(*result));
            return;
        }
        if (promise_.done()) continue;  // cancelled: what is left is thrown away
        try {
            if (on_data_) on_data_(piece);
        } catch (...) {
            promise_.set_error(detail::current_error());
            context_->scheduler().post([operation = shared_from_this()] { operation->stop(); });
        }
    }
}

}  // namespace tinkxx::service
