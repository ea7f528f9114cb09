#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/poll_backoff.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx::service {

/// No function of a caller makes a poll wait longer.
inline constexpr std::chrono::hours longest_poll_backoff{24};

/// What is wrong with a backoff that somebody set, if anything.
[[nodiscard]] std::optional<ErrorDetails> poll_backoff_problem(PollBackoff const& backoff);

/// How long to wait after poll number `iteration`; `repeats` such answers came in a row before.
[[nodiscard]] std::chrono::nanoseconds poll_backoff_delay(PollBackoff const& backoff,
                                                          std::int64_t iteration,
                                                          int repeats) noexcept;

}  // namespace tinkxx::service
