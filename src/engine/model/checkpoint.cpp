#include "engine/model/checkpoint.hpp"

#include "engine/common/failure.hpp"
#include "engine/files/atomic_write.hpp"
#include "engine/files/safetensors.hpp"
#include "engine/files/safetensors_writer.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine {

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::string_view peft_prefix = "base_model.model.";
constexpr std::string_view weights_file = "adapter_model.safetensors";
constexpr std::string_view config_file = "adapter_config.json";
constexpr std::string_view state_file = "optimizer.safetensors";

/// Name and matrix of everything trainable.
struct Named {
    std::string name{};
    PackedMatrix* matrix{nullptr};
    bool vector{false};
};

std::vector<Named> named_matrices(Adapter const& adapter, Parameters const& parameters) {
    std::vector<Named> result;
    auto& open = const_cast<Parameters&>(parameters);  // the slots only point
    auto const& model = adapter.model().config();
    if (auto* const weights = std::get_if<Weights>(&open)) {
        for (auto const& slot : weight_slots(model, *weights)) {
            result.push_back({.name = slot.name, .matrix = slot.matrix, .vector = slot.vector});
        }
        return result;
    }
    for (auto const& slot : lora_slots(model, adapter.config(), std::get<LoraWeights>(open))) {
        auto const stem = std::string(peft_prefix) + slot.module;
        result.push_back({.name = stem + ".lora_A.weight", .matrix = &slot.pair->a});
        result.push_back({.name = stem + ".lora_B.weight", .matrix = &slot.pair->b});
    }
    return result;
}

std::vector<std::uint64_t> shape_of(Named const& named) {
    if (named.vector) return {named.matrix->inputs()};
    return {named.matrix->outputs(), named.matrix->inputs()};
}

/// Gathers tensors for one file; the matrices must outlive it.
class TensorWriter {
public:
    void add(Named const& named, std::string_view prefix) {
        tensors_.push_back({.name = std::string(prefix) + named.name,
                            .dtype = DType::f32,
                            .shape = shape_of(named),
                            .stream = [matrix = named.matrix](ByteSink const& sink) {
                                stream_matrix(*matrix, ElementType::f32, sink);
                            }});
    }
    void add_count(std::string name, std::int64_t const& value) {
        tensors_.push_back({.name = std::move(name),
                            .dtype = DType::i64,
                            .shape = {1},
                            .bytes = std::as_bytes(std::span{&value, 1})});
    }
    [[nodiscard]] Result<void> write(fs::path const& path) const {
        auto written = write_safetensors(path, tensors_, {{"format", "pt"}});
        // What is wrong with the numbers is the engine's fault, not that of the request.
        if (written || written.error().kind() != ErrorKind::validation) return written;
        return broken(std::string("save adapter: ") + written.error().what() +
                          "; nothing was written; go on from an older checkpoint",
                      std::string(written.error().field()));
    }

private:
    std::vector<TensorOut> tensors_{};
};

std::string peft_config(LoraConfig const& config, std::string_view base_name) {
    json::array targets;
    if (config.train_mlp) targets.emplace_back("down_proj");
    if (config.train_mlp) targets.emplace_back("gate_proj");
    if (config.train_attn) targets.emplace_back("k_proj");
    if (config.train_unembed) targets.emplace_back("lm_head");
    if (config.train_attn) targets.emplace_back("o_proj");
    if (config.train_attn) targets.emplace_back("q_proj");
    if (config.train_mlp) targets.emplace_back("up_proj");
    if (config.train_attn) targets.emplace_back("v_proj");
    json::object const root{
        {"alpha_pattern", json::object{}},
        {"auto_mapping", nullptr},
        {"base_model_name_or_path", base_name},
        {"bias", "none"},
        {"fan_in_fan_out", false},
        {"inference_mode", true},
        {"init_lora_weights", true},
        {"layers_pattern", nullptr},
        {"layers_to_transform", nullptr},
        {"lora_alpha", config.alpha},
        {"lora_dropout", 0.0},
        {"modules_to_save", nullptr},
        {"peft_type", "LORA"},
        {"r", config.rank},
        {"rank_pattern", json::object{}},
        {"revision", nullptr},
        {"target_modules", std::move(targets)},
        {"task_type", "CAUSAL_LM"},
        {"use_dora", false},
        {"use_rslora", false},
    };
    return json::serialize(root);
}

Error bad_config(std::string_view option, std::string_view why) {
    return invalid(std::string(config_file) + ": " + std::string(option) + " " + std::string(why),
                   std::string(option));
}

