#include "service/results/result_poll.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/http/standard_headers.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view retrieve_path = "/api/v1/retrieve_future";
// Larger JSON is looked at where it does not keep the loop from others.
constexpr std::size_t classified_on_loop_bytes = std::size_t{64} * 1024;

bool is_protobuf(std::string_view content_type) noexcept {
    return content_type.find("application/x-protobuf") != std::string_view::npos;
}

std::string seconds_of(std::chrono::nanoseconds time) {
    std::array<char, 32> text{};
    auto const seconds = std::chrono::duration<double>(time).count();
    auto const [end, failed] = std::to_chars(text.data(), text.data() + text.size(), seconds);
    return failed == std::errc{} ? std::string{text.data(), end} : "0";
}

void add_poll_lines(Headers& lines, std::int64_t iteration, std::string_view request_type) {
    lines.add("X-Tinker-Request-Iteration", std::to_string(iteration));
    lines.add("X-Tinker-Request-Type", std::string{request_type});
}

/// Whether a wait is for a failure to pass, and not for the result.
bool is_failure(PollWait why) noexcept {
    switch (why) {
        case PollWait::none:
        case PollWait::not_yet:
        case PollWait::asked:
            return false;
        case PollWait::server_error:
        case PollWait::bad_request:
        case PollWait::rate_limited:
        case PollWait::no_answer:
        case PollWait::billing:
            break;
    }
    return true;
}

wire::ResultAnswer classified(std::string_view content_type, std::string_view body) noexcept {
    try {
        return wire::classify_result_answer(content_type, body);
    } catch (std::exception const& e) {
        return wire::result_answer::Malformed{e.what()};
    }
}

}  // namespace

ResultSurroundings::ResultSurroundings(ServiceContext& context, ByteBudget& downloads,
                                       PollRules rules)
    : context_{&context}, downloads_{&downloads}, rules_{std::move(rules)} {
    auto const& config = http().config();
    HttpOrder order;
    order.operation = {.method = "POST", .path = std::string{retrieve_path}};
    order.url = config.url(retrieve_path);
    order.common_headers = http().json_headers();
    order.purpose = Purpose::retrieve;
    order.timeouts = config.timeouts;
    order.timeouts.read = order.timeouts.write = order.timeouts.pool = poll_timeout;
    order.max_retries = 0;
    json_poll_ = std::make_shared<HttpOrder const>(order);
    auto lines = *order.common_headers;
    lines.set("Accept", "application/x-protobuf, application/json");
    order.common_headers = std::make_shared<Headers const>(std::move(lines));
    protobuf_poll_ = std::make_shared<HttpOrder const>(std::move(order));
}

std::shared_ptr<HttpOrder const> const& ResultSurroundings::first_poll(
    std::string_view request_type, bool protobuf) const {
    for (auto const& each : first_polls_) {
        if (each.request_type == request_type && each.protobuf == protobuf) return each.order;
    }
    auto order = *later_poll(protobuf);
    auto lines = *order.common_headers;
    add_poll_lines(lines, 0, request_type);
    order.common_headers = std::make_shared<Headers const>(std::move(lines));
    first_polls_.push_back(
        {request_type, protobuf, std::make_shared<HttpOrder const>(std::move(order))});
    return first_polls_.back().order;
}

void ResultSurroundings::stop() noexcept {
    TINKXX_ASSERT_LOOP(scheduler());
    stopped_ = true;
    listeners_.tell();
}

std::optional<std::chrono::nanoseconds> ResultSurroundings::billing_pause(
    Error const& error) const {
    auto const detail = error.body().empty() ? std::string_view{error.what()} : error.body();
    auto verdict = context_->billing().on_402(scheduler().now(), detail);
    if (!verdict.line.empty()) http().log(verdict.level, std::move(verdict.line));
    if (!verdict.pause) return std::nullopt;
    return BillingPause::step;
}

/// A large answer on its way through the callback executor. The owner belongs to the loop, the
/// rest to whoever has the turn.
struct ResultPoll::Classification {
    ResultPoll* owner{nullptr};
    std::string content_type{};
    std::string body{};
    wire::ResultAnswer answer{};
};

ResultPoll::ResultPoll(ResultSurroundings const& around, Listener& listener) noexcept
    : around_{&around}, listener_{&listener}, http_{around.http(), *this} {}

ResultPoll::~ResultPoll() { cancel(); }

void ResultPoll::start(ResultOrder order) {
    TINKXX_ASSERT_LOOP(around_->scheduler());
    assert(!under_way());
    extras_ = std::move(order.extras);
    submit_roundtrip_ = order.submit_roundtrip;
    failing_since_ = {};
    protobuf_wanted_ = order.protobuf_wanted;
    machine_.emplace(around_->rules(), order.request_id, order.request_type,
                     around_->scheduler().now(), order.deadline);
    if (order.known_payload_bytes > 0) {
        machine_->skip_metadata();
        return acquire(order.known_payload_bytes);
    }
    send_or_expire();
}

