#include "service/results/completion_poll.hpp"

#include "base/loop/loop_rule.hpp"
#include "wire/sampling/completions.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view completions_path = "/api/v1/retrieve_futures";

}  // namespace

CompletionWaiter::~CompletionWaiter() {
    if (poll_ != nullptr) poll_->forget(*this);
}

CompletionPoll::CompletionPoll(ResultSurroundings const& around, std::string sampling_session_id,
                               std::int64_t clone_id)
    : around_{&around},
      session_id_{std::move(sampling_session_id)},
      clone_id_{clone_id},
      http_{around.http(), *this} {
    around_->listeners().add(*this);
}

CompletionPoll::~CompletionPoll() {
    around_->listeners().remove(*this);
    for (auto* const list : {&waiters_, &done_}) {
        while (!list->empty()) forget(*list->front());
    }
}

void CompletionPoll::wait(CompletionWaiter& waiter, std::string_view request_id) {
    TINKXX_ASSERT_LOOP(around_->scheduler());
    waiter.poll_ = this;
    waiter.request_id_ = request_id;
    if (auto const found = unclaimed_by_id_.find(request_id); found != unclaimed_by_id_.end()) {
        auto const entry = found->second;
        auto const completed = entry->completed;
        unclaimed_by_id_.erase(found);
        unclaimed_.erase(entry);
        return finish(waiter, completed);
    }
    // Two that wait for one result are a fault of the server; the second looks for itself.
    if (given_up_ || !by_id_.emplace(waiter.request_id_, &waiter).second) {
        return finish(waiter, {.how = Completed::How::poll_yourselves});
    }
    waiters_.push_back(waiter);
    go_on();
}

void CompletionPoll::forget(CompletionWaiter& waiter) noexcept {
    if (waiter.poll_ != this) return;
    waiter.poll_ = nullptr;
    if (waiter.completed_) {
        waiter.completed_.reset();
        return done_.erase(waiter);
    }
    by_id_.erase(waiter.request_id_);
    waiters_.erase(waiter);
}

void CompletionPoll::retrieved(std::string_view request_id) {
    TINKXX_ASSERT_LOOP(around_->scheduler());
    if (given_up_) return;
    machine_.retrieved(std::string{request_id});
    go_on();
}

// What to tell is told from the loop, in order.
void CompletionPoll::finish(CompletionWaiter& waiter, Completed completed) noexcept {
    waiter.completed_ = completed;
    done_.push_back(waiter);
    auto& scheduler = around_->scheduler();
    scheduler.arm(*this, scheduler.now(), Precision::exact);
}

void CompletionPoll::record(std::string request_id, Completed completed) {
    if (auto const found = by_id_.find(request_id); found != by_id_.end()) {
        auto& waiter = *found->second;
        by_id_.erase(found);
        waiters_.erase(waiter);
        return finish(waiter, completed);
    }
    if (unclaimed_by_id_.contains(request_id)) return;
    unclaimed_.push_back({.request_id = std::move(request_id), .completed = completed});
    auto const newest = std::prev(unclaimed_.end());
    unclaimed_by_id_.emplace(newest->request_id, newest);
    if (unclaimed_.size() > most_unclaimed) {
        unclaimed_by_id_.erase(unclaimed_.front().request_id);
        unclaimed_.pop_front();
    }
}

bool CompletionPoll::needed() const noexcept {
    return !given_up_ && !around_->stopped() && (!waiters_.empty() || machine_.has_unreported());
}

void CompletionPoll::go_on() {
    if (!done_.empty() || http_.under_way() || !needed()) return;
    auto& scheduler = around_->scheduler();
    if (scheduler.now() >= not_before_) return send();
    if (!armed()) scheduler.arm(*this, not_before_, Precision::exact);
}

void CompletionPoll::send() {
    auto& http = around_->http();
    auto const& config = http.config();
    not_before_ = around_->scheduler().now() + spacing;
    HttpOrder order;
    order.operation = {
        .method = "POST", .path = std::string{completions_path}, .feature = "completion polls"};
    order.url = config.url(completions_path);
    order.common_headers = http.json_headers();
    order.body.head = std::make_shared<std::string const>(
        wire::encode_completion_poll({.sampling_session_id = session_id_,
                                      .cloned_sampler_id = clone_id_,
                                      .prev_cursor = machine_.cursor(),
                                      .retrieved_request_ids = machine_.begin()}));
    order.purpose = Purpose::completion_poll;
    order.timeouts = config.timeouts;
    order.timeouts.read = order.timeouts.write = order.timeouts.pool = poll_timeout;
    order.max_retries = 0;
    http_.start(std::move(order));
}

std::string CompletionPoll::standing() const {
    if (http_.waits_for_credential()) {
        return "its poll waits for a credential: " + around_->http().credentials().standing().why;
    }
    if (!failure_.empty()) return "the last poll failed: " + failure_;
    return "the service has not finished it";
}

void CompletionPoll::on_response(HttpResponse response) {
    failure_.clear();
    auto news = wire::decode_completions(response.body);
    if (!news) return give_up(news.error());
    for (auto& each : news->completions) {
        record(std::move(each.request_id),
               {.how = each.failed ? Completed::How::failed : Completed::How::finished,
                .payload_bytes = std::max<std::int64_t>(each.payload_bytes, 0)});
    }
    // Where the cursor moves there may be more; a server that does not hold polls back must not
    // be asked without end.
    if (machine_.on_success(news->cursor)) not_before_ = {};
    tell();
}

void CompletionPoll::on_error(Error error) {
    auto action = machine_.on_error(error);
    if (std::holds_alternative<CompletionMachine::AskBilling>(action)) {
        action = machine_.on_billing(around_->billing_pause(error).has_value());
    }
    if (std::holds_alternative<CompletionMachine::FallBack>(action)) return give_up(error);
    if (failure_.empty()) failing_since_ = around_->scheduler().now();
    failure_ = error.what();
    auto& http = around_->http();
    auto const delay = std::get<CompletionMachine::Again>(action).delay;
    not_before_ = around_->scheduler().now() + delay;
    if (error.kind() != ErrorKind::billing && http.logs(LogLevel::info)) {
        http.log(LogLevel::info, "completion poll of " + session_id_ + ": " + error.what() +
                                     "; the next follows in " +
                                     std::to_string(CompletionMachine::pause.count()) + " s");
    }
    go_on();
}

void CompletionPoll::give_up(Error const& error) {
    given_up_ = true;
    // A client that closes is no failure of the poll; those who wait find out by themselves.
    if (error.kind() != ErrorKind::cancelled && error.kind() != ErrorKind::closed) {
        around_->http().log(LogLevel::warning,
                            "completion poll of " + session_id_ + ": " + error.what() +
                                "; from now on each sample of this sampler is polled for");
    }
    by_id_.clear();
    while (auto* const waiter = waiters_.pop_front()) {
        finish(*waiter, {.how = Completed::How::poll_yourselves});
    }
    tell();
}

/// Even one that only waits for a credential, and would be sent with it.
void CompletionPoll::on_closing() noexcept { http_.cancel(); }

void CompletionPoll::on_time() {
    if (!done_.empty()) return tell();
    go_on();
}

void CompletionPoll::tell() {
    base::DestructionFlag::Watch const watch{destroyed_};
    while (auto* const waiter = done_.pop_front()) {
        waiter->poll_ = nullptr;
        waiter->on_completion(*std::exchange(waiter->completed_, std::nullopt));
        if (watch.destroyed()) return;
    }
    around_->scheduler().disarm(*this);
    go_on();
}

}  // namespace tinkxx::service
