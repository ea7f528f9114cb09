#include "wire/training/training.hpp"

#include "wire/json/json.hpp"

#include <utility>

namespace tinkxx::wire {

namespace {

void metadata(JsonOut& json, std::optional<UserMetadata> const& texts) {
    if (!texts) return;
    json.key("user_metadata");
    json.open_object();
    for (auto const& [name, text] : *texts) json.member(name, text);
    json.close_object();
}

void open_family(JsonOut& json, OpenOptimizer const& open) {
    for (auto const& [name, text] : open.members) {
        if (name == "type") continue;
        auto const value = parse_json("optimizer", text);
        json.key(name);
        if (value) {
            json.value(*value);
        } else {
            json.value(text);  // checked before; then text it is
        }
    }
    json.member("type", open.type);
}

void write(JsonOut& json, OptimizerConfig const& config) {
    json.open_object();
    if (auto const* open = std::get_if<OpenOptimizer>(&config)) {
        open_family(json, *open);
    } else {
        json.member("type", optimizer_family(config));
        if (auto const* dimuon = std::get_if<DimuonConfig>(&config)) {
            json.member("version", dimuon->version);
        }
    }
    json.close_object();
}

void write_params(JsonOut& json, AdamParams const& adam) {
    json.key("adam_params");
    json.open_object();
    json.member("learning_rate", adam.learning_rate);
    json.member("beta1", adam.beta1);
    json.member("beta2", adam.beta2);
    json.member("eps", adam.eps);
    json.member("weight_decay", adam.weight_decay);
    json.member("grad_clip_norm", adam.grad_clip_norm);
    json.close_object();
}

void write_params(JsonOut& json, DimuonParams const& dimuon) {
    json.key("optimizer_params");
    json.open_object();
    json.member("learning_rate", dimuon.learning_rate);
    json.member("beta1", dimuon.beta1);
    json.member("grad_clip_norm", dimuon.grad_clip_norm);
    json.member("type", "dimuon");
    json.close_object();
}

void write_params(JsonOut& json, OpenOptimizer const& open) {
    json.key("optimizer_params");
    json.open_object();
    open_family(json, open);
    json.close_object();
}

OptimizerConfig optimizer_config(JsonIn const& in) {
    auto const found = in.optional<boost::json::object>("optimizer_config");
    if (!found) return AdamConfig{};
    OpenOptimizer open;
    std::optional<std::int64_t> version;
    for (auto const& member : *found) {
        std::string const name{member.key().data(), member.key().size()};
        if (name == "type") {
            if (auto const* type = member.value().if_string()) {
                open.type.assign(type->data(), type->size());
            }
            continue;
        }
        if (name == "version" && member.value().is_int64()) version = member.value().get_int64();
        std::string text;
        JsonOut{text}.value(member.value());
        open.members.insert_or_assign(name, std::move(text));
    }
    if (open.type.empty()) {
        in.fail("an optimizer_config with a text member type");
        return AdamConfig{};
    }
    if (open.type == "adamw") return AdamConfig{};
    if (open.type == "dimuon") return DimuonConfig{.version = version.value_or(1)};
    return open;
}

// The answer's only member of interest.
Result<std::string> one_text(std::string_view operation, std::string_view json,
                             std::string_view name, std::string_view tag) {
    auto const document = parse_json(operation, json);
    if (!document) return document.error();
    JsonIn::Failure failure;
    JsonIn const in{&*document, failure};
    if (!tag.empty()) in.tag("type", tag);
    auto text = in.required<std::string>(name);
    if (failure.noted) return json_error(operation, failure);
    return text;
}

ErrorDetails incomplete(std::string_view operation, std::string_view field,
                        std::string_view missing) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.field = field;
    details.message = std::string{operation} + ": the answer has " + std::string{missing} +
                      ", so nobody knows where the weights are; the server may speak another "
                      "version of the API";
    return details;
}

}  // namespace

