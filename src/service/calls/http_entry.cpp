#include "service/calls/http_entry.hpp"

#include "base/loop/loop_rule.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tinkxx::service {

void HttpEntry::begin(std::shared_ptr<HttpOrder const> order) {
    TINKXX_ASSERT_LOOP(http_->scheduler());
    if (!book_) return;
    order_ = std::move(order);
    started_ = shown_since_ = http_->scheduler().now();
    id_ = book_->pending().next_id();
    book_->pending().add(*this);
}

void HttpEntry::end() noexcept {
    if (!order_) return;
    book_->pending().remove(*this);
    order_.reset();
}

void HttpEntry::look() {
    if (!order_) return;
    auto const now_at = stage();
    if (told_ == now_at) return;
    told_ = now_at;
    shown_since_ = http_->scheduler().now();
    if (!book_->wants_stages()) return;
    auto standing = status(shown_since_);
    StageEvent told;
    told.id = standing.id;
    told.operation = std::move(standing.operation);
    told.stage = standing.stage;
    told.why = std::move(standing.why);
    told.metadata = order_->metadata;
    auto const& common = http_->config().metadata;
    told.metadata.insert(common.begin(), common.end());
    http_->tell(&Observer::on_stage, std::move(told));
}

void HttpEntry::flow() {
    TINKXX_ASSERT_LOOP(http_->scheduler());
    if (!std::exchange(flows_, true)) look();
}

Stage HttpEntry::stage() const noexcept {
    if (call_->waits_for_credential()) return Stage::waiting_for_credential;
    if (call_->retry_at()) return Stage::waiting_to_submit;
    return flows_ ? Stage::streaming : Stage::submitting;
}

OperationStatus HttpEntry::status(TimePoint now) const {
    OperationStatus status;
    status.id = id_;
    status.operation = order_->operation.name();
    status.stage = stage();
    status.in_stage = now - shown_since_;
    status.age = now - started_;
    status.attempt = call_->retries() + 1;
    bool const failed = call_->retries() > 0;
    switch (status.stage) {
        case Stage::waiting_for_credential: {
            auto credential = http_->credentials().standing();
            status.why = std::move(credential.why);
            if (credential.until) status.ends_in = *credential.until - now;
            status.stalled = status.in_stage;
            break;
        }
        case Stage::waiting_to_submit:
            status.why = call_->retry_reason();
            status.ends_in = *call_->retry_at() - now;
            status.stalled = status.age;
            break;
        case Stage::streaming:
            status.why = "the service has not sent the last piece, or it is not handled yet";
            break;
        default:
            status.why = "the service has not answered yet";
            if (failed) status.why.append("; last: ").append(call_->retry_reason());
            status.stalled = failed ? status.age : now - std::max(call_->sent_at(), started_);
            break;
    }
    return status;
}

}  // namespace tinkxx::service
