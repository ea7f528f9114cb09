#pragma once

#include "local/checkpoints/checkpoints.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/sampling/samplers.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/training/models.hpp"
#include "local/weights/folders.hpp"

#include <memory>
#include <string>

namespace tinkxx::local {

/// Saves the weights of models: as checkpoints, or as samplers without a name. Loop thread.
class Saves {
public:
    struct Uses {
        Services& services;
        Sessions& sessions;
        Runs const& runs;
        Models& models;
        Checkpoints& checkpoints;
        Samplers& samplers;
        Folders& folders;
    };
    explicit Saves(Uses const& uses) : uses_{uses} {}
    Saves(Saves const&) = delete;
    Saves& operator=(Saves const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused save_weights(Ask& ask) { return read(ask, Kind::weights); }
    [[nodiscard]] MaybeRefused save_weights_for_sampler(Ask& ask) {
        return read(ask, Kind::sampler_weights);
    }
    [[nodiscard]] MaybeRefused save_weights_external(Ask& ask) {
        return read(ask, Kind::external_weights);
    }

private:
    struct Save;
    using Job = std::shared_ptr<Save>;

    [[nodiscard]] MaybeRefused read(Ask& ask, Kind kind);
    [[nodiscard]] MaybeRefused submit(Ask& ask, Kind kind, wire::server::Save request);
    /// Why it cannot be done, and what it is to become.
    [[nodiscard]] MaybeRefused check(Save& save) const;
    [[nodiscard]] MaybeRefused check_name(Save& save) const;
    [[nodiscard]] MaybeRefused check_taken(Save const& save) const;

    // The steps of a save.
    void begin(Job const& job, std::string const& request_id);
    void mark(Job const& job, std::string const& request_id);
    void keep_sampler(Job const& job, std::string const& request_id);
    void sampler_written(Job const& job, std::string const& request_id, SamplerRow const& row);
    void keep_checkpoint(Job const& job, std::string const& request_id);
    void give_up(Job const& job, std::string const& request_id, Error const& error);

    Uses uses_;
};

}  // namespace tinkxx::local