std::string encode_create_model(CreateModel const& request, Members members) {
    return json_object([&](JsonOut& json) {
        json.member("session_id", request.session_id);
        json.member("model_seq_id", request.model_seq_id);
        json.member("base_model", request.base_model);
        metadata(json, request.user_metadata);
        json.key("lora_config");
        json.open_object();
        json.member("rank", request.lora_config.rank);
        json.member("seed", request.lora_config.seed);
        json.member("train_unembed", request.lora_config.train_unembed);
        json.member("train_mlp", request.lora_config.train_mlp);
        json.member("train_attn", request.lora_config.train_attn);
        json.close_object();
        if (members == Members::newest) {
            json.key("optimizer_config");
            write(json, request.optimizer_config);
        }
        json.member("type", "create_model");
    });
}

Result<std::string> decode_model_created(std::string_view json) {
    return one_text("create_model", json, "model_id", "create_model");
}

std::string encode_get_info(std::string_view model_id) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", model_id);
        json.member("type", "get_info");
    });
}

static void read(JsonIn const& in, ModelInfo::Data& out) {
    out.arch = in.optional<std::string>("arch");
    out.model_name = in.optional<std::string>("model_name");
    out.tokenizer_id = in.optional<std::string>("tokenizer_id");
    // Without a `:revision`, which is for those who load it.
    if (out.tokenizer_id)
        *out.tokenizer_id = out.tokenizer_id->substr(0, out.tokenizer_id->find(':'));
}

static void read(JsonIn const& in, ModelInfo& out) {
    in.tag("type", "get_info");
    out.model_id = in.required<std::string>("model_id");
    out.model_data = in.required<ModelInfo::Data>("model_data");
    out.is_lora = in.optional<bool>("is_lora");
    out.lora_rank = in.optional<std::int64_t>("lora_rank");
    out.model_name = in.optional<std::string>("model_name");
    out.optimizer_config = optimizer_config(in);
}

Result<ModelInfo> decode_model_info(std::string_view json) {
    return decode_json<ModelInfo>("get_info", json);
}

std::string encode_unload_model(std::string_view model_id) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", model_id);
        json.member("type", "unload_model");
    });
}

Result<std::string> decode_model_unloaded(std::string_view json) {
    return one_text("unload_model", json, "model_id", "unload_model");
}

std::string encode_optim_step(OptimStep const& request) {
    return json_object([&](JsonOut& json) {
        std::visit([&json](auto const& params) { write_params(json, params); }, request.params);
        json.member("model_id", request.model_id);
        json.member("seq_id", request.seq_id);
        json.member("type", "optim_step");
    });
}

static void read(JsonIn const& in, OptimStepResult& out) {
    out.metrics = in.optional<MetricValues>("metrics");
}

Result<OptimStepResult> decode_optim_step(std::string_view json) {
    return decode_json<OptimStepResult>("optim_step", json);
}

std::string encode_save_weights(SaveWeights const& request, Members members) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", request.model_id);
        json.member("path", request.name);
        json.member("seq_id", request.seq_id);
        json.member("ttl_seconds", request.ttl_seconds);
        json.member("overwrite", request.overwrite);
        if (members == Members::newest) metadata(json, request.user_metadata);
        json.member("type", "save_weights");
    });
}

namespace {
struct WeightsSaved : SaveResult {};
void read(JsonIn const& in, WeightsSaved& out) {
    in.tag("type", "save_weights");
    out.path = in.required<std::string>("path");
    out.size_bytes = in.optional<std::int64_t>("size_bytes");
}
}  // namespace

Result<SaveResult> decode_weights_saved(std::string_view json) {
    auto answer = decode_json<WeightsSaved>("save_state", json);
    if (!answer) return answer.error();
    return SaveResult{std::move(*answer)};
}

std::string encode_save_weights_for_sampler(SaveWeightsForSampler const& request, Members members) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", request.model_id);
        json.member("path", request.name);
        json.member("sampling_session_seq_id", request.sampling_session_seq_id);
        json.member("seq_id", request.seq_id);
        json.member("ttl_seconds", request.ttl_seconds);
        if (members == Members::newest) metadata(json, request.user_metadata);
        json.member("type", "save_weights_for_sampler");
    });
}

