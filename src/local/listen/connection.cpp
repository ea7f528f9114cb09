#include "local/listen/connection.hpp"

#include "base/loop/loop_rule.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>

namespace tinkxx::local {
namespace {

// Requests of one connection that are begun in one turn of the loop: others get theirs in between.
constexpr int most_in_turn = 2;
// Smaller pieces are joined, so that head and body of a small answer are one.
constexpr std::size_t joined_below = std::size_t{16} << 10U;
// Between two lines of the log that say the same.
constexpr std::chrono::seconds between_lines{10};

std::size_t memory_of_piece(std::string const& piece) noexcept {
    return sizeof piece + memory_of(piece);
}

bool iequal(std::string_view a, std::string_view b) noexcept {
    auto const lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

/// Lines that are the connection's to write.
bool is_own_line(std::string_view name) noexcept {
    return iequal(name, "Content-Length") || iequal(name, "Transfer-Encoding") ||
           iequal(name, "Connection") || iequal(name, "Date");
}

void append_line(std::string& head, std::string_view name, std::string_view value) {
    auto const clean = [&head](std::string_view text) {
        // A line must not end in the midst of a value that somebody else chose.
        for (char const c : text) head += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    };
    clean(name);
    head += ": ";
    clean(value);
    head += "\r\n";
}

void append_date(std::string& head, WallTime now) {
    std::array<char, 64> text{};
    auto const time = std::chrono::system_clock::to_time_t(now);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    // Only names of the C locale are allowed in it, and strftime would write others.
    constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    auto const length =
        std::snprintf(text.data(), text.size(), "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                      days[static_cast<std::size_t>(parts.tm_wday) % 7], parts.tm_mday,
                      months[static_cast<std::size_t>(parts.tm_mon) % 12], parts.tm_year + 1900,
                      parts.tm_hour, parts.tm_min, parts.tm_sec);
    head.append(text.data(), static_cast<std::size_t>(std::max(length, 0)));
}

std::string refusal_body(std::string const& detail) {
    std::string body = R"({"detail":")";
    for (char const c : detail) {
        if (c == '"' || c == '\\') body += '\\';
        body += c < ' ' || c > '~' ? '?' : c;
    }
    return body += "\"}";
}

}  // namespace

// --- the answer, as the handler holds it --------------------------------------------------------

class ServerConnection::Reply final : public Answer {
public:
    explicit Reply(ServerConnection& connection) : connection_{&connection} {}
    Reply(Reply const&) = delete;
    Reply& operator=(Reply const&) = delete;
    ~Reply() override {
        if (connection_ != nullptr) {
            connection_->reply_ = nullptr;
            connection_->answer_dropped();
        }
    }

    void head(int status, Headers headers, std::optional<std::size_t> length) override {
        if (connection_ != nullptr && !connection_->head_written_) {
            connection_->write_head(status, headers, length);
        }
    }
    void data(std::string bytes) override {
        if (connection_ != nullptr && connection_->head_written_) {
            connection_->write_data(std::move(bytes));
        }
    }
    void done() override {
        if (connection_ == nullptr || !connection_->head_written_) return;
        auto* const connection = std::exchange(connection_, nullptr);
        connection->reply_ = nullptr;
        connection->finish_answer();
    }
    std::size_t pending() const noexcept override {
        return connection_ != nullptr ? connection_->unsent_ : 0;
    }
    void on_gone(Task task) override {
        if (lost_ || (connection_ != nullptr && connection_->peer_closes_)) {
            scheduler_.post(std::move(task));
        } else if (connection_ != nullptr) {
            gone = std::move(task);
        }
    }
    void on_drained(Task task) override {
        if (connection_ == nullptr) return;
        if (connection_->unsent_ == 0) return scheduler_.post(std::move(task));
        drained = std::move(task);
    }

    /// The connection goes before the answer is done.
    void detach() noexcept {
        connection_ = nullptr;
        lost_ = true;
    }

