#pragma once

#include "local/handler.hpp"
#include "local/listener_limits.hpp"
#include "local/listener_parser.hpp"

#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct iovec;

namespace tinkxx::local {

/// What became of one request, for the log.
struct RequestRecord {
    std::string method{};
    /// Without its query, which may hold a secret.
    std::string path{};
    /// 0 if there was no answer.
    int status{0};
    std::size_t request_bytes{0};
    std::size_t answer_bytes{0};
    std::chrono::nanoseconds time{0};
    /// Refused here, or cut short; empty otherwise.
    std::string note{};
};

/// What the connections of one listener have in common.
struct ConnectionShare {
    Scheduler& scheduler;
    Handler& handler;
    ListenerLimits limits{};
    /// Looks at the head of each request before its body is read, and says why not. May be empty.
    std::function<std::optional<Refusal>(ServerRequest const&)> admit{};
    /// Hears of each request. May be empty.
    std::function<void(RequestRecord const&)> on_request{};
    /// Bytes of bodies that are on their way.
    std::size_t receiving{0};
};

/// The server's end of one HTTP/1.1 connection, without the socket: it is given the bytes that come
/// and has bytes to send. Requests are answered one after the other; what comes behind one that is
/// not answered yet is kept, up to a limit. Loop thread.
class ServerConnection final : private Timer {
public:
    /// Who carries the bytes. Told from inside the calls of others, so all it may do is take note
    /// and call `proceed` and the rest later in the turn.
    class Carrier {
    public:
        virtual void on_change() = 0;

    protected:
        ~Carrier() = default;
    };

    enum class Next : std::uint8_t {
        go_on,
        /// Everything is sent: tell the peer so, and let it read in peace. What comes is of no use.
        linger,
        /// Nothing is left to do.
        close,
    };

    ServerConnection(ConnectionShare& share, Carrier& carrier);
    ServerConnection(ServerConnection const&) = delete;
    ServerConnection& operator=(ServerConnection const&) = delete;
    ~ServerConnection() override;

    /// Bytes came. Requests among them reach the handler.
    void received(std::span<char const> bytes);
    /// False while enough is kept for later.
    [[nodiscard]] bool wants_input() const noexcept;
    /// The peer sends nothing more. It may still read.
    void peer_ended();
    /// The connection is gone; it can only be destroyed.
    void lost();
    /// Goes on with what was kept. After `on_change`.
    void proceed();

    /// Fills `pieces` with what is to be sent, and says how many there are. Valid until the next
    /// call.
    [[nodiscard]] std::size_t output(std::span<iovec> pieces) const noexcept;
    void wrote(std::size_t bytes);
    [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }

    [[nodiscard]] Next next() const noexcept;
    /// Takes no more requests: ends now if it is idle, otherwise with the answer under way.
    void retire();
    /// Answers with a refusal at once, before any request.
    void refuse(Refusal const& refusal);

private:
    class Reply;
    enum class State : std::uint8_t {
        reading,    ///< a request, or idle
        answering,  ///< a reply is out
        ending,     ///< what is unsent is sent
        lingering,
        closed,
    };

    void on_time() override;
    void rearm();
    /// Takes what it can of `bytes`, and says how much that was.
    std::size_t parse(std::span<char const> bytes);
    void on_head();
    void count_body();
    void dispatch();
    void release_body() noexcept;
    void write_head(int status, Headers const& headers, std::optional<std::size_t> length);
    void write_data(std::string bytes);
    void write(std::string bytes);
    void finish_answer();
    void answer_dropped();
    void end_after_output();
    void refuse_load();
    void begin_recording();
    void record(std::string note);

    ConnectionShare& share_;
    Carrier& carrier_;
    State state_{State::reading};
    RequestParser parser_;
    std::string input_;  ///< came and is not parsed yet
    std::deque<std::string> output_;
    std::size_t output_at_{0};  ///< of the first piece, what is sent
    std::size_t unsent_{0};
    bool peer_ended_{false};
    bool retired_{false};

    // Of the request under way.
    Reply* reply_{nullptr};
    RequestRecord record_{};
    TimePoint request_began_{};
    bool keep_alive_{true};
    bool http_1_0_{false};
    bool head_only_{false};
    bool head_written_{false};
    bool chunked_{false};
    bool bodyless_{false};
    std::optional<std::size_t> length_left_{};
    std::size_t counted_{0};  ///< of `share_.receiving`

    /// What time is running for: the request, the body or the last byte that was taken.
    TimePoint since_{};
    std::size_t body_then_{0};
    bool had_request_{false};
    bool request_begun_{false};
};

}  // namespace tinkxx::local
