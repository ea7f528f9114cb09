#include "simulation/training/training_simulation.hpp"

#include "simulation/training/training_world.hpp"

namespace tinkxx::simulation {

WorldOutcome run_training_world(std::uint64_t seed) { return training_world::World{seed}.run(); }

std::vector<std::string> const& training_occurrences() {
    static std::vector<std::string> const names{
        // What the network does.
        "fault: drop_before",
        "fault: status",
        "fault: drop_after",
        "fault: duplicate",
        "fault: reset_body",
        "fault: trickle",
        "fault: delay",
        // What the service does.
        "service: restart that keeps work",
        "service: restart that loses work",
        "service: job lost",
        "service: silence",
        "service: trickle",
        "service: outage",
        "service: 400",
        "service: 402",
        "service: 408",
        "service: 409",
        "service: 422",
        "service: 429",
        "service: 5xx",
        "service: plain 500",
        "service: empty 400",
        "service: no configuration",
        "service: no protobuf",
        "service: protobuf pass",
        "service: compressed pass",
        "service: JSON pass",
        "service: chunk held back",
        "service: held back for a number",
        "service: repeat of a submit",
        "service: repeat of a save that is not recognised",
        "service: model by load",
        "service: result at once",
        "service: try_again",
        "service: 408 with a queue state",
        "service: pending",
        "service: metadata",
        "service: JSON result",
        "service: protobuf result",
        "service: failed request",
        "service: lost result, 404",
        "service: lost result, 410",
        "service: result forgotten",
        // What users do, and how their calls end.
        "call in chunks",
        "call while its breaker is open",
        "call in line while its breaker is open",
        "closed",
        "dropped",
        "shut down",
        "end: cancelled",
        "end: closed",
        "end: deadline",
        "end: callback",
        "end: promise_lost",
        "end: request_failed",
        "end: status",
        "end: billing",
        "end: circuit open",
        "end: may have been applied",
        "end: no model",
        // Where calls stand, as they go and as `status` tells.
        "stage: starting",
        "stage: waiting for its turn",
        "stage: waiting for bytes",
        "stage: encoding",
        "stage: submitting",
        "stage: waiting to submit again",
        "stage: paused for billing",
        "stage: polling",
        "stage: waiting to poll",
        "stage: waiting to download",
        "stage: decoding",
        "stage: computing its loss",
        "stage: creating its sampler",
        "status: starting",
        "status: waiting for its turn",
        "status: submitting",
        "status: waiting to submit again",
        "status: paused for billing",
        "status: polling",
        "status: waiting to poll",
    };
    return names;
}

}  // namespace tinkxx::simulation
