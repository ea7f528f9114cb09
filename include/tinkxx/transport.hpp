#pragma once

#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

/// One header line. Names are compared without regard to case.
struct Header {
    std::string name{};
    std::string value{};

    bool operator==(Header const&) const = default;
};

/// Header lines in the order in which they are sent or came.
class Headers {
public:
    Headers() = default;
    Headers(std::initializer_list<Header> lines) : lines_{lines} {}

    /// The value of the first line of that name, or null. Valid until the next change.
    [[nodiscard]] std::string const* find(std::string_view name) const noexcept;
    [[nodiscard]] bool contains(std::string_view name) const noexcept {
        return find(name) != nullptr;
    }
    /// Adds a line, whether or not the name is there already.
    void add(std::string name, std::string value);
    /// Replaces all lines of that name by one.
    void set(std::string_view name, std::string value);
    void remove(std::string_view name) noexcept;
    void reserve(std::size_t lines) { lines_.reserve(lines); }

    [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }
    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] auto begin() const noexcept { return lines_.begin(); }
    [[nodiscard]] auto end() const noexcept { return lines_.end(); }

    bool operator==(Headers const&) const = default;

private:
    std::vector<Header> lines_;
};

/// What a request is for. Each purpose has its own quota of connections, so that one cannot
/// starve another.
enum class Purpose : std::uint8_t {
    session,
    sample,
    train,
    rest,
    retrieve,
    completion_poll,
    telemetry,
    auth,
};
inline constexpr std::size_t purpose_count = 8;

[[nodiscard]] std::string_view to_string(Purpose purpose) noexcept;

/// A request body in two immutable pieces, sent one after the other: `head` is made per attempt,
/// `tail` is shared by all attempts. Either may be null.
struct Body {
    std::shared_ptr<std::string const> head{};
    std::shared_ptr<std::string const> tail{};

    [[nodiscard]] std::size_t size() const noexcept {
        return (head ? head->size() : 0) + (tail ? tail->size() : 0);
    }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
};

/// Limits of the phases of one exchange. Zero means no limit.
struct Timeouts {
    /// Name look-up, TCP, proxy and TLS handshake together.
    std::chrono::milliseconds connect{std::chrono::seconds{5}};
    /// Longest silence of the server while an answer is awaited or under way.
    std::chrono::milliseconds read{std::chrono::seconds{60}};
    /// Longest time in which not a byte of the request could be sent.
    std::chrono::milliseconds write{std::chrono::seconds{60}};
    /// Longest wait for a free connection or stream.
    std::chrono::milliseconds pool{std::chrono::seconds{60}};
    /// The whole exchange, redirects included.
    std::chrono::milliseconds total{0};

    bool operator==(Timeouts const&) const = default;
};

enum class Redirects : std::uint8_t {
    none,    ///< a redirect is an answer like any other
    follow,  ///< GET and HEAD follow 301, 302, 303, 307, 308; other methods 307 and 308 only
};

/// One HTTP request.
struct Request {
    std::string method{"GET"};
    /// Absolute: `https://host[:port]/path[?query]`.
    std::string url{};
    /// Lines that many requests have in common, shared; sent before `headers`.
    std::shared_ptr<Headers const> common_headers{};
    /// Lines of this request. `Host`, `Content-Length` and `Connection` are the transport's.
    Headers headers{};
    Body body{};
    Purpose purpose{Purpose::rest};
    Timeouts timeouts{};
    Redirects redirects{Redirects::follow};
    /// An answer whose body, decoded, is longer fails.
    std::uint64_t max_response_bytes{std::uint64_t{1} << 30U};
    /// Offer and undo gzip and zstd. Off: the body is delivered as it came.
    bool decode_content{true};
};

/// The beginning of an answer. Any status is an answer; what to make of it is the caller's.
struct Head {
    int status{0};
    /// 11 for HTTP/1.1, 20 for HTTP/2; 0 where there is no HTTP.
    int http_version{0};
    Headers headers{};
    /// Where the answer came from, if a redirect led there; empty otherwise.
    std::string redirected_url{};
};

