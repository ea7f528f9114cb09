#pragma once

#include <cstddef>
#include <optional>

namespace tinkxx::service {

/// Decides when each chunk of a call is submitted (R-TRAIN-32): one after the other, or all but the
/// first at once and that one last, since the server cannot begin before it has come.
class ChunkOrder {
public:
    struct Next {
        std::size_t first{0};
        std::size_t count{0};
    };

    ChunkOrder(std::size_t chunks, bool parallel) noexcept
        : chunks_{chunks}, parallel_{parallel && chunks > 1} {}

    /// What to submit at the beginning.
    [[nodiscard]] Next begin() const noexcept {
        if (!parallel_) return {.first = 0, .count = 1};
        return {.first = 1, .count = chunks_ - 1};
    }
    /// A submit was accepted. What to submit now, if anything.
    [[nodiscard]] std::optional<std::size_t> on_accepted() noexcept {
        ++accepted_;
        if (parallel_) {
            return accepted_ == chunks_ - 1 ? std::optional<std::size_t>{0} : std::nullopt;
        }
        return accepted_ < chunks_ ? std::optional{accepted_} : std::nullopt;
    }
    [[nodiscard]] std::size_t accepted() const noexcept { return accepted_; }
    [[nodiscard]] bool complete() const noexcept { return accepted_ == chunks_; }

private:
    std::size_t chunks_;
    std::size_t accepted_{0};
    bool parallel_;
};

}  // namespace tinkxx::service
