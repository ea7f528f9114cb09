#pragma once

#include "engine/files/model_config.hpp"
#include "engine/train/loss.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::engine::support {

/// A transformer written down as plainly as possible, in float64 and without a thought for speed,
/// to take finite differences of. It shares no arithmetic with the engine.
class ReferenceModel {
public:
    using Row = std::vector<double>;
    using Rows = std::vector<Row>;

    ModelConfig config{};
    /// By the names of a model file; "<module>.lora_A" and "<module>.lora_B" beside them.
    std::map<std::string, std::vector<double>> tensors{};
    double lora_scale{0};

    /// Logits behind each token.
    [[nodiscard]] Rows logits(std::span<std::int32_t const> tokens) const {
        Rows x;
        auto const hidden = size(config.hidden_size);
        auto const& embedding = tensors.at("model.embed_tokens.weight");
        for (auto const token : tokens) {
            auto const begin = embedding.begin() + token * config.hidden_size;
            x.emplace_back(begin, begin + config.hidden_size);
        }
        for (int i = 0; i < config.layers; ++i) {
            auto const layer = "model.layers." + std::to_string(i) + ".";
            Rows normed;
            for (auto const& row : x) {
                normed.push_back(norm(row, tensors.at(layer + "input_layernorm.weight"), hidden));
            }
            auto const attended = attention(layer, normed);
            for (std::size_t t = 0; t < x.size(); ++t) {
                add(x[t], linear(layer + "self_attn.o_proj", attended[t]));
                auto const n =
                    norm(x[t], tensors.at(layer + "post_attention_layernorm.weight"), hidden);
                auto const gate = linear(layer + "mlp.gate_proj", n);
                auto inner = linear(layer + "mlp.up_proj", n);
                for (std::size_t j = 0; j < inner.size(); ++j) {
                    inner[j] *= gate[j] / (1.0 + std::exp(-gate[j]));
                }
                add(x[t], linear(layer + "mlp.down_proj", inner));
            }
        }
        Rows result;
        for (auto const& row : x) {
            result.push_back(linear("lm_head", norm(row, tensors.at("model.norm.weight"), hidden)));
        }
        return result;
    }

    /// The logprob of every target of a datum.
    [[nodiscard]] Row logprobs(Datum const& datum) const {
        Row result;
        auto const all = logits(datum.tokens);
        for (std::size_t t = 0; t < all.size(); ++t) {
            double sum = 0.0;
            for (auto const logit : all[t]) sum += std::exp(logit);
            for (std::size_t k = 0; k < datum.targets_per_token; ++k) {
                auto const target = datum.targets[t * datum.targets_per_token + k];
                result.push_back(all[t][size(target)] - std::log(sum));
            }
        }
        return result;
    }

    /// The summed loss, from the formulas of the protocol. `stopped` are the logprobs that cispo's
    /// ratio is taken at, since no gradient goes through it.
    [[nodiscard]] double loss(Loss const& loss, Datum const& datum, Row const& stopped) const {
        auto const p = logprobs(datum);
        double total = 0.0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (loss.fn == LossFn::cross_entropy) {
                total -= static_cast<double>(datum.weights[i]) * p[i];
                continue;
            }
            auto const q = static_cast<double>(datum.logprobs[i]);
            auto const a = static_cast<double>(datum.advantages[i]);
            auto const clip = [&](double r) {
                return std::min(std::max(r, loss.clip_low), loss.clip_high);
            };
            auto const r = std::exp(p[i] - q);
            if (loss.fn == LossFn::importance_sampling) total -= r * a;
            if (loss.fn == LossFn::ppo) total -= std::min(r * a, clip(r) * a);
            if (loss.fn == LossFn::cispo) total -= clip(std::exp(stopped[i] - q)) * p[i] * a;
            if (loss.fn == LossFn::dro) {
                total -= p[i] * a - 0.5 * loss.beta * (p[i] - q) * (p[i] - q);
            }
        }
        return total;
    }

