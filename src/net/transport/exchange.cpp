#include "net/transport/exchange.hpp"

#include "net/address/url.hpp"
#include "net/transport/connection.hpp"
#include "net/transport/net_transport.hpp"
#include "net/transport/pool.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tinkxx::net {
namespace {

constexpr std::uint8_t max_repeats = 3;
constexpr std::uint64_t max_swallowed_bytes = std::uint64_t{64} * 1024;

bool is_method(std::string_view method) noexcept {
    return !method.empty() && std::all_of(method.begin(), method.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    });
}

std::string negative_timeout(Timeouts const& timeouts) {
    if (std::min({timeouts.connect, timeouts.read, timeouts.write, timeouts.pool,
                  timeouts.total}) >= std::chrono::milliseconds::zero()) {
        return {};
    }
    auto const check = [](std::string_view name, std::chrono::milliseconds value) {
        return value.count() >= 0
                   ? std::string{}
                   : "timeouts." + std::string{name} + " is " + std::to_string(value.count()) +
                         " ms; give a positive time, or 0 for no limit";
    };
    for (auto problem : {check("connect", timeouts.connect), check("read", timeouts.read),
                         check("write", timeouts.write), check("pool", timeouts.pool),
                         check("total", timeouts.total)}) {
        if (!problem.empty()) return problem;
    }
    return {};
}

std::optional<std::uint64_t> content_length(Headers const& headers) noexcept {
    auto const* const text = headers.find("content-length");
    if (text == nullptr) return std::nullopt;
    std::uint64_t length{};
    auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
    return length;
}

bool may_follow(std::string_view method, int status) noexcept {
    switch (status) {
        case 301:
        case 302:
        case 303:
            return method == "GET" || method == "HEAD";
        case 307:
        case 308:
            return true;
        default:
            return false;
    }
}

Headers without_credentials(Headers const& headers) {
    Headers kept;
    for (auto const& [name, value] : headers) {
        if (!is_credential(name)) kept.add(name, value);
    }
    return kept;
}

}  // namespace

Exchange::Exchange(NetTransport& transport, Request request, ReplySink& sink, Call call)
    : transport_{transport}, request_{std::move(request)}, sink_{sink}, call_{call} {}

std::string_view Exchange::target() const noexcept {
    std::string_view const url{request_.url};
    auto const text = url.substr(target_begin_);
    return text.empty() ? std::string_view{"/"} : text;
}

bool Exchange::offers_encodings() const noexcept {
    return request_.decode_content && !(common_ && common_->has_accept_encoding) &&
           !request_.headers.contains("accept-encoding");
}

std::string Exchange::problem() {
    if (!is_method(request_.method)) return "\"" + request_.method + "\" is not an HTTP method";
    if (auto text = negative_timeout(request_.timeouts); !text.empty()) return text;
    common_ = transport_.header_cache().get(request_.common_headers);
    if (common_ && !common_->problem.empty()) return common_->problem;
    if (auto text = header_problem(request_.headers); !text.empty()) return text;

    std::string text;
    site_ = transport_.find_site(request_.url, target_begin_, text);
    if (site_ == nullptr) return text;
    if (auto const fragment = request_.url.find('#', target_begin_);
        fragment != std::string::npos) {
        request_.url.resize(fragment);
    }
    if (target_begin_ < request_.url.size() && request_.url[target_begin_] == '?') {
        request_.url.insert(target_begin_, 1, '/');
    }
    auto const bad = std::find_if(target().begin(), target().end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    });
    if (bad != target().end()) {
        return "the URL " + request_.url + " holds a space or control character; percent-encode it";
    }
    return {};
}

void Exchange::begin() {
    auto const now = transport_.loop().now();
    if (timing_.started == TimePoint{}) timing_.started = now;
    if (auto text = problem(); !text.empty()) {
        transport_.fail_later(call_, {.kind = FailureKind::invalid_request,
                                      .message = request_.method + " request: " + text});
        return;
    }
    if (request_.timeouts.total.count() > 0 && total_deadline_ == TimePoint::max()) {
        total_deadline_ = now + request_.timeouts.total;
    }
    queue();
}

