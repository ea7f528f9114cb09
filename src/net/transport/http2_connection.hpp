#pragma once

#include "net/stream/stream.hpp"
#include "net/transport/connection.hpp"
#include "net/transport/exchange.hpp"

#include <nghttp2/nghttp2.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::net {

/// A connection that carries many exchanges at once over HTTP/2. Framing, header compression and
/// flow control are nghttp2's; this class moves its bytes, once per turn, and decides when the
/// connection is fit for new work.
class Http2Connection final : public Connection, private StreamOwner {
public:
    Http2Connection(Pool& pool, std::unique_ptr<Stream> stream);
    ~Http2Connection() override;

    void start(Exchange& exchange) override;
    void abandon(Exchange& exchange, bool timed_out) noexcept override;
    Seen seen(Exchange const& exchange) const noexcept override;
    void resume(Exchange& exchange) override;
    void retire_when_done() noexcept override;
    void close(FailureKind kind, std::string const& why) override;

    void on_turn_end() override;
    void on_time() override;  // liveness and idleness

private:
    struct Callbacks;
    friend struct Callbacks;
    struct SessionDeleter {
        void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
    };

    void on_readable() override;
    void on_writable() override;
    bool flush();
    void update_room() noexcept;
    void ping();
    void arm_watch();
    void detach(Exchange& exchange) noexcept;
    void stream_closed(Exchange& exchange, std::uint32_t error_code);
    void settings_came();
    void retire() noexcept;
    [[nodiscard]] std::string peer() const { return std::string{stream_->peer()}; }
    [[nodiscard]] std::string reason_in_brackets() const;
    bool close_if_broken();

    std::unique_ptr<Stream> stream_;
    std::unique_ptr<nghttp2_session, SessionDeleter> session_;
    base::IntrusiveList<Exchange, &Exchange::links> exchanges_;
    Head incoming_{};  // of the header block that is being read: there is one at a time
    std::vector<nghttp2_nv> lines_;  // reused for each request
    std::string names_;              // lower-case names of a request's own headers
    std::string output_;
    std::size_t output_written_{0};
    std::uint64_t framed_total_{0};   // bytes ever put into `output_`
    std::uint64_t written_total_{0};  // of those, bytes that the kernel took
    std::uint32_t peer_limit_{0};
    TimePoint last_heard_{};
    TimePoint ping_sent_{};
    TimePoint idle_since_{};
    TimePoint watch_at_{};
    bool ping_out_{false};
    bool suspect_{false};   // a request timed out: not to be used until the server is heard
    bool draining_{false};  // no new exchanges
    bool fresh_{true};
    bool closed_{false};
    bool first_use_{true};
    std::vector<Call> refused_;  // could not be submitted; told at the end of the turn
    std::string end_reason_;     // what the server said in its GOAWAY
    std::string breach_;         // what nghttp2 last found wrong with a frame
};

}  // namespace tinkxx::net
