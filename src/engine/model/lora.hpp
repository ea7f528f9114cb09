#pragma once

#include <tinkxx/result.hpp>

#include "engine/files/model_config.hpp"
#include "engine/kernels/packed_matrix.hpp"
#include "engine/model/weights.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::engine {

/// What of a model is trained, and how. Rank 0 is full fine-tuning: all weights, no adapter.
struct LoraConfig {
    int rank{32};
    float alpha{32.0F};
    /// Decides the random start of the A matrices.
    std::uint64_t seed{0};
    bool train_attn{true};
    bool train_mlp{true};
    bool train_unembed{true};

    [[nodiscard]] float scale() const noexcept {
        return rank > 0 ? alpha / static_cast<float>(rank) : 0.0F;
    }
    [[nodiscard]] bool trains(Module module) const noexcept {
        return static_cast<std::size_t>(module) < 4 ? train_attn : train_mlp;
    }

    bool operator==(LoraConfig const&) const = default;
};

/// Fails unless the rank is in 0 … 1024 and something is trained.
Result<void> check(LoraConfig const& config);

/// y = W x + scale · B (A x). A is rank × inputs, B is outputs × rank; both empty: no adapter.
struct LoraPair {
    PackedMatrix a{};
    PackedMatrix b{};

    [[nodiscard]] bool empty() const noexcept { return a.empty(); }
    [[nodiscard]] std::size_t rank() const noexcept { return a.outputs(); }
};

struct LoraLayer {
    std::array<LoraPair, module_count> modules{};

    [[nodiscard]] LoraPair& operator[](Module m) { return modules[static_cast<std::size_t>(m)]; }
    [[nodiscard]] LoraPair const& operator[](Module m) const {
        return modules[static_cast<std::size_t>(m)];
    }
};

/// The matrices of one adapter, or as many gradients or moments of them.
struct LoraWeights {
    std::vector<LoraLayer> layers{};
    LoraPair head{};
};

/// One adapted matrix: "model.layers.0.self_attn.q_proj" or "lm_head".
struct LoraSlot {
    std::string module{};
    LoraPair* pair{nullptr};
    std::size_t inputs{0};
    std::size_t outputs{0};
};

/// What `lora` adapts, in the order of the layers; resizes `weights.layers`.
std::vector<LoraSlot> lora_slots(ModelConfig const& model, LoraConfig const& lora,
                                 LoraWeights& weights);

LoraWeights zero_lora(ModelConfig const& model, LoraConfig const& lora);
/// A fresh adapter as PEFT makes it: A uniform within ±1/√inputs, B zero. The numbers come from
/// our own generator, so a seed gives the same adapter everywhere.
LoraWeights fresh_lora(ModelConfig const& model, LoraConfig const& lora);

/// The non-empty matrices in the order of `lora_slots`, A before B.
std::vector<PackedMatrix*> all_matrices(LoraWeights& weights);

}  // namespace tinkxx::engine
