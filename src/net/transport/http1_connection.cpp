#include "net/transport/http1_connection.hpp"

#include "net/transport/exchange.hpp"
#include "net/transport/net_transport.hpp"
#include "net/transport/pool.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tinkxx::net {

namespace beast_http = boost::beast::http;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

constexpr int max_interim_answers = 100;
// What the end of a chunked body has at least. Beast's parser wants no less when it looks again.
constexpr std::size_t shortest_chunk_end = 5;

/// Reads one answer, handing each piece of its body on as it lies in the read buffer.
class Http1Connection::Parser final : public beast_http::basic_parser<false> {
public:
    Parser(Http1Connection& connection, bool head_only, std::size_t max_header_bytes)
        : connection_{connection} {
        eager(true);
        skip(head_only);
        header_limit(static_cast<std::uint32_t>(max_header_bytes));
        body_limit(boost::none);
    }
    [[nodiscard]] int status() const noexcept { return head_status_; }
    [[nodiscard]] bool interim() const noexcept { return head_status_ / 100 == 1; }

private:
    void on_request_impl(beast_http::verb, string_view, string_view, int, ErrorCode&) override {}
    void on_response_impl(int code, string_view, int version, ErrorCode&) override {
        head_status_ = code;
        head_.status = code;
        head_.http_version = version;
    }
    void on_field_impl(beast_http::field, string_view name, string_view value,
                       ErrorCode&) override {
        head_.headers.add(std::string{name}, std::string{value});
    }
    void on_header_impl(ErrorCode& error) override {
        if (interim()) return;
        if (connection_.exchange_ != nullptr) connection_.exchange_->on_head(std::move(head_));
        stop_if_left(error);
    }
    void on_body_init_impl(boost::optional<std::uint64_t> const&, ErrorCode&) override {}
    std::size_t on_body_impl(string_view body, ErrorCode& error) override {
        give(body, error);
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t, string_view, ErrorCode&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, string_view body, ErrorCode& error) override {
        give(body, error);
        return body.size();
    }
    void on_finish_impl(ErrorCode&) override {}

    void give(string_view body, ErrorCode& error) {
        if (connection_.exchange_ != nullptr) {
            connection_.exchange_->on_data({body.data(), body.size()});
        }
        stop_if_left(error);
    }
    void stop_if_left(ErrorCode& error) const {
        if (connection_.exchange_ == nullptr) error = beast_http::error::end_of_stream;
    }

    Http1Connection& connection_;
    Head head_;
    int head_status_{0};
};

Http1Connection::Http1Connection(Pool& pool, std::unique_ptr<Stream> stream)
    : Connection{pool}, stream_{std::move(stream)} {
    stream_->set_owner(this);
    idle_since_ = pool.transport().loop().now();
    become_idle();
    stream_->want_read();
}

Http1Connection::~Http1Connection() = default;

void Http1Connection::become_idle() {
    idle_since_ = pool().transport().loop().now();
    load = 0;
    pool().set_room(*this, 1);
    if (!armed()) {
        pool().transport().loop().arm(
            *this, idle_since_ + pool().transport().options().idle_timeout, Precision::coarse);
    }
}

void Http1Connection::on_time() {
    if (closed_) return;
    auto& loop = pool().transport().loop();
    auto const until = idle_since_ + pool().transport().options().idle_timeout;
    if (exchange_ != nullptr) {
        // Looks again later; while an exchange is under way it is not idle.
        loop.arm(*this, loop.now() + pool().transport().options().idle_timeout, Precision::coarse);
    } else if (loop.now() < until) {
        loop.arm(*this, until, Precision::coarse);
    } else {
        retire();
    }
}

// --- sending -----------------------------------------------------------------------------------

void Http1Connection::compose_head(Exchange const& exchange) {
    auto const& request = exchange.request();
    head_.clear();
    head_.append(request.method)
        .append(" ")
        .append(exchange.target())
        .append(" HTTP/1.1\r\nHost: ");
    head_.append(exchange.site().authority).append("\r\n");
    if (exchange.common() != nullptr) head_.append(exchange.common()->http1);
    for (auto const& [name, value] : request.headers) {
        if (is_transport_header(name)) continue;
        head_.append(name).append(": ").append(value).append("\r\n");
    }
    if (exchange.offers_encodings()) {
        head_.append("Accept-Encoding: ").append(accepted_encodings).append("\r\n");
    }
    auto const length = request.body.size();
    if (length > 0 || (request.method != "GET" && request.method != "HEAD" &&
                       request.method != "DELETE" && request.method != "OPTIONS")) {
        std::array<char, 24> digits{};
        auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), length).ptr;
        head_.append("Content-Length: ").append(digits.data(), end).append("\r\n");
    }
    head_.append("\r\n");
}

