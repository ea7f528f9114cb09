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

/// Plain HTTP calls to the service, for endpoints that the other clients do not cover.
///
///     HttpClient http{{.base_url = "http://localhost:8000"}};
///     auto pending = http.send({.path = "/api/v1/healthz"});
///     std::cout << pending.get().body;
///
/// Failed attempts are retried according to `ClientOptions::max_retries`; every method except GET
/// and HEAD carries an idempotency key, by which the service recognises a repeated request. Without
/// an API key, requests are sent without one.
///
/// A cheap handle: copies share one client. Every member may be called from any thread, and the
/// last handle may be destroyed on any thread, also in a callback. Pending calls need no handle:
/// they continue until they are done, cancelled through their futures, or ended by `close`,
/// `Runtime::shutdown` or the end of the process. (They do not keep a runtime without threads
/// alive.)
class HttpClient {
public:
    /// Receives the pieces of a response body, in order, one at a time, on the callback executor.
    /// The bytes are valid during the call.
    using DataHandler = std::function<void(std::span<char const> data)>;

    /// With options from the environment. Throws as below.
    HttpClient();
    /// Throws `ValidationError`, naming field and value, for invalid options.
    explicit HttpClient(ClientOptions options);

    /// Starts a call and returns at once.
    ///
    /// Fails with `ValidationError` for a request that cannot be sent, `StatusError` for a status
    /// other than 2xx unless `fail_on_status` is off, `ConnectionError` or `TimeoutError` once
    /// there are no attempts left, and `ClosedError` after `close`.
    [[nodiscard]] Future<HttpResponse> send(HttpRequest request) const;

    /// As `send`, but passes the body of a successful answer to `on_data` as it arrives, for
    /// downloads and event streams. The future completes after the last piece. If `on_data` is
    /// slow, the server is slowed down too: at most about 100 KiB are buffered.
    ///
    /// Once a part of the body was passed on, the call is not retried: a failure then has
    /// `RetryEnd::not_repeatable`. An exception from `on_data` ends the call with `CallbackError`.
    [[nodiscard]] Future<HttpResponse> stream(HttpRequest request, DataHandler on_data) const;

    /// The pending calls, oldest first: the stage of each, and what it waits for.
    [[nodiscard]] Future<std::vector<OperationStatus>> pending() const;

    /// Cancels pending calls; later calls fail with `ClosedError`. Does not wait.
    void close() const;

    /// The runtime that this client runs on.
    [[nodiscard]] Runtime const& runtime() const noexcept;

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
