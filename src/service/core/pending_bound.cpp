#include "service/core/pending_bound.hpp"

#include <tinkxx/future.hpp>

#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace tinkxx::service {
namespace {

class Unbounded final : public PendingBound {
public:
    Result<Place> enter(Runtime const& /*runtime*/, OnWait const& /*on_wait*/) override {
        return Place{};
    }
};

class Bounded final : public PendingBound {
public:
    explicit Bounded(PendingLimit limit) : most_{limit.count}, when_full_{limit.when_full} {}

    Result<Place> enter(Runtime const& runtime, OnWait const& on_wait) override {
        std::unique_lock lock{mutex_};
        if (pending_ < most_ && waiting_.empty()) {
            ++pending_;
            return place();
        }
        if (when_full_ == WhenFull::reject)
            return full("raise its count or choose WhenFull::block");
        // Those who wait are served in the order of their coming, each by its own future: waiting
        // for that one is refused where it would never end.
        auto const turn = std::make_shared<Promise<void>>(runtime);
        auto served = turn->get_future();
        waiting_.push_back(turn);
        lock.unlock();
        if (on_wait) on_wait(turn);
        auto const outcome = wait(served);
        if (!outcome) return outcome.error();
        return place();
    }

private:
    static Result<void> wait(Future<void>& served) {
        try {
            served.wait();
        } catch (UsageError const& error) {
            served.cancel();  // its place goes to the next
            return error;
        }
        return served.result();
    }

    [[nodiscard]] Error full(std::string const& way_out) const {
        return Error{{.kind = ErrorKind::queue_full,
                      .message = std::to_string(most_) +
                                 " samples are pending (ClientOptions::max_pending); " + way_out,
                      .retryable = true,
                      .field = "max_pending",
                      .value = std::to_string(most_)}};
    }

    Place place() {
        auto self = shared_from_this();
        auto* const bound = this;
        return Place{bound, [self](void const*) { static_cast<Bounded&>(*self).leave(); }};
    }

    void leave() noexcept {
        for (;;) {
            std::unique_lock lock{mutex_};
            if (waiting_.empty()) {
                --pending_;
                return;
            }
            auto next = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            if (next->set_value()) return;  // else it has given up: on to the one behind
        }
    }

    std::size_t const most_;
    WhenFull const when_full_;
    std::mutex mutex_{};  // guards what follows; not held while others run
    std::size_t pending_{0};
    std::deque<std::shared_ptr<Promise<void>>> waiting_{};
};

}  // namespace

std::shared_ptr<PendingBound> PendingBound::make(PendingLimit limit) {
    if (limit.count == 0) return std::make_shared<Unbounded>();
    return std::make_shared<Bounded>(limit);
}

}  // namespace tinkxx::service
