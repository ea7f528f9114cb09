#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/training_run.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

// Training runs and checkpoints (R-WIRE-07). `operation` is named in errors.

/// GET training_runs/{id}.
[[nodiscard]] Result<TrainingRun> decode_training_run(std::string_view json);
/// GET training_runs.
[[nodiscard]] Result<TrainingRunPage> decode_training_runs(std::string_view json);
/// GET training_runs/{id}/checkpoints, and GET checkpoints.
[[nodiscard]] Result<CheckpointPage> decode_checkpoints(std::string_view operation,
                                                        std::string_view json);
/// GET …/archive, if it answers 200.
[[nodiscard]] Result<ArchiveUrl> decode_archive_url(std::string_view json);
/// GET …/external_weights_urls.
[[nodiscard]] Result<ExternalWeightsUrls> decode_external_weights_urls(std::string_view json);
/// The body of PUT …/ttl; none is written as null, which removes the limit.
[[nodiscard]] std::string encode_ttl(std::optional<std::chrono::seconds> ttl);

}  // namespace tinkxx::wire
