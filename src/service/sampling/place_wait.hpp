#pragma once

#include <tinkxx/future.hpp>

#include "service/common/alarm.hpp"
#include "service/core/client_core.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {

/// A sample whose caller is blocked until there is a place for it (`ClientOptions::max_pending`),
/// as others see it. Made on the caller's thread, then for the loop thread only.
class PlaceWait final : public std::enable_shared_from_this<PlaceWait>, private PendingEntry {
public:
    /// What ends the wait; done if it is over.
    using Turn = std::shared_ptr<Promise<void>>;

    PlaceWait(std::shared_ptr<ClientCore> core, std::string operation,
              std::chrono::milliseconds deadline, Metadata metadata, Turn turn)
        : core_{std::move(core)},
          operation_{std::move(operation)},
          limit_{deadline.count() > 0 ? deadline : core_->settings().deadline},
          metadata_{std::move(metadata)},
          turn_{std::move(turn)} {}

    /// Goes to the loop. Any thread, once.
    void launch() {
        core_->scheduler().post([self = shared_from_this()] { self->begin(); });
    }
    /// Nothing came of the sample. Any thread, once.
    void give_up() {
        core_->scheduler().post([self = shared_from_this()] { self->leave(); });
    }

    /// The sample begins, and is listed in its place.
    void leave() noexcept {
        core_->scheduler().disarm(deadline_);
        core_->pending().remove(*this);
        self_.reset();
    }
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    [[nodiscard]] TimePoint started() const noexcept { return started_; }

private:
    void begin();
    void out_of_time();
    OperationStatus status(TimePoint now) const override;
    void on_close() noexcept override;

    std::shared_ptr<ClientCore> const core_;
    std::string const operation_;
    std::chrono::milliseconds const limit_;
    Metadata const metadata_;
    Turn const turn_;
    Alarm<PlaceWait> deadline_{*this, &PlaceWait::out_of_time};
    TimePoint ends_{};
    std::shared_ptr<PlaceWait> self_{};  // while it is listed
    std::uint64_t id_{0};
    TimePoint started_{};
};

}  // namespace tinkxx::service
