#include <tinkxx/error.hpp>
#include <tinkxx/losses.hpp>

#include "base/common/invalid.hpp"
#include "math/check.hpp"
#include "math/loss_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tinkxx::math {

void refuse_loss(std::string_view loss, std::string field, std::string const& why) {
    base::refuse(loss, std::move(field), "", why);
}

std::span<float const> logprobs_of(std::string_view loss, TensorData const& logprobs,
                                   std::size_t datum) {
    auto const* floats = std::get_if<std::vector<float>>(&logprobs.data);
    if (floats == nullptr || logprobs.sparse()) {
        refuse_loss(loss, "logprobs/" + std::to_string(datum),
                    "the log-probabilities of datum " + std::to_string(datum) +
                        " are no dense float32 tensor");
    }
    return *floats;
}

std::optional<std::vector<double>> find_input(std::string_view loss, Datum const& datum,
                                              std::size_t index, std::string_view name,
                                              std::size_t size) {
    auto const found = datum.loss_fn_inputs.find(name);
    if (!found) return std::nullopt;
    TensorData dense;
    auto shown = *found;
    if (found->sparse()) {
        dense = to_dense(to_tensor_data(*found));
        shown = view(dense);
    }
    if (shown.size() != size) {
        refuse_loss(loss, "data/" + std::to_string(index) + "/loss_fn_inputs/" + std::string{name},
                    std::string{name} + " of datum " + std::to_string(index) + " has " +
                        std::to_string(shown.size()) + " numbers; the datum has " +
                        std::to_string(size) + " log-probabilities");
    }
    return std::visit(
        [](auto const& numbers) { return std::vector<double>(numbers.begin(), numbers.end()); },
        shown.data);
}

std::vector<double> input_of(std::string_view loss, Datum const& datum, std::size_t index,
                             std::string_view name, std::size_t size) {
    if (auto found = find_input(loss, datum, index, name, size)) return std::move(*found);
    refuse_loss(loss, "data/" + std::to_string(index) + "/loss_fn_inputs/" + std::string{name},
                "datum " + std::to_string(index) + " has no input " + std::string{name} +
                    ", which this loss needs");
}

void check_sizes(std::string_view loss, std::span<Datum const> data,
                 std::span<TensorData const> logprobs) {
    if (data.size() == logprobs.size()) return;
    refuse_loss(loss, "logprobs",
                "there are log-probabilities for " + std::to_string(logprobs.size()) + " of " +
                    std::to_string(data.size()) + " data");
}

}  // namespace tinkxx::math

