#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Decides whether a 402 is waited out or fails, for all calls of one client together
/// (R-SAMP-50, R-SAMP-51). Reads no clock.
class BillingPause {
public:
    /// How long the submit loop and the polls for a result wait before they ask again (R-SAMP-52).
    static constexpr std::chrono::seconds step{5};
    /// An incident ends when none of its warnings is younger than this.
    static constexpr std::chrono::seconds memory{300};
    static constexpr std::chrono::seconds between_warnings{60};

    /// The longest incident that is waited out; the server may say otherwise.
    void set_limit(std::chrono::seconds limit) noexcept { limit_ = limit; }
    [[nodiscard]] std::chrono::seconds limit() const noexcept { return limit_; }

    struct Verdict {
        /// Wait and ask again; otherwise the 402 is an error.
        bool pause{false};
        /// What to log, if anything.
        LogLevel level{LogLevel::warning};
        std::string line{};
    };
    /// `detail` is what the server said, without secrets.
    [[nodiscard]] Verdict on_402(TimePoint now, std::string_view detail);

    /// When the current incident began, if there is one.
    [[nodiscard]] std::optional<TimePoint> since() const noexcept { return first_; }
    [[nodiscard]] std::optional<TimePoint> last_warning() const noexcept { return logged_; }

private:
    std::chrono::seconds limit_{3600};
    std::optional<TimePoint> first_{};
    std::optional<TimePoint> logged_{};
};

}  // namespace tinkxx::service