void Exchange::queue() {
    head_offset = end_offset = unsent;
    stream_id = -1;
    body_framed = 0;
    unconsumed = 0;
    timing_.connected = timing_.sent = timing_.first_byte = {};
    auto& to = transport_.pool_of(*site_, request_.purpose);
    pool = &to;
    enter(Phase::queued);
    to.submit(*this);
}

// --- phases and their limits ---------------------------------------------------------------

std::chrono::milliseconds Exchange::limit_of(Phase phase) const noexcept {
    auto const& limits = request_.timeouts;
    switch (phase) {
        case Phase::queued: {
            // Without any connection the wait is one for a connection to be made.
            if (pool == nullptr || pool->has_connection()) return limits.pool;
            if (limits.connect.count() == 0 || limits.pool.count() == 0) {
                return std::max(limits.connect, limits.pool);
            }
            return std::min(limits.connect, limits.pool);
        }
        case Phase::sending:
            return limits.write;
        case Phase::receiving:
            return limits.read;
        case Phase::backing_off:
        case Phase::ended:
            break;
    }
    return std::chrono::milliseconds{0};
}

void Exchange::enter(Phase phase) {
    phase_ = phase;
    phase_began_ = transport_.loop().now();
    touch();
    arm_deadline();
}

void Exchange::touch() noexcept {
    auto const limit = limit_of(phase_);
    auto from = transport_.loop().now();
    if (phase_ == Phase::queued) {
        from = phase_began_;
        // It may have waited long for a turn on connections that have all ended since.
        if (pool != nullptr && !pool->has_connection()) from = std::max(from, pool->bare_since());
    }
    deadline_ = limit.count() > 0 ? from + limit : TimePoint::max();
    deadline_ = std::min(deadline_, total_deadline_);
}

// A deadline moves forward with every byte; the timer stays where it is and looks again when it
// fires, so that activity costs nothing here.
void Exchange::arm_deadline() noexcept {
    if (deadline_ == TimePoint::max()) {
        if (armed()) transport_.loop().disarm(*this);
        return;
    }
    if (armed() && armed_for_ <= deadline_) return;
    armed_for_ = deadline_;
    transport_.loop().arm(*this, deadline_, Precision::coarse);
}

void Exchange::on_time() {
    if (phase_ == Phase::ended) return;
    auto const now = transport_.loop().now();
    if (phase_ == Phase::backing_off) {
        if (now >= total_deadline_) {
            time_out();
        } else {
            queue();
        }
        return;
    }
    // Which limit holds in the queue depends on whether there is a connection by now.
    if (paused_ || phase_ == Phase::queued) touch();
    if (now >= deadline_) {
        time_out();
    } else {
        armed_for_ = TimePoint::max();
        arm_deadline();
    }
}

void Exchange::time_out() {
    auto const now = transport_.loop().now();
    auto const& limits = request_.timeouts;
    auto const within = [](std::chrono::milliseconds limit) {
        return " within " + std::to_string(limit.count()) + " ms";
    };
    auto const what = request_.method + " " + site_->name;
    Seen const reached = connection != nullptr ? connection->seen(*this) : Seen::no;
    auto const in = phase_;
    bool const no_connection = pool != nullptr && !pool->has_connection();
    bool const starved = pool != nullptr && pool->starved();
    leave_connection(true);
    if (now >= total_deadline_) {
        fail(FailureKind::total_timeout, what + ": not finished" + within(limits.total), reached);
    } else if (in == Phase::queued) {
        if (no_connection && limit_of(Phase::queued) == limits.connect) {
            fail(FailureKind::connect_timeout, what + ": no connection" + within(limits.connect),
                 Seen::no);
        } else {
            fail(FailureKind::pool_timeout,
                 what + ": no free connection" + within(limits.pool) +
                     (starved ? "; the process is out of file descriptors, raise the limit "
                                "(ulimit -n)"
                              : "; raise NetOptions::max_http1_connections or send fewer at once"),
                 Seen::no);
        }
    } else if (in == Phase::sending) {
        fail(FailureKind::write_timeout,
             what + ": no byte of the request could be sent" + within(limits.write), reached);
    } else {
        fail(FailureKind::read_timeout, what + ": no answer" + within(limits.read), reached);
    }
}

// --- what a connection tells ----------------------------------------------------------------

void Exchange::assigned(Connection& to, bool new_connection) {
    connection = &to;
    timing_.connected = transport_.loop().now();
    timing_.new_connection = new_connection;
    enter(Phase::sending);
}