namespace tinkxx::losses {

namespace {

using math::check_sizes;
using math::find_input;
using math::input_of;
using math::logprobs_of;

std::vector<double> weights_of(std::string_view loss, Datum const& datum, std::size_t index,
                               std::size_t size) {
    auto found = find_input(loss, datum, index, "weights", size);
    return found ? std::move(*found) : std::vector<double>(size, 1.0);
}

// What one token adds: to the loss, and by its log-probability.
struct Share {
    double loss{0};
    double slope{0};
};

// The sum over all tokens of w * share(...).
template <class Fn>
CustomLossValue summed(std::string_view loss, std::span<Datum const> data,
                       std::span<TensorData const> logprobs, Fn share) {
    check_sizes(loss, data, logprobs);
    CustomLossValue out;
    out.gradient.reserve(data.size());
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const p = logprobs_of(loss, logprobs[i], i);
        auto const weights = weights_of(loss, data[i], i, p.size());
        auto const at = share(data[i], i, p);
        auto& gradient = out.gradient.emplace_back(p.size());
        for (std::size_t t = 0; t < p.size(); ++t) {
            Share const one = at(t, weights[t]);
            out.loss += weights[t] * one.loss;
            gradient[t] = static_cast<float>(weights[t] * one.slope);
        }
    }
    return out;
}

double ratio_or_zero(double sum, double weight) { return weight == 0 ? 0 : sum / weight; }

// log(1 + exp(x)) without overflow.
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double sigmoid(double x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace

CustomLoss weighted_cross_entropy() {
    return [](std::span<Datum const> data, std::span<TensorData const> logprobs) {
        return summed("weighted_cross_entropy", data, logprobs,
                      [](Datum const&, std::size_t, std::span<float const> p) {
                          return [p](std::size_t t, double) {
                              return Share{-static_cast<double>(p[t]), -1};
                          };
                      });
    };
}

CustomLoss dpo(DpoOptions options) {
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs) {
        constexpr std::string_view name = "dpo";
        check_sizes(name, data, logprobs);
        if (data.size() % 2 != 0 || data.empty()) {
            math::refuse_loss(name, "data",
                              std::to_string(data.size()) +
                                  " data are no pairs; give a better and a worse one in turns");
        }
        std::vector<std::vector<double>> weights;
        std::vector<double> rewards;
        for (std::size_t i = 0; i < data.size(); ++i) {
            auto const p = logprobs_of(name, logprobs[i], i);
            auto const reference = input_of(name, data[i], i, options.reference, p.size());
            auto const& w = weights.emplace_back(weights_of(name, data[i], i, p.size()));
            double sum = 0;
            for (std::size_t t = 0; t < p.size(); ++t) {
                sum += w[t] * (static_cast<double>(p[t]) - reference[t]);
            }
            rewards.push_back(options.beta * sum);
        }
        CustomLossValue out;
        std::size_t const count = data.size() / 2;
        auto const pairs = static_cast<double>(count);
        double right = 0;
        double chosen = 0;
        double rejected = 0;
        for (std::size_t i = 0; i < data.size(); i += 2) {
            auto const margin = rewards[i] - rewards[i + 1];
            out.loss += softplus(-margin) / pairs;
            right += margin > 0 ? 1 : 0;
            chosen += rewards[i];
            rejected += rewards[i + 1];
            auto const slope = -sigmoid(-margin) * options.beta / pairs;
            for (std::size_t k = 0; k < 2; ++k) {
                auto& gradient = out.gradient.emplace_back();
                for (auto const w : weights[i + k]) {
                    gradient.push_back(static_cast<float>((k == 0 ? slope : -slope) * w));
                }
            }
        }
        out.metrics = {{"dpo_loss", out.loss},
                       {"accuracy", right / pairs},
                       {"margin", (chosen - rejected) / pairs},
                       {"chosen_reward", chosen / pairs},
                       {"rejected_reward", rejected / pairs}};
        return out;
    };
}

CustomLoss kl_to_reference(KlOptions options) {
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs) {
        constexpr std::string_view name = "kl_to_reference";
        double total = 0;
        double weight = 0;
        auto out = summed(
            name, data, logprobs,
            [&](Datum const& datum, std::size_t index, std::span<float const> p) {
                return [&, p,
                        reference = input_of(name, datum, index, options.reference, p.size())](
                           std::size_t t, double w) {
                    auto const d = static_cast<double>(p[t]) - reference[t];
                    Share one;
                    switch (options.estimate) {
                        case KlEstimate::k1:
                            one = {d, 1};
                            break;
                        case KlEstimate::k2:
                            one = {d * d / 2, d};
                            break;
                        case KlEstimate::k3:
                            one = {std::expm1(-d) + d, -std::expm1(-d)};
                            break;
                    }
                    total += w * one.loss;
                    weight += w;
                    return Share{options.coefficient * one.loss, options.coefficient * one.slope};
                };
            });
        out.metrics["kl"] = ratio_or_zero(total, weight);
        return out;
    };
}

CustomLoss entropy_bonus(double coefficient) {
    return [coefficient](std::span<Datum const> data, std::span<TensorData const> logprobs) {
        constexpr std::string_view name = "entropy_bonus";
        check_sizes(name, data, logprobs);
        CustomLossValue out;
        double total = 0;
        double weight = 0;
        for (std::size_t i = 0; i < data.size(); ++i) {
            auto const p = logprobs_of(name, logprobs[i], i);
            auto const weights = weights_of(name, data[i], i, p.size());
            auto& gradient = out.gradient.emplace_back(p.size());
            auto const& shape = logprobs[i].shape;
            auto const matrix = shape && shape->size() == 2;
            auto const columns =
                matrix ? static_cast<std::size_t>(std::max<std::int64_t>((*shape)[1], 1)) : 1;
            for (std::size_t first = 0; first + columns <= p.size(); first += columns) {
                auto const w = weights[first];
                double entropy = 0;
                for (std::size_t t = first; t < first + columns; ++t) {
                    auto const x = static_cast<double>(p[t]);
                    // exp(x) * x is 0 where the probability is.
                    auto const probability = std::exp(x);
                    auto const slope = !matrix ? -1 : probability == 0 ? 0 : -probability * (x + 1);
                    entropy += !matrix ? -x : probability == 0 ? 0 : -probability * x;
                    gradient[t] = static_cast<float>(-coefficient * w * slope);
                }
                out.loss -= coefficient * w * entropy;
                total += w * entropy;
                weight += w;
            }
        }
        out.metrics["entropy"] = ratio_or_zero(total, weight);
        return out;
    };
}