private:
    static std::size_t size(int value) { return static_cast<std::size_t>(value); }

    static void add(Row& to, Row const& from) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    }

    [[nodiscard]] Row norm(Row const& x, std::vector<double> const& weight,
                           std::size_t width) const {
        Row result(x.size());
        for (std::size_t begin = 0; begin < x.size(); begin += width) {
            double squares = 0.0;
            for (std::size_t i = 0; i < width; ++i) squares += x[begin + i] * x[begin + i];
            auto const rms = std::sqrt(squares / static_cast<double>(width) +
                                       static_cast<double>(config.rms_norm_eps));
            for (std::size_t i = 0; i < width; ++i) {
                result[begin + i] = x[begin + i] / rms * weight[i];
            }
        }
        return result;
    }

    static Row multiply(std::vector<double> const& matrix, Row const& x) {
        Row result(matrix.size() / x.size());
        for (std::size_t i = 0; i < result.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) result[i] += matrix[i * x.size() + j] * x[j];
        }
        return result;
    }

    [[nodiscard]] Row linear(std::string const& module, Row const& x) const {
        auto const own = tensors.find(module + ".weight");
        auto y = multiply(
            own == tensors.end() ? tensors.at("model.embed_tokens.weight") : own->second, x);
        if (auto const bias = tensors.find(module + ".bias"); bias != tensors.end()) {
            add(y, bias->second);
        }
        if (auto const a = tensors.find(module + ".lora_A"); a != tensors.end()) {
            auto const change = multiply(tensors.at(module + ".lora_B"), multiply(a->second, x));
            for (std::size_t i = 0; i < y.size(); ++i) y[i] += lora_scale * change[i];
        }
        return y;
    }

    /// Inverse frequency `i`, from the definition in the Llama 3 release.
    [[nodiscard]] double frequency(int i) const {
        auto const& rope = config.rope;
        auto const plain = 1.0 / std::pow(rope.theta, 2.0 * i / config.head_dim);
        if (!rope.llama3) return plain;
        auto const wavelength = 2.0 * std::numbers::pi / plain;
        if (wavelength < rope.original_max_positions / rope.high_freq_factor) return plain;
        if (wavelength > rope.original_max_positions / rope.low_freq_factor) {
            return plain / rope.factor;
        }
        auto const smooth = (rope.original_max_positions / wavelength - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
        return (1.0 - smooth) * plain / rope.factor + smooth * plain;
    }

    void rotate(Row& heads, std::size_t position) const {
        auto const width = size(config.head_dim);
        auto const half = width / 2;
        for (std::size_t begin = 0; begin < heads.size(); begin += width) {
            for (std::size_t i = 0; i < half; ++i) {
                auto const angle = static_cast<double>(position) * frequency(static_cast<int>(i));
                auto const a = heads[begin + i];
                auto const b = heads[begin + i + half];
                heads[begin + i] = a * std::cos(angle) - b * std::sin(angle);
                heads[begin + i + half] = b * std::cos(angle) + a * std::sin(angle);
            }
        }
    }

    [[nodiscard]] Rows attention(std::string const& layer, Rows const& x) const {
        auto const width = size(config.head_dim);
        auto const group = size(config.heads / config.kv_heads);
        Rows q;
        Rows k;
        Rows v;
        for (std::size_t t = 0; t < x.size(); ++t) {
            q.push_back(linear(layer + "self_attn.q_proj", x[t]));
            k.push_back(linear(layer + "self_attn.k_proj", x[t]));
            v.push_back(linear(layer + "self_attn.v_proj", x[t]));
            if (config.qk_norm) {
                q[t] = norm(q[t], tensors.at(layer + "self_attn.q_norm.weight"), width);
                k[t] = norm(k[t], tensors.at(layer + "self_attn.k_norm.weight"), width);
            }
            rotate(q[t], t);
            rotate(k[t], t);
        }
        Rows result;
        for (std::size_t t = 0; t < x.size(); ++t) {
            Row out(q[t].size());
            for (std::size_t head = 0; head < size(config.heads); ++head) {
                auto const q_at = head * width;
                auto const kv_at = head / group * width;
                Row weights;
                double sum = 0.0;
                for (std::size_t s = 0; s <= t; ++s) {
                    double score = 0.0;
                    for (std::size_t i = 0; i < width; ++i) {
                        score += q[t][q_at + i] * k[s][kv_at + i];
                    }
                    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
                    sum += weights.back();
                }
                for (std::size_t s = 0; s <= t; ++s) {
                    for (std::size_t i = 0; i < width; ++i) {
                        out[q_at + i] += weights[s] / sum * v[s][kv_at + i];
                    }
                }
            }
            result.push_back(std::move(out));
        }
        return result;
    }
};

}  // namespace tinkxx::engine::support
