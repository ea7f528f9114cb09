#include "wire/server/requests.hpp"

#include "wire/json/base64.hpp"
#include "wire/server/decode.hpp"
#include "wire/values/tensor.hpp"

#include <boost/json/serialize.hpp>

#include <zstd.h>

#include <array>
#include <limits>
#include <memory>
#include <utility>

namespace tinkxx::wire::server {

namespace {

using Texts = std::map<std::string, std::string>;

/// A seed may use all 64 bits.
struct Seed {
    std::uint64_t number{0};
};
void read(JsonIn const& in, Seed& out) {
    if (auto const* number = in.value().if_uint64()) {
        out.number = *number;
        return;
    }
    out.number = static_cast<std::uint64_t>(in.as<std::int64_t>());
}

/// `stop` of sampling parameters: a text, texts or tokens, never mixed.
struct StopIn {
    Stop stop{};
};
void read(JsonIn const& in, StopIn& out) {
    if (auto const* text = in.value().if_string()) {
        out.stop = Stop{std::string{text->data(), text->size()}};
        return;
    }
    auto const* list = in.value().if_array();
    if (list == nullptr) return in.fail("a text, a list of texts or a list of token ids");
    if (list->empty()) {
        out.stop = Stop::nowhere();
    } else if (list->front().is_string()) {
        out.stop = Stop{in.as<std::vector<std::string>>()};
    } else {
        out.stop = Stop{in.as<std::vector<Token>>()};
    }
}

struct Params {
    SamplingParams params{};
};
void read(JsonIn const& in, Params& out) {
    auto& params = out.params;
    params.max_tokens = optional_number<Count>(in, "max_tokens");
    if (auto const seed = in.optional<Seed>("seed")) params.seed = seed->number;
    params.stop = either(in, "stop", StopIn{}).stop;
    params.temperature = either(in, "temperature", 1.0);
    params.top_k = either(in, "top_k", Within<-1, Count::most>{-1}).number;
    params.top_p = either(in, "top_p", 1.0);
}

/// A plain object, for members of members.
struct TypeOf {
    std::string type{};
};
void read(JsonIn const& in, TypeOf& out) { out.type = in.required<std::string>("type"); }

std::string family(JsonIn const& in, std::string_view name) {
    return either(in, name, TypeOf{"adamw"}).type;
}

struct Lora {
    LoraConfig config{};
};
void read(JsonIn const& in, Lora& out) {
    auto& config = out.config;
    config.rank = in.required<Count>("rank").number;
    config.seed = in.optional<std::int64_t>("seed");
    config.train_unembed = either(in, "train_unembed", true);
    config.train_mlp = either(in, "train_mlp", true);
    config.train_attn = either(in, "train_attn", true);
}

struct Adam {
    AdamParams params{};
};
void read(JsonIn const& in, Adam& out) {
    auto& params = out.params;
    params.learning_rate = either(in, "learning_rate", params.learning_rate);
    params.beta1 = either(in, "beta1", params.beta1);
    params.beta2 = either(in, "beta2", params.beta2);
    params.eps = either(in, "eps", params.eps);
    params.weight_decay = either(in, "weight_decay", params.weight_decay);
    params.grad_clip_norm = either(in, "grad_clip_norm", params.grad_clip_norm);
}

struct Target {
    std::string sampling_session_id{};
    std::int64_t cloned_sampler_id{0};
};
void read(JsonIn const& in, Target& out) {
    in.tag("type", "sampling_session");
    out.sampling_session_id = in.required<std::string>("sampling_session_id");
    out.cloned_sampler_id = either(in, "cloned_sampler_id", Number{}).number;
}

struct After {
    std::string session{};
};
void read(JsonIn const& in, After& out) {
    out.session = in.required<std::string>("last_session_id");
}

/// A value of a metadata map.
struct AnyText {
    std::string text{};
};
void read(JsonIn const& in, AnyText& out) {
    if (auto const* text = in.value().if_string()) {
        out.text.assign(text->data(), text->size());
    } else {
        out.text = boost::json::serialize(in.value());
    }
}

std::string bytes_of(JsonIn const& chunk, std::string_view name) {
    auto bytes = decode_base64(chunk.required<std::string>(name));
    if (!bytes && chunk.ok()) chunk.fail("a chunk whose bytes are base64");
    return std::move(bytes).value_or(std::string{});
}

ImageFormat format_of(JsonIn const& chunk) {
    auto const format = chunk.required<std::string>("format");
    if (chunk.ok() && format != "png" && format != "jpeg") {
        chunk.fail("an image of format png or jpeg");
    }
    return format == "jpeg" ? ImageFormat::jpeg : ImageFormat::png;
}

/// The kind of a chunk; old clients leave it out. Empty: of no kind, or of several.
std::string kind_of(JsonIn const& chunk) {
    if (auto named = chunk.optional<std::string>("type")) return *std::move(named);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kinds{
        {{"tokens", "encoded_text"},
         {"location", "image_asset_pointer"},
         {"data", "image"},
         {"dmel", "dmel"}}};
    std::string kind;
    for (auto const& [member, type] : kinds) {
        if (!chunk.optional<boost::json::value>(member)) continue;
        if (!kind.empty()) return {};
        kind = type;
    }
    return kind;
}

void read_chunk(JsonIn const& chunk, ModelInput& input) {
    if (!chunk.value().is_object()) return chunk.fail("a chunk, which is an object");
    auto const kind = kind_of(chunk);
    auto const expected = [&chunk] { return optional_number<Count>(chunk, "expected_tokens"); };
    if (kind == "encoded_text") {
        input.chunks.emplace_back(EncodedTextChunk{chunk.required<std::vector<Token>>("tokens")});
    } else if (kind == "image") {
        input.chunks.emplace_back(ImageChunk{.data = bytes_of(chunk, "data"),
                                             .format = format_of(chunk),
                                             .expected_tokens = expected()});
    } else if (kind == "image_asset_pointer") {
        input.chunks.emplace_back(
            ImageAssetPointerChunk{.location = chunk.required<std::string>("location"),
                                   .format = format_of(chunk),
                                   .expected_tokens = expected()});
    } else if (kind == "dmel") {
        input.chunks.emplace_back(DmelChunk{.dmel = bytes_of(chunk, "dmel")});
    } else {
        chunk.fail("a chunk of type encoded_text, image, image_asset_pointer or dmel");
    }
}

}  // namespace

ErrorDetails refusal(std::string_view operation, std::string field, std::string value,
                     std::string const& why) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.message = std::string{operation} + ": " + why;
    details.field = std::move(field);
    details.value = std::move(value);
    return details;
}

