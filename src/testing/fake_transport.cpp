#include <tinkxx/testing/fake_transport.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace tinkxx::testing {

namespace {

Headers merged_headers(Request const& request) {
    Headers all;
    if (request.common_headers) all = *request.common_headers;
    for (auto const& line : request.headers) all.add(line.name, line.value);
    return all;
}

std::string body_text(Body const& body) {
    std::string text;
    text.reserve(body.size());
    if (body.head) text += *body.head;
    if (body.tail) text += *body.tail;
    return text;
}

void split_url(SentRequest& sent) {
    std::string_view rest = sent.url;
    if (auto const scheme = rest.find("://"); scheme != std::string_view::npos) {
        rest.remove_prefix(scheme + 3);
        rest.remove_prefix(std::min(rest.find_first_of("/?"), rest.size()));
    }
    auto const mark = rest.find('?');
    sent.path = rest.substr(0, mark);
    if (mark != std::string_view::npos) sent.query = rest.substr(mark + 1);
    if (sent.path.empty()) sent.path = "/";
}

bool path_matches(std::string_view pattern, std::string_view path) {
    if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
    return pattern == path;
}

Headers headers_of(Reply& reply) {
    Headers headers = std::move(reply.headers);
    if (!headers.contains("content-length") && !headers.contains("transfer-encoding")) {
        headers.add("content-length", std::to_string(reply.body.size()));
    }
    return headers;
}

}  // namespace

Reply failing(FailureKind kind, Seen seen) {
    Reply reply;
    reply.status = 0;
    reply.failure =
        Failure{.kind = kind, .message = "scripted: " + std::string{to_string(kind)}, .seen = seen};
    return reply;
}

std::string SentRequest::header(std::string_view name) const {
    auto const* value = headers.find(name);
    return value != nullptr ? *value : std::string{};
}

struct FakeTransport::Rule::Data {
    std::string method{};
    std::string path{};
    std::deque<std::optional<Reply>> script{};  // empty element: hold
    std::optional<Reply> always{};
    Handler handler{};

    [[nodiscard]] bool spent() const { return script.empty() && !always && !handler; }
};

// The script and the records are read and written by the test's thread and by the loop, hence
// the mutex; it is never held while a sink or a handler runs. Exchanges belong to the loop.
struct FakeTransport::Impl : std::enable_shared_from_this<FakeTransport::Impl> {
    struct Exchange final : Timer {
        Exchange(Impl& impl, Call id, ReplySink& replies)
            : owner{&impl}, call{id}, sink{&replies} {}
        void on_time() override { owner->step(*this); }

        Impl* owner;
        Call call;
        ReplySink* sink;
        Timeouts timeouts{};
        std::uint64_t max_response_bytes{0};
        Timing timing{};
        TimePoint last_sign{};
        std::optional<Reply> reply{};  // empty while held
        TimePoint due{};
        bool head_given{false};
        bool paused{false};
        std::size_t pieces_given{0};
        std::size_t offset{0};
    };

    explicit Impl(Scheduler& source) : scheduler{source} {}

    Scheduler& scheduler;
    std::map<std::uint64_t, std::unique_ptr<Exchange>> exchanges{};
    std::optional<TimePoint> drain_deadline{};

    mutable std::mutex mutex{};
    std::deque<Rule::Data> rules{};
    std::deque<Reply> pushed{};
    Handler fallback{};
    std::vector<SentRequest> sent{};
    std::vector<Call> held{};
    std::vector<Call> paused{};
    bool draining{false};

    // What the script says to a request: a reply, or nothing to hold it back.
    std::optional<Reply> choose(SentRequest const& request) {
        Handler handler;
        {
            std::lock_guard const lock{mutex};
            for (auto& rule : rules) {
                if (rule.spent() || (rule.method != "*" && rule.method != request.method) ||
                    !path_matches(rule.path, request.path)) {
                    continue;
                }
                if (!rule.script.empty()) {
                    auto next = std::move(rule.script.front());
                    rule.script.pop_front();
                    return next;
                }
                if (rule.always) return rule.always;
                handler = rule.handler;
                break;
            }
            if (!handler) {
                if (!pushed.empty()) {
                    auto next = std::move(pushed.front());
                    pushed.pop_front();
                    return next;
                }
                handler = fallback;
            }
            if (!handler) return unexpected(request);
        }
        try {
            return handler(request);
        } catch (std::exception const& e) {
            return threw(e.what());
        } catch (...) {
            return threw("something that is no std::exception");
        }
    }

