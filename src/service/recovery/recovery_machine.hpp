#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/recovery_policy.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <variant>

namespace tinkxx::service {

/// How long to wait after an attempt that failed, 1 being the first: twice as long each time.
[[nodiscard]] std::chrono::milliseconds delay_after(int attempt,
                                                    RecoveryPolicy const& policy) noexcept;

/// Leads one run through its attempts to be recovered (R-EXT-42). Holds no socket and no clock.
class RecoveryMachine {
public:
    /// Ask for the run, to learn which checkpoint is its last: `on_checkpoint` or `on_error`.
    struct Fetch {};
    /// Make a model from it: over if that works, else `on_error`.
    struct Create {
        std::string checkpoint{};
    };
    /// The attempt has failed; `begin` another then.
    struct Wait {
        std::chrono::milliseconds delay{};
        Error error;
    };
    /// So has the last one.
    struct GiveUp {
        Error error;
    };
    using Action = std::variant<Fetch, Create, Wait, GiveUp>;

    /// `checkpoint` is the one to be restored, if that is known.
    RecoveryMachine(std::string run_id, RecoveryPolicy policy,
                    std::optional<std::string> checkpoint);

    /// Begins an attempt.
    [[nodiscard]] Action begin();
    /// The last checkpoint of the run, if it has one.
    [[nodiscard]] Action on_checkpoint(std::optional<std::string> checkpoint);
    [[nodiscard]] Action on_error(Error error);

    /// The number of the attempt, 1 for the first; 0 before it.
    [[nodiscard]] int attempt() const noexcept { return attempt_; }
    /// What the attempt restores, once that is chosen.
    [[nodiscard]] std::string const& checkpoint() const noexcept { return chosen_; }

private:
    std::string run_id_;
    RecoveryPolicy policy_;
    std::optional<std::string> known_;
    std::string chosen_{};
    int attempt_{0};
};

}  // namespace tinkxx::service