static void read(JsonIn const& in, SavedForSampler& out) {
    in.tag("type", "save_weights_for_sampler");
    out.path = in.optional<std::string>("path");
    out.sampling_session_id = in.optional<std::string>("sampling_session_id");
    out.size_bytes = in.optional<std::int64_t>("size_bytes");
}

Result<SavedForSampler> decode_saved_for_sampler(std::string_view json) {
    auto answer = decode_json<SavedForSampler>("save_weights_for_sampler", json);
    if (answer && !answer->path && !answer->sampling_session_id) {
        return incomplete("save_weights_for_sampler", "/path",
                          "neither a path nor a sampling_session_id");
    }
    return answer;
}

std::string encode_save_weights_external(SaveWeightsExternal const& request) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", request.model_id);
        json.member("path", request.name);
        json.member("seq_id", request.seq_id);
        json.member("ttl_seconds", request.ttl_seconds);
        if (!request.age_recipients.empty()) {
            json.key("age_encryption_recipients");
            json.list(request.age_recipients);
        }
        json.member("type", "save_weights_external");
    });
}

namespace {
struct SavedExternal {
    std::optional<std::string> path{};
    std::optional<std::int64_t> size_bytes{};
};
void read(JsonIn const& in, SavedExternal& out) {
    in.tag("type", "save_weights_external");
    out.path = in.optional<std::string>("path");
    out.size_bytes = in.optional<std::int64_t>("size_bytes");
}
}  // namespace

Result<SaveResult> decode_saved_external(std::string_view json) {
    auto answer = decode_json<SavedExternal>("save_weights_external", json);
    if (!answer) return answer.error();
    if (!answer->path) return incomplete("save_weights_external", "/path", "no path");
    return SaveResult{.path = std::move(*answer->path), .size_bytes = answer->size_bytes};
}

std::string encode_load_weights(LoadWeights const& request, Members members) {
    return json_object([&](JsonOut& json) {
        json.member("model_id", request.model_id);
        json.member("seq_id", request.seq_id);
        json.member("session_id", request.session_id);
        json.member("model_seq_id", request.model_seq_id);
        json.member("base_model", request.base_model);
        metadata(json, request.user_metadata);
        json.member("path", request.path);
        json.member("optimizer", request.optimizer);
        if (request.optimizer_config && members == Members::newest) {
            json.key("optimizer_config");
            write(json, *request.optimizer_config);
        }
        json.member("weights_access_token", request.weights_access_token);
        json.member("type", "load_weights");
    });
}

static void read(JsonIn const& in, LoadResult& out) {
    in.tag("type", "load_weights");
    out.path = in.optional<std::string>("path");
    out.model_id = in.optional<std::string>("model_id");
}

Result<LoadResult> decode_weights_loaded(std::string_view json) {
    return decode_json<LoadResult>("load_state", json);
}

std::string encode_weights_info(std::string_view tinker_path) {
    return json_object([&](JsonOut& json) { json.member("tinker_path", tinker_path); });
}

static void read(JsonIn const& in, WeightsInfo& out) {
    out.base_model = in.required<std::string>("base_model");
    out.is_lora = in.required<bool>("is_lora");
    out.lora_rank = in.optional<std::int64_t>("lora_rank");
    out.train_unembed = in.optional<bool>("train_unembed");
    out.train_mlp = in.optional<bool>("train_mlp");
    out.train_attn = in.optional<bool>("train_attn");
    out.optimizer_config = optimizer_config(in);
}

Result<WeightsInfo> decode_weights_info(std::string_view json) {
    return decode_json<WeightsInfo>("weights_info", json);
}

std::string encode_copy_weights(CopyWeights const& request) {
    return json_object([&](JsonOut& json) {
        json.member("source_path", request.source_path);
        json.member("destination_project_id", request.destination_project_id);
        json.member("ttl_seconds", request.ttl_seconds);
    });
}

Result<std::string> decode_weights_copied(std::string_view json) {
    return one_text("copy_weights", json, "tinker_path", {});
}

}  // namespace tinkxx::wire
