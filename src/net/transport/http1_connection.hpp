#pragma once

#include "net/stream/stream.hpp"
#include "net/transport/connection.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::net {

/// A connection that carries one HTTP/1.1 exchange at a time and is kept for the next.
class Http1Connection final : public Connection, private StreamOwner {
public:
    Http1Connection(Pool& pool, std::unique_ptr<Stream> stream);
    ~Http1Connection() override;

    void start(Exchange& exchange) override;
    void abandon(Exchange& exchange, bool timed_out) noexcept override;
    Seen seen(Exchange const& exchange) const noexcept override;
    void resume(Exchange& exchange) override;
    void retire_when_done() noexcept override { reusable_ = false; }
    void close(FailureKind kind, std::string const& why) override;

    void on_turn_end() override;
    void on_time() override;  // idle for too long

private:
    class Parser;

    void on_readable() override;
    void on_writable() override;
    void compose_head(Exchange const& exchange);
    void write();
    /// Tells the failure at the end of the turn, so that `start` never calls a sink.
    void fail_later(FailureKind kind, std::string why, Seen seen);
    std::size_t consume(std::span<char const> data);
    void on_eof();
    /// The answer is complete: hands the connection back before the exchange learns of it.
    void answered();
    Exchange* detach() noexcept;
    void retire() noexcept;
    void become_idle();

    std::unique_ptr<Stream> stream_;
    std::unique_ptr<Parser> parser_;
    Exchange* exchange_{nullptr};
    std::string head_;
    std::string unparsed_;  // the beginning of a head that is not complete
    std::size_t written_{0};
    std::size_t to_write_{0};
    TimePoint idle_since_{};
    bool used_{false};
    bool reusable_{true};
    int interim_answers_{0};
    bool closed_{false};
    FailureKind later_kind_{FailureKind::reset};
    std::string later_why_;
    Seen later_seen_{Seen::no};
};

}  // namespace tinkxx::net