    static Reply threw(std::string_view what) {
        auto reply = failing(FailureKind::invalid_request, Seen::no);
        (reply.failure->message = "FakeTransport: the handler threw: ") += what;
        return reply;
    }

    Reply unexpected(SentRequest const& request) const {
        auto reply = failing(FailureKind::invalid_request, Seen::no);
        auto& message = reply.failure->message;
        message =
            "FakeTransport: nothing answers " + request.method + ' ' + request.path + "; scripted:";
        for (auto const& rule : rules) {
            message += ' ' + rule.method + ' ' + rule.path;
            message += rule.always || rule.handler
                           ? " (always),"
                           : " (" + std::to_string(rule.script.size()) + " left),";
        }
        message += " and " + std::to_string(pushed.size()) + " pushed replies";
        return reply;
    }

    Exchange* find(Call call) {
        auto const found = exchanges.find(call.id);
        return found == exchanges.end() ? nullptr : found->second.get();
    }

    void give(Exchange& exchange, Reply reply) {
        exchange.due = scheduler.now() + std::max(reply.delay, std::chrono::nanoseconds{0});
        exchange.reply = std::move(reply);
        arm(exchange);
    }

    [[nodiscard]] bool ready(Exchange const& exchange) const {
        return exchange.reply && (!exchange.paused || !exchange.head_given);
    }

    // The limit that ends an exchange first, if it has any.
    struct Limit {
        TimePoint at{TimePoint::max()};
        FailureKind kind{FailureKind::read_timeout};
    };
    [[nodiscard]] Limit limit(Exchange const& exchange) const {
        Limit first;
        auto const consider = [&first](TimePoint at, FailureKind kind) {
            if (at < first.at) first = {.at = at, .kind = kind};
        };
        if (exchange.timeouts.read.count() > 0 && !exchange.paused) {
            consider(exchange.last_sign + exchange.timeouts.read, FailureKind::read_timeout);
        }
        if (exchange.timeouts.total.count() > 0) {
            consider(exchange.timing.started + exchange.timeouts.total, FailureKind::total_timeout);
        }
        if (drain_deadline) consider(*drain_deadline, FailureKind::closed);
        return first;
    }

    void arm(Exchange& exchange) {
        auto when = limit(exchange).at;
        if (ready(exchange)) when = std::min(when, exchange.due);
        if (when == TimePoint::max()) {
            scheduler.disarm(exchange);
        } else {
            scheduler.arm(exchange, when, Precision::exact);
        }
    }

    // Gives the sink what is due. The sink may cancel this call in each callback, so the
    // exchange is looked up again after every one.
    void step(Exchange& first) {
        auto const call = first.call;
        for (auto* exchange = &first; exchange != nullptr; exchange = find(call)) {
            auto const now = scheduler.now();
            if (!ready(*exchange) || exchange->due > now) {
                if (auto const ends = limit(*exchange); ends.at <= now) {
                    fail(*exchange,
                         {.kind = ends.kind,
                          .message = "FakeTransport: " + std::string{to_string(ends.kind)}});
                } else {
                    arm(*exchange);
                }
                return;
            }
            exchange->last_sign = now;
            auto& reply = *exchange->reply;
            auto const pieces = reply.body.empty() ? 0 : std::max<std::size_t>(reply.pieces, 1);
            if (!exchange->head_given && reply.status != 0) {
                exchange->head_given = true;
                exchange->timing.first_byte = now;
                if (pieces > 0) exchange->due = now + reply.piece_delay;
                exchange->sink->on_head({.status = reply.status,
                                         .http_version = reply.http_version,
                                         .headers = headers_of(reply)});
            } else if (reply.status != 0 && reply.body.size() > exchange->max_response_bytes) {
                fail(*exchange,
                     {.kind = FailureKind::too_large,
                      .message = "FakeTransport: the body is longer than " +
                                 std::to_string(exchange->max_response_bytes) + " bytes"});
                return;
            } else if (reply.status != 0 && exchange->pieces_given < pieces) {
                ++exchange->pieces_given;
                auto const end = reply.body.size() * exchange->pieces_given / pieces;
                std::span<char const> const piece{reply.body.data() + exchange->offset,
                                                  end - exchange->offset};
                exchange->offset = end;
                exchange->timing.bytes_received = end;
                if (exchange->pieces_given < pieces) exchange->due = now + reply.piece_delay;
                // A copy, since the sink may end the exchange that owns the text.
                std::string const data{piece.begin(), piece.end()};
                if (!data.empty()) exchange->sink->on_data(data);
            } else if (reply.failure) {
                fail(*exchange, std::move(*reply.failure));
                return;
            } else {
                exchange->timing.finished = now;
                auto const timing = exchange->timing;
                finish(*exchange).on_done(timing);
                return;
            }
        }
    }

