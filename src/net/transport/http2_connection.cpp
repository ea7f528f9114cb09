#include "net/transport/http2_connection.hpp"

#include "base/common/prefetch.hpp"
#include "net/http/header_block.hpp"
#include "net/transport/net_transport.hpp"
#include "net/transport/pool.hpp"

#include <tinkxx/detail/blocks.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace tinkxx::net {
namespace {

// What is framed ahead of the socket. More of it would be no faster, since TLS writes a record at a
// time, and a thousand connections may wait to write.
constexpr std::size_t output_high_water = std::size_t{64} * 1024;
constexpr std::size_t tls_record_bytes = std::size_t{16} * 1024;
constexpr std::int32_t stream_window = 4 * 1024 * 1024;
constexpr std::int32_t connection_window = (std::int32_t{1} << 30) - 1;

nghttp2_nv line(std::string_view name, std::string_view value, std::uint8_t flags) noexcept {
    // nghttp2 takes pointers to non-const but never writes through them.
    return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
            value.size(), flags};
}

int parse_status(std::string_view text) noexcept {
    if (text.size() != 3) return 0;
    int status = 0;
    for (char const c : text) {
        if (c < '0' || c > '9') return 0;
        status = status * 10 + (c - '0');
    }
    return status;
}

// nghttp2 frees without telling a size, so each block begins with it.
constexpr std::size_t size_bytes = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

void* take(std::size_t bytes) noexcept {
    try {
        auto* const block = static_cast<char*>(detail::take_block(size_bytes + bytes));
        std::memcpy(block, &bytes, sizeof(bytes));
        return block + size_bytes;
    } catch (std::bad_alloc const&) {
        return nullptr;
    }
}

std::size_t size_of(void const* memory) noexcept {
    std::size_t bytes{};
    std::memcpy(&bytes, static_cast<char const*>(memory) - size_bytes, sizeof(bytes));
    return bytes;
}

void give(void* memory) noexcept {
    if (memory == nullptr) return;
    detail::give_block(static_cast<char*>(memory) - size_bytes, size_bytes + size_of(memory));
}

/// It makes and frees a dozen small things for each request.
nghttp2_mem block_memory() noexcept {
    nghttp2_mem memory{};
    memory.malloc = [](std::size_t bytes, void*) { return take(bytes); };
    memory.free = [](void* old, void*) { give(old); };
    memory.calloc = [](std::size_t count, std::size_t bytes, void*) {
        auto* const made = take(count * bytes);  // small numbers, and none from outside
        return made == nullptr ? nullptr : std::memset(made, 0, count * bytes);
    };
    memory.realloc = [](void* old, std::size_t bytes, void*) {
        if (old == nullptr) return take(bytes);
        auto const had = size_of(old);
        if (bytes <= had) return old;
        auto* const made = take(bytes);
        if (made == nullptr) return made;
        std::memcpy(made, old, had);
        give(old);
        return made;
    };
    return memory;
}

}  // namespace

/// What nghttp2 calls back. None of it may call `nghttp2_session_send` or `mem_recv` again; all
/// of it may submit requests and resets, which go out at the end of the turn.
struct Http2Connection::Callbacks {
    static Http2Connection& self(void* user) noexcept {
        return *static_cast<Http2Connection*>(user);
    }
    static Exchange* exchange(nghttp2_session* session, std::int32_t stream) noexcept {
        return static_cast<Exchange*>(nghttp2_session_get_stream_user_data(session, stream));
    }

    static ssize_t send(nghttp2_session*, std::uint8_t const* data, std::size_t length, int,
                        void* user) noexcept {
        auto& me = self(user);
        if (me.output_.size() - me.output_written_ >= output_high_water) {
            return NGHTTP2_ERR_WOULDBLOCK;
        }
        me.output_.append(reinterpret_cast<char const*>(data), length);
        me.framed_total_ += length;
        return static_cast<ssize_t>(length);
    }

