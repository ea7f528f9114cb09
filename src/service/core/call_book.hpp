#pragma once

#include <tinkxx/scheduler.hpp>

#include "service/core/pending.hpp"
#include "service/core/stall_reporter.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace tinkxx::service {

class HttpContext;
struct ClientConfig;

/// The calls of one client that are under way, and who tells of them: the warning of those that
/// stall, or else the report of what is pending. Made on any thread, then for the loop thread only.
class CallBook final : private Timer, private StallReporter::Client {
public:
    static constexpr std::chrono::seconds between_reports{5};

    /// `http` outlives it. `ids` numbers the calls; empty: by itself.
    CallBook(HttpContext& http, ClientConfig const& config, PendingList::Ids ids);
    ~CallBook() override;

    [[nodiscard]] PendingList& pending() noexcept { return pending_; }
    [[nodiscard]] PendingList const& pending() const noexcept { return pending_; }
    /// Whether an observer wants to know each step of each call. Any thread.
    [[nodiscard]] bool wants_stages() const noexcept { return wants_stages_; }

private:
    void on_first_pending();
    void on_time() override;
    PendingList const& watched() const noexcept override { return pending_; }
    StallReporter::Topic topic() const override;
    void warn(std::string const& line) override;

    HttpContext& http_;
    bool const reports_;
    bool const wants_stages_;
    PendingList::Ids const ids_;
    PendingList pending_;
    std::shared_ptr<StallReporter> stalls_{};  ///< null until something is pending
};

}  // namespace tinkxx::service