/// Rank and alpha of a PEFT configuration; refuses what would change the arithmetic.
Result<LoraConfig> parse_peft_config(std::string_view text) {
    json::error_code code;
    auto const root = json::parse({text.data(), text.size()}, code);
    if (code || !root.is_object()) return bad_config("file", "is not a JSON object");
    auto const& object = root.get_object();
    auto const find = [&](std::string_view name) -> json::value const* {
        auto const* value = object.if_contains({name.data(), name.size()});
        return value == nullptr || value->is_null() ? nullptr : value;
    };
    auto const* type = find("peft_type");
    if (type == nullptr || !type->is_string() || type->get_string() != "LORA") {
        return bad_config("peft_type", "must be LORA");
    }
    for (std::string_view const name :
         {"use_dora", "use_rslora", "use_qalora", "use_bdlora", "fan_in_fan_out", "lora_bias"}) {
        auto const* value = find(name);
        if (value != nullptr && !(value->is_bool() && !value->get_bool())) {
            return bad_config(name, "is not supported");
        }
    }
    for (std::string_view const name :
         {"rank_pattern", "alpha_pattern", "modules_to_save", "layer_replication",
          "trainable_token_indices", "target_parameters", "alora_invocation_tokens"}) {
        auto const* value = find(name);
        if (value == nullptr) continue;
        bool const empty = (value->is_object() && value->get_object().empty()) ||
                           (value->is_array() && value->get_array().empty());
        if (!empty) return bad_config(name, "is not supported");
    }
    if (auto const* bias = find("bias")) {
        if (!bias->is_string() || bias->get_string() != "none") {
            return bad_config("bias", "other than none is not supported");
        }
    }
    auto const* rank = find("r");
    if (rank == nullptr || !rank->is_int64() || rank->get_int64() < 1 || rank->get_int64() > 1024) {
        return bad_config("r", "must be a whole number from 1 to 1024");
    }
    auto const* alpha = find("lora_alpha");
    if (alpha == nullptr || !alpha->is_number()) {
        return bad_config("lora_alpha", "must be a number");
    }
    LoraConfig config{.rank = static_cast<int>(rank->get_int64()),
                      .alpha = alpha->to_number<float>()};
    if (auto const good = check(config); !good) return good.error();
    return config;
}

Result<void> read_matrix(TensorView const& tensor, Named const& named) {
    if (tensor.shape != shape_of(named)) {
        return invalid("tensor " + named.name + " has another shape than the model", named.name);
    }
    auto const values = widen_tensor(tensor, named.name);
    if (!values) return values.error();
    named.matrix->assign({.type = ElementType::f32,
                          .data = values->data(),
                          .rows = named.matrix->outputs(),
                          .cols = named.matrix->inputs()});
    return {};
}

/// The matrix that a LoRA matrix is multiplied with: B for A, and A for B.
std::string other_half(std::string name) {
    constexpr std::string_view before = ".lora_";
    auto& letter = name[name.rfind(before) + before.size()];
    letter = letter == 'A' ? 'B' : 'A';
    return name;
}

Result<std::unique_ptr<Adapter>> load_lora(std::shared_ptr<Model const> const& model,
                                           fs::path const& folder) {
    auto const text = read_text(folder / config_file, 1U << 20U);
    if (!text) return text.error();
    auto config = parse_peft_config(*text);
    if (!config) return config.error();
    auto const file = SafetensorsFile::open(folder / weights_file);
    if (!file) return file.error();
    auto const any = [&](std::string_view part) {
        return std::ranges::any_of(file->tensors(), [&](auto const& entry) {
            return entry.first.find(part) != std::string::npos &&
                   entry.first.find(".lora_") != std::string::npos;
        });
    };
    config->train_attn = any(".self_attn.");
    config->train_mlp = any(".mlp.");
    config->train_unembed = any("base_model.model.lm_head.");
    if (auto const good = check(*config); !good) {
        return invalid(std::string(weights_file) + " holds no LoRA matrices", "target_modules");
    }
    auto adapter = std::make_unique<Adapter>(model, *config, zero_lora(model->config(), *config));
    std::set<std::string, std::less<>> known;
    for (auto const& named : named_matrices(*adapter, adapter->parameters())) {
        known.insert(named.name);
        auto const found = file->tensors().find(named.name);
        if (found == file->tensors().end()) continue;  // a module that was not trained
        if (auto const read = read_matrix(found->second, named); !read) return read.error();
    }
    auto why = std::string(weights_file) + ": tensor ";
    for (auto const& [name, tensor] : file->tensors()) {
        if (known.contains(name)) {
            auto const other = other_half(name);
            if (file->tensors().contains(other)) continue;
            why.append(other).append(" is missing, and ").append(name);
            return invalid(why.append(" is of no use without it"), other);
        }
        // PEFT may save the frozen matrix below an adapted unembedding.
        if (name.ends_with(".base_layer.weight")) continue;
        return invalid(why.append(name).append(" belongs to nothing in this model"), name);
    }
    return adapter;
}