    static ssize_t read_body(nghttp2_session* session, std::int32_t stream, std::uint8_t*,
                             std::size_t length, std::uint32_t* flags, nghttp2_data_source*,
                             void*) noexcept {
        auto const* const e = exchange(session, stream);
        if (e == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        auto const left = e->request().body.size() - e->body_framed;
        auto const now = std::min(left, length);
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        if (now == left) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(now);
    }

    static int send_data(nghttp2_session* session, nghttp2_frame* frame,
                         std::uint8_t const* frame_head, std::size_t length, nghttp2_data_source*,
                         void* user) noexcept {
        auto& me = self(user);
        auto* const e = exchange(session, frame->hd.stream_id);
        if (e == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (me.output_.size() - me.output_written_ >= output_high_water) {
            return NGHTTP2_ERR_WOULDBLOCK;
        }
        constexpr std::size_t frame_head_bytes = 9;
        me.output_.append(reinterpret_cast<char const*>(frame_head), frame_head_bytes);
        auto const& body = e->request().body;
        std::size_t const head_size = body.head ? body.head->size() : 0;
        std::size_t from = e->body_framed;
        std::size_t left = length;
        if (from < head_size) {
            auto const part = std::min(left, head_size - from);
            me.output_.append(body.head->data() + from, part);
            from += part;
            left -= part;
        }
        if (left > 0) me.output_.append(body.tail->data() + (from - head_size), left);
        e->body_framed += length;
        me.framed_total_ += frame_head_bytes + length;
        return 0;
    }

    static int before_send(nghttp2_session* session, nghttp2_frame const* frame,
                           void* user) noexcept {
        if (frame->hd.type == NGHTTP2_HEADERS) {
            if (auto* const e = exchange(session, frame->hd.stream_id)) {
                e->head_offset = self(user).framed_total_;
            }
        }
        return 0;
    }

    static int sent(nghttp2_session* session, nghttp2_frame const* frame, void* user) noexcept {
        if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            if (auto* const e = exchange(session, frame->hd.stream_id)) {
                e->end_offset = self(user).framed_total_;
                e->sent_all();
            }
        } else if (frame->hd.type == NGHTTP2_DATA) {
            if (auto* const e = exchange(session, frame->hd.stream_id)) e->sent_some();
        }
        return 0;
    }

    static int begin_headers(nghttp2_session* session, nghttp2_frame const* frame, void* user) {
        self(user).incoming_ = {};
        if (auto* const e = exchange(session, frame->hd.stream_id)) {
            base::prefetch(e, sizeof *e);  // while the lines are being unpacked
        }
        return 0;
    }

    static int header(nghttp2_session* session, nghttp2_frame const* frame,
                      std::uint8_t const* name, std::size_t name_length, std::uint8_t const* value,
                      std::size_t value_length, std::uint8_t, void* user) {
        auto* const e = exchange(session, frame->hd.stream_id);
        if (e == nullptr || frame->hd.type != NGHTTP2_HEADERS) return 0;
        std::string_view const key{reinterpret_cast<char const*>(name), name_length};
        std::string_view const text{reinterpret_cast<char const*>(value), value_length};
        auto& me = self(user);
        e->incoming_bytes += static_cast<std::uint32_t>(name_length + value_length + 32);
        if (e->incoming_bytes > me.pool().transport().options().max_header_bytes) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        if (e->incoming_given) return 0;  // trailers
        if (!key.empty() && key.front() == ':') {
            if (key == ":status") {
                me.incoming_.status = parse_status(text);
                e->prefetch_surroundings();
            }
        } else {
            me.incoming_.headers.add(std::string{key}, std::string{text});
        }
        return 0;
    }

    static int frame(nghttp2_session* session, nghttp2_frame const* frame, void* user) {
        auto& me = self(user);
        switch (frame->hd.type) {
            case NGHTTP2_HEADERS: {
                auto* const e = exchange(session, frame->hd.stream_id);
                if (e == nullptr) break;
                if (!e->incoming_given) {
                    if (me.incoming_.status / 100 == 1) break;
                    e->incoming_given = true;
                    me.incoming_.http_version = 20;
                    e->on_head(std::exchange(me.incoming_, {}));
                }
                end_if_last(session, frame);
                break;
            }
            case NGHTTP2_DATA:
                end_if_last(session, frame);
                break;
            case NGHTTP2_SETTINGS:
                if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) me.settings_came();
                break;
            case NGHTTP2_RST_STREAM:
                if (auto* const e = exchange(session, frame->hd.stream_id)) e->peer_reset = true;
                break;
            case NGHTTP2_GOAWAY:
                me.draining_ = true;
                me.end_reason_ = nghttp2_http2_strerror(frame->goaway.error_code);
                me.update_room();
                break;
            default:
                break;
        }
        return 0;
    }

