#pragma once

#include <tinkxx/transport.hpp>

#include "base/runtime/runtime_core.hpp"
#include "local/api/handler.hpp"

#include <cstdint>
#include <map>
#include <memory>

namespace tinkxx::local {

/// Brings requests straight to a handler on the same loop: no socket, no bytes on a wire. Neither
/// side is ever called inside a call of the other.
class InProcessTransport final : public Transport, public tinkxx::detail::Resident {
public:
    /// The scheduler must outlive the transport.
    InProcessTransport(Scheduler& scheduler, std::shared_ptr<Handler> handler);
    ~InProcessTransport() override;
    InProcessTransport(InProcessTransport const&) = delete;
    InProcessTransport& operator=(InProcessTransport const&) = delete;

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    void pause(Call call, bool on) noexcept override;
    void drain(TimePoint deadline) noexcept override;

    /// Fails what is under way; for the end of the loop.
    void close() noexcept;
    void on_shutdown() noexcept override { close(); }

private:
    class Exchange;
    class Reply;
    class Deadline;

    Scheduler& scheduler_;
    std::shared_ptr<Handler> handler_;
    std::map<std::uint64_t, std::shared_ptr<Exchange>> calls_{};
    std::uint64_t last_{0};
    bool closed_{false};
    std::unique_ptr<Deadline> deadline_{};
};

}  // namespace tinkxx::local
