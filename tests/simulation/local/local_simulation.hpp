#pragma once

#include "simulation/common/outcome.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// Users train and sample at a local server over a bad network, all chosen by `seed`, on one thread
/// and on virtual time. Both ends are real: the client's core, and the server's core with its store
/// and with an engine that computes. The server is killed before any of its steps, or stopped and
/// started again; what was not committed is lost, and so are models in training. What must hold is
/// read from what the server was asked and said, and from what users got:
///
/// - Each call ends once, with its own result, or for a reason that explains itself. A call of a
///   model that a restart took ends with an error that says so.
/// - Each training request is carried out once and in the order of its number: every result is, to
///   the last bit, that of a quiet server which is asked the same in this order, and users get it.
/// - A result that was told of stays until it is fetched, and does not change, whatever restarts. A
///   sample that was promised is computed, and with a seed it is that of a quiet server. What was
///   taken on before a clean stop is done.
/// - After one more crash every checkpoint that was acknowledged is listed, every one that is
///   listed loads, and holds what was saved. A copy is made once.
/// - A poll is answered as soon as there is something to tell, or says what it waits for.
/// - Some worlds have hostile clients beside the users: see `HostileClients` for what they do, and
///   for what must hold of the server then. Users notice nothing but that they wait.
/// - `status()` says of every pending operation where it stands and why. All permits come back.
///   Once faults stop, everything that is outstanding ends within fifteen minutes, however many
///   calls were given up: the server waits for none of their requests.
[[nodiscard]] WorldOutcome run_local_world(std::uint64_t seed);

/// The same without hostile clients, for seeds that once showed a fault in such a world.
[[nodiscard]] WorldOutcome run_peaceful_local_world(std::uint64_t seed);

/// What occurs in every large set of worlds, by the names of `WorldOutcome::occurred`.
[[nodiscard]] std::vector<std::string> const& local_occurrences();

}  // namespace tinkxx::simulation
