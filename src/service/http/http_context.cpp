#include "service/http/http_context.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/common/uuid.hpp"
#include "service/http/http_call.hpp"
#include "service/http/standard_headers.hpp"

#include <string_view>
#include <utility>

namespace tinkxx::service {

namespace {

// Of texts that are kept for the next answer: shorter ones cost nothing, longer ones hold memory.
constexpr std::size_t shortest_kept = 1024;
constexpr std::size_t longest_kept = std::size_t{64} * 1024;

constexpr std::size_t dumped_body_bytes = 4096;

bool is_text(Headers const* first, Headers const& second) {
    auto const* type = second.find("content-type");
    if (type == nullptr && first != nullptr) type = first->find("content-type");
    return type != nullptr &&
           (type->find("json") != std::string::npos || type->starts_with("text/") ||
            type->find("form-urlencoded") != std::string::npos);
}

void append_body(std::string& line, std::string_view body, bool text) {
    if (body.empty()) return;
    line += " body " + std::to_string(body.size()) + " bytes";
    if (!text) return;
    line += ": ";
    line += body.substr(0, dumped_body_bytes);
    if (body.size() > dumped_body_bytes) line += "...";
}

void append_headers(std::string& line, Headers const& headers) {
    for (auto const& [name, value] : headers) {
        line += " [";
        line += name;
        line += ": ";
        line += value;
        line += ']';
    }
}

}  // namespace

HttpContext::HttpContext(std::shared_ptr<ClientConfig const> config,
                         std::shared_ptr<detail::RuntimeCore> runtime,
                         std::shared_ptr<Transport> transport,
                         std::shared_ptr<CredentialSource> credentials)
    : config_{std::move(config)},
      runtime_{std::move(runtime)},
      transport_{std::move(transport)},
      credentials_{std::move(credentials)},
      headers_{std::make_shared<Headers const>(config_->headers)} {
    auto json = config_->headers;
    if (!json.contains("content-type")) json.add("Content-Type", "application/json");
    json_headers_ = std::make_shared<Headers const>(std::move(json));
    foreign_headers_ = std::make_shared<Headers const>(Headers{{"User-Agent", user_agent()}});
}

HttpContext::~HttpContext() = default;

std::shared_ptr<Headers const> const& HttpContext::first_attempt_headers(
    std::shared_ptr<Headers const> const& common, std::chrono::milliseconds read_timeout,
    Credential const& credential) {
    for (auto const& each : first_attempts_) {
        if (each.common == common && each.read_timeout == read_timeout &&
            each.credential == credential) {
            return each.headers;
        }
    }
    auto lines = *common;
    add_attempt_lines(lines, read_timeout, 0, credential);
    auto& place = first_attempts_[oldest_first_attempt_];
    oldest_first_attempt_ = (oldest_first_attempt_ + 1) % first_attempts_.size();
    place = {common, read_timeout, credential, std::make_shared<Headers const>(std::move(lines))};
    return place.headers;
}

Random& HttpContext::random() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (!random_) random_.emplace(scheduler().entropy("http"));
    return *random_;
}

double HttpContext::chance() { return random().unit(); }

std::string HttpContext::take_text(std::size_t bytes) {
    TINKXX_ASSERT_LOOP(scheduler());
    std::string text;
    if (bytes >= shortest_kept && texts_kept_ > 0 &&
        texts_[texts_kept_ - 1].capacity() / 4 <= bytes) {
        text.swap(texts_[--texts_kept_]);
    }
    text.reserve(bytes);
    return text;
}

void HttpContext::give_text(std::string&& text) noexcept {
    if (texts_kept_ == texts_.size() || text.capacity() < shortest_kept ||
        text.capacity() > longest_kept) {
        return;
    }
    text.clear();
    texts_[texts_kept_++].swap(text);
}

std::string HttpContext::new_idempotency_key() {
    constexpr std::string_view prefix = "stainless-cpp-retry-";
    std::string key(prefix.size() + uuid_size, '\0');
    prefix.copy(key.data(), prefix.size());
    auto const high = random().next();
    write_uuid(key.data() + prefix.size(), high, random().next());
    return key;
}

bool HttpContext::logs(LogLevel level) const noexcept {
    if (!config_->log) return runtime_->logs(level);
    return level >= config_->log_level.value_or(LogLevel::warning) && level != LogLevel::off;
}

void HttpContext::log(LogLevel level, std::string_view line) const {
    if (logs(level)) write(level, config_->scrubber.scrub(line));
}

void HttpContext::write(LogLevel level, std::string line) const {
    if (!config_->log) return runtime_->log(level, std::move(line));
    runtime_->run_callback([self = shared_from_this(), level, line = std::move(line)] {
        self->config_->log(level, line);  // what it throws is the runtime's to log
    });
}

void HttpContext::note_deprecation(Operation const& operation, Headers const& headers) {
    TINKXX_ASSERT_LOOP(scheduler());
    if (auto const note = notes_.read(headers, scheduler().now())) {
        log(note->level, operation.name() + ": deprecated: " + note->text);
    }
}

void HttpContext::dump(Operation const& operation, Request const& request,
                       Scrubber const& scrubber) const {
    auto line = operation.name() + " > " + request.method + ' ' + scrubber.scrub(request.url);
    if (request.common_headers) {
        append_headers(line, scrubber.scrub(*request.common_headers));
    }
    append_headers(line, scrubber.scrub(request.headers));
    std::string body;
    if (request.body.head) body += *request.body.head;
    if (request.body.tail) body += *request.body.tail;
    append_body(line, scrubber.scrub(body), is_text(request.common_headers.get(), request.headers));
    write_dump(std::move(line));
}

void HttpContext::dump(Operation const& operation, Head const& head, std::string_view body,
                       Scrubber const& scrubber) const {
    auto line = operation.name() + " < " + std::to_string(head.status);
    append_headers(line, scrubber.scrub(head.headers));
    append_body(line, scrubber.scrub(body), is_text(nullptr, head.headers));
    write_dump(std::move(line));
}

void HttpContext::write_dump(std::string line) const {
    // Asked for by name, so it is shown even where the log would leave out lines of its level.
    if (config_->log || runtime_->logs(LogLevel::info))
        return write(LogLevel::info, std::move(line));
    stderr_log()(LogLevel::info, line);
}

bool HttpContext::usable() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (!resident_ && !closed_) {
        resident_ = true;
        runtime_->add(*this);  // closes at once if the runtime is shutting down
    }
    return !closed_;
}

void HttpContext::close() noexcept {
    TINKXX_ASSERT_LOOP(scheduler());
    auto const keep_alive = weak_from_this().lock();  // null if its last handle is gone already
    closed_ = true;
    if (resident_) runtime_->remove(*this);
    while (!calls_.empty()) {
        auto& call = static_cast<HttpCall&>(*calls_.back());
        ErrorDetails error;
        error.kind = ErrorKind::cancelled;
        error.stopped = RetryEnd::cancelled;
        error.message = call.order_->operation.name() + ": cancelled, since its client went away";
        call.shut(std::move(error));
    }
}

void HttpContext::on_shutdown() noexcept { close(); }

std::size_t HttpContext::calls_under_way() const noexcept {
    return speaks_for_calls_ && !config_->own_log && logs(LogLevel::warning) ? calls_.size() : 0;
}

}  // namespace tinkxx::service