void ResultPoll::cancel() noexcept {
    if (!under_way()) return;
    http_.cancel();
    end();
}

void ResultPoll::end() noexcept {
    doing_ = Doing::nothing;
    around_->scheduler().disarm(*this);
    if (classification_) std::exchange(classification_, nullptr)->owner = nullptr;
    download_.reset();
}

void ResultPoll::enter(Doing doing) noexcept {
    doing_ = doing;
    auto& scheduler = around_->scheduler();
    doing_since_ = scheduler.now();
    if (machine_->deadline() != TimePoint::max()) {
        scheduler.arm(*this, machine_->deadline(), Precision::coarse);
    }
}

void ResultPoll::acquire(std::int64_t bytes) {
    download_ = detail::make_in_block<Download>(*this, bytes);
    enter(Doing::download);
    if (around_->downloads().acquire(*download_, bytes)) return download_->on_permit();
    listener_->on_standing();
}

void ResultPoll::Download::on_permit() {
    permit_ = Permit{poll_.around_->downloads(), bytes_};
    poll_.send_or_expire();
}

// Somebody else's call may lead here, so an end has to come from the loop.
void ResultPoll::send_or_expire() {
    if (around_->stopped()) return;  // the end comes to everyone in turn
    auto const now = around_->scheduler().now();
    if (!machine_->expired(now)) return send();
    wait({.at = now});
}

void ResultPoll::send() {
    enter(Doing::polling);
    auto const iteration = machine_->begin(doing_since_);
    auto order = poll_order(iteration);
    if (extras_ && !extras_->metadata.empty()) {
        auto own = *order;
        own.metadata = extras_->metadata;
        order = std::make_shared<HttpOrder const>(std::move(own));
    }
    http_.start(std::move(order),
                {.headers = lines(iteration),
                 .body = {.head = std::make_shared<std::string const>(wire::encode_retrieve_future(
                              machine_->request_id(), machine_->allow_metadata_only()))}});
    listener_->on_standing();
}

std::shared_ptr<HttpOrder const> const& ResultPoll::poll_order(std::int64_t iteration) const {
    if (iteration > 0) return around_->later_poll(protobuf_wanted_);
    return around_->first_poll(machine_->request_type(), protobuf_wanted_);
}

Headers ResultPoll::lines(std::int64_t iteration) const {
    Headers lines;
    auto const further = extras_ ? extras_->headers.size() : 0;
    lines.reserve(further + (iteration == 0 ? 2 : 3));  // a key follows
    if (extras_) {
        for (auto const& [name, value] : extras_->headers) lines.add(name, value);
    }
    if (iteration == 0) {
        lines.add("X-Tinker-Create-Promise-Roundtrip-Time", seconds_of(submit_roundtrip_));
    } else {
        add_poll_lines(lines, iteration, machine_->request_type());
    }
    return lines;
}

void ResultPoll::wait(PollMachine::Poll const& poll) {
    enter(Doing::waiting);
    until_ = std::min(poll.at, machine_->deadline());
    why_ = poll.why;
    if (!is_failure(why_)) {
        failing_since_ = {};
    } else if (failing_since_ == TimePoint{}) {
        failing_since_ = doing_since_;
    }
    around_->scheduler().arm(*this, until_, Precision::exact);
    listener_->on_standing();
}

void ResultPoll::on_time() {
    auto const now = around_->scheduler().now();
    if (!machine_->expired(now)) return send();
    http_.cancel();
    if (download_) download_->stop_waiting();
    follow(machine_->on_deadline(now), nullptr);
}

void ResultPoll::on_response(HttpResponse response) {
    auto const* type = response.headers.find("content-type");
    auto const content_type = type != nullptr ? std::string_view{*type} : std::string_view{};
    if (response.body.size() > classified_on_loop_bytes && !is_protobuf(content_type)) {
        return classify(std::string{content_type}, std::move(response.body));
    }
    take(classified(content_type, response.body), std::move(response.body));
}

void ResultPoll::classify(std::string content_type, std::string body) {
    enter(Doing::classifying);
    listener_->on_standing();
    classification_ = std::make_shared<Classification>();
    classification_->owner = this;
    classification_->content_type = std::move(content_type);
    classification_->body = std::move(body);
    auto& runtime = around_->http().runtime();
    runtime.run_callback(
        [job = classification_, core = runtime.shared_from_this()] {
            job->answer = classified(job->content_type, job->body);
            core->scheduler().post([job] {
                if (job->owner != nullptr) job->owner->on_classified();
            });
        },
        [job = classification_](Error const& error) {
            if (job->owner != nullptr) job->owner->fail(error.details());
        });
}

void ResultPoll::on_classified() {
    auto const job = std::exchange(classification_, nullptr);
    take(std::move(job->answer), std::move(job->body));
}