    static void end_if_last(nghttp2_session* session, nghttp2_frame const* frame) {
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
        auto* const e = exchange(session, frame->hd.stream_id);
        if (e == nullptr) return;
        auto& me = static_cast<Http2Connection&>(*e->connection);
        // An answer that is complete counts, even if the request was never read to its end.
        if (e->end_offset == Exchange::unsent) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_CANCEL);
        }
        me.detach(*e);
        e->on_end();
    }

    static int data(nghttp2_session* session, std::uint8_t, std::int32_t stream,
                    std::uint8_t const* bytes, std::size_t length, void*) {
        nghttp2_session_consume_connection(session, length);
        auto* const e = exchange(session, stream);
        if (e == nullptr) {
            nghttp2_session_consume_stream(session, stream, length);
            return 0;
        }
        e->unconsumed += static_cast<std::uint32_t>(length);
        e->on_data({reinterpret_cast<char const*>(bytes), length});
        if (!e->paused() && !e->ended() && e->stream_id == stream) {
            nghttp2_session_consume_stream(session, stream, std::exchange(e->unconsumed, 0));
        }
        return 0;
    }

    static int invalid_frame(nghttp2_session*, nghttp2_frame const*, int error, void* user) {
        self(user).breach_ = nghttp2_strerror(error);
        return 0;
    }

    static int stream_close(nghttp2_session* session, std::int32_t stream, std::uint32_t error_code,
                            void* user) {
        if (auto* const e = exchange(session, stream)) self(user).stream_closed(*e, error_code);
        return 0;
    }

    static nghttp2_session_callbacks* make() {
        nghttp2_session_callbacks* all = nullptr;
        nghttp2_session_callbacks_new(&all);
        nghttp2_session_callbacks_set_send_callback(all, &send);
        nghttp2_session_callbacks_set_send_data_callback(all, &send_data);
        nghttp2_session_callbacks_set_before_frame_send_callback(all, &before_send);
        nghttp2_session_callbacks_set_on_frame_send_callback(all, &sent);
        nghttp2_session_callbacks_set_on_begin_headers_callback(all, &begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(all, &header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(all, &frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, &data);
        nghttp2_session_callbacks_set_on_stream_close_callback(all, &stream_close);
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(all, &invalid_frame);
        return all;
    }
};

Http2Connection::Http2Connection(Pool& pool, std::unique_ptr<Stream> stream)
    : Connection{pool}, stream_{std::move(stream)} {
    auto& transport = pool.transport();
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_peer_max_concurrent_streams(option, LoadIndex::max_load);
    auto* const callbacks = Callbacks::make();
    nghttp2_session* session = nullptr;
    auto memory = block_memory();
    nghttp2_session_client_new3(&session, callbacks, this, option, &memory);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    session_.reset(session);

    std::array<nghttp2_settings_entry, 3> const settings{{
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
         static_cast<std::uint32_t>(transport.options().max_header_bytes)},
    }};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, connection_window);

    last_heard_ = idle_since_ = transport.loop().now();
    stream_->set_owner(this);
    stream_->want_read();
    transport.loop().at_turn_end(*this);
    arm_watch();
}

Http2Connection::~Http2Connection() = default;

