#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/poll_backoff.hpp>
#include <tinkxx/query.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/tokenizer.hpp>
#include <tinkxx/transport.hpp>
#include <tinkxx/types/training.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

/// Gives the W3C lines `traceparent` and `tracestate` of the caller's current span. Called on the
/// thread that makes a call; what it throws is ignored.
using TracePropagator = std::function<Headers()>;

/// How much of sampling is being submitted at once, by all samplers of a client together. It is
/// submitted as soon as the service has accepted it.
struct DispatchLimits {
    /// Samples. Empty: 400.
    std::optional<std::int64_t> count{};
    /// Samples within ten seconds of a refusal for load (429). Empty: 10.
    std::optional<std::int64_t> throttled{};
    /// Estimated bytes. Empty: what the server says, else 5 MiB.
    std::optional<std::int64_t> bytes{};

    bool operator==(DispatchLimits const&) const = default;
};

/// Into what pieces a training batch is cut. Empty: what the server says.
struct ChunkLimits {
    std::optional<std::int64_t> items{};
    /// Estimated, of one piece.
    std::optional<std::int64_t> bytes{};
    /// Estimated, of all pieces that are being submitted.
    std::optional<std::int64_t> bytes_in_flight{};

    bool operator==(ChunkLimits const&) const = default;
};

/// What happens to a sample when as many are pending as `PendingLimit` allows.
enum class WhenFull : std::uint8_t {
    block,   ///< the caller waits; on an SDK thread, which must not, it is refused
    reject,  ///< its future fails at once with `QueueFullError`
};

/// How many samples may be pending at once, and what happens to more.
struct PendingLimit {
    /// 0: no limit.
    std::size_t count{0};
    WhenFull when_full{WhenFull::block};

    bool operator==(PendingLimit const&) const = default;
};

/// What a client does by itself, and how often: for operators with their own needs, and for tests.
struct Intervals {
    /// Between two beats for a session.
    std::chrono::milliseconds heartbeat{std::chrono::seconds{10}};
    /// Time without a successful beat after which each that fails is worth a warning.
    std::chrono::milliseconds heartbeat_warning{std::chrono::seconds{120}};
    /// Failures in a row, and time without success, after which the heartbeat ends. Zero: never.
    int heartbeat_max_failures{0};
    std::chrono::milliseconds heartbeat_max_silence{0};
    /// The server's settings are not fetched more often, whatever it says itself.
    std::chrono::milliseconds dynamic_refresh_minimum{std::chrono::seconds{10}};
    std::chrono::milliseconds telemetry_flush{std::chrono::seconds{10}};
    /// How long closing a client waits for what is still to be sent.
    std::chrono::milliseconds telemetry_drain{std::chrono::seconds{5}};

    bool operator==(Intervals const&) const = default;
};

/// How a client reaches the service. Every field has a working default.
///
/// What is left as it is comes from `set_default_options`, else from the environment, which is
/// read once, when the client is built, and else from the default.
struct ClientOptions {
    /// Service root. Empty: `$TINKER_BASE_URL`, then the public service.
    std::string base_url{};
    /// API key. Empty: `$TINKER_API_KEY`, then `credential_cmd`, then the stored one. Never written
    /// to a log.
    std::string api_key{};
    /// Limits for each phase of one HTTP attempt, not for the whole call: 5 s to connect, 60 s
    /// for each other. Zero: no limit.
    Timeouts timeouts{};
    /// Retries of one HTTP call; 0 turns them off, a very large number means for ever. Not for
    /// samples, whose retries `RetryConfig::max_retries` counts.
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
    /// The network, if `transport` is empty. Equal options are what clients share connections by.
    NetOptions net{};
    /// Finds the tokenizer of a model, for prompts given as text. Empty: looks for files on this
    /// machine, as `text/load.hpp` says; nothing is downloaded.
    std::optional<Tokenizers> tokenizers{};
    /// Replaces the network, e.g. with `testing::FakeTransport`.
    std::shared_ptr<Transport> transport{};
    /// Empty: the one that clients share.
    std::optional<Runtime> runtime{};