void ResultPoll::take(wire::ResultAnswer answer, std::string&& body) {
    failing_since_ = {};
    if (auto* failed = std::get_if<wire::result_answer::Failed>(&answer)) {
        failed->message = around_->http().config().scrubber.scrub(failed->message);
    }
    auto step = machine_->on_answer(answer, around_->scheduler().now());
    if (!std::holds_alternative<PollMachine::Done>(step.next)) {
        return follow(std::move(step), nullptr);
    }
    RetrievedResult result;
    if (auto const* found = std::get_if<wire::result_answer::Json>(&answer)) {
        if (!found->result.empty()) {
            result.offset = static_cast<std::size_t>(found->result.data() - body.data());
        }
        result.size = found->result.size();
    } else {
        result.protobuf = true;
        result.size = body.size();
    }
    result.body = std::move(body);
    end();
    listener_->on_result(std::move(result));
}

void ResultPoll::on_error(Error error) {
    auto const now = around_->scheduler().now();
    auto step = machine_->on_error(error, now);
    if (std::holds_alternative<PollMachine::AskBilling>(step.next)) {
        step = machine_->on_billing(error, around_->billing_pause(error), now);
    }
    follow(std::move(step), &error);
}

void ResultPoll::follow(PollMachine::Step step, Error const* failure) {
    if (step.report) report(step, failure);
    if (auto* failed = std::get_if<PollMachine::Fail>(&step.next)) {
        return fail(std::move(failed->error));
    }
    if (auto const* download = std::get_if<PollMachine::Download>(&step.next)) {
        return acquire(download->bytes);
    }
    auto const& poll = std::get<PollMachine::Poll>(step.next);
    if (failure != nullptr && !may_go_on(poll, *failure)) {
        return fail(machine_->given_up(*failure));
    }
    wait(poll);
    log_wait(failure);
    if (step.queue) tell_queue_state(*step.queue);
}

bool ResultPoll::may_go_on(PollMachine::Poll const& poll, Error const& failure) {
    if (!machine_->failing()) return true;  // the answer was that there is no result yet
    auto const now = around_->scheduler().now();
    RepeatCost cost{.wait = poll.at - now};
    if (machine_->failures() > 1) cost.took = now - doing_since_;
    return listener_->may_poll_again(failure, cost);
}

void ResultPoll::report(PollMachine::Step const& step, Error const* failure) const {
    auto* const telemetry = around_->context().telemetry();
    if (telemetry == nullptr) return;
    auto const& report = *step.report;
    auto const* failed = std::get_if<PollMachine::Fail>(&step.next);
    auto const error = failure != nullptr ? *failure : Error{failed->error};
    telemetry->event(report.name, report.severity,
                     machine_->event_data(report, error, around_->scheduler().now()));
}

void ResultPoll::log_wait(Error const* failure) const {
    auto const level = why_ == PollWait::no_answer || why_ == PollWait::rate_limited
                           ? LogLevel::info
                           : LogLevel::debug;
    auto& http = around_->http();
    if (!http.logs(level)) return;
    std::string line{machine_->request_type()};
    line.append(" request ").append(machine_->request_id()).append(": ");
    line += failure != nullptr ? std::string_view{failure->what()} : to_string(why_);
    line += "; poll " + std::to_string(machine_->polls()) + " follows in ";
    line += seconds_text(std::chrono::ceil<std::chrono::milliseconds>(until_ - doing_since_));
    line += " s";
    http.log(level, std::move(line));
}

void ResultPoll::tell_queue_state(wire::QueueReport const& queue) {
    auto& http = around_->http();
    http.call_here("an observer of queue states", LogLevel::warning, [&] {
        listener_->on_queue_state(queue.state, http.config().scrubber.scrub(queue.reason));
    });
}

void ResultPoll::fail(ErrorDetails error) {
    if (error.http_status && error.kind != ErrorKind::promise_lost) {
        auto const& scrubber = around_->http().config().scrubber;
        auto const add = [&](Headers const& lines) {
            for (auto const& [name, value] : scrubber.scrub(lines)) {
                error.request_headers.emplace_back(name, value);
            }
        };
        auto const iteration = std::max<std::int64_t>(machine_->polls() - 1, 0);
        add(*poll_order(iteration)->common_headers);
        add(lines(iteration));
    }
    Error const told{std::move(error)};
    end();
    listener_->on_error(told);
}

PollStanding::Doing ResultPoll::doing() const noexcept {
    return doing_ == Doing::polling && http_.waits_for_credential() ? Doing::credential : doing_;
}

PollStanding ResultPoll::standing() const noexcept {
    PollStanding standing;
    standing.doing = doing();
    if (!machine_) return standing;
    standing.since = machine_->since();
    standing.doing_since = doing_since_;
    standing.polls = machine_->polls();
    if (doing_ == Doing::waiting) {
        standing.until = until_;
        standing.why = why_;
    }
    if (auto const* const last = machine_->last_failure()) standing.last_failure = last->what();
    if (failing_since_ != TimePoint{}) standing.failing_since = failing_since_;
    return standing;
}

}  // namespace tinkxx::service
