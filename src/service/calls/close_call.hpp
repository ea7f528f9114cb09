#pragma once

#include <tinkxx/future.hpp>

#include "service/common/alarm.hpp"
#include "service/core/client_core.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::service {

/// One `ServiceClient::close`, which others can see while it is under way. Made on the caller's
/// thread, then lives on the loop; the session holds it until it is over.
class CloseCall final : public std::enable_shared_from_this<CloseCall>, private PendingEntry {
public:
    CloseCall(std::shared_ptr<ClientCore> core, std::optional<Finish> finish,
              Promise<void> promise);
    ~CloseCall() override;

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    void begin();
    void over(Result<void> outcome);
    void out_of_time();
    OperationStatus status(TimePoint now) const override;
    void on_close() noexcept override;

    std::shared_ptr<ClientCore> const core_;
    std::optional<Finish> finish_;
    Promise<void> promise_;
    Alarm<CloseCall> deadline_{*this, &CloseCall::out_of_time};
    std::uint64_t id_{0};
    TimePoint started_{};
    TimePoint ends_{};
};

}  // namespace tinkxx::service
