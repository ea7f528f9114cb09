#pragma once

#include "output/json_writer.hpp"

#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/training_run.hpp>

namespace tinkxx::cli {

/// Members of an object that is open, named as the service names them.
void write_members(JsonWriter& json, Checkpoint const& checkpoint);
void write_members(JsonWriter& json, TrainingRun const& run);

}  // namespace tinkxx::cli
