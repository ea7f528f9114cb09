#include "service/results/cancel_queue.hpp"

#include "base/loop/loop_rule.hpp"
#include "wire/session/result_answer.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view cancel_path = "/api/v1/cancel_future";
constexpr std::chrono::seconds cancel_timeout{30};
// Whatever the server says, a batch stays one.
constexpr std::int64_t largest_batch = 1024;

}  // namespace

/// One cancel under way.
class CancelQueue::Sending final : private ServiceRequest::Listener {
public:
    Sending(CancelQueue& queue, std::string request_id)
        : queue_{&queue}, request_id_{std::move(request_id)}, call_{*queue.context_, *this} {}

    void start() {
        auto const& http = queue_->context_->http();
        auto const& config = http.config();
        HttpOrder order;
        order.operation = {
            .method = "POST", .path = std::string{cancel_path}, .feature = "cancelling samples"};
        order.url = config.url(cancel_path);
        order.common_headers = http.json_headers();
        order.body.head =
            std::make_shared<std::string const>(wire::encode_cancel_future(request_id_));
        order.purpose = Purpose::retrieve;
        order.timeouts = config.timeouts;
        order.timeouts.read = order.timeouts.write = order.timeouts.pool = cancel_timeout;
        order.max_retries = 0;
        call_.start(std::move(order), Repeat::submit_loop);
    }

private:
    // Both may destroy this.
    void on_response(HttpResponse /*response*/) override { queue_->sent(request_id_, nullptr); }
    void on_error(Error error) override { queue_->sent(request_id_, &error); }

    CancelQueue* queue_;
    std::string request_id_;
    ServiceRequest call_;
};

CancelQueue::CancelQueue(ServiceContext& context, Flags flags)
    : context_{&context}, flags_{std::move(flags)} {}

CancelQueue::~CancelQueue() = default;

void CancelQueue::cancel(std::string request_id) {
    TINKXX_ASSERT_LOOP(context_->http().scheduler());
    if (closed_ || !flags_().sample_cancel_enabled) return;
    queue_.push_back(std::move(request_id));
    if (queue_.size() > most_queued) queue_.pop_front();
    // From the loop, so that what is cancelled together goes together.
    auto& scheduler = context_->http().scheduler();
    if (open_ == 0) scheduler.arm(*this, scheduler.now(), Precision::exact);
}

void CancelQueue::on_time() { go_on(); }

void CancelQueue::go_on() {
    auto const flags = flags_();
    if (!flags.sample_cancel_enabled) queue_.clear();
    if (queue_.empty()) {
        if (drained_) close();
        return;
    }
    auto const most = static_cast<std::size_t>(
        std::clamp<std::int64_t>(flags.sample_cancel_max_batch_size, 1, largest_batch));
    open_ = std::min(queue_.size(), most);
    for (std::size_t i = 0; i < open_; ++i) {
        batch_.push_back(std::make_unique<Sending>(*this, std::move(queue_.front())));
        queue_.pop_front();
        batch_.back()->start();
    }
}

void CancelQueue::sent(std::string const& request_id, Error const* error) {
    auto& http = context_->http();
    if (error != nullptr) {
        if (error->kind() == ErrorKind::cancelled || error->kind() == ErrorKind::closed) {
            queue_.clear();  // the client is gone
        } else {
            auto const status = error->http_status().value_or(0);
            auto const level = status == 404 || status == 405 ? LogLevel::debug : LogLevel::error;
            if (http.logs(level)) {
                http.log(level, "request " + request_id +
                                    " was not cancelled on the server: " + error->what());
            }
        }
    }
    if (--open_ > 0) return;
    batch_.clear();
    go_on();
}

void CancelQueue::drain(TimePoint deadline, std::function<void()> done) {
    TINKXX_ASSERT_LOOP(context_->http().scheduler());
    drained_ = std::move(done);
    if (queue_.empty() && open_ == 0) return close();
    context_->http().scheduler().arm(deadline_, deadline, Precision::coarse);
}

void CancelQueue::Deadline::on_time() { queue->close(); }

void CancelQueue::close() {
    TINKXX_ASSERT_LOOP(context_->http().scheduler());
    closed_ = true;
    auto& scheduler = context_->http().scheduler();
    scheduler.disarm(*this);
    scheduler.disarm(deadline_);
    queue_.clear();
    batch_.clear();
    open_ = 0;
    if (auto const done = std::exchange(drained_, nullptr)) done();  // may destroy this
}

}  // namespace tinkxx::service
