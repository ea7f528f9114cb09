#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>

#include "service/calls/http_entry.hpp"
#include "service/core/call_book.hpp"
#include "service/http/http_call.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace tinkxx::service {

/// As `HttpClient` has it.
using DataHandler = std::function<void(std::span<char const> data)>;

/// One `HttpClient::stream`. The call lives on the loop and the handler is called on the callback
/// executor; between them is a buffer, and a full buffer pauses the transport.
class HttpStreamCall final : public std::enable_shared_from_this<HttpStreamCall>,
                             private HttpCall::Listener {
public:
    /// What is kept for a slow handler before the server is made to wait.
    static constexpr std::size_t high_water = std::size_t{64} * 1024;

    /// `book` is null if it is part of a call that is listed itself.
    HttpStreamCall(std::shared_ptr<HttpContext> context, std::shared_ptr<CallBook> book,
                   Promise<HttpResponse> promise, HttpOrder order, DataHandler on_data);

    /// Called on the loop whenever it stands somewhere else. Before `launch`.
    void on_change(std::function<void()> watcher) { watcher_ = std::move(watcher); }
    /// Given status and lines of the answer on the loop, before its first piece. Before `launch`.
    void on_head(std::function<void(Head const&)> reader) { reader_ = std::move(reader); }
    /// Loop thread only.
    [[nodiscard]] bool waits_for_credential() const noexcept {
        return call_.waits_for_credential();
    }
    /// Whether pieces have come.
    [[nodiscard]] bool flows() const noexcept { return flows_; }

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    // On the loop:
    void begin();
    void stop() noexcept;
    void resume() noexcept;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_body(std::span<char const> data) override;
    void on_standing() override {
        if (watcher_) watcher_();
        entry_.look();
    }
    void finish(Result<HttpResponse> result);

    // On the callback executor, one at a time:
    void drain();
    void drain_later();

    std::shared_ptr<HttpContext> const context_;  // outlives the call
    Promise<HttpResponse> promise_;
    HttpParcel parcel_;
    std::shared_ptr<HttpOrder const> const order_;
    DataHandler const on_data_;
    std::function<void()> watcher_{};
    std::function<void(Head const&)> reader_{};
    bool flows_{false};
    HttpCall call_;
    HttpEntry entry_;
    std::shared_ptr<HttpStreamCall> self_{};  // while under way; loop thread only

    // Guards what follows, shared by the loop and the executor. Not held in user code.
    std::mutex mutex_{};
    std::string buffer_{};
    bool draining_{false};  ///< a drain is running or on its way
    bool paused_{false};
    std::optional<Result<HttpResponse>> result_{};
};

}  // namespace tinkxx::service