void Exchange::sent_some() noexcept { touch(); }

void Exchange::sent_all() noexcept {
    if (phase_ != Phase::sending) return;
    timing_.sent = transport_.loop().now();
    enter(Phase::receiving);
}

void Exchange::on_head(Head head) {
    touch();
    timing_.first_byte = transport_.loop().now();
    if (head.status == 421 && !misdirected_) {
        // This connection cannot serve the host; the server did nothing with the request.
        misdirected_ = true;
        connection->retire_when_done();
        leave_connection();
        repeat(std::chrono::milliseconds{0});
        return;
    }
    if (take_redirect(head)) return;

    bool const has_body = request_.method != "HEAD" && head.status != 204 && head.status != 304;
    if (auto const* encoding = head.headers.find("content-encoding");
        encoding != nullptr && request_.decode_content && has_body) {
        bool known = true;
        aside().decoder = make_content_decoder(*encoding, known);
    }
    if (auto const length = content_length(head.headers);
        length && decoder() == nullptr && has_body && *length > request_.max_response_bytes) {
        leave_connection();
        fail(FailureKind::too_large,
             request_.method + " " + site_->name + ": the answer announces " +
                 std::to_string(*length) + " bytes, more than the limit of " +
                 std::to_string(request_.max_response_bytes) +
                 "; raise max_response_bytes if that is wanted",
             Seen::maybe);
        return;
    }
    if (redirected_) head.redirected_url = request_.url;
    head_given_ = true;
    sink_.on_head(std::move(head));
}

bool Exchange::take_redirect(Head const& head) {
    if (request_.redirects != Redirects::follow || !may_follow(request_.method, head.status)) {
        return false;
    }
    auto const* const location = head.headers.find("location");
    if (location == nullptr) return false;
    auto const what = request_.method + " " + site_->name + ": ";
    auto const refuse = [&](std::string why) {
        leave_connection();
        fail(FailureKind::redirect, what + std::move(why), Seen::maybe);
        return true;
    };
    if (++redirects_ > transport_.options().max_redirects) {
        return refuse("more than " + std::to_string(transport_.options().max_redirects) +
                      " redirects");
    }
    auto next = resolve_reference(request_.url, *location);
    if (!next)
        return refuse("a redirect that cannot be followed: " + std::string{next.error().what()});
    if (site_->origin.tls && !next->starts_with("https:")) {
        return refuse("a redirect from https to http is not followed");
    }
    redirecting_ = true;
    aside().redirect_url = std::move(*next);
    return true;
}

void Exchange::follow_redirect() {
    redirecting_ = false;
    redirected_ = true;
    timing_.bytes_received = 0;
    auto const* const old_site = site_;
    request_.url = std::move(aside().redirect_url);
    if (auto text = problem(); !text.empty()) {
        fail(FailureKind::redirect, old_site->name + " redirects to a bad address: " + text,
             Seen::maybe);
        return;
    }
    if (site_->name != old_site->name) {
        // Credentials were meant for the origin that the caller named.
        request_.headers = without_credentials(request_.headers);
        if (request_.common_headers) {
            request_.common_headers =
                std::make_shared<Headers>(without_credentials(*request_.common_headers));
            common_ = prepare_headers(request_.common_headers);
        }
    }
    queue();
}

void Exchange::on_data(std::span<char const> data) {
    touch();
    timing_.bytes_received += data.size();
    if (redirecting_) {
        if (timing_.bytes_received > max_swallowed_bytes) {
            leave_connection();
            follow_redirect();
        }
        return;
    }
    deliver(data);
}

void Exchange::on_end() {
    if (redirecting_) {
        follow_redirect();
        return;
    }
    input_ended_ = true;
    if (!paused_ && !holds_data() && !decoder_busy_) complete();
}

void Exchange::lost(FailureKind kind, std::string message, Seen seen) {
    leave_connection();
    if (seen == Seen::no && !head_given_ && !redirecting_ && repeats_ < max_repeats &&
        !transport_.draining()) {
        ++repeats_;
        // At once the first time (a stale connection); then more and more patiently.
        repeat(std::chrono::milliseconds{repeats_ == 1 ? 0 : 25 << repeats_});
        return;
    }
    fail(kind, request_.method + " " + site_->name + ": " + std::move(message), seen);
}

