#pragma once

#include "base/common/intrusive_list.hpp"
#include "local/api/handler.hpp"
#include "local/listen/limits.hpp"
#include "local/listen/parser.hpp"

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

/// A connection with answers that are not sent.
class Sender {
public:
    base::ListLinks<Sender> links{};
    /// Gives them up, and the connection with them.
    virtual void cut(std::string why) = 0;

protected:
    ~Sender() = default;
};

/// What the connections of one listener have in common.
struct ConnectionShare {
    Scheduler& scheduler;
    Handler& handler;
    ListenerLimits limits{};
    /// Looks at the head of each request before its body is read, and says why not. May be empty.
    std::function<std::optional<Refusal>(ServerRequest const&)> admit{};
    /// Hears of each request; and once more, with a note, of one whose answer is cut on its way.
    /// May be empty.
    std::function<void(RequestRecord const&)> on_request{};
    /// Hears of what an operator should know. May be empty.
    std::function<void(std::string)> on_trouble{};
    /// Memory of requests that are on their way.
    std::size_t receiving{0};
    /// Memory of answers that are not sent.
    std::size_t sending{0};
    /// Who has those, in the order in which they last took something.
    base::IntrusiveList<Sender, &Sender::links> senders{};
    /// Of connections that were cut because all together had too much unsent.
    std::uint64_t cut{0};
    std::optional<TimePoint> cut_told{};
};

/// The server's end of one HTTP/1.1 connection, without the socket: it is given the bytes that come
/// and has bytes to send. Requests are answered one after the other; what comes behind one that is
/// not answered yet is kept, up to a limit, and none is read while too much of earlier answers is
/// unsent. So its memory has a bound, whatever the peer does. Loop thread.
class ServerConnection final : private Timer, private Sender {
public:
    /// Who carries the bytes. Told from inside the calls of others, so all it may do is take note
    /// and call `proceed` and the rest later in the turn.
    class Carrier {
    public:
        virtual void on_change() = 0;
        /// Output has waited for long. The peer may have taken some without the carrier being told,
        /// so it tries to send, later in the turn.
        virtual void on_stall() { on_change(); }

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

    /// What is received at once, at most.
    static constexpr std::size_t one_read = std::size_t{64} << 10U;

    ServerConnection(ConnectionShare& share, Carrier& carrier);
    ServerConnection(ServerConnection const&) = delete;
    ServerConnection& operator=(ServerConnection const&) = delete;
    ~ServerConnection() override;

    /// Bytes came, no more than `input_room`. Requests among them reach the handler.
    void received(std::span<char const> bytes);
    /// How many bytes can be taken now; 0 while enough is kept for later.
    [[nodiscard]] std::size_t input_room() const noexcept;
    [[nodiscard]] bool wants_input() const noexcept { return input_room() > 0; }
    /// The peer sends nothing behind what is still to be received: it may be gone, or only read.
    void peer_closes();
    /// All that the peer sent is received. It may still read.
    void peer_ended();
    /// The connection is gone; it can only be destroyed.
    void lost();
    /// Goes on with what was kept. After `on_change`.
    void proceed();
    /// A turn of the loop begins. In each, only so many requests are begun that other connections
    /// do not have to wait for long.
    void next_turn() noexcept;
    /// Whether there are requests that wait for the next turn.
    [[nodiscard]] bool wants_turn() const noexcept;

    /// Fills `pieces` with what is to be sent, and says how many there are. Valid until the next
    /// call.
    [[nodiscard]] std::size_t output(std::span<iovec> pieces) const noexcept;
    void wrote(std::size_t bytes);
    [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }
    /// Memory of what came and is not handed on, and of what is not sent.
    [[nodiscard]] std::size_t held() const noexcept { return counted_ + output_memory_; }

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
    void on_read_time();
    [[nodiscard]] std::optional<TimePoint> read_deadline() const noexcept;
    [[nodiscard]] TimePoint write_deadline() const noexcept;
    void rearm();
    /// Whether the peer has to read before more is read from it.
    [[nodiscard]] bool waits_for_reader() const noexcept;
    /// Whether no request may be begun now, for that reason or because of the turn.
    [[nodiscard]] bool waits() const noexcept;
    /// Takes what it can of `bytes`, and says how much that was.
    std::size_t parse(std::span<char const> bytes);
    void on_head();
    /// For later, if the connection goes on.
    void keep(std::string bytes);
    /// Brings what is counted of `share_.receiving` up to date.
    void count() noexcept;
    /// Refuses the request under way if it is too much with all others.
    void check_load();
    void dispatch();
    void forget_input() noexcept;
    void write_head(int status, Headers const& headers, std::optional<std::size_t> length);
    void write_data(std::string bytes);
    void write(std::string bytes);
    void begin_sending() noexcept;
    void forget_output() noexcept;
    /// Cuts connections until all together have little enough unsent.
    void shed();
    void finish_answer();
    void answer_dropped();
    void end_after_output();
    /// Ends if the peer has, and nothing that it asked is left.
    void end_with_input();
    void cut(std::string why) override;
    void close(std::string why);
    void tell_gone();
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
    std::size_t output_memory_{0};  ///< of `share_.sending`
    std::size_t counted_{0};        ///< of `share_.receiving`
    bool peer_closes_{false};
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

    /// What time is running for: the request, the body, or the next request.
    TimePoint since_{};
    std::size_t body_then_{0};
    bool had_request_{false};
    bool request_begun_{false};
    int begun_in_turn_{0};
    // And for the peer to take what is unsent.
    TimePoint sending_since_{};
    std::size_t taken_{0};
    bool stall_told_{false};
};

}  // namespace tinkxx::local
