#pragma once

#include "service/http/http_error.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/transport.hpp>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::service {

/// How many more empty 400 answers of each purpose are taken for a proxy's mood (R-RETRY-75).
class RejectionBudget {
public:
    static constexpr int full = 16;

    RejectionBudget() noexcept { left_.fill(full); }
    /// Takes a unit, if there is one.
    [[nodiscard]] bool take(Purpose purpose) noexcept;
    /// Gives one back for a success, up to the full budget.
    void restore(Purpose purpose) noexcept;
    [[nodiscard]] int left(Purpose purpose) const noexcept;

private:
    std::array<int, purpose_count> left_{};
};

/// Decides what follows each attempt of one HTTP call: the first layer of retries. Touches no
/// socket and reads no clock, so every path is tested by calling it.
class HttpRetry {
public:
    /// The answer is the result.
    struct Deliver {};
    /// Try again after `delay`, unless the caller gives up with `error`.
    struct Retry {
        std::chrono::nanoseconds delay{};
        ErrorDetails error{};
    };
    struct Fail {
        ErrorDetails error{};
    };
    using Action = std::variant<Deliver, Retry, Fail>;

    struct Rules {
        int max_retries{10};
        /// False: an unsuccessful status is delivered once its retries are spent.
        bool fail_on_status{true};
        /// A redirect, which nobody followed, is an answer.
        bool redirect_answers{false};
        Purpose purpose{Purpose::rest};
        /// A 500 with a plain text ends the call.
        bool plain_500_ends{false};
        /// False: not tried again once the server may have acted on it (C-59).
        bool repeat_if_seen{true};
    };

    /// All references outlive this.
    HttpRetry(Rules rules, Operation const& operation, RejectionBudget& budget) noexcept
        : rules_{rules}, operation_{&operation}, budget_{&budget} {}

    /// `chance` is a draw from [0, 1); `scrubber` knows the secrets that an error must not hold.
    [[nodiscard]] Action on_reply(Head const& head, std::string_view body, WallTime now,
                                  double chance, Scrubber const& scrubber);
    /// `delivered`: part of the answer has been given away, so the call cannot begin anew.
    [[nodiscard]] Action on_failure(Failure const& failure, bool delivered, double chance,
                                    Scrubber const& scrubber);

    [[nodiscard]] int retries() const noexcept { return retries_; }
    /// The error of a call that is given up in place of the retry that it was told of.
    [[nodiscard]] ErrorDetails given_up(ErrorDetails error);

    /// R-RETRY-70, for an answer that is no success.
    [[nodiscard]] static bool retries_status(int status, Headers const& headers) noexcept;
    [[nodiscard]] static bool retries_failure(Failure const& failure) noexcept;
    /// R-RETRY-71 without a hint: min(0.5·2ⁿ, 10) s, less up to a quarter.
    [[nodiscard]] static std::chrono::nanoseconds backoff(int retries_taken,
                                                          double chance) noexcept;
    /// Whether an answer looks like a proxy's, which ends the call (R-RETRY-75).
    [[nodiscard]] static bool is_rejection(int status, Headers const& headers) noexcept;

private:
    Action again_or_fail(bool retry, std::chrono::nanoseconds delay, ErrorDetails error);
    [[nodiscard]] Fail give_up(RetryEnd why, ErrorDetails error) const;
    [[nodiscard]] Fail maybe_applied(ErrorDetails error) const;

    Rules rules_;
    Operation const* operation_;
    RejectionBudget* budget_;
    int retries_{0};
};

}  // namespace tinkxx::service
