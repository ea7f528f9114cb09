#include "simulation/training/training_world.hpp"

#include "simulation/common/messages.hpp"

namespace tinkxx::simulation::training_world {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view root = "/api/v1/";

}  // namespace

void Client::on_request(RecordedExchange const& exchange) {
    auto const now = world_.now();
    last_request = now;
    bool const drained = exchange.path == "/api/v1/telemetry" || exchange.path.ends_with("/finish");
    if (closing && !drained) world_.problem("a request after the close: " + exchange.path);
    auto const read = read_train_request(exchange.path, exchange.body);
    world_.note(std::to_string(index_) + " > " + exchange.path + ' ' +
                (read ? read->request.model_id + '/' + std::to_string(read->request.seq_id)
                      : exchange.body.substr(0, 90)));
    if (exchange.path == "/api/v1/retrieve_future") polls(exchange);
    if (read && !read->request.model_id.empty()) submits(exchange, *read);
}

void Client::submits(RecordedExchange const& exchange, ReadRequest const& read) {
    auto const& request = read.request;
    auto& judge = world_.judge_of(*endpoint, request.model_id);
    auto& open = open_[&exchange];
    open = {.judge = &judge,
            .call = world_.call_of(exchange),
            .seq_id = request.seq_id,
            .pass = request.pass(),
            .protobuf = read.protobuf};
    if (open.pass) {
        for (auto const& datum : request.data) open.bytes += proto_estimate(datum);
        open_bytes_.insert(open.bytes);
        std::int64_t sum = -*open_bytes_.rbegin();
        for (auto const each : open_bytes_) sum += each;
        if (sum > byte_budget()) world_.problem("more bytes at once than allowed");
        if (!read.protobuf) {
            endpoint->json_sent = true;
            endpoint->service->taken_for_old();
        }
    }
    bool const step = open.pass || request.kind == TrainKind::optim_step;
    bool const json = open.pass && !read.protobuf;
    bool const fixed = options.submit_encoding.has_value();
    bool const known_old = !fixed && (endpoint->known_old || json);
    bool const twice = step && !nature().knows_repeats && options.repeat_steps.value_or(!known_old);
    if (open.call != nullptr) {
        open.sent_in =
            ask_breaker(*open.call, request.model_id + '/' + std::to_string(request.seq_id));
    }
    judge.on_submit(open.call, read, exchange.body, world_.now(),
                    {.parallel = nature().parallel, .may_be_done_twice = twice});
}

BreakerJudge::Period Client::ask_breaker(UserCall const& call, std::string const& name) {
    // What is sent again for a call that is over is let through by the one that waits for it.
    if (call.breaker == nullptr || call.over || call.cancelled) return 0;
    auto const sent = call.breaker->on_request();
    if (!sent.wrong.empty()) {
        world_.at(1ns, [this, &call, what = sent.wrong + name] {
            if (!call.over) world_.problem(what);  // else it was over, and nobody knew yet
        });
    }
    return sent.period;
}

void Client::tell_breaker(UserCall const* call, BreakerJudge::Period sent, int status) {
    if (call == nullptr || call->breaker == nullptr || call->over || call->cancelled) return;
    if (BreakerJudge::is_trouble(status)) return call->breaker->on_failure(sent, call->mark);
    call->breaker->on_other();
}

void Client::submit_over(RecordedExchange const& exchange, std::optional<int> status) {
    auto const found = open_.find(&exchange);
    if (found == open_.end()) return;
    auto const open = found->second;
    open_.erase(found);
    if (open.pass) open_bytes_.erase(open_bytes_.find(open.bytes));
    if (open.call != nullptr) {
        open.call->wrong_encoding = open.protobuf && status == nature().refusal &&
                                    nature().takes == TrainingNature::Takes::json &&
                                    !exchange.answer.empty() &&
                                    exchange.answer.find("injected") == std::string::npos;
    }
    if (!status) return open.judge->on_withdrawn(open.seq_id);
    open.judge->on_answer(open.seq_id, *status);
    tell_breaker(open.call, open.sent_in, *status);
    bool const accepted = *status >= 200 && *status < 300;
    if (accepted && open.pass && !open.protobuf && !options.submit_encoding) {
        endpoint->known_old = true;
    }
}

void Client::polls(RecordedExchange const& exchange) {
    auto const now = world_.now();
    auto const id = std::string{json_member(exchange.body, "request_id")};
    if (!results_.contains(id)) world_.problem("a poll for a result that was not promised: " + id);
    auto& polls = polls_[id];
    if (polls.open) world_.problem("two polls at once: " + id);
    if (polls.last && now - *polls.last < 100ms && !polls.sized) {
        world_.problem("polls too close: " + id);
    }
    auto const* call = world_.call_of(exchange);
    if (call != nullptr && call->gone_before(now)) {
        world_.problem("a poll for a call that is over: " + id);
    }
    polls.open = true;
    polls.sized = false;
    polls.last = now;
}

void Client::on_answer(RecordedExchange const& exchange) {
    auto const status = exchange.status;
    bool const ok = status >= 200 && status < 300;
    auto const path = std::string_view{exchange.path};
    bool const text = exchange.answer.empty() || exchange.answer.front() == '{';
    world_.note(
        std::to_string(index_) + " < " + exchange.path + ' ' + std::to_string(status) + ' ' +
        (text ? exchange.answer.substr(0, 90) : std::to_string(exchange.answer.size()) + " bytes"));
    if (path.starts_with(root)) {
        auto const name = path.substr(root.size(), path.find('/', root.size()) - root.size());
        world_.count("answer: " + std::string{name} + ' ' + std::to_string(status));
    }
    submit_over(exchange, status);
    auto* const call = world_.call_of(exchange);
    if (call != nullptr) call->statuses.insert(status);
    if (path.ends_with("/finish") && finishing) {
        // Repeats of a finish that failed come before the end.
        bool const final = status != 0 && status != 400 && status != 402 && status != 408 &&
                           status != 409 && status != 429 && status < 500;
        if (final) closing = true;
    }
    if (path == "/api/v1/retrieve_future") {
        auto& polls = polls_[std::string{json_member(exchange.body, "request_id")}];
        polls.open = false;
        polls.sized = ok && exchange.answer.find("complete_metadata") != std::string::npos;
        bool const failed = exchange.answer.find("it failed") != std::string::npos;
        if (failed && call != nullptr) call->told_failure = true;
        if (!BreakerJudge::is_trouble(status)) tell_breaker(call, 0, status);
    } else if (auto const id = json_member(exchange.answer, "request_id"); ok && !id.empty()) {
        results_.emplace(id);
    }
}

void Client::on_withdrawn(RecordedExchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
    submit_over(exchange, std::nullopt);
    if (exchange.path == "/api/v1/retrieve_future") {
        polls_[std::string{json_member(exchange.body, "request_id")}].open = false;
    }
}

}  // namespace tinkxx::simulation::training_world
