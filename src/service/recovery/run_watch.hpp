#pragma once

#include <tinkxx/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tinkxx::service {

/// What matters of a run to those who watch it.
struct RunState {
    bool corrupted{false};
    /// Of the last checkpoint that can be trained on from.
    std::optional<std::string> last_checkpoint{};
};

/// Decides what the state of a watched run means (R-EXT-41). Holds no socket and no clock.
class RunWatch {
public:
    /// Ask again after a while.
    struct Wait {
        std::chrono::milliseconds delay{};
    };
    /// The run is lost, and no longer watched.
    struct Recover {
        std::optional<std::string> checkpoint{};
    };
    using Action = std::variant<Wait, Recover>;

    explicit RunWatch(std::chrono::milliseconds interval) noexcept : interval_{interval} {}

    [[nodiscard]] Action on_run(RunState state) {
        ++polls_;
        trouble_.reset();
        if (state.corrupted) return Recover{std::move(state.last_checkpoint)};
        return Wait{interval_};
    }
    /// Nobody knows how it is: as it was, for all we know.
    [[nodiscard]] Action on_error(Error const& error) {
        ++polls_;
        trouble_ = error;
        return Wait{interval_};
    }

    /// Times that it was asked for.
    [[nodiscard]] std::int64_t polls() const noexcept { return polls_; }
    /// Why the last answer told nothing, if it did not.
    [[nodiscard]] std::optional<Error> const& trouble() const noexcept { return trouble_; }

private:
    std::chrono::milliseconds interval_;
    std::int64_t polls_{0};
    std::optional<Error> trouble_{};
};

}  // namespace tinkxx::service
