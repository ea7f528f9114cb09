#include "engine/files/model_config.hpp"

#include "engine/common/failure.hpp"
#include "engine/files/mapped_file.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

namespace tinkxx::engine {

namespace {

namespace json = boost::json;

constexpr std::size_t max_config_bytes = 1U << 20U;

/// Reads members of one object and keeps the first thing that is wrong.
class Reader {
public:
    explicit Reader(json::object const& object) : object_{object} {}

    /// The member, or null if it is absent or JSON null.
    [[nodiscard]] json::value const* find(std::string_view name) const {
        auto const* value = object_.if_contains({name.data(), name.size()});
        return value == nullptr || value->is_null() ? nullptr : value;
    }

    int size(std::string_view name, int limit, std::optional<int> otherwise = std::nullopt) {
        auto const* value = find(name);
        if (value == nullptr) {
            if (!otherwise) refuse(name, "is missing");
            return otherwise.value_or(0);
        }
        auto const* number = value->if_int64();
        if (number == nullptr || *number < 1 || *number > limit) {
            refuse(name, "must be a whole number from 1 to " + std::to_string(limit));
            return 0;
        }
        return static_cast<int>(*number);
    }

    double number(std::string_view name, double otherwise) {
        auto const* value = find(name);
        if (value == nullptr) return otherwise;
        if (auto const* real = value->if_double()) return *real;
        if (auto const* whole = value->if_int64()) return static_cast<double>(*whole);
        refuse(name, "must be a number");
        return otherwise;
    }

    double positive(std::string_view name, double otherwise) {
        auto const value = number(name, otherwise);
        // The comparison also catches NaN, which JSON cannot spell but arithmetic can.
        if (!(value >= 1e-30 && value < 1e30)) {
            refuse(name, "must be positive, and no smaller or larger than a float can be");
        }
        return value;
    }

    bool flag(std::string_view name, bool otherwise) {
        auto const* value = find(name);
        if (value == nullptr) return otherwise;
        if (auto const* boolean = value->if_bool()) return *boolean;
        refuse(name, "must be true or false");
        return otherwise;
    }

    std::string text(std::string_view name) {
        auto const* value = find(name);
        if (value == nullptr) return {};
        if (auto const* string = value->if_string()) return std::string(std::string_view(*string));
        refuse(name, "must be a string");
        return {};
    }

    void refuse(std::string_view name, std::string_view why) {
        if (error_) return;
        error_ = invalid("config.json: " + std::string(name) + " " + std::string(why),
                         std::string(name));
    }

    void unsupported(std::string_view name, std::string_view value) {
        refuse(name, std::string(value.substr(0, 64)) + " is not supported");
    }

