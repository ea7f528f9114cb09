#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

/// A checkpoint as the service lists it (R-WIRE-07).
struct Checkpoint {
    std::string checkpoint_id{};
    /// `training`, `sampler`, `external`, or what a newer server says (R-REST-05).
    std::string checkpoint_type{};
    /// ISO 8601, as the server wrote it.
    std::string time{};
    std::string tinker_path{};
    std::optional<std::int64_t> size_bytes{};
    bool is_public{false};
    std::optional<UserMetadata> user_metadata{};
    std::optional<std::string> expires_at{};

    bool operator==(Checkpoint const&) const = default;
};

/// The answer to GET training_runs/{id} (R-WIRE-07).
struct TrainingRun {
    std::string training_run_id{};
    std::string base_model{};
    std::string model_owner{};
    bool is_lora{false};
    /// The server has lost its state: it cannot be trained on.
    bool corrupted{false};
    std::optional<std::int64_t> lora_rank{};
    std::string last_request_time{};
    std::optional<Checkpoint> last_checkpoint{};
    std::optional<Checkpoint> last_sampler_checkpoint{};
    std::optional<UserMetadata> user_metadata{};

    bool operator==(TrainingRun const&) const = default;
};
[[nodiscard]] Result<TrainingRun> decode_training_run(std::string_view json);

}  // namespace tinkxx::wire
