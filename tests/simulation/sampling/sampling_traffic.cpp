#include "simulation/sampling/sampling_world.hpp"

#include "simulation/common/messages.hpp"

#include <algorithm>
#include <charconv>

namespace tinkxx::simulation::sampling_world {

using namespace std::chrono_literals;

namespace {

std::optional<double> number(std::string_view text) {
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

/// R-SAMP-31.
nanoseconds backoff_of(std::int64_t bytes, RecordedExchange const* answer) {
    nanoseconds const usual = bytes <= 131'072 ? 1s : 5s;
    if (answer == nullptr) return usual;
    auto const usable = [](std::optional<double> ms) -> std::optional<nanoseconds> {
        if (!ms || !(*ms > 0)) return std::nullopt;
        return nanoseconds{static_cast<std::int64_t>(std::min(*ms, 60'000.0) * 1e6)};
    };
    if (auto const* text = answer->headers.find("retry-after-ms")) {
        if (auto const hint = usable(number(*text))) return *hint;
    }
    if (auto const hint = usable(number(json_member(answer->answer, "retry_after_ms")))) {
        return *hint;
    }
    if (auto const* text = answer->headers.find("retry-after")) {
        auto const seconds = number(*text);
        if (auto const hint = usable(seconds ? std::optional{*seconds * 1000} : std::nullopt)) {
            return *hint;
        }
    }
    return usual;
}

}  // namespace

bool User::token_came_now() const { return token_came_ && *token_came_ == world_.now(); }

std::optional<TimePoint> User::poll_began() const {
    if (token_came_now()) return std::nullopt;
    return world_.now();
}

void User::on_request(RecordedExchange const& exchange) {
    auto const now = world_.now();
    last_request = now;
    world_.note(std::to_string(index_) + " > " + exchange.path + ' ' + exchange.body.substr(0, 90));
    bool const drained = exchange.path == "/api/v1/telemetry" ||
                         exchange.path == "/api/v1/cancel_future" ||
                         exchange.path.ends_with("/finish");
    if (closing && !drained) world_.problem("a request after the close: " + exchange.path);
    if (exchange.path == "/api/v1/asample") submits(exchange);
    if (exchange.path == "/api/v1/retrieve_future") polls(exchange);
    if (exchange.path == "/api/v1/retrieve_futures") asks_completions(exchange);
    if (exchange.path == "/api/v1/cancel_future") cancels(exchange);
}

void User::submits(RecordedExchange const& exchange) {
    auto const now = world_.now();
    auto const name = attempt_of(exchange);
    auto const id = call_of(exchange.body);
    if (!world_.knows_call(id)) return world_.problem("a submit of nobody: " + name);
    auto& call = world_.call(id);
    auto const [place, fresh] = attempts_.try_emplace(name);
    auto& attempt = place->second;
    bool loop = false;  // a repeat by the submit loop
    if (fresh) {
        attempt.call = id;
        attempt.throttled = gate->must.recent(now) && !token_came_now();
        auto const session = std::string{json_member(exchange.body, "sampling_session_id")};
        auto const number = name.substr(session.size() + 1);
        numbers_[session].insert(std::stoll(number));
        if (!call.attempt.empty()) {
            auto const& before = attempts_[call.attempt];
            if (before.open) world_.problem("two attempts of one call at once: " + name);
            if (before.accepted && !before.lost) {
                world_.problem("submitted again though its result is pending: " + call.attempt);
            }
        }
        call.attempt = name;
    } else {
        if (attempt.open) world_.problem("two submits of one attempt at once: " + name);
        if (attempt.accepted) world_.problem("an accepted submit was made again: " + name);
        if (attempt.body != exchange.body && attempt.last != 422) {
            world_.problem("an attempt was sent again with another body: " + name);
        }
        auto const last = attempt.last.value_or(-1);
        loop = last == 0 || last == 400 || last == 408 || last == 409 || last >= 500;
    }
    check_allowed(call, attempt, name);
    if (!loop) attempt.loop_began = now;
    attempt.body = exchange.body;
    attempt.open = true;
    if (call.over && *call.over < now) world_.problem("a submit for a call that is over: " + name);
    if (gate->must.closed(now) && !loop && !token_came_now()) {
        world_.problem("a submit while the gate is closed: " + name);
    }
    open_bytes_.insert(call.bytes());
    if (static_cast<std::int64_t>(open_bytes_.size()) > limits.count.value_or(400)) {
        world_.problem("more submits at once than allowed");
    }
    std::int64_t sum = -*open_bytes_.rbegin();
    for (auto const bytes : open_bytes_) sum += bytes;
    if (sum > byte_budget()) world_.problem("more bytes at once than allowed");
    // Who waits for bytes has passed the throttle before; there it cannot be told from here.
    bool const ample = byte_budget() >= 1 << 20;
    if (!attempt.throttled || !ample || call.tokens > 1000) {
        attempt.throttled = false;
    } else if (++open_throttled_ > limits.throttled.value_or(10)) {
        world_.problem("more throttled submits at once than allowed");
    }
}

void User::check_allowed(UserCall& call, Attempt& attempt, std::string const& name) {
    bool const own = call.retry.retry_budget.value().has_value();
    auto& budget = own ? call.own_budget : budgets[call.sampler];
    auto const wrong = call.requests.on_request(call.config, budget, world_.now());
    if (!wrong.empty()) world_.problem(wrong + ": " + name);
    attempt.sent_in = 0;
    // What waited for its credential was let through some time ago.
    if (call.breaker == nullptr || token_came_now()) return;
    auto const sent = call.breaker->on_request();
    if (!sent.wrong.empty()) world_.problem(sent.wrong + name);
    attempt.sent_in = sent.period;
}

void User::tell_breaker(UserCall& call, Attempt const& attempt, int status,
                        std::string const& name) {
    if (call.breaker == nullptr) return;
    if (BreakerJudge::is_trouble(status)) return call.breaker->on_failure(attempt.sent_in, name);
    call.breaker->on_other();
}

void User::submit_over(RecordedExchange const& exchange, std::optional<int> status) {
    auto const found = attempts_.find(attempt_of(exchange));
    if (found == attempts_.end()) return;
    auto& attempt = found->second;
    auto& call = world_.call(attempt.call);
    attempt.open = false;
    attempt.last = status;
    open_bytes_.erase(open_bytes_.find(call.bytes()));
    if (attempt.throttled) --open_throttled_;
    if (!status) return;
    call.requests.on_answer(exchange);
    tell_breaker(call, attempt, *status, found->first);
    auto const now = world_.now();
    if (*status == 429) gate->close(now, backoff_of(call.bytes(), &exchange));
    if (*status == 402 && call.config.enable_retry_logic) {
        // A block that lasts too long is an error and closes nothing.
        auto const duration = backoff_of(call.bytes(), nullptr);
        gate->may.close(now, duration);
        if (service->nature().billing_limit >= 1h) gate->must.close(now, duration);
    }
    if (*status >= 200 && *status < 300) {
        attempt.accepted = true;
        gate->must.accepted(exchange.started);
        gate->may.accepted(attempt.loop_began);
    }
}

void User::polls(RecordedExchange const& exchange) {
    auto const now = world_.now();
    auto const id = request_of(exchange);
    auto const attempt = attempts_.find(id);
    if (attempt == attempts_.end() || !attempt->second.accepted) {
        return world_.problem("a poll for a result that was not promised: " + id);
    }
    auto& polls = polls_[id];
    if (polls.open) world_.problem("two polls at once: " + id);
    if (polls.last && now - *polls.last < 100ms && !polls.sized) {
        world_.problem("polls too close: " + id);
    }
    auto const& call = world_.call(attempt->second.call);
    if (call.over && *call.over < now) world_.problem("a poll for a call that is over: " + id);
    polls.open = true;
    polls.sized = false;
    polls.last = poll_began();
}

void User::asks_completions(RecordedExchange const& exchange) {
    auto const now = world_.now();
    auto const session = std::string{json_member(exchange.body, "sampling_session_id")};
    auto& polls = completions_[session];
    if (polls.open) world_.problem("two completion polls at once: " + session);
    if (polls.last && now - *polls.last < 100ms && !polls.moved) {
        world_.problem("completion polls too close: " + session);
    }
    polls.open = true;
    polls.moved = false;
    polls.last = poll_began();
    // Only what was fetched may be reported, in order.
    std::string_view list = exchange.body;
    list = list.substr(list.find("retrieved_request_ids"));
    list = list.substr(list.find('[') + 1);
    std::string before;
    while (list.starts_with('"') || list.starts_with(",\"")) {
        list = list.substr(list.find('"') + 1);
        auto const id = std::string{list.substr(0, list.find('"'))};
        list = list.substr(id.size() + 1);
        world_.count("reported as fetched");
        // A budget may end the polling, and then nobody will fetch it.
        bool const given_up = world_.call(attempts_[id].call).config.retry_budget.has_value();
        if (!polls_[id].answered && !given_up) {
            world_.problem("reported before it was fetched: " + id);
        }
        if (id <= before) world_.problem("reported out of order: " + id);
        before = id;
    }
}

void User::cancels(RecordedExchange const& exchange) {
    auto const id = request_of(exchange);
    auto const attempt = attempts_.find(id);
    if (attempt == attempts_.end()) return world_.problem("a cancel of nothing: " + id);
    auto const& call = world_.call(attempt->second.call);
    bool const given_up =
        call.cancelled || closed || world_.deadline_of(call).count() > 0 || call.over;
    if (!given_up) world_.problem("a cancel of a call that goes on: " + id);
}

void User::on_answer(RecordedExchange const& exchange) {
    auto const status = exchange.status;
    world_.note(std::to_string(index_) + " < " + exchange.path + ' ' + std::to_string(status) +
                ' ' + exchange.answer.substr(0, 90));
    auto kind = exchange.path;
    if (kind.starts_with("/api/v1/samplers/")) kind = "/api/v1/samplers/ID";
    if (kind.starts_with("/api/v1/sessions/")) kind = "/api/v1/sessions/ID/finish";
    world_.count("answer: " + kind + ' ' + std::to_string(status));
    if (exchange.path == "/api/v1/asample") submit_over(exchange, status);
    if (exchange.path == "/api/v1/auth/token") token_came_ = world_.now();
    if (exchange.path.ends_with("/finish") && finishing) {
        // Repeats of a finish that failed come before the end.
        bool const final = status != 0 && status != 408 && status != 409 && status != 429 &&
                           status != 402 && status != 400 && status < 500;
        if (final) closing = true;
    }
    if (exchange.path == "/api/v1/retrieve_future") poll_over(exchange);
    if (exchange.path == "/api/v1/retrieve_futures") {
        auto& polls = completions_[std::string{json_member(exchange.body, "sampling_session_id")}];
        polls.open = false;
        if (status == 200) {
            auto const cursor = std::stoll(std::string{json_member(exchange.answer, "cursor")});
            polls.moved = std::exchange(polls.cursor, cursor) != cursor;
        }
    }
}

void User::poll_over(RecordedExchange const& exchange) {
    auto const status = exchange.status;
    auto const id = request_of(exchange);
    auto& polls = polls_[id];
    polls.open = false;
    bool const ok = status >= 200 && status < 300;
    polls.sized = ok && exchange.answer.find("complete_metadata") != std::string::npos;
    bool const waits = exchange.answer.find("try_again") != std::string::npos ||
                       exchange.answer.find(R"("pending")") != std::string::npos;
    if (ok && !polls.sized && !waits) polls.answered = true;
    auto& attempt = attempts_[id];
    auto& call = world_.call(attempt.call);
    if (status == 410) {
        attempt.lost = true;
        call.requests.on_lost();
    }
    // Who wants it so submits anew what the service will not tell.
    if (status == 400 && call.config.retry_if) {
        attempt.lost = true;
        call.requests.on_poll_refused(status);
    }
    bool const passing = status == 0 || status == 408 || status == 429 || status >= 500;
    if (!ok && !passing) polls.answered = true;
    if (call.breaker != nullptr && !passing) call.breaker->on_other();
}

void User::on_withdrawn(RecordedExchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
    if (exchange.path == "/api/v1/asample") submit_over(exchange, std::nullopt);
    if (exchange.path == "/api/v1/retrieve_future") polls_[request_of(exchange)].open = false;
    if (exchange.path == "/api/v1/retrieve_futures") {
        completions_[std::string{json_member(exchange.body, "sampling_session_id")}].open = false;
    }
}

}  // namespace tinkxx::simulation::sampling_world
