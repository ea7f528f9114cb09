#pragma once

#include <tinkxx/types/sampling.hpp>

#include "engine/jobs.hpp"
#include "local/core/core.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

[[nodiscard]] std::vector<TokenLogprob> to_cells(std::vector<engine::TokenLogprob> const& row);
[[nodiscard]] Fingerprint print_of(wire::server::Sample const& request);

/// A request for samples as it was read, without regard to any model.
struct Core::SampleRead {
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

/// A sample from its request to its result.
struct Core::SampleJob {
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

    [[nodiscard]] SampleResponse response();
};

}  // namespace tinkxx::local
