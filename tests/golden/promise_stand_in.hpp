#pragma once

#include "recording.hpp"
#include "stub_service.hpp"

#include <string>
#include <vector>

namespace tinkxx::golden {

/// What training calls do with their requests: a submit with all its repetitions, and the polls for
/// what it promised. Stands in for them in recordings that are about submits and promises.
struct StandInOutcome {
    /// The members of the result as the server sent them, or why there is none.
    Result<value> result;
    /// `[state, reason]`, as told to observers.
    boost::json::array queue_reports{};
};

/// Whether a recorded operation can be stood in for.
[[nodiscard]] bool stands_in_for(std::string const& operation);
/// Where that operation is submitted.
[[nodiscard]] std::string submit_path(std::string const& operation);
[[nodiscard]] StandInOutcome run_stand_in(StubService& stub, value const& recording);

}  // namespace tinkxx::golden
