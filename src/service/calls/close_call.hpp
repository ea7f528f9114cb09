#pragma once

#include <tinkxx/future.hpp>

#include "service/core/client_core.hpp"
#include "service/core/pending_call.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// One `ServiceClient::close`, which others can see while it is under way. The session holds it
/// until it is over.
class CloseCall final : public PendingCall {
public:
    CloseCall(std::shared_ptr<ClientCore> core, std::optional<Finish> finish,
              Promise<void> promise);
    ~CloseCall() override { unlist(); }

private:
    ClientCore& core() const noexcept override { return *core_; }
    std::string_view call_name() const noexcept override { return "close"; }
    std::chrono::milliseconds limit() const noexcept override { return core_->config().deadline; }
    Metadata told_metadata() const override { return {}; }
    Stage shown() const noexcept override { return Stage::closing; }
    void fill(OperationStatus& status, TimePoint now) const override;
    /// Also if nobody waits for it, or the client was closed before.
    bool admitted() override { return true; }
    void begin() override;
    bool answered() const override { return promise_.done(); }
    void answer(Error error) override { promise_.set_error(std::move(error)); }
    /// The caller waits no longer; the close goes on.
    void fail(Error error) override;
    void stop() noexcept override {}
    ErrorDetails late_error(std::string const& limit, std::string const& standing) const override;
    void on_close() noexcept override { list(); }

    std::shared_ptr<ClientCore> const core_;
    std::optional<Finish> finish_;
    Promise<void> promise_;
};

}  // namespace tinkxx::service