    /// Facts about a session that the service keeps with it.
    std::map<std::string, std::string> user_metadata{};
    /// Marks of a session, to find it by. Empty: `$TINKER_TAGS`, separated by commas.
    std::vector<std::string> tags{};
    /// The project that a session belongs to. Empty: `$TINKER_PROJECT_ID`, then none.
    std::string project_id{};
    /// What a session is called where it is shown. Empty: nothing special.
    std::string display_name{};
    /// Tells the service of this client's troubles. Empty: `$TINKER_TELEMETRY`, then yes.
    std::optional<bool> telemetry{};
    /// A command for the shell that prints a credential. Empty: `$TINKER_CREDENTIAL_CMD`, then
    /// none. Run anew whenever one is needed, for at most 60 s.
    std::string credential_cmd{};
    /// Where stored keys are. Empty: `~/.tinker/credentials.json`.
    std::string credentials_file{};
    /// Waits between requests for a result. By default `$TINKXX_POLL_BACKOFF`: `none`,
    /// `exponential`, or `exponential:<first>:<longest>` in milliseconds; then none.
    PollBackoff poll_backoff{};
    /// How long the service may answer every question for a result with 500 and the same text
    /// before the request counts as failed; a sample is then submitted anew, if its `RetryConfig`
    /// allows it. Other failures, such as 503 or no connection, are waited out. Empty: 5 minutes.
    /// Zero: no limit.
    std::optional<std::chrono::milliseconds> poll_error_limit{};
    /// Sent as CF-Access-Client-Id and -Secret. Empty: `$CLOUDFLARE_ACCESS_CLIENT_ID` and
    /// `$CLOUDFLARE_ACCESS_CLIENT_SECRET`, then not.
    std::string cloudflare_access_id{};
    std::string cloudflare_access_secret{};
    /// Learn by one request for all samples of a sampler which of them are done. Empty: as the
    /// server says.
    std::optional<bool> completion_poll{};
    /// Ask the server for the number of a sampler's copy. Empty: as the server says.
    std::optional<bool> join_sampling_session{};
    DispatchLimits dispatch{};
    /// Bytes of results that are being fetched at once. Empty: as the server says.
    std::optional<std::int64_t> download_bytes{};
    ChunkLimits chunks{};
    /// For each call, from its making to its result. Zero: none.
    std::chrono::milliseconds deadline{0};
    /// Of samples: `.max_pending = {1000}` has the caller of the next one wait. By default none.
    PendingLimit max_pending{};
    /// Keeps a line on stderr that says what is pending and what it waits for.
    bool report_pending{false};
    Intervals intervals{};
    /// How forward and backward passes are written. Empty: as protobuf, or as JSON for a server
    /// that turns out to take nothing else.
    std::optional<SubmitEncoding> submit_encoding{};
    /// Whether a training step is sent again when it is not known what became of it. Empty: yes,
    /// since the service recognises a repeat, unless the server is found to speak the old protocol
    /// only: then such a step fails, saying that it may have been applied.
    std::optional<bool> repeat_steps{};
    /// Look at training data before they are sent: shapes, types, the inputs that a loss needs,
    /// numbers that are none.
    bool check_data{true};
    /// Logs a warning once a call has made no progress for 5 s, and then at most every minute: one
    /// line for all calls of all clients that share a runtime, a server and a log, with the reason
    /// and the time that is left. What counts is a failure that is being waited out (no connection,
    /// 402, 429, 5xx, no credential) or a request without an answer; a call that is queued, or
    /// whose result is being computed, is well. Also silent if `log_level` leaves warnings out, and
    /// with `report_pending`, which says more.
    bool warn_of_stalls{true};
};

/// Options for every client that is built from now on, field by field in place of those that its
/// maker left as they are: for programs whose libraries build clients. An empty value takes them
/// back. A runtime or transport among them lives at least until then. Any thread.
void set_default_options(ClientOptions options);
[[nodiscard]] ClientOptions default_options();

}  // namespace tinkxx