    void fail(Exchange& exchange, Failure failure) {
        exchange.timing.finished = scheduler.now();
        failure.timing = exchange.timing;
        finish(exchange).on_failure(std::move(failure));
    }

    // Forgets an exchange that is over and returns the sink to be told.
    ReplySink& finish(Exchange& exchange) {
        auto& sink = *exchange.sink;
        auto const call = exchange.call;
        exchanges.erase(call.id);
        std::lock_guard const lock{mutex};
        sent[call.id - 1].ended = true;
        std::erase(held, call);
        std::erase(paused, call);
        return sink;
    }

    bool let_go(Call call, Reply reply) {
        {
            std::lock_guard const lock{mutex};
            if (std::erase(held, call) == 0) return false;
        }
        scheduler.post([self = weak_from_this(), call, reply = std::move(reply)]() mutable {
            auto const impl = self.lock();
            if (!impl) return;
            if (auto* exchange = impl->find(call)) impl->give(*exchange, std::move(reply));
        });
        return true;
    }
};

FakeTransport::Rule& FakeTransport::Rule::reply(Reply reply, int times) {
    std::lock_guard const lock{transport_->impl_->mutex};
    for (int i = 0; i < times; ++i) data_->script.emplace_back(reply);
    return *this;
}

FakeTransport::Rule& FakeTransport::Rule::hold() {
    std::lock_guard const lock{transport_->impl_->mutex};
    data_->script.emplace_back(std::nullopt);
    return *this;
}

void FakeTransport::Rule::always(Reply reply) {
    std::lock_guard const lock{transport_->impl_->mutex};
    data_->always = std::move(reply);
}

void FakeTransport::Rule::handle(Handler handler) {
    std::lock_guard const lock{transport_->impl_->mutex};
    data_->handler = std::move(handler);
}

FakeTransport::FakeTransport(Scheduler& scheduler) : impl_{std::make_shared<Impl>(scheduler)} {}

FakeTransport::~FakeTransport() = default;

FakeTransport::Rule FakeTransport::on(std::string method, std::string path) {
    std::lock_guard const lock{impl_->mutex};
    auto& data = impl_->rules.emplace_back();
    data.method = std::move(method);
    data.path = std::move(path);
    return Rule{*this, data};
}

void FakeTransport::push(Reply reply) {
    std::lock_guard const lock{impl_->mutex};
    impl_->pushed.push_back(std::move(reply));
}

void FakeTransport::otherwise(Handler handler) {
    std::lock_guard const lock{impl_->mutex};
    impl_->fallback = std::move(handler);
}

bool FakeTransport::release(Call call, Reply reply) {
    return impl_->let_go(call, std::move(reply));
}

bool FakeTransport::fail(Call call, Failure failure) {
    Reply reply;
    reply.status = 0;
    reply.failure = std::move(failure);
    return impl_->let_go(call, std::move(reply));
}

bool FakeTransport::release_next(Reply reply) {
    auto const waiting = held();
    return !waiting.empty() && release(waiting.front(), std::move(reply));
}

bool FakeTransport::fail_next(Failure failure) {
    auto const waiting = held();
    return !waiting.empty() && fail(waiting.front(), std::move(failure));
}

std::vector<SentRequest> FakeTransport::sent() const {
    std::lock_guard const lock{impl_->mutex};
    return impl_->sent;
}