ErrorDetails request_error(std::string_view operation, JsonIn::Failure const& failure) {
    if (failure.expected.empty()) {
        return refusal(operation, failure.place, {},
                       "the body has no " + failure.place + ", which is required");
    }
    auto const place = failure.place.empty() ? std::string{"the body"} : failure.place;
    return refusal(operation, failure.place, failure.value,
                   place + " must be " + failure.expected + ", and is " + failure.value);
}

std::map<std::string, std::string> metadata(JsonIn const& in, std::string_view name) {
    Texts out;
    for (auto& [key, value] : either(in, name, std::map<std::string, AnyText>{})) {
        out.emplace(key, std::move(value.text));
    }
    return out;
}

Result<CreateSession> decode_create_session(std::string_view json) {
    return read_request<CreateSession>(
        "create_session", json, [](JsonIn const& in, CreateSession& out) {
            out.tags = either(in, "tags", std::vector<std::string>{});
            out.user_metadata = metadata(in, "user_metadata");
            out.sdk_version = either(in, "sdk_version", std::string{});
            out.project_id = in.optional<std::string>("project_id");
            out.display_name = in.optional<std::string>("display_name");
        });
}

Result<std::string> decode_text(std::string_view operation, std::string_view json,
                                std::string_view member) {
    return read_request<std::string>(operation, json, [member](JsonIn const& in, std::string& out) {
        out = in.required<std::string>(member);
    });
}

Result<Finish> decode_finish(std::string_view json) {
    return read_request<Finish>("finish", json, [](JsonIn const& in, Finish& out) {
        out.reason = in.required<TypeOf>("reason").type;
        if (in.ok() && out.reason != "success" && out.reason != "errored" &&
            out.reason != "interrupted") {
            in.fail("an object whose reason/type is success, errored or interrupted");
        }
        out.detail = in.optional<std::string>("detail");
    });
}

Result<CreateSamplingSession> decode_create_sampling_session(std::string_view json) {
    return read_request<CreateSamplingSession>(
        "create_sampling_session", json, [](JsonIn const& in, CreateSamplingSession& out) {
            out.session_id = in.required<std::string>("session_id");
            out.sampling_session_seq_id = in.required<Number>("sampling_session_seq_id").number;
            out.base_model = in.optional<std::string>("base_model");
            out.model_path = in.optional<std::string>("model_path");
        });
}

