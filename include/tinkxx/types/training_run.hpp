#pragma once

#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/timestamp.hpp>
#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

/// A model that is or was trained, as the service lists it.
struct TrainingRun {
    /// As `TrainingClient::model_id` has it.
    std::string training_run_id{};
    std::string base_model{};
    std::string model_owner{};
    bool is_lora{false};
    /// The server has lost its state: it can be trained on no more.
    bool corrupted{false};
    std::optional<std::int64_t> lora_rank{};
    Timestamp last_request_time{};
    /// The last one to train on, and the last one to sample from.
    std::optional<Checkpoint> last_checkpoint{};
    std::optional<Checkpoint> last_sampler_checkpoint{};
    std::optional<UserMetadata> user_metadata{};

    bool operator==(TrainingRun const&) const = default;
};

struct TrainingRunPage {
    std::vector<TrainingRun> training_runs{};
    Cursor cursor{};

    bool operator==(TrainingRunPage const&) const = default;
};

/// Which runs are wanted.
struct TrainingRunQuery {
    /// At most so many at once. Empty: the default of the call.
    std::optional<std::int64_t> limit{};
    /// So many are skipped.
    std::int64_t offset{0};
    AccessScope access_scope{AccessScope::owned};
    /// Those of one project. Empty: of all.
    std::string project_id{};
};

}  // namespace tinkxx