Result<std::unique_ptr<Adapter>> load_full(std::shared_ptr<Model const> model,
                                           fs::path const& folder) {
    auto const loaded = Model::load(folder, nullptr, Access::read);
    if (!loaded) return loaded.error();
    auto config = (*loaded)->config();
    config.eos_tokens = model->config().eos_tokens;  // no part of the arithmetic
    if (config != model->config()) {
        return invalid(folder.string() + " holds weights of another model", "config.json");
    }
    return std::make_unique<Adapter>(std::move(model), LoraConfig{.rank = 0},
                                     widen_weights(config, (*loaded)->weights()));
}

Result<void> load_state(Adapter& adapter, fs::path const& folder) {
    auto const file = SafetensorsFile::open(folder / state_file);
    if (!file) return file.error();
    auto const step = file->tensors().find("step");
    if (step == file->tensors().end() || step->second.dtype != DType::i64 ||
        step->second.bytes.size() != sizeof(std::int64_t)) {
        return invalid(std::string(state_file) + ": step is missing", "step");
    }
    std::int64_t steps = 0;
    std::memcpy(&steps, step->second.bytes.data(), sizeof steps);
    if (steps < 0) return invalid(std::string(state_file) + ": step is negative", "step");
    std::vector<std::pair<std::string, Parameters*>> parts{{"moment1.", &adapter.moment1()},
                                                           {"moment2.", &adapter.moment2()}};
    bool const gathered = std::ranges::any_of(
        file->tensors(), [](auto const& entry) { return entry.first.starts_with("gradient."); });
    if (gathered) parts.emplace_back("gradient.", &adapter.gradients());
    for (auto const& [prefix, part] : parts) {
        for (auto const& named : named_matrices(adapter, *part)) {
            auto const found = file->tensors().find(prefix + named.name);
            if (found == file->tensors().end()) {
                return invalid(
                    std::string(state_file) + ": tensor " + prefix + named.name + " is missing",
                    named.name);
            }
            if (auto read = read_matrix(found->second, named); !read) return read;
        }
    }
    adapter.set_steps(steps);
    return {};
}

/// True if there is a gradient that no step has used.
bool has_gathered(Adapter& adapter) {
    if (!adapter.has_gradients()) return false;
    auto const matrices = all_matrices(adapter.gradients());
    return std::ranges::any_of(matrices, [](PackedMatrix const* matrix) {
        return std::ranges::any_of(matrix->values(), [](float value) { return value != 0.0F; });
    });
}

}  // namespace

Result<void> save_adapter(fs::path const& folder, Adapter const& adapter,
                          std::string_view base_name, OptimizerState state) {
    return replace_folder(folder, [&](fs::path const& to) -> Result<void> {
        Result<void> written;
        TensorWriter weights;
        for (auto const& named : named_matrices(adapter, adapter.parameters())) {
            weights.add(named, "");
        }
        if (adapter.config().rank > 0) {
            written = write_file(to / config_file, peft_config(adapter.config(), base_name));
            if (written) written = weights.write(to / weights_file);
        } else {
            written = write_file(to / "config.json",
                                 write_model_config(adapter.model().config(), "float32"));
            if (written) written = weights.write(to / "model.safetensors");
        }
        if (!written || state == OptimizerState::without) return written;
        auto& open = const_cast<Adapter&>(adapter);
        std::optional<Parameters> zeros;
        if (!adapter.has_moments()) zeros = adapter.zeros();
        TensorWriter moments;
        auto const steps = adapter.steps();
        moments.add_count("step", steps);
        for (auto const& named : named_matrices(adapter, zeros ? *zeros : open.moment1())) {
            moments.add(named, "moment1.");
        }
        for (auto const& named : named_matrices(adapter, zeros ? *zeros : open.moment2())) {
            moments.add(named, "moment2.");
        }
        if (has_gathered(open)) {
            for (auto const& named : named_matrices(adapter, open.gradients())) {
                moments.add(named, "gradient.");
            }
        }
        return moments.write(to / state_file);
    });
}

Result<std::unique_ptr<Adapter>> load_adapter(std::shared_ptr<Model const> model,
                                              fs::path const& folder, OptimizerState state) {
    if (auto const there = check_folder(folder); !there) return there.error();
    bool const whole_model = is_named(folder / "config.json");
    // Half of an adapter is reported as one, not as a model of which everything is missing.
    bool const lora =
        is_named(folder / config_file) || (is_named(folder / weights_file) && !whole_model);
    if (!lora && !whole_model) {
        return invalid("cannot read folder " + folder.string() + ": it holds neither " +
                           std::string(config_file) + " nor config.json, so it is no checkpoint",
                       std::string(config_file));
    }
    auto adapter = lora ? load_lora(model, folder) : load_full(std::move(model), folder);
    if (!adapter || state == OptimizerState::without) return adapter;
    if (auto const loaded = load_state(**adapter, folder); !loaded) return loaded.error();
    return adapter;
}

}  // namespace tinkxx::engine
