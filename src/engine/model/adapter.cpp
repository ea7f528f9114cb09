#include "engine/model/adapter.hpp"

#include <algorithm>
#include <atomic>

namespace tinkxx::engine {

namespace {

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Result<std::unique_ptr<Adapter>> Adapter::create(std::shared_ptr<Model const> model,
                                                 LoraConfig const& config) {
    if (auto const possible = check(config); !possible) return possible.error();
    Parameters parameters;
    if (config.rank == 0) {
        parameters = widen_weights(model->config(), model->weights());
    } else {
        parameters = fresh_lora(model->config(), config);
    }
    return std::make_unique<Adapter>(std::move(model), config, std::move(parameters));
}

Adapter::Adapter(std::shared_ptr<Model const> model, LoraConfig config, Parameters parameters)
    : model_{std::move(model)},
      config_{config},
      parameters_{std::move(parameters)},
      id_{next_id()} {}

Weights const& Adapter::weights() const noexcept {
    auto const* own = std::get_if<Weights>(&parameters_);
    return own != nullptr ? *own : model_->weights();
}

Parameters Adapter::zeros() const {
    if (lora() != nullptr) return zero_lora(model_->config(), config_);
    return zero_weights(model_->config());
}

std::unique_ptr<Adapter> Adapter::copy() const {
    auto parameters = zeros();
    auto const to = all_matrices(parameters);
    auto const from = all_matrices(const_cast<Parameters&>(parameters_));  // only read
    for (std::size_t i = 0; i < to.size(); ++i) {
        std::ranges::copy(from[i]->values(), to[i]->values().begin());
    }
    return std::make_unique<Adapter>(model_, config_, std::move(parameters));
}

Parameters& Adapter::gradients() {
    if (!gradients_) gradients_ = zeros();
    return *gradients_;
}

Parameters& Adapter::moment1() {
    if (!moment1_) moment1_ = zeros();
    return *moment1_;
}

Parameters& Adapter::moment2() {
    if (!moment2_) moment2_ = zeros();
    return *moment2_;
}

}  // namespace tinkxx::engine
