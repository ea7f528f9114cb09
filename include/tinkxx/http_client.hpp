#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/status.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tinkxx {

/// Plain HTTP to the service: what the other clients are made of, for endpoints that they do not
/// cover.
///
///     HttpClient http{{.base_url = "http://localhost:8000"}};
///     auto pending = http.send({.path = "/api/v1/healthz"});
///     std::cout << pending.get().body;
///
/// Failed attempts are repeated as `ClientOptions::max_retries` says; every method but GET and
/// HEAD carries an idempotency key by which the service recognises a repeat. Without an API key
/// requests go out without one.
///
/// A cheap handle: copies share one client. Every member may be called from any thread, and the
/// last handle may go away on any, also in a callback. Calls under way need no handle: they go on
/// until they are done, cancelled by their futures, or ended by `close`, `Runtime::shutdown` or the
/// end of the process. (A runtime without threads is not kept.)
class HttpClient {
public:
    /// Given the pieces of an answer's body, in order, one at a time, on the callback executor.
    /// The bytes are valid during the call.
    using DataHandler = std::function<void(std::span<char const> data)>;

    /// With options from the environment. Throws as below.
    HttpClient();
    /// Throws `ValidationError`, naming field and value, for options that cannot work.
    explicit HttpClient(ClientOptions options);

    /// Starts a call and returns at once.
    ///
    /// Fails with `ValidationError` for a request that cannot be sent, `StatusError` for a status
    /// other than 2xx unless `fail_on_status` is off, `ConnectionError` or `TimeoutError` once
    /// there are no attempts left, and `ClosedError` after `close`.
    [[nodiscard]] Future<HttpResponse> send(HttpRequest request) const;

    /// As `send`, but gives the body of a successful answer to `on_data` as it comes, for downloads
    /// and event streams. The future completes after the last piece. While `on_data` is slow, the
    /// server is made to wait: at most some 100 KiB are kept for it.
    ///
    /// An answer of which a part was given away is not asked for again: then the failure has
    /// `RetryEnd::not_repeatable`. What `on_data` throws ends the call with `CallbackError`.
    [[nodiscard]] Future<HttpResponse> stream(HttpRequest request, DataHandler on_data) const;

    /// The calls under way, oldest first: where each stands, and what it waits for.
    [[nodiscard]] Future<std::vector<OperationStatus>> pending() const;

    /// Cancels the calls under way; later ones fail with `ClosedError`. Does not wait.
    void close() const;

    /// The runtime that this client runs on.
    [[nodiscard]] Runtime const& runtime() const noexcept;

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
