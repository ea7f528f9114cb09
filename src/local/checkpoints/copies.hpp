#pragma once

#include "local/checkpoints/checkpoints.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/weights/folders.hpp"

#include <memory>
#include <set>
#include <string>

namespace tinkxx::local {

/// Copies checkpoints. Loop thread.
class Copies {
public:
    struct Uses {
        Services& services;
        Sessions& sessions;
        Runs& runs;
        Checkpoints& checkpoints;
        Folders& folders;
    };
    explicit Copies(Uses const& uses) : uses_{uses} {}
    Copies(Copies const&) = delete;
    Copies& operator=(Copies const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused copy_weights(Ask& ask);

private:
    struct Copy;
    using Job = std::shared_ptr<Copy>;

    [[nodiscard]] MaybeRefused make(Ask& ask, wire::server::CopyWeights const& request);
    /// The rows of a copy.
    [[nodiscard]] Job rows_of(CheckpointRow const& source,
                              wire::server::CopyWeights const& request);
    void link(Job const& copy, std::string const& from);
    void keep(Job const& copy);
    void give_up(Job const& copy, Error const& why);

    Uses uses_;
    /// Keys of requests whose copies are being made.
    std::set<std::string> copying_{};
};

}  // namespace tinkxx::local