    [[nodiscard]] std::optional<Error> const& error() const noexcept { return error_; }

private:
    json::object const& object_;
    std::optional<Error> error_{};
};

std::optional<Architecture> architecture_of(Reader& reader) {
    auto const type = reader.text("model_type");
    static constexpr std::array<std::pair<std::string_view, Architecture>, 3> known{{
        {"llama", Architecture::llama},
        {"qwen2", Architecture::qwen2},
        {"qwen3", Architecture::qwen3},
    }};
    static constexpr std::array<std::string_view, 3> classes{"LlamaForCausalLM", "Qwen2ForCausalLM",
                                                             "Qwen3ForCausalLM"};
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (known[i].first != type) continue;
        // A classifier or reward model of the family has another head.
        if (auto const* list = reader.find("architectures")) {
            auto const* array = list->if_array();
            auto const* name =
                array != nullptr && array->size() == 1 ? array->front().if_string() : nullptr;
            if (name == nullptr || std::string_view(*name) != classes[i]) {
                reader.unsupported("architectures", json::serialize(*list));
                return std::nullopt;
            }
        }
        return known[i].second;
    }
    reader.unsupported("model_type", type.empty() ? "(none)" : type);
    return std::nullopt;
}

void read_rope(Reader& outer, ModelConfig& config) {
    config.rope.theta = outer.positive("rope_theta", 10000.0);
    // transformers 5 writes rope_parameters, 4 writes rope_theta and rope_scaling.
    for (std::string_view const name : {"rope_parameters", "rope_scaling"}) {
        auto const* value = outer.find(name);
        if (value == nullptr) continue;
        auto const* object = value->if_object();
        if (object == nullptr) return outer.refuse(name, "must be an object");
        Reader inner{*object};
        config.rope.theta = inner.positive("rope_theta", config.rope.theta);
        auto type = inner.text("rope_type");
        if (type.empty()) type = inner.text("type");
        if (type == "llama3") {
            config.rope.llama3 = true;
            config.rope.factor = inner.positive("factor", 0.0);
            config.rope.low_freq_factor = inner.positive("low_freq_factor", 0.0);
            config.rope.high_freq_factor = inner.positive("high_freq_factor", 0.0);
            config.rope.original_max_positions =
                inner.positive("original_max_position_embeddings", 0.0);
            if (config.rope.high_freq_factor <= config.rope.low_freq_factor) {
                inner.refuse("high_freq_factor", "must exceed low_freq_factor");
            }
        } else if (!type.empty() && type != "default") {
            inner.unsupported("rope_type", type);
        }
        if (inner.number("partial_rotary_factor", 1.0) != 1.0) {
            inner.refuse("partial_rotary_factor", "other than 1 is not supported");
        }
        if (inner.error()) {
            outer.refuse(inner.error()->field(),
                         "of " + std::string(name) + ": " + inner.error()->what());
        }
        return;
    }
}

/// Options that would change the arithmetic and that the engine does not have.
void refuse_unsupported(Reader& reader, ModelConfig const& config) {
    auto const act = reader.text("hidden_act");
    if (!act.empty() && act != "silu") reader.unsupported("hidden_act", act);
    for (std::string_view const name :
         {"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop",
          "attn_logit_softcapping", "final_logit_softcapping"}) {
        if (reader.number(name, 0.0) != 0.0) reader.refuse(name, "is not supported");
    }
    for (std::string_view const name :
         {"partial_rotary_factor", "pretraining_tp", "embedding_multiplier", "residual_multiplier",
          "logits_scaling"}) {
        if (reader.number(name, 1.0) != 1.0) reader.refuse(name, "other than 1 is not supported");
    }
    for (std::string_view const name : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
        if (reader.flag(name, false)) reader.refuse(name, "is not supported");
    }
    // Qwen configs keep a window size beside a switch that is off; others have only the size.
    if (config.architecture == Architecture::llama && reader.find("sliding_window") != nullptr) {
        reader.refuse("sliding_window", "is not supported");
    }
    if (reader.find("quantization_config") != nullptr) {
        reader.refuse("quantization_config", "is not supported");
    }
    if (auto const* types = reader.find("layer_types")) {
        auto const* array = types->if_array();
        bool const full = array != nullptr && std::ranges::all_of(*array, [](auto const& type) {
                              return type.is_string() && type.get_string() == "full_attention";
                          });
        if (!full) reader.refuse("layer_types", "other than full_attention are not supported");
    }
}

void add_eos(Reader& reader, ModelConfig& config) {
    auto const* value = reader.find("eos_token_id");
    if (value == nullptr) return;
    auto const add = [&](json::value const& item) {
        auto const* number = item.if_int64();
        if (number == nullptr || *number < 0 || *number >= config.vocab_size) {
            return reader.refuse("eos_token_id", "must be tokens of the vocabulary");
        }
        auto const token = static_cast<int>(*number);
        if (std::ranges::find(config.eos_tokens, token) == config.eos_tokens.end()) {
            config.eos_tokens.push_back(token);
        }
    };
    if (auto const* list = value->if_array()) {
        for (auto const& item : *list) add(item);
    } else {
        add(*value);
    }
}

Result<json::object> parse_object(std::string_view text, std::string_view file) {
    json::error_code code;
    auto root = json::parse({text.data(), text.size()}, code);
    if (code) {
        return invalid(std::string(file) + " is not JSON: " + code.message(), std::string(file));
    }
    if (!root.is_object()) {
        return invalid(std::string(file) + " is not a JSON object", std::string(file));
    }
    return json::object(std::move(root.get_object()));
}

}  // namespace

std::uint64_t ModelConfig::parameters() const noexcept {
    auto const wide = [](int value) { return static_cast<std::uint64_t>(value); };
    auto const hidden = wide(hidden_size);
    auto const embedding = wide(vocab_size) * hidden;
    auto layer = hidden * (2 * wide(q_size()) + 2 * wide(kv_size())) +
                 3 * hidden * wide(intermediate_size) + 2 * hidden;
    if (attention_bias) layer += wide(q_size()) + 2 * wide(kv_size());
    if (qk_norm) layer += 2 * wide(head_dim);
    return embedding * (tied_embeddings ? 1U : 2U) + wide(layers) * layer + hidden;
}

