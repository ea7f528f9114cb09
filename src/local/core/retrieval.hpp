#pragma once

#include "local/checkpoints/runs.hpp"
#include "local/sampling/samplers.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"

namespace tinkxx::local {

/// How clients wait for results. Loop thread.
class Retrieval {
public:
    struct Uses {
        Services& services;
        Sessions& sessions;
        Runs const& runs;
        Samplers const& samplers;
    };
    explicit Retrieval(Uses const& uses) : uses_{uses} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused retrieve_future(Ask& ask);
    [[nodiscard]] MaybeRefused retrieve_futures(Ask& ask);

private:
    Uses uses_;
};

}  // namespace tinkxx::local
