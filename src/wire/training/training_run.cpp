#include "wire/training/training_run.hpp"

#include "wire/json/json.hpp"

namespace tinkxx::wire {

static void read(JsonIn const& in, Checkpoint& out) {
    out.checkpoint_id = in.required<std::string>("checkpoint_id");
    out.checkpoint_type = in.required<std::string>("checkpoint_type");
    out.time = in.required<std::string>("time");
    out.tinker_path = in.required<std::string>("tinker_path");
    out.size_bytes = in.optional<std::int64_t>("size_bytes");
    out.is_public = in.member_or("public", false);
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
    out.expires_at = in.optional<std::string>("expires_at");
}

static void read(JsonIn const& in, TrainingRun& out) {
    out.training_run_id = in.required<std::string>("training_run_id");
    out.base_model = in.required<std::string>("base_model");
    out.model_owner = in.required<std::string>("model_owner");
    out.is_lora = in.required<bool>("is_lora");
    out.corrupted = in.member_or("corrupted", false);
    out.lora_rank = in.optional<std::int64_t>("lora_rank");
    out.last_request_time = in.required<std::string>("last_request_time");
    out.last_checkpoint = in.optional<Checkpoint>("last_checkpoint");
    out.last_sampler_checkpoint = in.optional<Checkpoint>("last_sampler_checkpoint");
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
}

Result<TrainingRun> decode_training_run(std::string_view json) {
    return decode_json<TrainingRun>("get_training_run", json);
}

}  // namespace tinkxx::wire
