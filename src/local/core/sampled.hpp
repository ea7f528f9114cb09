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

    [[nodiscard]] engine::Datum datum(std::vector<Token> const& prompt) const;
    [[nodiscard]] TensorData answer(std::vector<float> const& logprobs) const;
};
/// Fails unless the tensor has a row for each prompt token but the first, and asks for something.
[[nodiscard]] Result<Targets> read_targets(TensorData const& asked, std::size_t prompt,
                                           std::int64_t vocabulary);

[[nodiscard]] std::vector<TokenLogprob> to_cells(std::vector<engine::TokenLogprob> const& row);
[[nodiscard]] Fingerprint print_of(wire::server::Sample const& request);

/// A sample from its request to its result.
struct Core::Sampled {
    std::string id{};
    std::string session{};
    std::string base{};
    /// The key of the weights; empty: those of the base model.
    std::string weights{};
    engine::SampleRequest ask{};
    SampleOptions options{};
    std::optional<Targets> targets{};
    SampleResponse response{};
    std::size_t cached_tokens{0};
    std::size_t drawn_tokens{0};
    /// Whether it is counted among those that use the weights.
    bool holds{false};
    /// Of a stream, which has no promise.
    std::function<void(std::size_t, std::int32_t, float)> on_token{};
    std::function<void(Result<void>)> on_done{};
};

}  // namespace tinkxx::local