Result<Sample> decode_sample(std::string_view operation, std::string_view json) {
    return read_request<Sample>(operation, json, [](JsonIn const& in, Sample& out) {
        out.sampling_session_id = in.optional<std::string>("sampling_session_id");
        out.seq_id = optional_number<Number>(in, "seq_id");
        out.base_model = in.optional<std::string>("base_model");
        out.model_path = in.optional<std::string>("model_path");
        out.prompt = in.required<Input>("prompt").input;
        out.params = either(in, "sampling_params", Params{}).params;
        auto& options = out.options;
        options.num_samples = either(in, "num_samples", Count{1}).number;
        options.include_prompt_logprobs = either(in, "prompt_logprobs", false);
        options.topk_prompt_logprobs = either(in, "topk_prompt_logprobs", Count{}).number;
        options.topk_sample_logprobs = either(in, "topk_sample_logprobs", Count{}).number;
        options.target_prompt_logprobs = in.optional<TensorData>("target_prompt_logprobs");
        options.prompt_alt_tokens_k = either(in, "prompt_alt_tokens_k", Count{}).number;
        options.prompt_logprobs_last_n = optional_number<Count>(in, "prompt_logprobs_last_n");
        out.record_stability_info = either(in, "record_stability_info", false);
    });
}

Result<RetrieveFuture> decode_retrieve_future(std::string_view json) {
    return read_request<RetrieveFuture>(
        "retrieve_future", json, [](JsonIn const& in, RetrieveFuture& out) {
            out.request_id = in.required<std::string>("request_id");
            out.allow_metadata_only = either(in, "allow_metadata_only", false);
        });
}

Result<RetrieveFutures> decode_retrieve_futures(std::string_view json) {
    return read_request<RetrieveFutures>(
        "retrieve_futures", json, [](JsonIn const& in, RetrieveFutures& out) {
            auto target = in.required<Target>("target");
            out.sampling_session_id = std::move(target.sampling_session_id);
            out.cloned_sampler_id = target.cloned_sampler_id;
            out.prev_cursor = either(in, "prev_cursor", Number{}).number;
            out.retrieved_request_ids =
                either(in, "retrieved_request_ids", std::vector<std::string>{});
        });
}

Result<CreateModel> decode_create_model(std::string_view json) {
    return read_request<CreateModel>("create_model", json, [](JsonIn const& in, CreateModel& out) {
        out.session_id = in.required<std::string>("session_id");
        out.model_seq_id = in.required<Number>("model_seq_id").number;
        out.base_model = in.required<std::string>("base_model");
        out.user_metadata = metadata(in, "user_metadata");
        out.lora = either(in, "lora_config", Lora{}).config;
        out.optimizer = family(in, "optimizer_config");
    });
}

Result<OptimStep> decode_optim_step(std::string_view json) {
    return read_request<OptimStep>("optim_step", json, [](JsonIn const& in, OptimStep& out) {
        out.model_id = in.required<std::string>("model_id");
        out.seq_id = optional_number<Number>(in, "seq_id");
        auto const adam = in.optional<Adam>("adam_params");
        auto const other = in.optional<TypeOf>("optimizer_params");
        if (adam && other) return in.fail("an object with one of adam_params and optimizer_params");
        if (other) {
            out.optimizer = other->type;
            if (other->type == "adamw") {
                out.adam = either(in, "optimizer_params", Adam{}).params;
            }
            return;
        }
        // Without either, the step has the parameters that the service gives it.
        if (adam) out.adam = adam->params;
    });
}

Result<Save> decode_save(std::string_view operation, std::string_view json) {
    return read_request<Save>(operation, json, [](JsonIn const& in, Save& out) {
        out.model_id = in.required<std::string>("model_id");
        out.seq_id = optional_number<Number>(in, "seq_id");
        out.name = in.optional<std::string>("path");
        out.sampling_session_seq_id = optional_number<Number>(in, "sampling_session_seq_id");
        out.ttl_seconds = in.optional<std::int64_t>("ttl_seconds");
        out.overwrite = either(in, "overwrite", false);
        if (in.optional<boost::json::value>("user_metadata")) {
            out.user_metadata = metadata(in, "user_metadata");
        }
        out.age_recipients = either(in, "age_encryption_recipients", std::vector<std::string>{});
    });
}

Result<LoadWeights> decode_load_weights(std::string_view json) {
    return read_request<LoadWeights>("load_weights", json, [](JsonIn const& in, LoadWeights& out) {
        out.model_id = in.optional<std::string>("model_id");
        out.seq_id = optional_number<Number>(in, "seq_id");
        out.session_id = in.optional<std::string>("session_id");
        out.model_seq_id = optional_number<Number>(in, "model_seq_id");
        out.base_model = in.optional<std::string>("base_model");
        out.user_metadata = metadata(in, "user_metadata");
        out.path = in.required<std::string>("path");
        out.optimizer = in.required<bool>("optimizer");
        out.optimizer_family = family(in, "optimizer_config");
    });
}

