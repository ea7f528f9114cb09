#pragma once

#include <tinkxx/types/training.hpp>

#include "golden/recordings/recording.hpp"

#include <string_view>
#include <vector>

// What recordings say about training, as values of the library, and the other way round.

namespace tinkxx::golden {

/// Throws `ValidationError` as the library does when such data are made.
[[nodiscard]] std::vector<Datum> data_of(value const& json);
[[nodiscard]] AdamParams adam_params(value const& json);
[[nodiscard]] DimuonParams dimuon_params(value const& json);

[[nodiscard]] value json_of(ForwardBackwardOutput const& output);
[[nodiscard]] value json_of(OptimStepResult const& result);
[[nodiscard]] value json_of(SaveResult const& result);
[[nodiscard]] value json_of(LoadResult const& result);
[[nodiscard]] value json_of(ModelInfo const& info);

}  // namespace tinkxx::golden
