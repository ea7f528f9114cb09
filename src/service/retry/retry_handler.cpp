#include "service/retry/retry_handler.hpp"

#include "base/common/entropy.hpp"
#include "base/loop/loop_rule.hpp"
#include "service/common/thrown.hpp"
#include "service/http/http_error.hpp"
#include "service/retry/retry_rules.hpp"

#include <algorithm>
#include <functional>

namespace tinkxx::service {
namespace {

constexpr std::chrono::seconds between_lines{2};
constexpr std::size_t longest_error_name = 200;
constexpr std::size_t most_error_names = 1000;

std::string histogram_name(Error const& error) {
    std::string const message = error.what();
    auto name =
        std::string{to_string(error.kind())} + ": " + (message.empty() ? "no message" : message);
    if (name.size() > longest_error_name) name.resize(longest_error_name);
    return name;
}

}  // namespace

bool HandledCall::enter(std::shared_ptr<RetryHandler> handler,
                        std::shared_ptr<RetryConfig const> config, bool stuck_detection) {
    handler_ = std::move(handler);
    config_ = std::move(config);
    watched_ = stuck_detection && config_->enable_stuck_detection;
    ++handler_->waiting_;
    place_ = Place::waiting;
    if (handler_->limit_ && !handler_->limit_->acquire(*this)) return false;
    has_permit_ = handler_->limit_ != nullptr;
    handler_->entered(*this);
    return true;
}

void HandledCall::on_permit() {
    if (place_ != Place::waiting) return on_other_permit();
    has_permit_ = true;
    handler_->entered(*this);
    on_entered();
}

void HandledCall::leave(bool success) noexcept {
    if (place_ == Place::outside) return;
    // Releasing may let others in, whose code may let go of the last handle.
    auto const handler = std::move(handler_);
    if (place_ == Place::waiting) {
        --handler->waiting_;
        if (handler->limit_) handler->limit_->forget(*this);
        place_ = Place::outside;
        return;
    }
    handler->left(*this, success);
    place_ = Place::outside;
    if (std::exchange(has_permit_, false)) handler->limit_->release();
}

RetryHandler::RetryHandler(std::string name, RetryConfig const& config,
                           std::shared_ptr<CountLimit> limit, Scheduler& scheduler)
    : name_{std::move(name)}, limit_{std::move(limit)}, scheduler_{scheduler} {
    if (config.retry_budget) budget_.emplace(*config.retry_budget);
    last_line_ = scheduler.now();
}

void RetryHandler::entered(HandledCall& call) {
    TINKXX_ASSERT_LOOP(scheduler_);
    --waiting_;
    call.place_ = HandledCall::Place::inside;
    if (in_loop_ == 0) last_progress_ = scheduler_.now();
    ++in_loop_;
    if (call.watched_) {
        watched_.push_back(call);
        ++timeouts_[call.config_->progress_timeout];
        watch();
    }
    progress(call);
}

void RetryHandler::left(HandledCall& call, bool success) noexcept {
    --in_loop_;
    if (success) {
        ++processed_;
        last_progress_ = scheduler_.now();
    }
    if (call.links_.linked()) {
        watched_.erase(call);
        auto const timeout = timeouts_.find(call.config_->progress_timeout);
        if (--timeout->second == 0) timeouts_.erase(timeout);
        if (timeouts_.empty()) scheduler_.disarm(*this);
    }
    progress(call);
}

void RetryHandler::watch() {
    // Later progress moves the deadline, not the timer: it looks again when it fires.
    auto const due = last_progress_ + timeouts_.begin()->first;
    if (!armed() || due < watched_until_) {
        watched_until_ = due;
        scheduler_.arm(*this, due, Precision::coarse);
    }
}

void RetryHandler::on_time() {
    auto const keep_alive = shared_from_this();
    auto const now = scheduler_.now();
    // What one gives back may wake others, which may end and be gone: none is remembered.
    for (auto left = watched_.size(); left > 0 && !watched_.empty(); --left) {
        auto& call = *watched_.front();
        auto const timeout = call.config_->progress_timeout;
        watched_.erase(call);
        watched_.push_back(call);
        if (last_progress_ + timeout <= now) call.on_stuck(timeout);
    }
    if (!timeouts_.empty()) watch();
}

std::optional<TimePoint> RetryHandler::stuck_at() const noexcept {
    if (timeouts_.empty()) return std::nullopt;
    return last_progress_ + timeouts_.begin()->first;
}

namespace {

bool is_retryable(RetryConfig const& config, Error const& error) {
    if (never_repeated(error.kind())) return false;
    if (cannot_heal(error)) return false;
    if (std::ranges::find(config.retryable_errors, error.kind()) != config.retryable_errors.end()) {
        return true;
    }
    bool const has_status = error.kind() == ErrorKind::status || error.kind() == ErrorKind::billing;
    if (has_status && error.http_status() &&
        config.retryable_statuses.contains(*error.http_status())) {
        return true;
    }
    return config.retry_if && *config.retry_if && (*config.retry_if)(error);
}

}  // namespace

bool RetryHandler::retryable(RetryConfig const& config, Error const& error) {
    return classify(config, error).retry;
}

RetryVerdict RetryHandler::classify(RetryConfig const& config, Error const& error) {
    try {
        if (!is_retryable(config, error)) return {.end = RetryEnd::permanent};
    } catch (...) {
        return {.end = RetryEnd::permanent, .note = "RetryConfig::retry_if " + threw()};
    }
    return {.retry = true, .end = RetryEnd::none};
}

RetryVerdict RetryHandler::within_limits(RetryConfig const& config, RetryHandler* handler,
                                         RetryCount const& count, std::chrono::nanoseconds delay,
                                         TimePoint now) {
    if (config.max_retries && count.requests > *config.max_retries) {
        return {.end = RetryEnd::attempts_spent,
                .note = "gave up after " + std::to_string(count.requests) +
                        (count.requests == 1 ? " request" : " requests") +
                        " (RetryConfig::max_retries)"};
    }
    auto* budget = count.own_budget;
    if (budget == nullptr && config.retry_budget && handler != nullptr && handler->budget_) {
        budget = &*handler->budget_;
    }
    if (budget != nullptr && !budget->take(now, count.took + delay)) {
        return {.end = RetryEnd::attempts_spent,
                .note = "the retry budget is spent (RetryConfig::retry_budget)"};
    }
    return {.retry = true, .delay = delay, .end = RetryEnd::none};
}

void RetryHandler::count(Error const& error) {
    TINKXX_ASSERT_LOOP(scheduler_);
    auto name = histogram_name(error);
    if (errors_.size() < most_error_names || errors_.contains(name)) ++errors_[std::move(name)];
}

RetryVerdict RetryHandler::judge(RetryConfig const& config, Error const& error,
                                 RetryCount const& count, double chance) {
    if (auto verdict = classify(config, error); !verdict.retry) return verdict;
    auto const delay = retry_delay(config, count.attempt - 1, chance);
    auto verdict = within_limits(config, this, count, delay, scheduler_.now());
    if (verdict.retry) ++retries_;
    return verdict;
}

RetryStats RetryHandler::stats() const {
    TINKXX_ASSERT_LOOP(scheduler_);
    return {.waiting = waiting_,
            .in_retry_loop = in_loop_,
            .processed = processed_,
            .retries = retries_,
            .errors = errors_,
            .last_progress = last_progress_};
}

void RetryHandler::progress(HandledCall& call) {
    TINKXX_ASSERT_LOOP(scheduler_);
    auto const now = scheduler_.now();
    if (now - last_line_ <= between_lines && waiting_ + in_loop_ != 0) return;
    last_line_ = now;
    if (call.logs_progress()) {
        auto line = name_ + ": " + std::to_string(waiting_) + " waiting, " +
                    std::to_string(in_loop_) + " in progress, " + std::to_string(processed_) +
                    " completed";
        if (!errors_.empty()) {
            std::vector<std::pair<std::string, std::int64_t>> sorted(errors_.begin(),
                                                                     errors_.end());
            std::ranges::stable_sort(
                sorted, [](auto const& a, auto const& b) { return a.second > b.second; });
            line += ", " + std::to_string(retries_) + " retries; errors:";
            for (auto const& [what, count] : sorted) {
                line += ' ' + std::to_string(count) + " x " + what + ';';
            }
        }
        call.log_progress(std::move(line));
    }
    errors_.clear();
}

std::size_t RetryHandlers::KeyHash::operator()(Key const& key) const noexcept {
    return std::hash<std::string>{}(key.name) ^ (std::hash<RetryConfig>{}(key.config) << 1U) ^
           std::hash<void const*>{}(key.telemetry) ^ key.account;
}

std::shared_ptr<CountLimit> RetryHandlers::limit_of(RetryConfig const& config,
                                                    std::optional<std::int64_t> limit) {
    if (!limit) return nullptr;
    if (config.semaphore_key.empty()) return std::make_shared<CountLimit>(*limit);
    std::erase_if(by_semaphore_key_, [](auto const& entry) { return entry.second.expired(); });
    auto& known = by_semaphore_key_[config.semaphore_key];
    auto shared = known.lock();
    if (!shared) known = shared = std::make_shared<CountLimit>(*limit);
    return shared;
}

RetryHandlers::Account RetryHandlers::account(std::string_view endpoint,
                                              std::string_view credential) {
    auto const hash = [](std::string_view text) { return std::hash<std::string_view>{}(text); };
    return base::mix(hash(endpoint)) + hash(credential);
}

std::shared_ptr<RetryHandler> RetryHandlers::get(Account account, std::string const& name,
                                                 RetryConfig const& config,
                                                 std::optional<std::int64_t> limit,
                                                 void const* telemetry, Scheduler& scheduler) {
    Key key{
        .account = account, .name = name, .config = config, .limit = limit, .telemetry = telemetry};
    if (auto const found = by_key_.find(key); found != by_key_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
    }
    auto handler = std::make_shared<RetryHandler>(name, config, limit_of(config, limit), scheduler);
    order_.emplace_front(key, handler);
    by_key_.emplace(std::move(key), order_.begin());
    if (order_.size() > most) {
        by_key_.erase(order_.back().first);
        order_.pop_back();
    }
    return handler;
}

}  // namespace tinkxx::service