void Http2Connection::settings_came() {
    auto const limit = nghttp2_session_get_remote_settings(session_.get(),
                                                           NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    peer_limit_ = limit;
    pool().learned_stream_limit(limit);
    if (fresh_) {
        fresh_ = false;
        pool().ready(*this);
    }
    update_room();
}

void Http2Connection::update_room() noexcept {
    if (closed_) return;
    std::uint16_t room = 0;
    if (!fresh_ && !draining_ && !suspect_) {
        auto const limit = std::min<std::uint32_t>(peer_limit_, pool().stream_limit());
        room = limit > load ? static_cast<std::uint16_t>(limit - load) : std::uint16_t{0};
    }
    pool().set_room(*this, room);
}

// --- exchanges ----------------------------------------------------------------------------------

void Http2Connection::start(Exchange& exchange) {
    auto const& request = exchange.request();
    lines_.clear();
    lines_.push_back(line(":method", request.method, NGHTTP2_NV_FLAG_NONE));
    lines_.push_back(line(":scheme", exchange.site().origin.tls ? "https" : "http",
                          NGHTTP2_NV_FLAG_NO_COPY_VALUE));
    lines_.push_back(line(":authority", exchange.site().authority, NGHTTP2_NV_FLAG_NONE));
    lines_.push_back(line(":path", exchange.target(), NGHTTP2_NV_FLAG_NONE));
    if (auto const* const common = exchange.common()) {
        lines_.insert(lines_.end(), common->http2.begin(), common->http2.end());
    }
    std::size_t name_bytes = 0;
    for (auto const& own : request.headers) name_bytes += own.name.size();
    names_.clear();
    names_.reserve(name_bytes);  // the lines point into it
    for (auto const& [name, value] : request.headers) {
        if (is_transport_header(name)) continue;
        auto const at = names_.size();
        std::transform(name.begin(), name.end(), std::back_inserter(names_), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        std::string_view const small{names_.data() + at, name.size()};
        // A header of one request alone (ids, credentials) would only crowd the table.
        lines_.push_back(line(small, value, NGHTTP2_NV_FLAG_NO_INDEX));
    }
    if (exchange.offers_encodings()) {
        lines_.push_back(line("accept-encoding", accepted_encodings, NGHTTP2_NV_FLAG_NONE));
    }
    std::string const length = std::to_string(request.body.size());
    if (!request.body.empty()) {
        lines_.push_back(line("content-length", length, NGHTTP2_NV_FLAG_NONE));
    }

    nghttp2_data_provider provider{};
    provider.source.ptr = &exchange;
    provider.read_callback = &Callbacks::read_body;
    exchange.incoming_bytes = 0;
    exchange.incoming_given = false;
    exchange.peer_reset = false;
    auto const stream =
        nghttp2_submit_request(session_.get(), nullptr, lines_.data(), lines_.size(),
                               request.body.empty() ? nullptr : &provider, &exchange);
    bool const new_connection = std::exchange(first_use_, false);
    ++load;
    exchange.assigned(*this, new_connection);
    exchanges_.push_back(exchange);
    if (stream < 0) {
        // Stream ids are used up, or memory is: this connection takes no more.
        draining_ = true;
        refused_.push_back(exchange.call());
    } else {
        exchange.stream_id = stream;
    }
    update_room();
    if (load == 1) arm_watch();
    pool().transport().loop().at_turn_end(*this);
}

Seen Http2Connection::seen(Exchange const& exchange) const noexcept {
    if (exchange.head_offset == Exchange::unsent || written_total_ <= exchange.head_offset) {
        return Seen::no;
    }
    bool const whole =
        exchange.end_offset != Exchange::unsent && written_total_ >= exchange.end_offset;
    return whole ? Seen::maybe : Seen::partly;
}

void Http2Connection::detach(Exchange& exchange) noexcept {
    if (exchange.stream_id >= 0) {
        nghttp2_session_set_stream_user_data(session_.get(), exchange.stream_id, nullptr);
    }
    exchanges_.erase(exchange);
    exchange.connection = nullptr;
    exchange.stream_id = -1;
    --load;
    if (load == 0) idle_since_ = pool().transport().loop().now();
    pool().released(exchange);
    update_room();
    if (load == 0 && draining_) pool().transport().loop().at_turn_end(*this);
}

void Http2Connection::abandon(Exchange& exchange, bool timed_out) noexcept {
    auto const stream = exchange.stream_id;
    detach(exchange);
    if (stream >= 0) {
        nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    }
    if (timed_out && !draining_) {
        // It may be this connection that is dead: ask before trusting it with more.
        auto const silence = pool().transport().loop().now() - last_heard_;
        if (silence > std::chrono::milliseconds{100}) {
            suspect_ = true;
            ping();
            update_room();
        }
    }
    pool().transport().loop().at_turn_end(*this);
}

void Http2Connection::retire_when_done() noexcept {
    draining_ = true;
    update_room();
    pool().transport().loop().at_turn_end(*this);
}

void Http2Connection::stream_closed(Exchange& exchange, std::uint32_t error_code) {
    auto const reached = seen(exchange);
    bool const too_large = exchange.incoming_bytes > pool().transport().options().max_header_bytes;
    detach(exchange);
    if (too_large) {
        exchange.lost(FailureKind::too_large,
                      "the head of the answer of " + peer() + " is longer than " +
                          std::to_string(pool().transport().options().max_header_bytes) + " bytes",
                      Seen::maybe);
        return;
    }
    switch (error_code) {
        case NGHTTP2_REFUSED_STREAM:
            exchange.lost(FailureKind::reset, peer() + " refused the request", Seen::no);
            return;
        case NGHTTP2_HTTP_1_1_REQUIRED:
            pool().fall_back_to_http1();
            draining_ = true;
            update_room();
            exchange.lost(FailureKind::protocol, peer() + " requires HTTP/1.1", Seen::no);
            return;
        case NGHTTP2_PROTOCOL_ERROR:
            if (exchange.peer_reset) break;  // so they say of us
            exchange.lost(FailureKind::protocol,
                          "the answer of " + peer() + " broke HTTP/2 (PROTOCOL_ERROR)", reached);
            return;
        default:
            break;
    }
    exchange.lost(FailureKind::reset,
                  peer() + " reset the request: " + nghttp2_http2_strerror(error_code), reached);
}

void Http2Connection::resume(Exchange& exchange) {
    if (closed_ || exchange.stream_id < 0) return;
    nghttp2_session_consume_stream(session_.get(), exchange.stream_id,
                                   std::exchange(exchange.unconsumed, 0));
    pool().transport().loop().at_turn_end(*this);
}

// --- bytes --------------------------------------------------------------------------------------

void Http2Connection::on_turn_end() {
    if (closed_) return;
    for (auto const call : std::exchange(refused_, {})) {
        for (auto* e = exchanges_.front(); e != nullptr; e = e->links.next) {
            if (e->call() != call) continue;
            detach(*e);
            e->lost(FailureKind::reset, peer() + ": the connection takes no more requests",
                    Seen::no);
            break;
        }
    }
    if (!closed_) flush();
}

void Http2Connection::on_writable() {
    if (!closed_) flush();
}

/// Sends what there is; false if the connection ended over it.
bool Http2Connection::flush() {
    auto& spare = pool().transport().spare_output();
    if (output_.empty()) output_.swap(spare);
    for (;;) {
        // A record is only sent when it is full, or the last one.
        if (output_.size() - output_written_ < tls_record_bytes) {
            output_.erase(0, std::exchange(output_written_, 0));
            if (auto const error = nghttp2_session_send(session_.get()); error != 0) {
                close(FailureKind::protocol, peer() + ": " + nghttp2_strerror(error));
                return false;
            }
            if (output_.empty()) {
                // Only who waits for the socket holds a buffer.
                if (spare.capacity() < output_.capacity()) output_.swap(spare);
                std::string{}.swap(output_);
                break;
            }
        }
        iovec const piece{output_.data() + output_written_, output_.size() - output_written_};
        auto const result = stream_->write({&piece, 1});
        if (result.status == IoResult::Status::would_block) {
            stream_->want_write();
            return true;
        }
        if (result.status != IoResult::Status::ok) {
            auto const text = stream_->error_text();
            // The server may have said why before it left.
            on_readable();
            close(FailureKind::reset, peer() + ": " + (text.empty() ? "connection closed" : text));
            return false;
        }
        output_written_ += result.bytes;
        written_total_ += result.bytes;
    }
    if (draining_ && exchanges_.empty()) {
        retire();
        if (first_use_) {
            pool().lost_before_use(FailureKind::reset,
                                   peer() + " takes no requests" + reason_in_brackets());
        }
        return false;
    }
    return !close_if_broken();
}

/// Ends the connection if nghttp2 has: it says goodbye over a breach and then listens no more.
bool Http2Connection::close_if_broken() {
    if (draining_ || nghttp2_session_send(session_.get()) != 0 ||
        nghttp2_session_want_read(session_.get()) != 0) {
        return false;
    }
    close(FailureKind::protocol,
          peer() + " broke HTTP/2" + (breach_.empty() ? std::string{} : ": " + breach_));
    return true;
}

void Http2Connection::on_readable() {
    auto const buffer = pool().transport().read_buffer();
    for (int reads = 1;; ++reads) {
        if (closed_) return;
        pool().transport().free_ended();
        auto const result = stream_->read(buffer);
        switch (result.status) {
            case IoResult::Status::would_block:
                stream_->want_read();
                return;
            case IoResult::Status::closed:
                if (!close_if_broken()) {
                    close(FailureKind::reset,
                          peer() + " closed the connection" + reason_in_brackets());
                }
                return;
            case IoResult::Status::error:
                if (!close_if_broken()) {
                    close(FailureKind::reset, peer() + ": " + stream_->error_text());
                }
                return;
            case IoResult::Status::ok:
                break;
        }
        last_heard_ = pool().transport().loop().now();
        ping_out_ = false;
        if (suspect_) {
            suspect_ = false;
            update_room();
        }
        auto const used = nghttp2_session_mem_recv(
            session_.get(), reinterpret_cast<std::uint8_t const*>(buffer.data()), result.bytes);
        if (closed_) return;
        if (used < 0) {
            close(FailureKind::protocol,
                  peer() + " broke HTTP/2: " + nghttp2_strerror(static_cast<int>(used)));
            return;
        }
        if (draining_ && first_use_) {
            // Before the pool, at the end of the turn, opens another one for those who wait.
            close(FailureKind::reset, peer() + " takes no requests" + reason_in_brackets());
            return;
        }
        pool().transport().loop().at_turn_end(*this);
        if (nghttp2_session_want_read(session_.get()) == 0 &&
            nghttp2_session_want_write(session_.get()) == 0) {
            close(FailureKind::reset, peer() + " ended the connection" + reason_in_brackets());
            return;
        }
        if (result.bytes < buffer.size() || reads == max_reads_in_a_row) {
            stream_->want_read();
            return;
        }
    }
}

std::string Http2Connection::reason_in_brackets() const {
    return end_reason_.empty() ? std::string{} : " (" + end_reason_ + ")";
}

// --- liveness and the end -----------------------------------------------------------------------

void Http2Connection::ping() {
    if (ping_out_) return;
    ping_out_ = true;
    ping_sent_ = pool().transport().loop().now();
    nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
    pool().transport().loop().at_turn_end(*this);
    arm_watch();
}

/// Arms the one timer for whatever comes first: a PING, its answer, or the end of idleness.
void Http2Connection::arm_watch() {
    auto& transport = pool().transport();
    auto const& options = transport.options();
    auto when = TimePoint::max();
    if (exchanges_.empty() && !ping_out_) {
        when = idle_since_ + options.idle_timeout;
    } else if (options.ping_interval.count() > 0) {
        if (ping_out_) {
            when = ping_sent_ + options.ping_timeout;
        } else {
            // Spread, so that a thousand connections do not ask in one turn.
            auto const spread = options.ping_interval / 8;
            auto const extra =
                spread.count() > 0
                    ? static_cast<std::int64_t>(transport.chance()()) % spread.count()
                    : 0;
            when = last_heard_ + options.ping_interval + std::chrono::milliseconds{extra};
        }
    } else {
        when = transport.loop().now() + options.idle_timeout;
    }
    when = std::max(when, transport.loop().now() + std::chrono::milliseconds{1});
    if (armed() && watch_at_ <= when) return;  // it looks again when it fires
    watch_at_ = when;
    transport.loop().arm(*this, when, Precision::coarse);
}

void Http2Connection::on_time() {
    if (closed_) return;
    auto const now = pool().transport().loop().now();
    auto const& options = pool().transport().options();
    if (ping_out_ && options.ping_interval.count() > 0 &&
        now - ping_sent_ >= options.ping_timeout) {
        close(FailureKind::reset, peer() + " did not answer a PING within " +
                                      std::to_string(options.ping_timeout.count()) + " ms");
        return;
    }
    if (exchanges_.empty()) {
        if (!ping_out_ && now - idle_since_ >= options.idle_timeout) {
            nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
            draining_ = true;
            if (flush()) retire();
            return;
        }
    } else if (!ping_out_ && options.ping_interval.count() > 0 &&
               now - last_heard_ >= options.ping_interval) {
        ping();
    }
    arm_watch();
}

void Http2Connection::close(FailureKind kind, std::string const& why) {
    if (closed_) return;
    // Judge all before telling any: telling may send others out again.
    struct Lost {
        Exchange* exchange;
        Seen seen;
    };
    std::vector<Lost> lost;
    lost.reserve(exchanges_.size());
    draining_ = true;
    while (auto* const exchange = exchanges_.front()) {
        lost.push_back({exchange, seen(*exchange)});
        detach(*exchange);
    }
    retire();
    for (auto const& [exchange, reached] : lost) {
        if (!exchange->ended()) exchange->lost(kind, why, reached);
    }
    if (first_use_) pool().lost_before_use(kind, why);
}

void Http2Connection::retire() noexcept {
    if (closed_) return;
    closed_ = true;
    pool().closed(*this);
}

}  // namespace tinkxx::net
