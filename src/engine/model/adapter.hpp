#pragma once

#include <tinkxx/result.hpp>

#include "engine/model/lora.hpp"
#include "engine/model/model.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

namespace tinkxx::engine {

/// Everything trainable of an adapter: LoRA matrices, or all weights at rank 0.
using Parameters = std::variant<LoraWeights, Weights>;

[[nodiscard]] inline std::vector<PackedMatrix*> all_matrices(Parameters& parameters) {
    return std::visit([](auto& weights) { return all_matrices(weights); }, parameters);
}

/// One set of trained weights over a shared model.
///
/// Not synchronised: training, saving and sampling of one adapter take turns. Different adapters
/// of one model are independent.
class Adapter {
public:
    /// A fresh adapter. Fails if the configuration is not possible.
    static Result<std::unique_ptr<Adapter>> create(std::shared_ptr<Model const> model,
                                                   LoraConfig const& config);
    /// Takes over matrices, which must have the shapes of model and configuration.
    Adapter(std::shared_ptr<Model const> model, LoraConfig config, Parameters parameters);

    [[nodiscard]] Model const& model() const noexcept { return *model_; }
    [[nodiscard]] LoraConfig const& config() const noexcept { return config_; }

    /// What a product reads: the model's weights, or at rank 0 the adapter's own.
    [[nodiscard]] Weights const& weights() const noexcept;
    /// Null at rank 0.
    [[nodiscard]] LoraWeights const* lora() const noexcept {
        return std::get_if<LoraWeights>(&parameters_);
    }

    [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
    [[nodiscard]] Parameters const& parameters() const noexcept { return parameters_; }
    /// Sums since the last step; made of zeros at the first use, so that an adapter which is only
    /// sampled from costs no more than its matrices.
    [[nodiscard]] Parameters& gradients();
    /// AdamW's running means; as `gradients`.
    [[nodiscard]] Parameters& moment1();
    [[nodiscard]] Parameters& moment2();
    [[nodiscard]] bool has_gradients() const noexcept { return gradients_.has_value(); }
    [[nodiscard]] bool has_moments() const noexcept { return moment1_.has_value(); }

    /// Steps of the optimizer so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    void set_steps(std::int64_t steps) noexcept { steps_ = steps; }
    /// Distinguishes the adapter from every other of this process.
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Grows whenever the matrices change. Whoever changes them calls `touch`.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
    void touch() noexcept { ++version_; }

    /// An adapter of its own with the same weights, without gradients and moments.
    [[nodiscard]] std::unique_ptr<Adapter> copy() const;
    /// Zeros in the shape of the parameters.
    [[nodiscard]] Parameters zeros() const;

private:
    std::shared_ptr<Model const> model_;
    LoraConfig config_;
    Parameters parameters_;
    std::optional<Parameters> gradients_{};
    std::optional<Parameters> moment1_{};
    std::optional<Parameters> moment2_{};
    std::int64_t steps_{0};
    std::uint64_t id_;
    std::uint64_t version_{0};
};

}  // namespace tinkxx::engine
