#pragma once

#include "simulation/common/outcome.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// Users train models at a moody service over a bad network, all chosen by `seed`, on one thread
/// and on virtual time. Services are of several kinds: with and without protobuf, JSON and zstd,
/// with chunks in parallel or in a row, old ones that would do a repeated step twice. They restart,
/// and lose or keep what is not done. What must hold is read from the traffic and from the service:
///
/// - Each call ends once, with its own result, or for a reason that explains itself.
/// - What a call asked for is done in the order of the calls, with what the caller gave, once if
/// the
///   call succeeds, and at most once if it fails or is cancelled (by a service that would do
///   repeats twice: once it is known to be one). What the service made of its models is what a
///   replay of these calls makes of them, and so are results, checkpoints and samples.
/// - A request is submitted once those of earlier calls are accepted or given up. In parallel the
///   first chunk of a call goes last; in a row each follows the one before it. Chunks are cut as
///   R-TRAIN-20 says, for the estimate of one encoding.
/// - Sequence ids have no gap: no request waits at the service for a second because one below it
///   was given up. One is sent again, with the same content, only if it was not accepted; under the
///   number of one that the service refused or never saw another is sent.
/// - A call behind one that came to nothing is submitted within a second, unless a request must be
///   settled first.
/// - A circuit breaker is open once as many requests in a row have failed as it takes. While it is,
///   no request of a call that has it is sent, and a call that is made ends at once, also where it
///   would have to wait for its turn (R-EXT-03).
/// - While the service has a result to give, no outage ends a call, however long it lasts (C-54).
/// - Without the largest, submits that are open fit the byte budget. All of it comes back.
/// - `status()` says of every pending operation where it stands and why; a wait that a timer ends
///   says when. Once all faults stop, everything that is outstanding ends within fifteen minutes:
///   a submit is repeated for five, and calls of one model come one after the other.
/// - A result is never asked for twice at once; two polls begin 100 ms apart.
/// - After a close nothing is sent but what is drained. No log line and no error tells a secret.
[[nodiscard]] WorldOutcome run_training_world(std::uint64_t seed);

/// What occurs in every large set of worlds, by the names of `WorldOutcome::occurred`.
[[nodiscard]] std::vector<std::string> const& training_occurrences();

}  // namespace tinkxx::simulation
