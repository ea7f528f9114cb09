#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/types/sampling.hpp>

#include <chrono>
#include <cstdint>

namespace tinkxx::service {

// What the refusal of a sample means.

/// How long a refusal holds requests back if the server does not say (R-SAMP-31).
[[nodiscard]] std::chrono::nanoseconds usual_backoff(std::int64_t prompt_bytes) noexcept;
/// As above, if the server does say.
[[nodiscard]] std::chrono::nanoseconds backoff_after(Error const& refusal,
                                                     std::int64_t prompt_bytes, WallTime now);

/// Whether the server does not know a member of the request that is newer than 0.25.0.
[[nodiscard]] bool refuses_new_member(Error const& refusal);
/// Whether a request without these members would ask for the same.
[[nodiscard]] bool fits_old_members(SampleOptions const& options, bool stability);

}  // namespace tinkxx::service