/// When the steps of an exchange happened; `{}` for a step that did not.
struct Timing {
    TimePoint started{};
    TimePoint connected{};   ///< a connection was there to send it on
    TimePoint sent{};        ///< the last byte of the request was handed to the kernel
    TimePoint first_byte{};  ///< the head of the answer was complete
    TimePoint finished{};
    bool new_connection{false};
    std::uint64_t bytes_received{0};  ///< of the body, as it came
};

/// What the server can have received of a request that failed.
enum class Seen : std::uint8_t {
    no,      ///< nothing: it may be sent again
    partly,  ///< the beginning, but not the end
    maybe,   ///< possibly all of it
};

[[nodiscard]] std::string_view to_string(Seen seen) noexcept;

enum class FailureKind : std::uint8_t {
    invalid_request,  ///< it could not be sent at all: bad URL, header or option
    resolve,
    connect,
    proxy,
    tls,
    reset,      ///< the connection ended before the answer did
    protocol,   ///< the server broke HTTP
    decoding,   ///< the body is not what its Content-Encoding says
    too_large,  ///< a limit on headers or body was passed
    redirect,   ///< too many redirects, or one that must not be followed
    connect_timeout,
    read_timeout,
    write_timeout,
    pool_timeout,
    total_timeout,
    closed,  ///< the transport was shut down
};

[[nodiscard]] std::string_view to_string(FailureKind kind) noexcept;
[[nodiscard]] bool is_timeout(FailureKind kind) noexcept;

/// Why there is no answer.
struct Failure {
    FailureKind kind{FailureKind::reset};
    /// Names peer and cause; holds no secret.
    std::string message{};
    Seen seen{Seen::maybe};
    Timing timing{};
    /// Waiting cannot help: the certificate is refused, the port does not speak TLS, nobody knows
    /// the host. Then the message says what to do, and no layer sends the request again.
    bool permanent{false};
};

/// Receives one answer: `on_head` at most once, then any number of `on_data`, then exactly one
/// of `on_done` and `on_failure`; a failure can come at any point. All on the loop thread. Inside
/// any of them the call may be cancelled and others started; inside the last two the sink may be
/// destroyed.
class ReplySink {
public:
    virtual void on_head(Head head) = 0;
    /// `data` is valid during the call.
    virtual void on_data(std::span<char const> data) = 0;
    virtual void on_done(Timing const& timing) = 0;
    virtual void on_failure(Failure failure) = 0;

protected:
    ~ReplySink() = default;
};

/// Names a call that was started. Never used twice within one transport; 0 is none.
struct Call {
    std::uint64_t id{0};

    bool operator==(Call const&) const = default;
};

/// Sends HTTP requests. Everything in the library meets here: the network, the embedded server
/// and the fakes of `tinkxx::testing` are transports.
///
/// Loop thread only; outlives its calls.
class Transport {
public:
    virtual ~Transport() = default;

    /// Starts a request. Never calls the sink before it returns; bad requests fail through it.
    ///
    /// If it throws, the request fails as one whose connection was lost after it was sent, and is
    /// repeated as such; a `std::logic_error` is not repeated, as if `Failure::permanent` were set.
    /// The sink must not be called any more for what it threw.
    virtual Call start(Request request, ReplySink& sink) = 0;
    /// Forgets a call. When this returns its sink is free. Harmless once the call has ended.
    virtual void cancel(Call call) noexcept = 0;
    /// What the server can have received of a call under way.
    [[nodiscard]] virtual Seen seen(Call /*call*/) const noexcept { return Seen::maybe; }
    /// Holds back (or lets flow again) the body of an answer: back-pressure for downloads.
    virtual void pause(Call call, bool on) noexcept = 0;
    /// Lets no later request use the connection that this call is on; for an answer that shows
    /// the connection to be bad. Where there are no connections it does nothing.
    virtual void discard(Call /*call*/) noexcept {}
    /// Takes no new requests and lets those under way finish until `deadline`; then the rest
    /// fails with `FailureKind::closed`.
    virtual void drain(TimePoint deadline) noexcept = 0;
};

}  // namespace tinkxx