Result<CopyWeights> decode_copy_weights(std::string_view json) {
    return read_request<CopyWeights>("copy_weights", json, [](JsonIn const& in, CopyWeights& out) {
        out.source_path = in.required<std::string>("source_path");
        out.destination_project_id = in.optional<std::string>("destination_project_id");
        out.ttl_seconds = in.optional<std::int64_t>("ttl_seconds");
    });
}

Result<Ttl> decode_ttl(std::string_view json) {
    return read_request<Ttl>("ttl", json, [](JsonIn const& in, Ttl& out) {
        out.seconds = in.optional<std::int64_t>("ttl_seconds");
    });
}

Result<SearchSessions> decode_search_sessions(std::string_view json) {
    return read_request<SearchSessions>(
        "sessions/search", json, [](JsonIn const& in, SearchSessions& out) {
            out.session_id = in.optional<std::string>("session_id");
            out.project_ids = in.optional<std::vector<std::string>>("project_ids");
            out.user_metadata = metadata(in, "user_metadata");
            out.display_name = in.optional<std::string>("display_name");
            if (auto const statuses = in.optional<std::vector<TypeOf>>("statuses")) {
                auto& types = out.statuses.emplace();
                for (auto const& status : *statuses) types.push_back(status.type);
            }
            out.limit = either(in, "limit", Within<1, 200>{50}).number;
            if (auto after = in.optional<After>("cursor")) {
                out.after_session = std::move(after->session);
            }
        });
}

Result<Telemetry> decode_telemetry(std::string_view json) {
    return read_request<Telemetry>("telemetry", json, [](JsonIn const& in, Telemetry& out) {
        out.session_id = either(in, "session_id", std::string{});
        out.events = in.required<std::vector<boost::json::object>>("events").size();
    });
}

void read(JsonIn const& in, Input& out) {
    bool found = false;
    in.each_member([&](std::string_view name, JsonIn const& member) {
        if (name != "chunks") return;
        found = true;
        member.each([&](JsonIn const& chunk) { read_chunk(chunk, out.input); });
    });
    if (!found && in.ok()) in.fail("an object with a list of chunks");
}

Result<std::string> decode_body(std::string_view operation, std::string body,
                                std::string_view content_encoding, std::size_t most) {
    if (content_encoding.empty() || content_encoding == "identity") return body;
    if (content_encoding != "zstd") {
        return refusal(operation, "Content-Encoding", std::string{content_encoding},
                       "the body is encoded as " + std::string{content_encoding.substr(0, 64)} +
                           "; send it as zstd or as it is");
    }
    auto const too_large = [&] {
        return refusal(operation, "body", std::to_string(body.size()),
                       "the body, decompressed, exceeds the limit of " + std::to_string(most) +
                           " bytes; send fewer data at once");
    };
    auto const told = ZSTD_getFrameContentSize(body.data(), body.size());
    // Written as 0 - 1 and 0 - 2 there, which only a constant may be.
    constexpr auto no_frame = ZSTD_CONTENTSIZE_ERROR;
    constexpr auto unknown = ZSTD_CONTENTSIZE_UNKNOWN;
    if (told == no_frame) {
        return refusal(operation, "body", {}, "the body is no zstd frame, as its header says");
    }
    bool const known = told != unknown;
    if (known && told > most) return too_large();
    struct Free {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };
    std::unique_ptr<ZSTD_DCtx, Free> const context{ZSTD_createDCtx()};
    if (!context) return refusal(operation, "body", {}, "there is no memory to decompress it");
    std::string out;
    // A frame may lie about its size, so that room is made only as it is filled.
    constexpr std::size_t step = std::size_t{1} << 20U;
    ZSTD_inBuffer input{body.data(), body.size(), 0};
    std::size_t left = 1;
    while (left != 0) {
        auto const at = out.size();
        auto const room =
            known ? std::min<std::size_t>(std::max<std::size_t>(told, 1), step) : step;
        out.resize(at + room);
        ZSTD_outBuffer output{out.data() + at, room, 0};
        left = ZSTD_decompressStream(context.get(), &output, &input);
        out.resize(at + output.pos);
        if (ZSTD_isError(left) != 0U) {
            return refusal(
                operation, "body", {},
                std::string{"the body is no whole zstd frame: "} + ZSTD_getErrorName(left));
        }
        if (out.size() > most) return too_large();
        if (left != 0 && input.pos == input.size && output.pos < room) {
            return refusal(operation, "body", {}, "the body is a zstd frame without its end");
        }
    }
    return out;
}

}  // namespace tinkxx::wire::server