void Http1Connection::start(Exchange& exchange) {
    auto& transport = pool().transport();
    exchange_ = &exchange;
    load = 1;
    pool().set_room(*this, 0);
    exchange.assigned(*this, !used_);
    parser_ = std::make_unique<Parser>(*this, exchange.request().method == "HEAD",
                                       transport.options().max_header_bytes);
    compose_head(exchange);
    interim_answers_ = 0;
    written_ = 0;
    to_write_ = head_.size() + exchange.request().body.size();

    // On a new connection, and on one that has been idle, something may have come that cannot be
    // the answer to a request that is not sent yet.
    if (!used_ || transport.loop().now() - idle_since_ > std::chrono::seconds{1}) {
        auto const early = stream_->read(transport.read_buffer());
        if (early.status == IoResult::Status::ok) {
            fail_later(FailureKind::protocol,
                       std::string{stream_->peer()} + " answered before the request was sent",
                       Seen::no);
            return;
        }
        if (early.status != IoResult::Status::would_block) {
            fail_later(
                FailureKind::reset,
                std::string{stream_->peer()} + " closed the connection before the request was sent",
                Seen::no);
            return;
        }
    }
    used_ = true;
    write();
}

void Http1Connection::write() {
    auto const& body = exchange_->request().body;
    std::array<std::string const*, 3> const parts{&head_, body.head.get(), body.tail.get()};
    while (written_ < to_write_) {
        std::array<iovec, 3> pieces{};
        std::size_t count = 0;
        std::size_t skip = written_;
        for (auto const* part : parts) {
            if (part == nullptr || part->empty()) continue;
            if (skip >= part->size()) {
                skip -= part->size();
                continue;
            }
            pieces[count].iov_base = const_cast<char*>(part->data() + skip);
            pieces[count].iov_len = part->size() - skip;
            skip = 0;
            ++count;
        }
        auto const result = stream_->write({pieces.data(), count});
        switch (result.status) {
            case IoResult::Status::ok:
                written_ += result.bytes;
                exchange_->sent_some();
                break;
            case IoResult::Status::would_block:
                stream_->want_write();
                return;
            case IoResult::Status::closed:
            case IoResult::Status::error:
                // The server may have answered and closed; what it said matters more.
                if (written_ > 0) return;
                fail_later(FailureKind::reset,
                           "could not send to " + std::string{stream_->peer()} + ": " +
                               stream_->error_text(),
                           seen(*exchange_));
                return;
        }
    }
    exchange_->sent_all();
}

void Http1Connection::on_writable() {
    if (exchange_ != nullptr && !closed_ && later_why_.empty()) write();
}

Seen Http1Connection::seen(Exchange const&) const noexcept {
    if (written_ == 0) return Seen::no;
    return written_ < to_write_ ? Seen::partly : Seen::maybe;
}

void Http1Connection::fail_later(FailureKind kind, std::string why, Seen seen) {
    later_kind_ = kind;
    later_why_ = std::move(why);
    later_seen_ = seen;
    pool().transport().loop().at_turn_end(*this);
}

void Http1Connection::on_turn_end() {
    if (closed_ || later_why_.empty()) return;
    auto* const exchange = detach();
    retire();
    if (exchange != nullptr) exchange->lost(later_kind_, std::move(later_why_), later_seen_);
}

// --- receiving ---------------------------------------------------------------------------------

void Http1Connection::on_readable() {
    auto const buffer = pool().transport().read_buffer();
    for (int reads = 1;; ++reads) {
        if (closed_ || !later_why_.empty()) return;
        if (exchange_ != nullptr && exchange_->paused()) return;  // `resume` reads on
        pool().transport().free_ended();
        auto const result = stream_->read(buffer);
        switch (result.status) {
            case IoResult::Status::would_block:
                stream_->want_read();
                return;
            case IoResult::Status::closed:
                on_eof();
                return;
            case IoResult::Status::error:
                close(FailureKind::reset,
                      std::string{stream_->peer()} + ": " + stream_->error_text());
                return;
            case IoResult::Status::ok:
                break;
        }
        std::span<char const> const data{buffer.data(), result.bytes};
        if (unparsed_.empty()) {
            auto const left = consume(data);
            unparsed_.assign(data.end() - static_cast<std::ptrdiff_t>(left), data.end());
        } else {
            // Kept whole while its head is incomplete, so that a trickle is not copied each time.
            auto whole = std::exchange(unparsed_, {});
            whole.append(data.data(), data.size());
            bool const too_short = parser_ != nullptr && parser_->is_header_done() &&
                                   whole.size() < shortest_chunk_end;
            auto const left = too_short ? whole.size() : consume(whole);
            whole.erase(0, whole.size() - left);
            unparsed_ = std::move(whole);
        }
        // A server that sends faster than we read must not keep the loop from all else.
        if ((result.bytes < buffer.size() || reads == max_reads_in_a_row) && !closed_) {
            if (exchange_ == nullptr || !exchange_->paused()) stream_->want_read();
            return;
        }
    }
}

