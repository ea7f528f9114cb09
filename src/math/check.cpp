#include "math/check.hpp"

#include "base/common/invalid.hpp"
#include "wire/json/json.hpp"
#include "wire/values/datum.hpp"
#include "wire/values/model_input.hpp"
#include "wire/values/tensor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace tinkxx::math {

namespace {

using Problem = std::optional<ErrorDetails>;

std::string shown(double number) {
    std::array<char, 32> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string shown(std::span<std::int64_t const> shape) {
    std::string out{'['};
    for (auto const dimension : shape) {
        if (out.size() > 1) out += ", ";
        out += std::to_string(dimension);
    }
    return out + ']';
}

std::vector<std::int64_t> shape_of(TensorView const& tensor) {
    if (tensor.shape) return {tensor.shape->begin(), tensor.shape->end()};
    return {static_cast<std::int64_t>(tensor.size())};
}

// What a loss that is named by its type takes.
struct Wants {
    std::span<std::string_view const> inputs{};
    std::span<std::string_view const> config{};
    bool text_config{false};
    bool matrices{false};
    bool spans{false};
};

Wants wants_of(LossFn fn) {
    static constexpr std::array<std::string_view, 2> likelihood{"target_tokens", "weights"};
    static constexpr std::array<std::string_view, 3> policy{"target_tokens", "logprobs",
                                                            "advantages"};
    static constexpr std::array<std::string_view, 2> clips{"clip_low_threshold",
                                                           "clip_high_threshold"};
    static constexpr std::array<std::string_view, 1> beta{"beta"};
    static constexpr std::array<std::string_view, 1> kl{"kl_coeff"};
    static constexpr std::array<std::string_view, 1> id{"loss_id"};
    switch (fn) {
        case LossFn::cross_entropy:
            return {.inputs = likelihood, .matrices = true};
        case LossFn::importance_sampling:
            return {.inputs = policy};
        case LossFn::ppo:
        case LossFn::cispo:
        case LossFn::gspo:
            return {.inputs = policy, .config = clips};
        case LossFn::dro:
            return {.inputs = policy, .config = beta};
        case LossFn::stable_reinforce:
            return {.inputs = policy, .config = kl, .text_config = true, .spans = true};
        case LossFn::custom:
            break;
    }
    return {.config = id, .text_config = true, .matrices = true};
}

std::string joined(std::span<std::string_view const> names) {
    std::string out;
    for (auto const name : names) {
        if (!out.empty()) out += ", ";
        out += name;
    }
    return out.empty() ? "none" : out;
}

Problem config_problem(std::string_view operation, Loss const& loss) {
    auto const wants = wants_of(*loss.known());
    for (auto const& [name, value] : loss.config()) {
        auto const field = "loss_fn_config/" + name;
        if (std::ranges::find(wants.config, name) == wants.config.end()) {
            return base::invalid(operation, field, {},
                                 "the loss " + loss.name() + " has no setting " + name +
                                     "; it has: " + joined(wants.config) +
                                     ". A loss whose name is given as text is not checked");
        }
        auto const* number = std::get_if<double>(&value);
        if (number == nullptr && !wants.text_config) {
            return base::invalid(
                operation, field, std::get<std::string>(value),
                "the setting " + name + " of the loss " + loss.name() + " is text; it is a number");
        }
        if (number != nullptr && !std::isfinite(*number)) {
            return base::invalid(operation, field, shown(*number),
                                 "the setting " + name + " of the loss " + loss.name() + " is " +
                                     shown(*number) + "; it is a finite number");
        }
    }
    if (loss.known() == LossFn::custom && !loss.config().contains("loss_id")) {
        return base::invalid(
            operation, "loss_fn_config/loss_id", {},
            "the loss custom needs the setting loss_id, which names an uploaded loss");
    }
    return std::nullopt;
}

// One datum of the data, for messages.
class DatumCheck {
public:
    DatumCheck(std::string_view operation, Datum const& datum, std::size_t index)
        : operation_{operation}, datum_{&datum}, index_{index} {}

    // Whether tensors and spans are what they say, whoever reads them.
    [[nodiscard]] Problem form() const {
        for (auto const& [name, input] : datum_->loss_fn_inputs) {
            if (name.empty() || !wire::valid_utf8(name)) {
                return input_problem(name, {}, "has no name that can be sent");
            }
            if (auto const problem = wire::tensor_problem(input.view()); !problem.empty()) {
                return input_problem(name, {}, "has " + problem);
            }
        }
        if (auto const problem = wire::spans_problem(*datum_)) {
            return here(problem->field, problem->value, problem->why);
        }
        return std::nullopt;
    }

    [[nodiscard]] Problem inputs(std::string_view loss, Wants const& wants) const {
        for (auto const name : wants.inputs) {
            if (datum_->loss_fn_inputs.contains(name)) continue;
            return here("loss_fn_inputs/" + std::string{name}, {},
                        "has no " + std::string{name} + "; the loss " + std::string{loss} +
                            " needs: " + joined(wants.inputs));
        }
        if (wants.spans && datum_->model_input_spans.empty()) {
            return here("model_input_spans", {},
                        "has no provenance spans, which the loss " + std::string{loss} +
                            " needs on every datum; see Datum::with_provenance");
        }
        for (auto const& [name, input] : datum_->loss_fn_inputs) {
            if (auto problem = numbers(name, input.view())) return problem;
        }
        return lengths(wants);
    }

private:
    [[nodiscard]] ErrorDetails here(std::string const& field, std::string value,
                                    std::string const& why) const {
        return base::invalid(operation_, "data/" + std::to_string(index_) + "/" + field,
                             std::move(value), "datum " + std::to_string(index_) + " " + why);
    }
    [[nodiscard]] ErrorDetails input_problem(std::string_view name, std::string value,
                                             std::string const& why) const {
        return base::invalid(
            operation_, "data/" + std::to_string(index_) + "/loss_fn_inputs/" + std::string{name},
            std::move(value),
            std::string{name} + " of datum " + std::to_string(index_) + " " + why);
    }

    [[nodiscard]] Problem numbers(std::string_view name, TensorView const& tensor) const {
        auto const wanted = loss_input_dtype(name);
        if (wanted && *wanted != tensor.dtype()) {
            auto const is = std::string{wire::to_string(tensor.dtype())};
            return input_problem(name, is,
                                 "is a tensor of " + is + "; it must be one of " +
                                     std::string{wire::to_string(*wanted)});
        }
        auto const* floats = std::get_if<std::span<float const>>(&tensor.data);
        if (floats == nullptr) return std::nullopt;
        auto const bad =
            std::ranges::find_if_not(*floats, [](float x) { return std::isfinite(x); });
        if (bad == floats->end()) return std::nullopt;
        return input_problem(name, shown(*bad),
                             "has at " + std::to_string(bad - floats->begin()) + " the value " +
                                 shown(*bad) + "; all must be finite");
    }

    // All tensors along the tokens are as long as the model's input.
    [[nodiscard]] Problem lengths(Wants const& wants) const {
        auto const targets = datum_->loss_fn_inputs.find("target_tokens");
        if (!targets) return std::nullopt;
        auto const shape = shape_of(*targets);
        auto const most = wants.matrices ? 2U : 1U;
        if (shape.empty() || shape.size() > most) {
            return input_problem("target_tokens", shown(shape),
                                 "has the shape " + shown(shape) + "; it must have " +
                                     (wants.matrices ? "one or two dimensions" : "one dimension"));
        }
        auto const length = wire::known_length(datum_->model_input);
        if (length && *length == 0) return here("model_input", {}, "has an empty model_input");
        if (length && *length != shape[0]) {
            return input_problem("target_tokens", shown(shape),
                                 "has the shape " + shown(shape) + " and the model_input has " +
                                     std::to_string(*length) +
                                     " tokens; there must be one target for each");
        }
        for (auto const name : {"weights", "logprobs", "advantages", "sequence_ratio_mask"}) {
            auto const other = datum_->loss_fn_inputs.find(name);
            if (!other) continue;
            if (auto const is = shape_of(*other); is != shape) {
                return input_problem(name, shown(is),
                                     "has the shape " + shown(is) + " and target_tokens has " +
                                         shown(shape) + "; both must be the same");
            }
        }
        return std::nullopt;
    }

    std::string_view operation_;
    Datum const* datum_;
    std::size_t index_;
};

struct Range {
    std::string_view field;
    double value;
    bool fine;
    std::string_view wanted;
};

Problem out_of_range(std::string_view operation, std::string_view params,
                     std::initializer_list<Range> ranges) {
    for (auto const& range : ranges) {
        if (std::isfinite(range.value) && range.fine) continue;
        return base::invalid(operation, std::string{range.field}, shown(range.value),
                             std::string{params} + "::" + std::string{range.field} + " is " +
                                 shown(range.value) + "; it must be " + std::string{range.wanted});
    }
    return std::nullopt;
}

Problem params_problem(std::string_view operation, AdamParams const& adam) {
    return out_of_range(
        operation, "AdamParams",
        {{"learning_rate", adam.learning_rate, adam.learning_rate >= 0, "0 or more"},
         {"beta1", adam.beta1, adam.beta1 >= 0 && adam.beta1 < 1, "in [0, 1)"},
         {"beta2", adam.beta2, adam.beta2 >= 0 && adam.beta2 < 1, "in [0, 1)"},
         {"eps", adam.eps, adam.eps > 0, "more than 0"},
         {"weight_decay", adam.weight_decay, adam.weight_decay >= 0, "0 or more"},
         {"grad_clip_norm", adam.grad_clip_norm, adam.grad_clip_norm >= 0,
          "0, which is no limit, or more"}});
}

Problem params_problem(std::string_view operation, DimuonParams const& dimuon) {
    if (!dimuon.learning_rate) {
        return base::invalid(operation, "learning_rate", {},
                             "DimuonParams::learning_rate is not set; it has no default");
    }
    auto const rate = *dimuon.learning_rate;
    return out_of_range(
        operation, "DimuonParams",
        {{"learning_rate", rate, rate >= 0, "0 or more"},
         {"beta1", dimuon.beta1, dimuon.beta1 >= 0 && dimuon.beta1 < 1, "in [0, 1)"},
         {"grad_clip_norm", dimuon.grad_clip_norm, true, "finite"}});
}

Problem params_problem(std::string_view operation, OpenOptimizer const& open) {
    if (open.type.empty()) {
        return base::invalid(operation, "type", {},
                             "OpenOptimizer::type is empty; it names the family of optimizers");
    }
    for (auto const& [name, text] : open.members) {
        if (name == "type") {
            return base::invalid(
                operation, "members/type", text,
                "OpenOptimizer::members has a type; set OpenOptimizer::type instead");
        }
        if (wire::parse_json("optimizer", text)) continue;
        auto why = "OpenOptimizer::members has for " + name;
        why.append(" the text ").append(text);
        why.append(", which is no JSON; text needs quotes of its own");
        return base::invalid(operation, "members/" + name, text, why);
    }
    return std::nullopt;
}

// Thrown by the constructors and members of public types.
void check(Problem problem) {
    if (problem) throw ValidationError{std::move(*problem)};
}

}  // namespace

Problem no_data_problem(std::string_view operation, std::span<Datum const> data) {
    if (!data.empty()) return std::nullopt;
    return base::invalid(operation, "data", "[]", "no data; give at least one datum");
}

Problem data_problem(std::string_view operation, std::span<Datum const> data, Loss const& loss) {
    if (loss.name().empty() || !wire::valid_utf8(loss.name())) {
        return base::invalid(operation, "loss_fn", {}, "the loss has no name that can be sent");
    }
    if (loss.known()) {
        if (auto problem = config_problem(operation, loss)) return problem;
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
        DatumCheck const datum{operation, data[i], i};
        if (auto problem = datum.form()) return problem;
        if (!loss.known()) continue;
        if (auto problem = datum.inputs(loss.name(), wants_of(*loss.known()))) return problem;
    }
    return std::nullopt;
}

Problem custom_data_problem(std::string_view operation, std::span<Datum const> data) {
    static constexpr std::array<std::string_view, 1> targets{"target_tokens"};
    Wants const wants{.inputs = targets, .matrices = true};
    for (std::size_t i = 0; i < data.size(); ++i) {
        DatumCheck const datum{operation, data[i], i};
        if (auto problem = datum.form()) return problem;
        if (auto problem = datum.inputs("of your own", wants)) return problem;
    }
    return std::nullopt;
}

Problem custom_value_problem(std::string_view operation, CustomLossValue const& value,
                             std::span<TensorData const> logprobs) {
    if (!std::isfinite(value.loss)) {
        return base::invalid(
            operation, "loss", shown(value.loss),
            "the loss function gave the loss " + shown(value.loss) + "; it must be finite");
    }
    if (value.gradient.size() != logprobs.size()) {
        return base::invalid(operation, "gradient", std::to_string(value.gradient.size()),
                             "the loss function gave gradients for " +
                                 std::to_string(value.gradient.size()) + " data; there are " +
                                 std::to_string(logprobs.size()));
    }
    for (std::size_t i = 0; i < logprobs.size(); ++i) {
        auto const& gradient = value.gradient[i];
        auto const field = "gradient/" + std::to_string(i);
        auto const wanted = view(logprobs[i]).size();
        if (gradient.size() != wanted) {
            return base::invalid(operation, field, std::to_string(gradient.size()),
                                 "the loss function gave for datum " + std::to_string(i) +
                                     " a gradient of " + std::to_string(gradient.size()) +
                                     " numbers; the datum has " + std::to_string(wanted) +
                                     " log-probabilities");
        }
        auto const bad =
            std::ranges::find_if_not(gradient, [](float x) { return std::isfinite(x); });
        if (bad != gradient.end()) {
            return base::invalid(operation, field + "/" + std::to_string(bad - gradient.begin()),
                                 shown(*bad),
                                 "the loss function gave for datum " + std::to_string(i) + " at " +
                                     std::to_string(bad - gradient.begin()) + " the derivative " +
                                     shown(*bad) + "; all must be finite");
        }
    }
    return std::nullopt;
}

Problem lora_problem(std::string_view operation, LoraConfig const& config) {
    if (config.rank < 0) {
        return base::invalid(
            operation, "rank", std::to_string(config.rank),
            "LoraConfig::rank is " + std::to_string(config.rank) + "; it must not be negative");
    }
    if (config.train_unembed || config.train_mlp || config.train_attn) return std::nullopt;
    return base::invalid(operation, "train_mlp", "false",
                         "LoraConfig trains nothing; at least one of train_unembed, train_mlp and "
                         "train_attn must be true");
}

Problem optimizer_problem(std::string_view operation, OptimizerParams const& params,
                          std::optional<OptimizerConfig> const& family) {
    if (auto problem = std::visit(
            [operation](auto const& one) { return params_problem(operation, one); }, params)) {
        return problem;
    }
    auto const given = optimizer_family(params);
    if (!family || optimizer_family(*family) == given) return std::nullopt;
    return base::invalid(operation, "optimizer_params", std::string{given},
                         "the parameters are those of " + std::string{given} +
                             "; the model was created with " +
                             std::string{optimizer_family(*family)} + ", which stays for its life");
}

Problem optimizer_problem(std::string_view operation, OptimizerConfig const& config) {
    auto const* open = std::get_if<OpenOptimizer>(&config);
    return open == nullptr ? std::nullopt : params_problem(operation, *open);
}

Problem ttl_problem(std::string_view operation, std::optional<std::int64_t> ttl_seconds) {
    if (!ttl_seconds || *ttl_seconds > 0) return std::nullopt;
    return base::invalid(
        operation, "ttl_seconds", std::to_string(*ttl_seconds),
        "ttl_seconds is " + std::to_string(*ttl_seconds) +
            "; it must be more than 0, or left out for a checkpoint that never expires");
}

}  // namespace tinkxx::math

namespace tinkxx {

void AdamParams::validate() const { math::check(math::params_problem("validate", *this)); }
void DimuonParams::validate() const { math::check(math::params_problem("validate", *this)); }
void LoraConfig::validate() const { math::check(math::lora_problem("validate", *this)); }

}  // namespace tinkxx
