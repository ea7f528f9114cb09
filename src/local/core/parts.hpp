#pragma once

#include "local/base_models/base_models.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/checkpoints/copies.hpp"
#include "local/checkpoints/downloads.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/core/retrieval.hpp"
#include "local/core/server_info.hpp"
#include "local/sampling/samplers.hpp"
#include "local/sampling/sampling.hpp"
#include "local/saves/loads.hpp"
#include "local/saves/saves.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/store/stored.hpp"
#include "local/training/models.hpp"
#include "local/training/passes.hpp"
#include "local/usage/usage.hpp"
#include "local/weights/folders.hpp"
#include "local/weights/weights_cache.hpp"

#include <cstdint>
#include <string>

namespace tinkxx::local {

/// The parts of a server, each with its state and its endpoints. Loop thread.
struct Parts {
    /// Takes the rows out of `stored`, all but those of requests. `next_number`: larger than any
    /// number that a folder or a row has.
    Parts(Services& services, BaseModels::Map served, Stored& stored, std::int64_t next_number);

    BaseModels bases;
    Folders folders;
    Sessions sessions;
    Usage usage;
    WeightsCache weights;
    Runs runs;
    Checkpoints checkpoints;
    Samplers samplers;
    Models models;
    Passes passes;
    Sampling sampling;
    Retrieval retrieval;
    Saves saves;
    Loads loads;
    Copies copies;
    Downloads downloads;
    ServerInfo info;
};

}  // namespace tinkxx::local