/// Returns how many bytes at the end of `data` wait for more.
std::size_t Http1Connection::consume(std::span<char const> data) {
    while (!data.empty() && !closed_) {
        if (exchange_ == nullptr || written_ == 0) {
            // Nobody asked: whatever this is, it must not become the next request's answer.
            close(FailureKind::protocol,
                  std::string{stream_->peer()} + (used_ ? " sent data that no request asked for"
                                                        : " answered before the request was sent"));
            return 0;
        }
        ErrorCode error;
        auto const used = parser_->put(boost::asio::buffer(data.data(), data.size()), error);
        data = data.subspan(used);
        if (closed_ || exchange_ == nullptr) return 0;
        if (error == beast_http::error::need_more) {
            // The parser limits the head; chunk extensions and trailers are limited here.
            if (data.size() > pool().transport().options().max_header_bytes) {
                close(FailureKind::too_large,
                      std::string{stream_->peer()} + " sent a chunk header without end");
                return 0;
            }
            return data.size();
        }
        if (error) {
            bool const too_large =
                error == beast_http::error::header_limit || error == beast_http::error::body_limit;
            close(too_large ? FailureKind::too_large : FailureKind::protocol,
                  std::string{stream_->peer()} + " sent a bad answer: " + error.message());
            return 0;
        }
        if (!parser_->is_done()) continue;
        if (parser_->interim()) {
            if (parser_->status() == 101) {
                close(FailureKind::protocol,
                      std::string{stream_->peer()} + " switched protocols without being asked");
                return 0;
            }
            if (++interim_answers_ > max_interim_answers) {
                close(FailureKind::protocol,
                      std::string{stream_->peer()} + " sent interim answers without end");
                return 0;
            }
            parser_ = std::make_unique<Parser>(*this, exchange_->request().method == "HEAD",
                                               pool().transport().options().max_header_bytes);
            continue;
        }
        answered();
    }
    return 0;
}

void Http1Connection::answered() {
    bool const reusable = reusable_ && parser_->keep_alive() && written_ == to_write_;
    auto* const exchange = detach();
    if (reusable) {
        become_idle();
    } else {
        retire();
    }
    exchange->on_end();
}

void Http1Connection::on_eof() {
    if (exchange_ == nullptr) {
        close(FailureKind::reset,
              std::string{stream_->peer()} + " closed the connection before the request was sent");
        return;
    }
    if (parser_->got_some() && unparsed_.empty()) {
        ErrorCode error;
        parser_->put_eof(error);
        if (!error && parser_->is_done() && !parser_->interim()) {
            answered();
            return;
        }
    }
    close(FailureKind::reset,
          std::string{stream_->peer()} + (parser_->got_some()
                                              ? " closed the connection in the middle of an answer"
                                              : " closed the connection without an answer"));
}

void Http1Connection::resume(Exchange&) {
    if (!closed_) stream_->want_read();
}

// --- the end -----------------------------------------------------------------------------------

Exchange* Http1Connection::detach() noexcept {
    auto* const exchange = std::exchange(exchange_, nullptr);
    if (exchange != nullptr) {
        exchange->connection = nullptr;
        pool().released(*exchange);
    }
    return exchange;
}

void Http1Connection::abandon(Exchange& exchange, bool) noexcept {
    static_cast<void>(exchange);
    detach();
    retire();
}

void Http1Connection::close(FailureKind kind, std::string const& why) {
    if (closed_) return;
    auto const reached = exchange_ != nullptr ? seen(*exchange_) : Seen::no;
    auto* const exchange = detach();
    retire();
    if (exchange != nullptr) {
        exchange->lost(kind, why, reached);
    } else if (!used_) {
        pool().lost_before_use(kind, why);
    }
}

void Http1Connection::retire() noexcept {
    if (closed_) return;
    closed_ = true;
    pool().closed(*this);
}

}  // namespace tinkxx::net
