#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/query.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

/// Gives the W3C lines `traceparent` and `tracestate` of the caller's current span. Called on the
/// thread that makes a call; what it throws is ignored.
using TracePropagator = std::function<Headers()>;

/// How a client reaches the service. Every field has a working default.
///
/// What is left empty comes from the environment, which is read once, when the client is built,
/// and else from the default.
struct ClientOptions {
    /// Service root. Empty: `$TINKER_BASE_URL`, then the public service.
    std::string base_url{};
    /// API key. Empty: `$TINKER_API_KEY`. Never written to a log.
    std::string api_key{};
    /// Limits for each phase of one HTTP attempt, not for the whole call: 5 s to connect, 60 s
    /// for each other. Zero: no limit.
    Timeouts timeouts{};
    /// Retries of one HTTP call; 0 turns them off, a very large number means for ever.
    int max_retries{10};
    /// Sent with every request, in place of standard lines and lines of the JSON object
    /// `$TINKXX_DEFAULT_HEADERS` of the same name.
    Headers default_headers{};
    /// Added to every URL, in place of parameters of the JSON object `$TINKXX_DEFAULT_QUERY` of
    /// the same name.
    Query default_query{};
    /// `http(s)://[user:password@]host[:port]`. Empty: `$TINKXX_PROXY`, then none. For the
    /// network only: a `transport` of one's own does not see it.
    std::string proxy{};
    /// Sent to the proxy in place of the credentials in its URL. Empty: the JSON object
    /// `$TINKXX_PROXY_HEADERS`.
    Headers proxy_headers{};
    /// Hosts that are reached without the proxy, as in `NetOptions`. Empty: `$NO_PROXY`, then
    /// `$no_proxy`.
    std::string no_proxy{};
    /// Logs every request and answer, without secrets. Empty: `$TINKXX_DUMP_HEADERS`, then off.
    std::optional<bool> dump_headers{};
    /// Sends the lines of `trace_propagator`. Empty: `$TINKXX_OTEL_PROPAGATE`, then off.
    std::optional<bool> otel_propagate{};
    TracePropagator trace_propagator{};
    /// See what the client does.
    std::vector<std::shared_ptr<Observer>> observers{};
    /// Given to observers with every event.
    Metadata metadata{};
    /// Receives the client's log lines. Empty: the runtime's sink.
    LogSink log{};
    /// The least level that is logged. Empty: `$TINKER_LOG`, then warnings.
    std::optional<LogLevel> log_level{};
    /// The release of the official SDK that servers take this client for. Empty: the newest one
    /// that it can stand in for.
    std::string sdk_version{};
    /// The network, if `transport` is empty.
    NetOptions net{};
    /// Replaces the network, e.g. with `testing::FakeTransport`.
    std::shared_ptr<Transport> transport{};
    /// Empty: the one that clients share.
    std::optional<Runtime> runtime{};
};

}  // namespace tinkxx
