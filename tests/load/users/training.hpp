#pragma once

#include "load/options.hpp"
#include "load/problems.hpp"
#include "load/users/questions.hpp"

#include <tinkxx/tinkxx.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::load {

/// One model in training: what it is asked for follows from its number and how far it has come, so
/// that another server can be asked for the same.
class UserTraining {
public:
    /// What the server said to a round of steps.
    struct Round {
        std::vector<double> losses{};
        std::vector<double> norms{};
        /// Drawn from the weights that were saved after it, if they were.
        std::optional<SampledSequence> drawn{};

        bool operator==(Round const&) const = default;
    };

    UserTraining(std::uint64_t seed, int number) : seed_{seed}, number_{number} {}

    /// Trains until `open` is false, or for as many rounds; blocks. Throws what a call throws, and
    /// `TimeoutError` for one that takes longer than `patience`.
    void train(ServiceClient const& service, std::atomic<bool> const& open, std::size_t rounds,
               std::chrono::seconds patience);

    [[nodiscard]] std::vector<Round> const& rounds() const noexcept { return rounds_; }
    /// The server ought to have counted so many.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
    [[nodiscard]] std::uint64_t saves() const noexcept { return saves_; }

private:
    [[nodiscard]] std::vector<Datum> batch(std::uint64_t step) const;
    [[nodiscard]] SampledSequence draw(TrainingClient const& trainer,
                                       std::chrono::seconds patience);

    std::uint64_t seed_;
    int number_;
    std::vector<Round> rounds_{};
    // Read while it trains.
    std::atomic<std::uint64_t> steps_{0};
    std::atomic<std::uint64_t> tokens_{0};
    std::atomic<std::uint64_t> samples_{0};
    std::atomic<std::uint64_t> saves_{0};
};

}  // namespace tinkxx::load
