#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/retry_config.hpp>
#include <tinkxx/types/training.hpp>

#include <optional>
#include <string>

namespace tinkxx {

/// Which weights to sample from, and how. Every field but one of the first two has a working
/// default.
struct SamplerOptions {
    /// E.g. "Qwen/Qwen3-8B". One of the two must be given.
    std::string base_model{};
    /// Saved weights, `tinker://…`.
    std::string model_path{};
    RetryConfig retry{};
    /// Has the server keep what the loss `stable_reinforce` needs to know about each sample.
    bool record_stability_info{false};
    /// Refuses samples for a while once too many requests in a row have failed. Empty: none.
    std::optional<CircuitBreaker> circuit_breaker{};
};

/// How a new model is trained.
struct TrainingOptions {
    LoraConfig lora{};
    /// For all its life.
    OptimizerConfig optimizer{};
    /// Kept with the training run.
    UserMetadata user_metadata{};
};

/// How a model is made from a checkpoint. Every field has a working default.
struct FromStateOptions {
    /// A model that fits the checkpoint, in place of its own.
    std::string base_model{};
    UserMetadata user_metadata{};
    /// The credential of the checkpoint's owner, if that is somebody else. Never written to a log.
    std::string weights_access_token{};
    /// Empty: Adam. With the state of the optimizer the family is the checkpoint's, and this must
    /// be empty.
    std::optional<OptimizerConfig> optimizer{};
};

/// How to sample from the weights of a model.
struct TrainedSamplerOptions {
    RetryConfig retry{};
    /// As `SamplerOptions::record_stability_info`.
    bool record_stability_info{false};
    /// As `SamplerOptions::circuit_breaker`.
    std::optional<CircuitBreaker> circuit_breaker{};
};

}  // namespace tinkxx
