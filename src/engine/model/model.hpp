#pragma once

#include <tinkxx/result.hpp>

#include "engine/files/atomic_write.hpp"
#include "engine/files/mapped_file.hpp"
#include "engine/files/model_config.hpp"
#include "engine/kernels/types.hpp"
#include "engine/model/weights.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

namespace tinkxx::engine {

class Threads;

/// cos and sin of position · frequency, a row of head_dim / 2 for each position.
struct RopeTables {
    std::size_t positions{0};
    std::size_t width{0};
    std::vector<float> cosines{};
    std::vector<float> sines{};

    [[nodiscard]] ConstMatrixView cosine_view() const noexcept {
        return {cosines.data(), positions, width};
    }
    [[nodiscard]] ConstMatrixView sine_view() const noexcept {
        return {sines.data(), positions, width};
    }
};

/// Whether `Model::load` could read a folder, as far as that can be told without reading weights:
/// options, files, and the name, shape and type of each tensor. Fails as it does.
Result<ModelConfig> check_model(std::filesystem::path const& folder);

/// A decoder-only transformer whose weights any number of adapters share. Immutable; all members
/// may be called from any thread.
class Model {
public:
    /// Reads a Hugging Face folder (`config.json`, `*.safetensors`). The weights are copied into
    /// panels of the file's type and the files are closed again. Fails with a validation error that
    /// names the option, the file or the tensor that is wrong.
    static Result<std::shared_ptr<Model const>> load(std::filesystem::path const& folder,
                                                     Threads* threads = nullptr,
                                                     Access access = Access::map);
    /// Takes over weights, which must have the shapes of `config`.
    Model(ModelConfig config, Weights weights);
    /// Random weights (normal, 0.02; norms 1), rounded to `type`. For measurements and tests.
    static std::shared_ptr<Model const> random(ModelConfig const& config, ElementType type,
                                               std::uint64_t seed);

    [[nodiscard]] ModelConfig const& config() const noexcept { return config_; }
    [[nodiscard]] Weights const& weights() const noexcept { return weights_; }
    /// Memory of the weights.
    [[nodiscard]] std::size_t bytes() const noexcept;
    /// Tables for at least `positions` positions. Locks only to grow.
    [[nodiscard]] std::shared_ptr<RopeTables const> rope_tables(std::size_t positions) const;

private:
    ModelConfig config_;
    Weights weights_;
    mutable std::mutex rope_mutex_;
    mutable std::shared_ptr<RopeTables const> rope_;
};

/// Hands over the elements of a matrix row by row, rounded to `type`, some rows at a time.
void stream_matrix(PackedMatrix const& matrix, ElementType type, ByteSink const& sink);

/// Writes a folder that `Model::load` and transformers read: config.json and model.safetensors.
/// float32 weights are rounded to `type`. The folder appears at once or not at all.
Result<void> save_model(std::filesystem::path const& folder, ModelConfig const& config,
                        Weights const& weights, ElementType type);

/// A float32 copy, the start of full fine-tuning.
Weights widen_weights(ModelConfig const& config, Weights const& weights);

}  // namespace tinkxx::engine
