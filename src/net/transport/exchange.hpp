#pragma once

#include "base/common/intrusive_list.hpp"
#include "base/common/prefetch.hpp"
#include "net/http/content_decoder.hpp"
#include "net/http/header_block.hpp"

#include <tinkxx/detail/blocks.hpp>
#include <tinkxx/transport.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::net {

class Connection;
class NetTransport;
class Pool;
struct Site;

/// One call of the transport on its way: from the queue of a pool over one or several
/// connections (repeats, redirects) to the one end that its sink is told.
///
/// It lives until the turn in which it ended is over, or the next connection begins to read, so
/// that whoever is in the middle of handing it something can still look at it.
class Exchange final : public Timer, public detail::InBlocks {
public:
    Exchange(NetTransport& transport, Request request, ReplySink& sink, Call call);

    /// Checks the request and joins the queue of a pool.
    void begin();

    // What pools and connections read and keep here.
    [[nodiscard]] Call call() const noexcept { return call_; }
    [[nodiscard]] TimePoint started() const noexcept { return timing_.started; }
    [[nodiscard]] Request const& request() const noexcept { return request_; }
    [[nodiscard]] bool has_site() const noexcept { return site_ != nullptr; }
    [[nodiscard]] Site const& site() const noexcept { return *site_; }
    [[nodiscard]] std::string_view target() const noexcept;
    [[nodiscard]] PreparedHeaders const* common() const noexcept { return common_.get(); }
    /// Whether the transport offers its own Accept-Encoding.
    [[nodiscard]] bool offers_encodings() const noexcept;
    [[nodiscard]] bool ended() const noexcept { return phase_ == Phase::ended; }
    [[nodiscard]] bool paused() const noexcept { return paused_; }
    /// It will be sent soon.
    void prefetch_request() const noexcept {
        base::prefetch(request_.url.data(), request_.url.size());
        base::prefetch(request_.headers.begin().base(), request_.headers.size() * sizeof(Header));
        base::prefetch(request_.body.head.get(), sizeof(std::string));
        base::prefetch(request_.body.tail.get(), sizeof(std::string));
    }
    /// Its sink will be told something soon, and it will leave those it is among.
    void prefetch_surroundings() const noexcept {
        base::prefetch(&sink_, sink_bytes);
        if (links.next != nullptr) base::prefetch(&links.next->links, sizeof links);
        if (links.linked()) base::prefetch(&links.previous->links, sizeof links);
    }

    base::ListLinks<Exchange> links{};  ///< in the queue of `pool`, or among those of `connection`
    Pool* pool{nullptr};                ///< whose queue or quota it is in
    Connection* connection{nullptr};
    /// HTTP/2: the stream, how much of the body went into frames, and where in the connection's
    /// output its first and last byte lie.
    std::int32_t stream_id{-1};
    std::uint32_t incoming_bytes{0};  ///< HTTP/2: of header lines, as far as they came
    std::size_t body_framed{0};
    std::uint64_t head_offset{unsent};
    std::uint64_t end_offset{unsent};
    std::uint32_t unconsumed{0};  ///< HTTP/2: bytes of window not given back while paused
    bool incoming_given{false};   ///< HTTP/2: the head of the answer was complete
    bool peer_reset{false};       ///< HTTP/2: the server has reset the stream
    static constexpr std::uint64_t unsent = ~std::uint64_t{0};
    static constexpr std::size_t sink_bytes = 512;  ///< about what a call with its operation takes

    // What a connection tells. Any of these but the first three may end the exchange.
    void assigned(Connection& to, bool new_connection);
    void sent_some() noexcept;
    void sent_all() noexcept;
    void on_head(Head head);
    void on_data(std::span<char const> data);
    void on_end();
    /// The connection can do nothing more for it. What the server cannot have seen is sent again
    /// on another connection, a few times.
    void lost(FailureKind kind, std::string message, Seen seen);

    // What the transport's user and the transport itself tell.
    void cancel() noexcept;
    void pause(bool on) noexcept;
    /// Hands on what was held back while paused.
    void resume();
    void fail(FailureKind kind, std::string message, Seen seen, bool permanent = false);

    void on_time() override;

private:
    /// What few exchanges need; thousands wait at once.
    struct Aside {
        std::unique_ptr<ContentDecoder> decoder{};
        std::string decoder_input{};
        std::string held{};  ///< body bytes that came while paused
        std::string redirect_url{};
    };
    enum class Phase : std::uint8_t { queued, backing_off, sending, receiving, ended };

    void enter(Phase phase);
    void touch() noexcept;
    void arm_deadline() noexcept;
    [[nodiscard]] std::chrono::milliseconds limit_of(Phase phase) const noexcept;
    [[nodiscard]] std::string problem();
    void leave_connection(bool timed_out = false) noexcept;
    void queue();
    void repeat(std::chrono::milliseconds delay);
    void time_out();
    /// True if `head` is a redirect that is followed (or failed); it was dealt with then.
    bool take_redirect(Head const& head);
    void follow_redirect();
    void deliver(std::span<char const> data);
    bool decode();
    bool give(std::span<char const> data);
    void complete();
    void retire() noexcept;
    Aside& aside() {
        if (!aside_) aside_ = std::make_unique<Aside>();
        return *aside_;
    }
    [[nodiscard]] ContentDecoder* decoder() const noexcept {
        return aside_ ? aside_->decoder.get() : nullptr;
    }
    [[nodiscard]] bool holds_data() const noexcept { return aside_ && !aside_->held.empty(); }

    NetTransport& transport_;
    Request request_;
    ReplySink& sink_;
    Call call_;
    Site* site_{nullptr};
    std::size_t target_begin_{0};
    std::shared_ptr<PreparedHeaders const> common_;
    std::unique_ptr<Aside> aside_{};
    Timing timing_;
    std::uint64_t delivered_{0};
    TimePoint phase_began_{};
    TimePoint deadline_{TimePoint::max()};
    TimePoint armed_for_{TimePoint::max()};
    TimePoint total_deadline_{TimePoint::max()};
    Phase phase_{Phase::queued};
    std::uint8_t repeats_{0};
    bool misdirected_{false};
    bool paused_{false};
    bool delivering_{false};
    bool decoder_busy_{false};
    bool input_ended_{false};
    bool head_given_{false};
    bool redirecting_{false};
    bool redirected_{false};
    int redirects_{0};
};

}  // namespace tinkxx::net
