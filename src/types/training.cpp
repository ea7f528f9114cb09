// The members of the value types of training that are worth a source file.
#include <tinkxx/types/training.hpp>

#include "base/common/invalid.hpp"

#include <algorithm>
#include <array>

namespace tinkxx {

namespace {

constexpr std::array<std::pair<LossFn, std::string_view>, 8> loss_names{{
    {LossFn::cross_entropy, "cross_entropy"},
    {LossFn::importance_sampling, "importance_sampling"},
    {LossFn::ppo, "ppo"},
    {LossFn::cispo, "cispo"},
    {LossFn::dro, "dro"},
    {LossFn::gspo, "gspo"},
    {LossFn::stable_reinforce, "stable_reinforce"},
    {LossFn::custom, "custom"},
}};

LossConfig config_of(
    std::initializer_list<std::pair<std::string_view, std::optional<double>>> members) {
    LossConfig out;
    for (auto const& [name, number] : members) {
        if (number) out.emplace(name, *number);
    }
    return out;
}

template <class Config>
LossConfig clip_config(Config const& config) {
    return config_of({{"clip_low_threshold", config.clip_low_threshold},
                      {"clip_high_threshold", config.clip_high_threshold}});
}

}  // namespace

std::string_view to_string(LossFn loss) noexcept {
    for (auto const& [fn, name] : loss_names) {
        if (fn == loss) return name;
    }
    return "unknown";
}

std::optional<LossFn> parse_loss_fn(std::string_view name) noexcept {
    auto const* const found =
        std::ranges::find(loss_names, name, &std::pair<LossFn, std::string_view>::second);
    if (found == loss_names.end()) return std::nullopt;
    return found->first;
}

Loss::Loss(PpoConfig const& config) : Loss{LossFn::ppo, clip_config(config)} {}
Loss::Loss(CispoConfig const& config) : Loss{LossFn::cispo, clip_config(config)} {}
Loss::Loss(GspoConfig const& config) : Loss{LossFn::gspo, clip_config(config)} {}
Loss::Loss(DroConfig const& config) : Loss{LossFn::dro, config_of({{"beta", config.beta}})} {}
Loss::Loss(StableReinforceConfig const& config)
    : Loss{LossFn::stable_reinforce, config_of({{"kl_coeff", config.kl_coeff}})} {}

std::string_view optimizer_family(OptimizerConfig const& config) noexcept {
    if (auto const* open = std::get_if<OpenOptimizer>(&config)) return open->type;
    return std::holds_alternative<DimuonConfig>(config) ? "dimuon" : "adamw";
}

std::string_view optimizer_family(OptimizerParams const& params) noexcept {
    if (auto const* open = std::get_if<OpenOptimizer>(&params)) return open->type;
    return std::holds_alternative<DimuonParams>(params) ? "dimuon" : "adamw";
}

TokenizerId tokenizer_id(std::string_view model_name, std::optional<std::string_view> explicit_id) {
    struct Pin {
        std::string_view name;
        std::string_view revision;
    };
    constexpr std::array<Pin, 4> pins{{
        {"moonshotai/Kimi-K2-Thinking", "612681931a8c906ddb349f8ad0f582cb552189cd"},
        {"moonshotai/Kimi-K2.5", "4d01dfe0332d63057c186e0b262165819efb6611"},
        {"moonshotai/Kimi-K2.6", "b5aabbfb20227ed42becbf5541dbffd213942c58"},
        {"moonshotai/Kimi-K3", "f831ab66814297da540d832a5235f8e904f29d06"},
    }};
    auto const plain = [](std::string_view name) { return name.substr(0, name.find(':')); };
    auto const named = plain(model_name);
    auto repository = named;
    if (explicit_id && !plain(*explicit_id).empty()) {
        repository = plain(*explicit_id);
    } else {
        for (auto const* own : {"TML/", "thinkingmachines/"}) {
            if (!named.starts_with(own)) continue;
            base::refuse("tokenizer_id", "model_name", std::string{named},
                         std::string{named} +
                             " has no tokenizer on Hugging Face; give the tokenizer's own id, or "
                             "make the tokens with a renderer for that model");
        }
        if (named.starts_with("meta-llama/Llama-3")) {
            repository = "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer";
        } else if (auto const first = named.find('/'); first != std::string_view::npos) {
            repository = named.substr(0, named.find('/', first + 1));
        }
    }
    TokenizerId out{.repository = std::string{repository}};
    for (auto const& pin : pins) {
        // K2.5 has aliases for parts of it, such as the one for text only.
        auto const alias = pin.name.ends_with("K2.5") && repository.starts_with(pin.name);
        if (alias || pin.name == repository) out.revision = pin.revision;
    }
    return out;
}

}  // namespace tinkxx
