#pragma once

#include <tinkxx/scheduler.hpp>

#include "service/core/pending.hpp"
#include "service/core/stall_reporter.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace tinkxx::service {

class HttpContext;

/// The calls of one client that are under way, and who tells of them: the warning of those that
/// stall, or else the report of what is pending. Made on any thread, then for the loop thread only.
class CallBook final : private Timer, private StallReporter::Client {
public:
    static constexpr std::chrono::seconds between_reports{5};

    struct Settings {
        /// Numbers the calls. Empty: by itself.
        PendingList::Ids ids{};
        /// Given a line about what is pending every few seconds, on the callback executor. Empty:
        /// no such report.
        std::function<void(std::string const& line)> report{};
        /// Whether calls that make no progress are warned of.
        bool warn_of_stalls{true};
    };

    /// `http` outlives it.
    CallBook(HttpContext& http, Settings settings);
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
    Settings const settings_;
    bool const wants_stages_;
    PendingList pending_;
    std::shared_ptr<StallReporter> stalls_{};  ///< null until something is pending
};

}  // namespace tinkxx::service
