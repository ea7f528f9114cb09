#pragma once

#include "engine/files/model_config.hpp"
#include "engine/kernels/packed_matrix.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine {

/// The matrices of a layer that an adapter may change.
enum class Module : std::uint8_t { q, k, v, o, gate, up, down };
inline constexpr std::size_t module_count = 7;
inline constexpr std::array<Module, module_count> all_modules{
    Module::q, Module::k, Module::v, Module::o, Module::gate, Module::up, Module::down};

/// "self_attn.q_proj" and so on.
[[nodiscard]] std::string_view module_name(Module module) noexcept;
[[nodiscard]] std::size_t module_inputs(ModelConfig const& config, Module module) noexcept;
[[nodiscard]] std::size_t module_outputs(ModelConfig const& config, Module module) noexcept;

/// A float32 vector, kept as a matrix of one row so that everything trainable is one type.
using PackedVector = PackedMatrix;

struct LayerWeights {
    std::array<PackedMatrix, module_count> modules{};
    /// Of q, k and v; empty where the model has none.
    std::array<PackedVector, 3> biases{};
    PackedVector input_norm{};
    PackedVector post_norm{};
    PackedVector q_norm{};
    PackedVector k_norm{};

    [[nodiscard]] PackedMatrix& operator[](Module m) {
        return modules[static_cast<std::size_t>(m)];
    }
    [[nodiscard]] PackedMatrix const& operator[](Module m) const {
        return modules[static_cast<std::size_t>(m)];
    }
};

/// All weights of a model, or as many gradients or moments of them. Vectors are float32.
struct Weights {
    PackedMatrix embedding{};
    std::vector<LayerWeights> layers{};
    PackedVector norm{};
    /// Empty if the embedding serves as the unembedding.
    PackedMatrix head{};

    [[nodiscard]] PackedMatrix& unembedding() { return head.empty() ? embedding : head; }
    [[nodiscard]] PackedMatrix const& unembedding() const {
        return head.empty() ? embedding : head;
    }
};

/// What `config` asks of one tensor: its name in the file, where it goes, its shape. Vectors have
/// one row.
struct WeightSlot {
    std::string name{};
    PackedMatrix* matrix{nullptr};
    std::size_t rows{0};
    std::size_t cols{0};
    bool vector{false};
};

/// Every tensor of the model in the order of a file; resizes `weights.layers`.
std::vector<WeightSlot> weight_slots(ModelConfig const& config, Weights& weights);

/// Room for all of them, with elements of so many bytes.
PanelArena arena_for(std::span<WeightSlot const> slots, std::size_t element);

/// float32 zeros in the shape of the model.
Weights zero_weights(ModelConfig const& config);

/// As `weight_slots` without the names: the non-empty matrices, in the same order.
std::vector<PackedMatrix*> all_matrices(Weights& weights);

}  // namespace tinkxx::engine