std::vector<SentRequest> FakeTransport::sent(std::string_view path) const {
    auto all = sent();
    std::erase_if(all,
                  [path](SentRequest const& request) { return !path_matches(path, request.path); });
    return all;
}

std::size_t FakeTransport::sent_count() const {
    std::lock_guard const lock{impl_->mutex};
    return impl_->sent.size();
}

std::size_t FakeTransport::open_count() const {
    std::lock_guard const lock{impl_->mutex};
    return static_cast<std::size_t>(std::ranges::count_if(
        impl_->sent,
        [](SentRequest const& request) { return !request.ended && !request.cancelled; }));
}

std::vector<Call> FakeTransport::held() const {
    std::lock_guard const lock{impl_->mutex};
    return impl_->held;
}

std::size_t FakeTransport::cancelled_count() const {
    std::lock_guard const lock{impl_->mutex};
    return static_cast<std::size_t>(std::ranges::count_if(impl_->sent, &SentRequest::cancelled));
}

bool FakeTransport::paused(Call call) const {
    std::lock_guard const lock{impl_->mutex};
    return std::ranges::find(impl_->paused, call) != impl_->paused.end();
}

bool FakeTransport::draining() const {
    std::lock_guard const lock{impl_->mutex};
    return impl_->draining;
}

Call FakeTransport::start(Request request, ReplySink& sink) {
    auto const now = impl_->scheduler.now();
    SentRequest sent;
    sent.method = request.method;
    sent.url = request.url;
    split_url(sent);
    sent.headers = merged_headers(request);
    sent.body = body_text(request.body);
    sent.purpose = request.purpose;
    sent.timeouts = request.timeouts;
    sent.redirects = request.redirects;
    sent.at = now;
    {
        std::lock_guard const lock{impl_->mutex};
        sent.call = Call{impl_->sent.size() + 1};
        impl_->sent.push_back(sent);
    }
    auto reply =
        impl_->drain_deadline ? failing(FailureKind::closed, Seen::no) : impl_->choose(sent);

    auto& exchange = impl_->exchanges[sent.call.id];
    exchange = std::make_unique<Impl::Exchange>(*impl_, sent.call, sink);
    exchange->timeouts = request.timeouts;
    exchange->max_response_bytes = request.max_response_bytes;
    exchange->timing.started = exchange->timing.connected = exchange->timing.sent = now;
    exchange->last_sign = now;
    if (reply) {
        impl_->give(*exchange, std::move(*reply));
    } else {
        impl_->arm(*exchange);
        std::lock_guard const lock{impl_->mutex};
        impl_->held.push_back(sent.call);
    }
    return sent.call;
}

void FakeTransport::cancel(Call call) noexcept {
    auto* exchange = impl_->find(call);
    if (exchange == nullptr) return;
    impl_->exchanges.erase(call.id);
    std::lock_guard const lock{impl_->mutex};
    impl_->sent[call.id - 1].cancelled = true;
    std::erase(impl_->held, call);
    std::erase(impl_->paused, call);
}

Seen FakeTransport::seen(Call call) const noexcept {
    auto const* const exchange = impl_->find(call);
    bool const fails = exchange != nullptr && exchange->reply && exchange->reply->failure;
    return fails ? exchange->reply->failure->seen : Seen::maybe;
}

void FakeTransport::pause(Call call, bool on) noexcept {
    auto* exchange = impl_->find(call);
    if (exchange == nullptr || exchange->paused == on) return;
    exchange->paused = on;
    exchange->last_sign = impl_->scheduler.now();
    impl_->arm(*exchange);
    std::lock_guard const lock{impl_->mutex};
    if (on) {
        impl_->paused.push_back(call);
    } else {
        std::erase(impl_->paused, call);
    }
}

void FakeTransport::discard(Call call) noexcept {
    if (impl_->find(call) == nullptr) return;
    std::lock_guard const lock{impl_->mutex};
    impl_->sent[call.id - 1].discarded = true;
}

void FakeTransport::drain(TimePoint deadline) noexcept {
    {
        std::lock_guard const lock{impl_->mutex};
        impl_->draining = true;
    }
    impl_->drain_deadline = deadline;
    for (auto& [id, exchange] : impl_->exchanges) impl_->arm(*exchange);
}

}  // namespace tinkxx::testing