Result<ModelConfig> parse_model_config(std::string_view text) {
    if (text.size() > max_config_bytes) {
        return invalid("config.json is larger than 1 MiB", "config.json");
    }
    auto const object = parse_object(text, "config.json");
    if (!object) return object.error();
    Reader reader{*object};
    ModelConfig config;
    if (auto const architecture = architecture_of(reader)) {
        config.architecture = *architecture;
    } else {
        return *reader.error();
    }
    config.attention_bias = config.architecture == Architecture::qwen2;
    config.qk_norm = config.architecture == Architecture::qwen3;
    refuse_unsupported(reader, config);
    config.vocab_size = reader.size("vocab_size", 1 << 24);
    config.hidden_size = reader.size("hidden_size", 1 << 16);
    config.intermediate_size = reader.size("intermediate_size", 1 << 20);
    config.layers = reader.size("num_hidden_layers", 1 << 10);
    config.heads = reader.size("num_attention_heads", 1 << 10);
    if (reader.error()) return *reader.error();
    config.kv_heads = reader.size("num_key_value_heads", config.heads, config.heads);
    std::optional<int> head_dim;
    if (config.architecture == Architecture::qwen3) {
        head_dim = 128;
    } else if (config.hidden_size % config.heads == 0) {
        head_dim = config.hidden_size / config.heads;
    }
    constexpr int most_head_dim = 1 << 10;
    config.head_dim = reader.size("head_dim", most_head_dim, head_dim);
    config.max_positions = reader.size("max_position_embeddings", 1 << 28, 2048);
    if (reader.error()) return *reader.error();
    if (config.heads % config.kv_heads != 0) {
        reader.refuse("num_key_value_heads", "must divide num_attention_heads");
    }
    if (config.head_dim % 2 != 0) reader.refuse("head_dim", "must be even");
    if (config.head_dim > most_head_dim) {
        reader.refuse("head_dim", "is hidden_size / num_attention_heads, which is too large");
    }
    config.rms_norm_eps = static_cast<float>(reader.positive("rms_norm_eps", 1e-6));
    config.tied_embeddings = reader.flag("tie_word_embeddings", false);
    read_rope(reader, config);
    add_eos(reader, config);
    if (reader.error()) return *reader.error();
    return config;
}

Result<ModelConfig> read_model_config(std::filesystem::path const& folder) {
    if (auto const there = check_folder(folder); !there) return there.error();
    auto const text = read_text(folder / "config.json", max_config_bytes);
    if (!text) return text.error();
    auto config = parse_model_config(*text);
    if (!config) return config;
    auto const generation = folder / "generation_config.json";
    if (!is_named(generation)) return config;
    auto const more = read_text(generation, max_config_bytes);
    if (!more) return more.error();
    auto const object = parse_object(*more, "generation_config.json");
    if (!object) return object.error();
    Reader reader{*object};
    add_eos(reader, *config);
    if (reader.error()) return *reader.error();
    return config;
}

std::string write_model_config(ModelConfig const& config, std::string_view dtype) {
    json::object root;
    auto const index = static_cast<std::size_t>(config.architecture);
    static constexpr std::array<std::string_view, 3> types{"llama", "qwen2", "qwen3"};
    static constexpr std::array<std::string_view, 3> classes{"LlamaForCausalLM", "Qwen2ForCausalLM",
                                                             "Qwen3ForCausalLM"};
    root["architectures"] = json::array{classes[index]};
    root["model_type"] = types[index];
    root["hidden_act"] = "silu";
    root["vocab_size"] = config.vocab_size;
    root["hidden_size"] = config.hidden_size;
    root["intermediate_size"] = config.intermediate_size;
    root["num_hidden_layers"] = config.layers;
    root["num_attention_heads"] = config.heads;
    root["num_key_value_heads"] = config.kv_heads;
    root["head_dim"] = config.head_dim;
    root["max_position_embeddings"] = config.max_positions;
    root["rms_norm_eps"] = static_cast<double>(config.rms_norm_eps);
    root["tie_word_embeddings"] = config.tied_embeddings;
    root["torch_dtype"] = dtype;
    root["rope_theta"] = config.rope.theta;
    if (config.rope.llama3) {
        root["rope_scaling"] = json::object{
            {"rope_type", "llama3"},
            {"factor", config.rope.factor},
            {"low_freq_factor", config.rope.low_freq_factor},
            {"high_freq_factor", config.rope.high_freq_factor},
            {"original_max_position_embeddings", config.rope.original_max_positions},
        };
    }
    if (!config.eos_tokens.empty()) {
        root["eos_token_id"] = json::array(config.eos_tokens.begin(), config.eos_tokens.end());
    }
    return json::serialize(root);
}

std::vector<double> rope_frequencies(ModelConfig const& config) {
    std::vector<double> result;
    auto const& rope = config.rope;
    for (int i = 0; i < config.head_dim / 2; ++i) {
        auto const frequency = std::pow(rope.theta, -2.0 * i / config.head_dim);
        if (!rope.llama3) {
            result.push_back(frequency);
            continue;
        }
        // Wavelengths beyond the trained context are stretched, short ones kept, and those in
        // between are blended.
        auto const turns = rope.original_max_positions * frequency / (2.0 * std::numbers::pi);
        auto const keep = std::clamp(
            (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
            1.0);
        result.push_back(frequency * (keep + (1.0 - keep) / rope.factor));
    }
    return result;
}

}  // namespace tinkxx::engine
