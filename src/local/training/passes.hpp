#pragma once

#include "local/base_models/base_models.hpp"
#include "local/services/services.hpp"
#include "local/training/models.hpp"
#include "local/usage/usage.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// Forward and backward passes, and steps of the optimizer. Loop thread.
class Passes {
public:
    struct Uses {
        Services& services;
        BaseModels const& bases;
        Runs const& runs;
        Models& models;
        Usage& usage;
    };
    explicit Passes(Uses const& uses) : uses_{uses} {}
    Passes(Passes const&) = delete;
    Passes& operator=(Passes const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused forward_backward(Ask& ask);
    [[nodiscard]] MaybeRefused forward(Ask& ask);
    [[nodiscard]] MaybeRefused optim_step(Ask& ask);

private:
    struct Pass;

    [[nodiscard]] MaybeRefused read(Ask& ask, std::string_view operation, bool protobuf);
    [[nodiscard]] MaybeRefused submit(Ask& ask, Pass pass);
    [[nodiscard]] MaybeRefused submit_step(Ask& ask, wire::server::OptimStep request);
    /// Has the engine compute it.
    void compute(std::shared_ptr<Pass> const& pass, std::string const& request_id);
    void computed(std::shared_ptr<Pass> const& pass, std::string const& request_id,
                  Result<engine::BatchResult> result);
    void compute_step(wire::server::OptimStep const& request, std::string const& request_id);
    void keep(Pass const& pass, std::string const& request_id, std::string payload);

    Uses uses_;
};

}  // namespace tinkxx::local
