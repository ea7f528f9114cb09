#pragma once

#include "service/requests/service_context.hpp"
#include "service/requests/service_request.hpp"
#include "wire/session/service_messages.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::service {

/// Tells the server which accepted samples nobody waits for any more (R-FUT-70 … R-FUT-72), in
/// batches; per session. Loop thread only; destroying it drops what was not sent.
class CancelQueue final : private Timer {
public:
    using Flags = std::function<wire::DynamicFlags()>;
    /// Beyond so many the oldest are dropped: the server finds out by itself.
    static constexpr std::size_t most_queued = 100'000;

    /// `flags` is asked at the moment of use (R-CONF-32). The context outlives this.
    CancelQueue(ServiceContext& context, Flags flags);
    ~CancelQueue() override;

    /// Nothing is queued while the flag is off, or once the queue is closed.
    void cancel(std::string request_id);
    [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
    [[nodiscard]] std::size_t under_way() const noexcept { return open_; }

    /// Drops what was not sent and takes no more: for a session that was ended on the server.
    void close();
    /// Sends what is queued, then closes and calls `done`, which may be inside this call; what
    /// `deadline` finds unsent is dropped.
    void drain(TimePoint deadline, std::function<void()> done);

private:
    class Sending;
    struct Deadline final : Timer {
        explicit Deadline(CancelQueue& owner) noexcept : queue{&owner} {}
        void on_time() override;
        CancelQueue* queue;
    };

    void on_time() override;
    void go_on();
    void sent(std::string const& request_id, Error const* error);

    ServiceContext* context_;
    Flags flags_;
    std::deque<std::string> queue_{};
    std::vector<std::unique_ptr<Sending>> batch_{};
    std::size_t open_{0};  ///< of the batch
    Deadline deadline_{*this};
    std::function<void()> drained_{};
    bool closed_{false};
};

}  // namespace tinkxx::service