    Task gone{};
    Task drained{};

private:
    ServerConnection* connection_;
    Scheduler& scheduler_{connection_->share_.scheduler};
    bool lost_{false};
};

// --- life ---------------------------------------------------------------------------------------

ServerConnection::ServerConnection(ConnectionShare& share, Carrier& carrier)
    : share_{share}, carrier_{carrier}, parser_{share.limits}, since_{share.scheduler.now()} {
    rearm();
}

ServerConnection::~ServerConnection() {
    forget_input();
    forget_output();
    if (reply_ != nullptr) reply_->detach();
}

void ServerConnection::lost() {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (state_ != State::closed) close("the peer is gone");
    tell_gone();
}

void ServerConnection::cut(std::string why) {
    // Its record says that it was answered, so there is one more.
    if (reply_ == nullptr && unsent_ > 0) record(why);
    close(std::move(why));
    // Who answers is told later: this may be a call of the handler's own.
    carrier_.on_change();
}

void ServerConnection::close(std::string why) {
    bool const reads_body =
        state_ == State::reading && parser_.state() == RequestParser::State::body;
    state_ = State::closed;
    forget_input();
    forget_output();
    rearm();
    if (reply_ != nullptr || reads_body) record(std::move(why));
}

void ServerConnection::tell_gone() {
    if (reply_ == nullptr) return;
    auto& reply = *std::exchange(reply_, nullptr);
    reply.detach();
    auto const unrun = std::move(reply.drained);
    // The last, since it may drop the answer.
    if (auto task = std::move(reply.gone)) task();
}

void ServerConnection::peer_closes() {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (peer_closes_ || state_ == State::closed) return;
    peer_closes_ = true;
    carrier_.on_change();
    // Whoever closes its own side may still read; but most who do are gone.
    if (reply_ == nullptr) return;
    if (auto task = std::move(reply_->gone)) task();
}

void ServerConnection::peer_ended() {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (peer_ended_ || state_ == State::closed) return;
    peer_ended_ = true;
    carrier_.on_change();
    peer_closes();
    proceed();  // what it asked before is served
}

void ServerConnection::end_with_input() {
    if (state_ != State::reading || !peer_ended_ || (waits() && !input_.empty())) return;
    // A request that is not complete never will be.
    if (parser_.state() == RequestParser::State::body) record("the peer is gone");
    end_after_output();
}

void ServerConnection::retire() {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    retired_ = true;
    if (state_ != State::reading || parser_.state() != RequestParser::State::head) return;
    end_after_output();
    carrier_.on_change();
}

ServerConnection::Next ServerConnection::next() const noexcept {
    if (state_ == State::closed) return Next::close;
    if (state_ == State::lingering) return peer_ended_ ? Next::close : Next::linger;
    return Next::go_on;
}

void ServerConnection::end_after_output() {
    forget_input();
    state_ = unsent_ > 0 ? State::ending : State::lingering;
    since_ = share_.scheduler.now();
    rearm();
}

void ServerConnection::begin_recording() {
    auto const& request = parser_.request();
    record_ = {
        .method = printable(request.method, 20),
        .path = printable(std::string_view{request.target}.substr(0, request.target.find('?'))),
        .request_bytes = request.body.size()};
}

void ServerConnection::record(std::string note) {
    if (!share_.on_request) return;
    auto finished = record_;  // which stays, should its answer be cut on its way
    finished.time = share_.scheduler.now() - request_began_;
    finished.note = std::move(note);
    share_.on_request(finished);
}

// --- time ---------------------------------------------------------------------------------------

std::optional<TimePoint> ServerConnection::read_deadline() const noexcept {
    auto const& limits = share_.limits;
    if (state_ == State::lingering) return since_ + limits.linger;
    if (state_ != State::reading || waits_for_reader()) return std::nullopt;
    if (parser_.state() == RequestParser::State::body) return since_ + limits.body_timeout;
    if (request_begun_) return since_ + limits.header_timeout;
    if (unsent_ > 0) return std::nullopt;
    return since_ + (had_request_ ? limits.idle_timeout : limits.header_timeout);
}

TimePoint ServerConnection::write_deadline() const noexcept {
    auto const limit = share_.limits.write_timeout;
    return sending_since_ + (stall_told_ ? limit : limit / 2);
}

void ServerConnection::rearm() {
    auto deadline = read_deadline();
    if (unsent_ > 0) deadline = std::min(deadline.value_or(TimePoint::max()), write_deadline());
    if (!deadline) return share_.scheduler.disarm(*this);
    share_.scheduler.arm(*this, *deadline, Precision::coarse);
}

void ServerConnection::on_time() {
    auto const now = share_.scheduler.now();
    if (unsent_ > 0 && now >= write_deadline()) {
        if (!std::exchange(stall_told_, true)) {
            carrier_.on_stall();
        } else if (taken_ < share_.limits.min_answer_bytes) {
            cut("cut: the peer took its answer too slowly");
            return tell_gone();
        } else {
            begin_sending();
        }
    }
    if (auto const deadline = read_deadline(); deadline && now >= *deadline) on_read_time();
    rearm();
    carrier_.on_change();
}

void ServerConnection::on_read_time() {
    if (state_ == State::lingering) {
        lost();
    } else if (parser_.state() == RequestParser::State::body) {
        auto const bytes = parser_.request().body.size();
        if (bytes - body_then_ < share_.limits.min_body_bytes) {
            refuse({.status = 408, .detail = "The body of the request came too slowly."});
        } else {
            body_then_ = bytes;
            since_ = share_.scheduler.now();
        }
    } else if (request_begun_) {
        refuse({.status = 408, .detail = "The head of the request came too slowly."});
    } else {
        end_after_output();
    }
}

// --- reading ------------------------------------------------------------------------------------

bool ServerConnection::waits_for_reader() const noexcept {
    return !request_begun_ && output_memory_ > share_.limits.max_unsent_bytes;
}

bool ServerConnection::waits() const noexcept {
    return waits_for_reader() || (!request_begun_ && begun_in_turn_ >= most_in_turn);
}

void ServerConnection::next_turn() noexcept {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    begun_in_turn_ = 0;
}

bool ServerConnection::wants_turn() const noexcept {
    return state_ == State::reading && !input_.empty() && waits() && !waits_for_reader();
}

std::size_t ServerConnection::input_room() const noexcept {
    auto const& limits = share_.limits;
    bool const reads = state_ == State::reading && !waits();
    // What is parsed at once, or is of no use, is not kept.
    if (reads || state_ == State::ending || state_ == State::lingering) return one_read;
    if (wants_turn()) return 0;
    if (state_ == State::closed || share_.receiving > limits.max_receiving_bytes) return 0;
    return limits.max_kept_bytes - std::min(input_.size(), limits.max_kept_bytes);
}

void ServerConnection::received(std::span<char const> bytes) {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (bytes.empty() || (state_ != State::reading && state_ != State::answering)) return;
    if (state_ == State::reading && input_.empty() && !waits()) {
        bytes = bytes.subspan(parse(bytes));
        keep({bytes.data(), bytes.size()});
        return rearm();
    }
    auto kept = std::exchange(input_, {});
    append_within(kept, {bytes.data(), bytes.size()},
                  share_.limits.max_header_bytes + share_.limits.max_kept_bytes);
    keep(std::move(kept));
    proceed();
}

void ServerConnection::proceed() {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (state_ == State::closed) return tell_gone();
    if (state_ == State::reading && !input_.empty() && !waits()) {
        auto kept = std::exchange(input_, {});
        kept.erase(0, parse(kept));
        keep(std::move(kept));
    }
    end_with_input();
    rearm();
}

void ServerConnection::keep(std::string bytes) {
    if (state_ != State::reading && state_ != State::answering) return;
    if (!bytes.empty()) input_ = std::move(bytes);
    count();
    if (share_.receiving <= share_.limits.max_receiving_bytes || counted_ == 0) return;
    if (state_ == State::reading && request_begun_) return refuse_load();
    // Nobody can be told before the answer that is under way, which thus is the last.
    keep_alive_ = false;
    if (state_ == State::reading) return end_after_output();
    forget_input();
}

void ServerConnection::count() noexcept {
    auto const held = memory_of(input_) + parser_.held();
    share_.receiving = share_.receiving - counted_ + held;
    counted_ = held;
}

void ServerConnection::forget_input() noexcept {
    input_ = std::string{};
    auto const dropped = parser_.take_request();
    share_.receiving -= std::exchange(counted_, 0);
}

std::size_t ServerConnection::parse(std::span<char const> bytes) {
    std::size_t at = 0;
    while (state_ == State::reading && at < bytes.size()) {
        if (!request_begun_) {
            if (waits()) break;
            ++begun_in_turn_;
            request_begun_ = true;
            request_began_ = since_ = share_.scheduler.now();
        }
        auto const before = parser_.state();
        auto const taken = parser_.feed(bytes.subspan(at));
        at += taken;
        if (parser_.state() == RequestParser::State::head_done) on_head();
        if (state_ == State::reading && parser_.state() == RequestParser::State::body) check_load();
        if (state_ != State::reading) break;
        if (parser_.state() == RequestParser::State::refused) {
            begin_recording();
            refuse(parser_.refusal());
        } else if (parser_.state() == RequestParser::State::complete) {
            dispatch();
        } else if (taken == 0 && parser_.state() == before) {
            break;  // more has to come
        }
    }
    return at;
}

void ServerConnection::on_head() {
    begin_recording();
    keep_alive_ = parser_.keep_alive();
    http_1_0_ = parser_.http_1_0();
    head_only_ = parser_.request().method == "HEAD";
    if (share_.admit) {
        if (auto const refusal = share_.admit(parser_.request())) return refuse(*refusal);
    }
    auto const most = share_.limits.max_receiving_bytes;
    if (auto const length = parser_.content_length();
        length && *length > most - std::min(share_.receiving, most)) {
        return refuse_load();
    }
    if (parser_.has_body() && parser_.expects_continue()) write("HTTP/1.1 100 Continue\r\n\r\n");
    parser_.go_on();
    since_ = share_.scheduler.now();
    body_then_ = 0;
}

void ServerConnection::check_load() {
    count();
    if (share_.receiving > share_.limits.max_receiving_bytes) refuse_load();
}

void ServerConnection::dispatch() {
    record_.request_bytes = parser_.request().body.size();
    state_ = State::answering;
    head_written_ = chunked_ = bodyless_ = false;
    length_left_.reset();
    auto request = parser_.take_request();
    count();
    auto const answer = std::make_shared<Reply>(*this);
    reply_ = answer.get();
    try {
        share_.handler.handle(std::move(request), answer);
    } catch (std::exception const& error) {
        if (reply_ != answer.get() || head_written_) return;
        auto body = refusal_body("The server failed: " + printable(error.what()));
        answer->head(500, {{"Content-Type", "application/json"}}, body.size());
        answer->data(std::move(body));
        answer->done();
    }
}

// --- answering ----------------------------------------------------------------------------------

void ServerConnection::refuse(Refusal const& refusal) {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    keep_alive_ = false;
    if (!request_begun_) request_began_ = share_.scheduler.now();
    auto body = refusal_body(refusal.detail);
    Headers headers{{"Content-Type", "application/json"}};
    if (refusal.status == 503) headers.add("retry-after-ms", "1000");
    write_head(refusal.status, headers, body.size());
    if (!head_only_) write(std::move(body));
    if (state_ == State::closed) return;
    record("refused: " + refusal.detail);
    end_after_output();
    carrier_.on_change();
}

void ServerConnection::refuse_load() {
    refuse({.status = 503,
            .detail = "Too many large requests come at once; wait a moment and send it again."});
}

void ServerConnection::write_head(int status, Headers const& headers,
                                  std::optional<std::size_t> length) {
    head_written_ = true;
    record_.status = status;
    bodyless_ = head_only_ || status == 204 || status == 304;
    length_left_ = length;
    chunked_ = !length && !http_1_0_ && status != 204 && status != 304;
    if (!length && http_1_0_ && !bodyless_) keep_alive_ = false;
    if (retired_) keep_alive_ = false;

    std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
    head.append(reason_of(status)).append("\r\n");
    append_date(head, share_.scheduler.wall());
    for (auto const& [name, value] : headers) {
        if (!is_own_line(name)) append_line(head, name, value);
    }
    if (chunked_) {
        head += "Transfer-Encoding: chunked\r\n";
    } else if (length && status != 204 && status != 304) {
        head += "Content-Length: " + std::to_string(*length) + "\r\n";
    }
    if (!keep_alive_) {
        head += "Connection: close\r\n";
    } else if (http_1_0_) {
        head += "Connection: keep-alive\r\n";
    }
    write(std::move(head += "\r\n"));
}

void ServerConnection::write_data(std::string bytes) {
    if (length_left_) {
        // More than was promised would be taken for the next answer.
        if (bytes.size() > *length_left_) {
            bytes.resize(*length_left_);
            keep_alive_ = false;
        }
        *length_left_ -= bytes.size();
    }
    if (bytes.empty() || bodyless_) return;
    record_.answer_bytes += bytes.size();
    if (!chunked_) return write(std::move(bytes));
    std::array<char, 20> size{};
    auto const end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
    write(std::string{size.data(), end} += "\r\n");
    write(std::move(bytes));
    write("\r\n");
}

void ServerConnection::write(std::string bytes) {
    if (bytes.empty() || state_ == State::closed) return;
    if (unsent_ == 0) {
        begin_sending();
        share_.senders.push_back(*this);
    }
    unsent_ += bytes.size();
    auto const before = output_memory_;
    if (!output_.empty() && output_.back().size() + bytes.size() <= joined_below) {
        output_memory_ -= memory_of_piece(output_.back());
        output_.back() += bytes;
    } else {
        output_.push_back(std::move(bytes));
    }
    output_memory_ += memory_of_piece(output_.back());
    share_.sending = share_.sending - before + output_memory_;
    carrier_.on_change();
    shed();
}

void ServerConnection::begin_sending() noexcept {
    sending_since_ = share_.scheduler.now();
    taken_ = 0;
    stall_told_ = false;
}

void ServerConnection::forget_output() noexcept {
    if (unsent_ > 0) share_.senders.erase(*this);
    output_.clear();
    output_at_ = unsent_ = 0;
    share_.sending -= std::exchange(output_memory_, 0);
}

void ServerConnection::shed() {
    auto& share = share_;  // this one may be among those that go
    auto const most = share.limits.max_sending_bytes;
    if (share.sending <= most) return;
    while (share.sending > most && !share.senders.empty()) {
        ++share.cut;
        share.senders.front()->cut("cut: more than " + quantity(most) +
                                   " of answers were unsent on all connections, and this one took "
                                   "something longest ago");
    }
    auto const now = share.scheduler.now();
    if (!share.on_trouble || (share.cut_told && now - *share.cut_told < between_lines)) return;
    share.cut_told = now;
    share.on_trouble("more than " + quantity(most) +
                     " of answers wait for clients to read them; connections that took something "
                     "longest ago are cut, " +
                     std::to_string(share.cut) + " so far");
}

void ServerConnection::finish_answer() {
    if (chunked_ && !bodyless_) write("0\r\n\r\n");
    if (state_ == State::closed) return;
    bool const short_of_it = length_left_.value_or(0) > 0 && !bodyless_;
    record(short_of_it ? "the answer was shorter than announced" : "");
    had_request_ = true;
    request_begun_ = head_only_ = false;
    parser_ = RequestParser{share_.limits};
    if (keep_alive_ && !retired_ && !short_of_it) {
        state_ = State::reading;
        if (unsent_ == 0) since_ = share_.scheduler.now();
        rearm();
    } else {
        end_after_output();
    }
    carrier_.on_change();
}

void ServerConnection::answer_dropped() {
    if (state_ == State::closed) return;
    record("given up by the server");
    lost();
    carrier_.on_change();
}

std::size_t ServerConnection::output(std::span<iovec> pieces) const noexcept {
    std::size_t count = 0;
    auto skip = output_at_;
    for (auto const& piece : output_) {
        if (count == pieces.size()) break;
        // The kernel does not write through it; its type predates const.
        pieces[count].iov_base = const_cast<char*>(piece.data() + skip);
        pieces[count].iov_len = piece.size() - skip;
        skip = 0;
        ++count;
    }
    return count;
}

void ServerConnection::wrote(std::size_t bytes) {
    TINKXX_ASSERT_LOOP(share_.scheduler);
    if (bytes == 0) return;
    unsent_ -= bytes;
    taken_ += bytes;
    output_at_ += bytes;
    auto const before = output_memory_;
    while (!output_.empty() && output_at_ >= output_.front().size()) {
        output_at_ -= output_.front().size();
        output_memory_ -= memory_of_piece(output_.front());
        output_.pop_front();
    }
    share_.sending = share_.sending - before + output_memory_;
    share_.senders.erase(*this);
    if (unsent_ > 0) {
        share_.senders.push_back(*this);
    } else if (state_ == State::ending) {
        state_ = State::lingering;
        since_ = share_.scheduler.now();
    } else if (!request_begun_) {
        since_ = share_.scheduler.now();
    }
    rearm();
    if (!input_.empty() && !waits()) carrier_.on_change();
    if (unsent_ > 0 || reply_ == nullptr) return;
    if (auto task = std::move(reply_->drained)) task();
}

}  // namespace tinkxx::local
