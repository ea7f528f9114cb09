#include "simulation/local/local_simulation.hpp"

#include "simulation/local/local_world.hpp"

namespace tinkxx::simulation {

WorldOutcome run_local_world(std::uint64_t seed) {
    return local_world::World{seed, HostileClients::visit(seed)}.run();
}

WorldOutcome run_peaceful_local_world(std::uint64_t seed) {
    return local_world::World{seed, false}.run();
}

std::vector<std::string> const& local_occurrences() {
    static std::vector<std::string> const names{
        // What the network does.
        "fault: drop_before",
        "fault: status",
        "fault: drop_after",
        "fault: duplicate",
        "fault: reset_body",
        "fault: trickle",
        "fault: delay",
        // What befalls the server, and what it does.
        "server: crash",
        "server: crash between two steps",
        "server: crash before a save was known",
        "server: clean stop",
        "server: nobody there",
        "server: repeat of a submit",
        "server: repeat of a sample",
        "server: request after a later one",
        "server: metadata",
        "server: completion told",
        "server: result of an earlier life",
        "server: step lost",
        "answer: forward_backward 404",
        "answer: retrieve_future 404",
        "answer: retrieve_future 410",
        "answer: copy_weights 200",
        "answer: cancel_future 200",
        // What hostile clients do, and how soon others get what they want.
        "hostile: world",
        "hostile: huge cursor",
        "hostile: huge sample",
        "hostile: huge step",
        "hostile: huge name",
        "hostile: huge page",
        "hostile: abandoned poll",
        "hostile: large body",
        "hostile: packed body",
        "hostile: garbage",
        "hostile: unknown name",
        "hostile: read of others",
        "hostile: hog",
        "hostile: hog refused",
        "hostile: silent session",
        "hostile: probe",
        "hostile answer: 200",
        "hostile answer: 400",
        "hostile answer: 404",
        "hostile answer: 422",
        "hostile answer: 429",
        "hostile answer: none",
        "hostile answer: not awaited",
        "fairness: measured",
        // What is trained, and held against a quiet server.
        "step: forward",
        "step: forward_backward",
        "step: optim_step",
        "step: save_state",
        "step: save_for_sampler",
        "step: load_state",
        "step: protobuf",
        "compared: step",
        "compared: sample",
        "audited: checkpoint",
        // What users do, and how their calls end.
        "closed",
        "dropped",
        "end: cancelled",
        "end: closed",
        "end: deadline",
        "end: model lost",
        "end: model lost before it was made",
        "end: bad network",
        // Where calls stand, as they go and as `status` tells.
        "stage: starting",
        "stage: creating its sampler",
        "stage: waiting for its turn",
        "stage: submitting",
        "stage: waiting to submit again",
        "stage: waiting for completion",
        "stage: polling",
        "stage: waiting to poll",
        "stage: computing its loss",
        "status: starting",
        "status: waiting for its turn",
        "status: submitting",
        "status: waiting to submit again",
        "status: polling",
        "status: waiting to poll",
    };
    return names;
}

}  // namespace tinkxx::simulation