void Exchange::repeat(std::chrono::milliseconds delay) {
    enter(Phase::backing_off);
    armed_for_ = TimePoint::max();
    auto const when = std::min(transport_.loop().now() + delay, total_deadline_);
    transport_.loop().arm(*this, when, Precision::exact);
}

// --- delivery ---------------------------------------------------------------------------------

void Exchange::deliver(std::span<char const> data) {
    if (paused_ || delivering_ || holds_data() || decoder_busy_) {
        aside().held.append(data.data(), data.size());
        return;
    }
    delivering_ = true;
    if (decoder() != nullptr) {
        aside_->decoder_input.assign(data.data(), data.size());
        decoder()->feed(aside_->decoder_input);
        decoder_busy_ = true;
        decode();
    } else {
        give(data);
    }
    delivering_ = false;
}

/// Hands on decoded pieces until the input is used up; false if that stopped half-way.
bool Exchange::decode() {
    while (!paused_) {
        switch (decoder()->next()) {
            case ContentDecoder::Step::data:
                if (!give(decoder()->output())) return false;
                break;
            case ContentDecoder::Step::need_input:
                decoder_busy_ = false;
                return true;
            case ContentDecoder::Step::error: {
                auto text = request_.method + " " + site_->name +
                            ": the body of the answer: " + std::string{decoder()->error_text()};
                leave_connection();
                fail(FailureKind::decoding, std::move(text), Seen::maybe);
                return false;
            }
        }
    }
    return false;
}

/// False if the exchange ended.
bool Exchange::give(std::span<char const> data) {
    delivered_ += data.size();
    if (delivered_ > request_.max_response_bytes) {
        leave_connection();
        fail(FailureKind::too_large,
             request_.method + " " + site_->name + ": the body of the answer is longer than the " +
                 std::to_string(request_.max_response_bytes) +
                 " bytes allowed; raise max_response_bytes if that is wanted",
             Seen::maybe);
        return false;
    }
    sink_.on_data(data);
    return !ended();
}

void Exchange::pause(bool on) noexcept {
    if (ended() || paused_ == on) return;
    paused_ = on;
    if (!on) {
        touch();
        arm_deadline();
        transport_.resume_later(*this);
    }
}

void Exchange::resume() {
    if (ended() || paused_ || delivering_) return;
    delivering_ = true;
    bool going = !decoder_busy_ || decode();
    while (going && !paused_ && holds_data()) {
        std::string const piece = std::exchange(aside_->held, {});
        if (decoder() != nullptr) {
            aside_->decoder_input = piece;
            decoder()->feed(aside_->decoder_input);
            decoder_busy_ = true;
            going = decode();
        } else {
            going = give(piece);
        }
    }
    delivering_ = false;
    if (ended() || paused_ || !going) return;
    if (connection != nullptr) connection->resume(*this);
    if (!ended() && input_ended_ && !paused_ && !holds_data()) complete();
}

// --- the end ----------------------------------------------------------------------------------

void Exchange::complete() {
    if (decoder() != nullptr && timing_.bytes_received > 0 && !decoder()->complete()) {
        leave_connection();
        fail(FailureKind::decoding,
             request_.method + " " + site_->name +
                 ": the body of the answer ends before its compressed data does",
             Seen::maybe);
        return;
    }
    leave_connection();
    timing_.finished = transport_.loop().now();
    retire();
    sink_.on_done(timing_);
}

void Exchange::fail(FailureKind kind, std::string message, Seen seen, bool permanent) {
    if (ended()) return;
    leave_connection();
    timing_.finished = transport_.loop().now();
    retire();
    sink_.on_failure({.kind = kind,
                      .message = std::move(message),
                      .seen = seen,
                      .timing = timing_,
                      .permanent = permanent});
}

void Exchange::cancel() noexcept {
    if (ended()) return;
    leave_connection();
    retire();
}

void Exchange::leave_connection(bool timed_out) noexcept {
    if (connection != nullptr) {
        connection->abandon(*this, timed_out);
    } else if (pool != nullptr && links.linked()) {
        pool->withdraw(*this);
    }
}

void Exchange::retire() noexcept {
    phase_ = Phase::ended;
    if (armed()) transport_.loop().disarm(*this);
    transport_.retire(*this);
}

}  // namespace tinkxx::net
