#pragma once

#include <tinkxx/types/sampling.hpp>

#include "engine/jobs.hpp"
#include "local/api/outcome.hpp"
#include "local/base_models/base_models.hpp"
#include "local/common/fingerprint.hpp"
#include "wire/server/requests.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A request for samples, from its body to its result.

namespace tinkxx::local {

/// Tokens whose log-probabilities at prompt positions were asked for, packed: each row has only
/// what it asks, and as many cells as the longest of them.
struct Targets {
    /// As it was asked, to be answered in the same layout.
    TensorData asked{};
    std::size_t rows{0};
    std::size_t width{0};
    /// For each value of `asked` where in the packed rows its answer stands; none: nothing asked.
    std::vector<std::optional<std::size_t>> cells{};
    std::vector<std::int32_t> tokens{};
    /// The largest of them.
    std::int64_t largest{-1};

    [[nodiscard]] engine::Datum datum(std::vector<Token> const& prompt) const;
    [[nodiscard]] TensorData answer(std::vector<float> const& logprobs) const;
};
/// Fails unless the tensor has a row for each prompt token but the first, asks for something, and
/// for no more than `most`.
[[nodiscard]] Result<Targets> read_targets(TensorData asked, std::size_t prompt, std::size_t most);

/// As it was read, without regard to any model.
struct SampleRead {
    /// Without its prompt and targets, which follow.
    wire::server::Sample request{};
    std::vector<Token> prompt{};
    /// Of the prompt, which is left out if no model could read it.
    std::size_t length{0};
    Token least{0};
    Token most{0};
    std::optional<Targets> targets{};
    /// Why it is refused, whatever the model.
    std::string refusal{};
    Fingerprint print{};
    /// What is written down, to be computed after a restart: the row if its id is known, else the
    /// body.
    std::string row{};
    std::string body{};
};
/// What there is to say of a request without regard to any model. Any thread.
[[nodiscard]] SampleRead understand(std::string_view operation, std::size_t most_tokens,
                                    std::size_t most_cells, wire::server::Sample request);

/// What it samples from.
struct SampleSource {
    BaseModel const* base{nullptr};
    /// Empty if the request names no sampler.
    std::string session{};
    /// The key of the weights; empty: those of the base model.
    std::string weights{};
};

/// A sample from its request to its result.
struct SampleJob {
    std::string id{};
    std::string session{};
    std::string base{};
    /// The key of the weights; empty: those of the base model.
    std::string weights{};
    engine::SampleRequest ask{};
    SampleOptions options{};
    std::optional<Targets> targets{};
    /// What the engine made of it; the answer is written from these.
    engine::SampleResult result{};
    std::vector<float> target_logprobs{};
    std::vector<std::vector<std::vector<engine::TokenLogprob>>> topk{};
    /// What it holds, or may come to hold.
    std::size_t bytes{0};
    std::size_t cached_tokens{0};
    std::size_t sampled_tokens{0};
    /// Whether it is counted among those that use the weights.
    bool holds{false};
    /// Of a stream, which has no result to fetch.
    std::function<void(std::size_t, std::int32_t, float)> on_token{};
    std::function<void(Result<void>)> on_done{};

    /// Names what it samples from in a job of the engine.
    template <class Job>
    void name_weights(Job& job) const {
        (weights.empty() ? job.model : job.adapter) = weights.empty() ? base : weights;
    }
    [[nodiscard]] SampleResponse response();
};
/// Checks a request against the model that it samples from. `seed` is taken if it names none.
[[nodiscard]] Outcome<std::shared_ptr<SampleJob>> prepare_sample(
    std::string_view operation, SampleRead read, SampleSource const& source, Limits const& limits,
    std::function<std::uint64_t()> const& seed);

}  // namespace tinkxx::local
