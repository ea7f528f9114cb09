#include "local/in_process.hpp"

#include <deque>
#include <string>
#include <utility>
#include <variant>

namespace tinkxx::local {

namespace {

struct Target {
    std::string authority{};
    std::string path{};
};

/// Where a URL leads; the path and query as they are.
std::optional<Target> split(std::string_view url) {
    auto const scheme = url.find("://");
    if (scheme == std::string_view::npos) return std::nullopt;
    auto const rest = url.substr(scheme + 3);
    auto const slash = rest.find_first_of("/?");
    Target out{.authority = std::string{rest.substr(0, slash)}};
    if (out.authority.empty()) return std::nullopt;
    out.path = slash == std::string_view::npos ? "/" : std::string{rest.substr(slash)};
    if (out.path.front() == '?') out.path.insert(0, "/");
    out.path.erase(std::min(out.path.find('#'), out.path.size()));
    return out;
}

}  // namespace

/// One request and what comes of it. Events wait in a queue until the loop has nothing else on its
/// stack, and as long as the caller has asked for a pause.
class InProcessTransport::Exchange final : public Timer,
                                           public std::enable_shared_from_this<Exchange> {
public:
    Exchange(InProcessTransport& owner, std::uint64_t id, Request request, ReplySink& sink)
        : owner_{&owner},
          scheduler_{owner.scheduler_},
          id_{id},
          request_{std::move(request)},
          sink_{&sink} {
        timing_.started = scheduler_.now();
    }

    void begin() {
        if (request_.timeouts.total.count() > 0) {
            total_ = scheduler_.now() + request_.timeouts.total;
        }
        touch();
        scheduler_.post([self = shared_from_this()] { self->send(); });
    }

    /// The caller is not interested any more.
    void drop() {
        owner_ = nullptr;
        sink_ = nullptr;
        scheduler_.disarm(*this);
        tell_gone();
    }

    void pause(bool on) {
        paused_ = on;
        if (!on) flush_later();
    }

    void fail(FailureKind kind, std::string message, Seen seen) {
        if (ended_) return;
        ended_ = true;
        events_.emplace_back(Failure{.kind = kind, .message = std::move(message), .seen = seen});
        tell_gone();
        flush_later();
    }

    void on_time() override {
        bool const whole = total_ && scheduler_.now() >= *total_;
        if (!whole && scheduler_.now() < read_by_) return touch();
        fail(whole ? FailureKind::total_timeout : FailureKind::read_timeout,
             "the local server gave no answer in time", Seen::maybe);
    }

    // What the handler says.
    void head(int status, Headers headers) {
        if (ended_) return;
        bool const get = request_.method == "GET" || request_.method == "HEAD";
        bool const moved =
            status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
        auto const* const location = headers.find("Location");
        if (moved && get && location != nullptr && request_.redirects == Redirects::follow) {
            if (++hops_ > 20) {
                return fail(FailureKind::redirect, "the local server redirects for ever",
                            Seen::maybe);
            }
            redirected_ = *location;
            return;
        }
        timing_.first_byte = scheduler_.now();
        events_.emplace_back(Head{.status = status,
                                  .http_version = 0,
                                  .headers = std::move(headers),
                                  .redirected_url = hops_ > 0 ? request_.url : std::string{}});
        flush_later();
    }
    void data(std::string bytes) {
        if (ended_ || !redirected_.empty() || bytes.empty()) return;
        received_ += bytes.size();
        if (received_ > request_.max_response_bytes) {
            return fail(FailureKind::too_large, "the answer is longer than the caller takes",
                        Seen::maybe);
        }
        waiting_ += bytes.size();
        timing_.bytes_received += bytes.size();
        events_.emplace_back(std::move(bytes));
        flush_later();
    }
    void done() {
        if (ended_) return;
        if (!redirected_.empty()) {
            request_.url = std::exchange(redirected_, {});
            scheduler_.post([self = shared_from_this()] { self->send(); });
            return;
        }
        ended_ = true;
        gone_ = {};
        events_.emplace_back(std::monostate{});
        flush_later();
    }
    /// The handler has dropped its answer.
    void given_up() {
        fail(FailureKind::reset, "the local server closed the connection", Seen::maybe);
    }
    [[nodiscard]] std::size_t pending() const noexcept { return waiting_; }
    void on_gone(Task task) {
        if (sink_ == nullptr || ended_) {
            if (!ended_) scheduler_.post(std::move(task));
            return;
        }
        gone_ = std::move(task);
    }
    void on_drained(Task task) {
        if (waiting_ == 0) return scheduler_.post(std::move(task));
        drained_ = std::move(task);
    }

private:
    using Event = std::variant<Head, std::string, Failure, std::monostate>;

    void send();

    void touch() {
        if (request_.timeouts.read.count() > 0) {
            read_by_ = scheduler_.now() + request_.timeouts.read;
        }
        auto next = read_by_;
        if (total_ && *total_ < next) next = *total_;
        if (next != TimePoint::max()) scheduler_.arm(*this, next, Precision::coarse);
    }

    void tell_gone() {
        if (gone_) scheduler_.post(std::exchange(gone_, {}));
    }

    void flush_later() {
        if (flushing_ || sink_ == nullptr) return;
        flushing_ = true;
        scheduler_.post([self = shared_from_this()] {
            self->flushing_ = false;
            self->flush();
        });
    }

    void flush() {
        while (sink_ != nullptr && !events_.empty()) {
            bool const body = std::holds_alternative<std::string>(events_.front());
            if (paused_ && body) return;
            auto event = std::move(events_.front());
            events_.pop_front();
            touch();
            if (auto* const head = std::get_if<Head>(&event)) {
                sink_->on_head(std::move(*head));
            } else if (auto* const bytes = std::get_if<std::string>(&event)) {
                waiting_ -= bytes->size();
                sink_->on_data({bytes->data(), bytes->size()});
                if (waiting_ == 0 && drained_) scheduler_.post(std::exchange(drained_, {}));
            } else {
                end(std::move(event));
            }
        }
    }

    void end(Event event) {
        auto* const sink = std::exchange(sink_, nullptr);
        scheduler_.disarm(*this);
        timing_.finished = scheduler_.now();
        auto* const owner = std::exchange(owner_, nullptr);
        auto const self = shared_from_this();
        owner->calls_.erase(id_);
        if (auto* const failure = std::get_if<Failure>(&event)) {
            failure->timing = timing_;
            sink->on_failure(std::move(*failure));
        } else {
            sink->on_done(timing_);
        }
    }

    InProcessTransport* owner_;
    Scheduler& scheduler_;
    std::uint64_t id_;
    Request request_;
    ReplySink* sink_;
    Timing timing_{};
    std::deque<Event> events_{};
    std::size_t waiting_{0};
    std::uint64_t received_{0};
    std::string redirected_{};
    int hops_{0};
    bool ended_{false};
    bool paused_{false};
    bool flushing_{false};
    TimePoint read_by_{TimePoint::max()};
    std::optional<TimePoint> total_{};
    Task gone_{};
    Task drained_{};
};

/// What the handler answers through.
class InProcessTransport::Reply final : public Answer {
public:
    explicit Reply(std::shared_ptr<Exchange> exchange) : exchange_{std::move(exchange)} {}
    ~Reply() override {
        if (!done_) exchange_->given_up();
    }
    Reply(Reply const&) = delete;
    Reply& operator=(Reply const&) = delete;