CustomLoss ppo_clip(PpoClipOptions options) {
    return [options](std::span<Datum const> data, std::span<TensorData const> logprobs) {
        constexpr std::string_view name = "ppo_clip";
        double ratios = 0;
        double clipped = 0;
        double weight = 0;
        auto out = summed(
            name, data, logprobs,
            [&](Datum const& datum, std::size_t index, std::span<float const> p) {
                return [&, p, old = input_of(name, datum, index, "logprobs", p.size()),
                        advantages = input_of(name, datum, index, "advantages", p.size())](
                           std::size_t t, double w) {
                    auto const ratio = std::exp(static_cast<double>(p[t]) - old[t]);
                    auto const advantage = advantages[t];
                    auto const bound = std::clamp(ratio, options.clip_low, options.clip_high);
                    // An endless ratio times 0 is nothing, not NaN.
                    auto const free = advantage == 0 ? 0 : ratio * advantage;
                    auto const held = bound * advantage;
                    ratios += w * ratio;
                    clipped += w * (held < free ? 1 : 0);
                    weight += w;
                    if (held < free) return Share{-held, 0};
                    return Share{-free, -free};
                };
            });
        out.metrics["ratio"] = ratio_or_zero(ratios, weight);
        out.metrics["clip_fraction"] = ratio_or_zero(clipped, weight);
        return out;
    };
}

CustomLoss sum(std::vector<Term> terms) {
    return [terms = std::move(terms)](std::span<Datum const> data,
                                      std::span<TensorData const> logprobs) {
        CustomLossValue out;
        for (std::size_t i = 0; i < logprobs.size(); ++i) {
            out.gradient.emplace_back(logprobs_of("sum", logprobs[i], i).size(), 0.0F);
        }
        for (auto const& term : terms) {
            auto const part = term.loss(data, logprobs);
            if (auto const problem = math::custom_value_problem("sum", part, logprobs)) {
                throw ValidationError{*problem};
            }
            out.loss += term.weight * part.loss;
            for (std::size_t i = 0; i < out.gradient.size(); ++i) {
                for (std::size_t t = 0; t < out.gradient[i].size(); ++t) {
                    out.gradient[i][t] += static_cast<float>(term.weight) * part.gradient[i][t];
                }
            }
            for (auto const& [name, value] : part.metrics) out.metrics[name] = value;
        }
        return out;
    };
}

GradientCheck check_gradient(CustomLoss const& loss, std::span<Datum const> data,
                             std::span<TensorData const> logprobs,
                             GradientCheckOptions const& options) {
    auto const value = loss(data, logprobs);
    if (auto const problem = math::custom_value_problem("check_gradient", value, logprobs)) {
        throw ValidationError{*problem};
    }
    std::size_t all = 0;
    for (auto const& gradient : value.gradient) all += gradient.size();
    auto const stride = options.most == 0 || all <= options.most ? 1 : all / options.most;
    std::vector<TensorData> moved{logprobs.begin(), logprobs.end()};
    GradientCheck out;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        auto* const p = std::get_if<std::vector<float>>(&moved[i].data);
        if (p == nullptr) {
            math::refuse_loss("check_gradient", "logprobs/" + std::to_string(i),
                              "the log-probabilities are no float32");
        }
        for (std::size_t t = 0; t < p->size(); ++t, ++seen) {
            if (seen % stride != 0) continue;
            auto const was = (*p)[t];
            // Relative to large numbers, which a small step would not move.
            auto const step = options.step * std::max(1.0F, std::abs(was));
            auto const high = was + step;
            auto const low = was - step;
            (*p)[t] = high;
            auto const above = loss(data, moved).loss;
            (*p)[t] = low;
            auto const below = loss(data, moved).loss;
            (*p)[t] = was;
            // What the step became in a float.
            auto const numeric =
                (above - below) / (static_cast<double>(high) - static_cast<double>(low));
            auto const analytic = static_cast<double>(value.gradient[i][t]);
            auto const scale = std::max({1.0, std::abs(numeric), std::abs(analytic)});
            auto difference = std::abs(numeric - analytic) / scale;
            if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
            ++out.compared;
            if (out.compared > 1 && !(difference > out.worst)) continue;
            out.worst = difference;
            out.datum = i;
            out.index = t;
            out.analytic = analytic;
            out.numeric = numeric;
        }
    }
    out.ok = out.worst <= options.tolerance;
    return out;
}

}  // namespace tinkxx::losses
