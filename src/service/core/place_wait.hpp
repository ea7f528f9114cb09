#pragma once

#include <tinkxx/future.hpp>

#include "service/core/client_core.hpp"
#include "service/core/pending_call.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

/// A sample whose caller is blocked until there is a place for it (`ClientOptions::max_pending`),
/// as others see it.
class PlaceWait final : public PendingCall {
public:
    /// What ends the wait; done if it is over.
    using Turn = std::shared_ptr<Promise<void>>;

    PlaceWait(std::shared_ptr<ClientCore> core, std::string operation,
              std::chrono::milliseconds deadline, Metadata metadata, Turn turn)
        : core_{std::move(core)},
          operation_{std::move(operation)},
          limit_{deadline.count() > 0 ? deadline : core_->config().deadline},
          metadata_{std::move(metadata)},
          turn_{std::move(turn)} {}

    /// Nothing came of the sample. Any thread, once.
    void give_up() {
        auto self = std::static_pointer_cast<PlaceWait>(shared_from_this());
        core_->scheduler().post([self = std::move(self)] { self->leave(); });
    }
    /// The sample begins, and is listed in its place.
    using PendingCall::leave;

private:
    ClientCore& core() const noexcept override { return *core_; }
    std::string_view call_name() const noexcept override { return operation_; }
    std::chrono::milliseconds limit() const noexcept override { return limit_; }
    Metadata told_metadata() const override { return metadata_; }
    Stage shown() const noexcept override { return Stage::waiting_for_place; }
    void fill(OperationStatus& status, TimePoint /*now*/) const override {
        status.why = "ClientOptions::max_pending samples are pending; its caller is blocked";
    }
    /// The sample needs its number also if it was served meanwhile.
    bool admitted() override {
        number();
        return !answered();
    }
    void begin() override {
        core_->attach();
        look();
    }
    bool answered() const override { return turn_->done(); }
    void answer(Error error) override { turn_->set_error(std::move(error)); }
    void fail(Error error) override {
        answer(std::move(error));
        leave();
    }
    void stop() noexcept override {}
    // Whoever is blocked adds the name of the call.
    ErrorDetails late_error(std::string const& limit, std::string const& standing) const override {
        return {.kind = ErrorKind::timeout,
                .message = limit + "; it was " + standing,
                .retryable = true,
                .stopped = RetryEnd::cancelled};
    }
    ErrorDetails closed_error() const override {
        return {.kind = ErrorKind::cancelled,
                .message = "the client was closed while it waited for a place",
                .stopped = RetryEnd::cancelled};
    }

    std::shared_ptr<ClientCore> const core_;
    std::string const operation_;
    std::chrono::milliseconds const limit_;
    Metadata const metadata_;
    Turn const turn_;
};

}  // namespace tinkxx::service
