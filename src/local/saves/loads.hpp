#pragma once

#include "local/base_models/base_models.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/services/services.hpp"
#include "local/training/models.hpp"

#include <string>

namespace tinkxx::local {

/// Loads checkpoints into models, there or new. Loop thread.
class Loads {
public:
    struct Uses {
        Services& services;
        BaseModels const& bases;
        Runs& runs;
        Models& models;
        Checkpoints const& checkpoints;
    };
    explicit Loads(Uses const& uses) : uses_{uses} {}
    Loads(Loads const&) = delete;
    Loads& operator=(Loads const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused load_weights(Ask& ask);

private:
    [[nodiscard]] MaybeRefused into_model(Ask& ask, wire::server::LoadWeights const& request,
                                          Fingerprint const& print);
    /// A new model as a checkpoint has it.
    [[nodiscard]] MaybeRefused as_new_model(Ask& ask, wire::server::LoadWeights const& request,
                                            Fingerprint const& print);
    [[nodiscard]] MaybeRefused begin(wire::server::LoadWeights const& request,
                                     std::string const& request_id);
    void load_new(ModelPlace const& place, std::string const& request_id,
                  wire::server::LoadWeights const& request, CheckpointRow const& row);

    Uses uses_;
};

}  // namespace tinkxx::local
