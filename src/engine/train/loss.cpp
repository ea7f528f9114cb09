#include "engine/train/loss.hpp"

#include "engine/common/failure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tinkxx::engine {

namespace {

constexpr std::array<std::pair<std::string_view, LossFn>, 5> names{{
    {"cross_entropy", LossFn::cross_entropy},
    {"importance_sampling", LossFn::importance_sampling},
    {"ppo", LossFn::ppo},
    {"cispo", LossFn::cispo},
    {"dro", LossFn::dro},
}};

bool finite(std::vector<float> const& values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

Result<Loss> make_loss(std::string_view name, std::map<std::string, double> const& config) {
    auto const* const known =
        std::ranges::find(names, name, &std::pair<std::string_view, LossFn>::first);
    if (known == names.end()) {
        return invalid("loss " + std::string(name.substr(0, 64)) +
                           " is not known; use cross_entropy, importance_sampling, ppo, cispo or "
                           "dro",
                       "loss_fn");
    }
    Loss loss{.fn = known->second};
    bool const clips = loss.fn == LossFn::ppo || loss.fn == LossFn::cispo;
    if (loss.fn == LossFn::cispo) {
        loss.clip_low = 0.0;
        loss.clip_high = 4.0;
    }
    bool beta_given = false;
    for (auto const& [key, value] : config) {
        if (!std::isfinite(value)) {
            return invalid("loss " + std::string(name) + ": " + key + " must be finite", key);
        }
        if (clips && key == "clip_low_threshold") {
            loss.clip_low = value;
        } else if (clips && key == "clip_high_threshold") {
            loss.clip_high = value;
        } else if (loss.fn == LossFn::dro && key == "beta") {
            loss.beta = value;
            beta_given = true;
        } else {
            return invalid("loss " + std::string(name) + " has no setting " + key, key);
        }
    }
    if (loss.fn == LossFn::dro && !beta_given) {
        return invalid("loss dro needs the setting beta, e.g. 0.05", "beta");
    }
    if (clips && loss.clip_low > loss.clip_high) {
        return invalid("loss " + std::string(name) +
                           ": clip_low_threshold must not exceed clip_high_threshold",
                       "clip_low_threshold");
    }
    return loss;
}

Result<void> check(Datum const& datum, Loss const& loss, int vocab_size, int max_positions,
                   std::size_t index) {
    auto const fail = [&](std::string const& why, std::string field) {
        return invalid("datum " + std::to_string(index) + ": " + why, std::move(field));
    };
    auto const count = datum.tokens.size();
    if (count == 0) return fail("model_input has no tokens", "model_input");
    if (count > static_cast<std::size_t>(max_positions)) {
        return fail("model_input has " + std::to_string(count) + " tokens; the model takes " +
                        std::to_string(max_positions),
                    "model_input");
    }
    auto const in_vocabulary = [&](std::int32_t token) { return token >= 0 && token < vocab_size; };
    if (!std::ranges::all_of(datum.tokens, in_vocabulary)) {
        return fail(
            "model_input has a token outside the vocabulary of " + std::to_string(vocab_size),
            "model_input");
    }
    bool const soft = loss.fn == LossFn::cross_entropy;
    auto const per_token = datum.targets_per_token;
    if (per_token == 0 || (per_token > 1 && !soft) || datum.targets.size() / per_token != count ||
        datum.targets.size() % per_token != 0) {
        return fail("target_tokens must have one entry for each of the " + std::to_string(count) +
                        " tokens" + (soft ? " (or K entries)" : ""),
                    "target_tokens");
    }
    if (!std::ranges::all_of(datum.targets, in_vocabulary)) {
        return fail(
            "target_tokens has a token outside the vocabulary of " + std::to_string(vocab_size),
            "target_tokens");
    }
    auto const check_input = [&](std::vector<float> const& values,
                                 std::string const& name) -> Result<void> {
        if (values.size() != datum.targets.size()) {
            return fail(name + " must have the shape of target_tokens", name);
        }
        if (!finite(values)) return fail(name + " must be finite", name);
        return {};
    };
    if (soft) return check_input(datum.weights, "weights");
    if (auto good = check_input(datum.logprobs, "logprobs"); !good) return good;
    return check_input(datum.advantages, "advantages");
}

TokenLoss token_loss(Loss const& loss, Datum const& datum, std::size_t index, double p) {
    if (loss.fn == LossFn::cross_entropy) {
        auto const weight = static_cast<double>(datum.weights[index]);
        // A target of probability 0 that does not count must not turn 0 · ∞ into NaN.
        return {weight == 0.0 ? 0.0 : -weight * p, -weight};
    }
    auto const q = static_cast<double>(datum.logprobs[index]);
    auto const advantage = static_cast<double>(datum.advantages[index]);
    if (loss.fn == LossFn::dro) {
        auto const distance = p - q;
        return {-(p * advantage - 0.5 * loss.beta * distance * distance),
                -(advantage - loss.beta * distance)};
    }
    if (advantage == 0.0) return {};  // also where the ratio overflows
    auto const ratio = std::exp(p - q);
    auto const clipped = std::clamp(ratio, loss.clip_low, loss.clip_high);
    if (loss.fn == LossFn::cispo) return {-clipped * p * advantage, -clipped * advantage};
    auto const plain = ratio * advantage;
    if (loss.fn == LossFn::ppo && clipped * advantage < plain) return {-clipped * advantage, 0.0};
    return {-plain, -plain};
}

}  // namespace tinkxx::engine
