#pragma once

#include "simulation/common/outcome.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// Clients draw samples from a moody service over a bad network, all chosen by `seed`, on one
/// thread and on virtual time. What must hold is read from the traffic:
///
/// - Each call ends once, with its own answer, or for a reason that explains itself.
/// - `status()` says of every pending operation where it stands; a wait that a timer ends says
///   when. Once all faults stop, everything that is outstanding ends within ten minutes.
/// - All permits, bytes and counters come back.
/// - Sequence ids have no gap but those of attempts that were given up before they were sent. One
///   of them is sent again, with the same body, only if it was not accepted; one whose result
///   stands is never followed by another.
/// - Nothing is submitted while the gate is closed (R-SAMP-31, 34..36), but for repeats after a
///   failure that is no refusal, which the submit loop makes (R-RETRY-80).
/// - At most `count` submits are open. Of those whose first submit was made within the memory of a
///   backoff (R-SAMP-25) at most `throttled` are open: these had to take a throttled permit, and
///   those before them did not (R-SAMP-21). Without the largest, what is open fits the byte budget.
/// - A sample is sent at most `max_retries` times after the first, whatever layer repeats it, never
///   after a failure that is not listed, and not more often than its budget pays for (R-RETRY-17,
///   20, 23). It ends for one that is listed only once these are spent.
/// - A circuit breaker is open once as many requests in a row have failed as it takes. While it is,
///   no request of a call that has it is sent, and new calls end at once (R-EXT-03).
/// - While the service has a result to give, no outage ends a call, however long it lasts (C-54).
/// - A result is never asked for twice at once; two polls begin 100 ms apart.
/// - After a close nothing is sent but what is drained. No log line and no error tells a secret.
[[nodiscard]] WorldOutcome run_sampling_world(std::uint64_t seed);

/// What occurs in every large set of worlds, by the names of `WorldOutcome::occurred`.
[[nodiscard]] std::vector<std::string> const& sampling_occurrences();

}  // namespace tinkxx::simulation
