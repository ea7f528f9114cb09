#include "commands/manage/rest_json.hpp"

namespace tinkxx::cli {
namespace {

void write_checkpoint(JsonWriter& json, std::string_view name,
                      std::optional<Checkpoint> const& checkpoint) {
    if (!checkpoint) {
        json.raw_member(name, "null");
        return;
    }
    json.begin_object(name);
    write_members(json, *checkpoint);
    json.end_object();
}

}  // namespace

void write_members(JsonWriter& json, Checkpoint const& checkpoint) {
    json.member("checkpoint_id", checkpoint.checkpoint_id);
    json.member("checkpoint_type", checkpoint.checkpoint_type);
    json.member("time", checkpoint.time);
    json.member("tinker_path", checkpoint.tinker_path);
    json.member("size_bytes", checkpoint.size_bytes);
    json.member("public", checkpoint.is_public);
    json.member("expires_at", checkpoint.expires_at);
    json.member("user_metadata", checkpoint.user_metadata);
}

void write_members(JsonWriter& json, TrainingRun const& run) {
    json.member("training_run_id", run.training_run_id);
    json.member("base_model", run.base_model);
    json.member("model_owner", run.model_owner);
    json.member("is_lora", run.is_lora);
    json.member("lora_rank", run.lora_rank);
    json.member("corrupted", run.corrupted);
    json.member("last_request_time", run.last_request_time);
    write_checkpoint(json, "last_checkpoint", run.last_checkpoint);
    write_checkpoint(json, "last_sampler_checkpoint", run.last_sampler_checkpoint);
    json.member("user_metadata", run.user_metadata);
}

}  // namespace tinkxx::cli
