#include "wire/rest/training_runs.hpp"

#include "wire/json/json.hpp"
#include "wire/rest/values.hpp"

#include <vector>

namespace tinkxx::wire {

static void read(JsonIn const& in, Checkpoint& out) {
    out.checkpoint_id = in.required<std::string>("checkpoint_id");
    out.checkpoint_type = in.required<std::string>("checkpoint_type");
    out.time = in.required<Timestamp>("time");
    out.tinker_path = in.required<std::string>("tinker_path");
    out.size_bytes = in.optional<std::int64_t>("size_bytes");
    out.is_public = in.member_or("public", false);
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
    out.expires_at = in.optional<Timestamp>("expires_at");
}

static void read(JsonIn const& in, TrainingRun& out) {
    out.training_run_id = in.required<std::string>("training_run_id");
    out.base_model = in.required<std::string>("base_model");
    out.model_owner = in.required<std::string>("model_owner");
    out.is_lora = in.required<bool>("is_lora");
    out.corrupted = in.member_or("corrupted", false);
    out.lora_rank = in.optional<std::int64_t>("lora_rank");
    out.last_request_time = in.required<Timestamp>("last_request_time");
    out.last_checkpoint = in.optional<Checkpoint>("last_checkpoint");
    out.last_sampler_checkpoint = in.optional<Checkpoint>("last_sampler_checkpoint");
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
}

Result<TrainingRun> decode_training_run(std::string_view json) {
    return decode_json<TrainingRun>("get_training_run", json);
}

static void read(JsonIn const& in, TrainingRunPage& out) {
    out.training_runs = in.required<std::vector<TrainingRun>>("training_runs");
    out.cursor = in.required<Cursor>("cursor");
}

Result<TrainingRunPage> decode_training_runs(std::string_view json) {
    return decode_json<TrainingRunPage>("list_training_runs", json);
}

static void read(JsonIn const& in, CheckpointPage& out) {
    out.checkpoints = in.required<std::vector<Checkpoint>>("checkpoints");
    out.cursor = in.optional<Cursor>("cursor");
}

Result<CheckpointPage> decode_checkpoints(std::string_view operation, std::string_view json) {
    return decode_json<CheckpointPage>(operation, json);
}

static void read(JsonIn const& in, ArchiveUrl& out) {
    out.url = in.required<std::string>("url");
    out.expires = in.required<Timestamp>("expires");
}

Result<ArchiveUrl> decode_archive_url(std::string_view json) {
    return decode_json<ArchiveUrl>("get_checkpoint_archive_url", json);
}

static void read(JsonIn const& in, ExternalWeightsUrls& out) {
    out.urls = in.required<std::map<std::string, std::string>>("urls");
    out.expires = in.required<Timestamp>("expires");
}

Result<ExternalWeightsUrls> decode_external_weights_urls(std::string_view json) {
    return decode_json<ExternalWeightsUrls>("get_external_weights_urls", json);
}

std::string encode_ttl(std::optional<std::chrono::seconds> ttl) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.key("ttl_seconds");
    if (ttl) {
        json.value(ttl->count());
    } else {
        json.null();
    }
    json.close_object();
    return out;
}

}  // namespace tinkxx::wire