    void head(int status, Headers headers, std::optional<std::size_t> length) override {
        if (length && !headers.contains("Content-Length")) {
            headers.add("Content-Length", std::to_string(*length));
        }
        exchange_->head(status, std::move(headers));
    }
    void data(std::string bytes) override { exchange_->data(std::move(bytes)); }
    void done() override {
        done_ = true;
        exchange_->done();
    }
    [[nodiscard]] std::size_t pending() const noexcept override { return exchange_->pending(); }
    void on_gone(Task task) override { exchange_->on_gone(std::move(task)); }
    void on_drained(Task task) override { exchange_->on_drained(std::move(task)); }

private:
    std::shared_ptr<Exchange> exchange_;
    bool done_{false};
};

void InProcessTransport::Exchange::send() {
    if (sink_ == nullptr || ended_) return;
    auto const target = split(request_.url);
    if (!target) {
        return fail(FailureKind::invalid_request, request_.url.substr(0, 200) + " is no URL",
                    Seen::no);
    }
    timing_.connected = timing_.sent = scheduler_.now();
    ServerRequest made{.method = request_.method, .target = target->path};
    made.headers.add("Host", target->authority);
    if (request_.common_headers) {
        for (auto const& line : *request_.common_headers) made.headers.add(line.name, line.value);
    }
    for (auto const& line : request_.headers) made.headers.add(line.name, line.value);
    auto const size = request_.body.size();
    if (request_.body.head) made.body.append(*request_.body.head, size);
    if (request_.body.tail) made.body.append(*request_.body.tail, size);
    owner_->handler_->handle(std::move(made), std::make_shared<Reply>(shared_from_this()));
}

/// When what is left has to end.
class InProcessTransport::Deadline final : public Timer {
public:
    explicit Deadline(InProcessTransport& owner) : owner_{owner} {}
    void on_time() override { owner_.close(); }

private:
    InProcessTransport& owner_;
};

InProcessTransport::InProcessTransport(Scheduler& scheduler, std::shared_ptr<Handler> handler)
    : scheduler_{scheduler}, handler_{std::move(handler)} {}

InProcessTransport::~InProcessTransport() {
    for (auto const& [id, exchange] : std::exchange(calls_, {})) exchange->drop();
}

Call InProcessTransport::start(Request request, ReplySink& sink) {
    auto const id = ++last_;
    auto exchange = std::make_shared<Exchange>(*this, id, std::move(request), sink);
    calls_[id] = exchange;
    if (closed_) {
        exchange->fail(FailureKind::closed, "the local server is closed", Seen::no);
    } else {
        exchange->begin();
    }
    return {id};
}

void InProcessTransport::cancel(Call call) noexcept {
    auto const found = calls_.find(call.id);
    if (found == calls_.end()) return;
    auto const exchange = std::move(found->second);
    calls_.erase(found);
    exchange->drop();
}

void InProcessTransport::pause(Call call, bool on) noexcept {
    auto const found = calls_.find(call.id);
    if (found != calls_.end()) found->second->pause(on);
}

void InProcessTransport::drain(TimePoint deadline) noexcept {
    closed_ = true;
    deadline_ = std::make_unique<Deadline>(*this);
    scheduler_.arm(*deadline_, deadline, Precision::coarse);
}

void InProcessTransport::close() noexcept {
    closed_ = true;
    for (auto const& [id, exchange] : calls_) {
        exchange->fail(FailureKind::closed, "the local server is closed", Seen::maybe);
    }
}

}  // namespace tinkxx::local
