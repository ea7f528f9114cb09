#pragma once

#include <tinkxx/circuit_breaker.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace tinkxx::service {

/// What one call has to do with a circuit breaker, if there is one (R-EXT-03): it asks before each
/// request, and reports each that failed.
///
/// Loop thread only.
class BreakerGuard {
public:
    /// Before a request, and to go on with one that is under way: an error if it is refused.
    [[nodiscard]] std::optional<Error> enter(std::optional<CircuitBreaker> const& breaker) {
        if (!breaker || permit_) return std::nullopt;
        auto copy = *breaker;
        auto admitted = copy.admit();
        if (!admitted) return admitted.error();
        permit_ = std::make_unique<CircuitBreaker::Permit>(*std::move(admitted));
        return std::nullopt;
    }
    /// Whether a request would be refused now.
    [[nodiscard]] static std::optional<Error> refusal(
        std::optional<CircuitBreaker> const& breaker) {
        BreakerGuard asks;
        return asks.enter(breaker);  // and gives the permit back
    }
    /// As above, for a request that is not to be made yet: a trial that is under way now may be
    /// over by then.
    [[nodiscard]] static std::optional<Error> refusal_while_open(
        std::optional<CircuitBreaker> const& breaker) {
        if (!breaker || breaker->state() != CircuitState::open) return std::nullopt;
        return refusal(breaker);
    }
    void succeeded() noexcept {
        if (auto const permit = std::move(permit_)) permit->succeeded();
    }
    void failed(Error const& error) noexcept {
        if (auto const permit = std::move(permit_)) permit->failed(error);
    }
    /// The request ended in a way that says nothing about the service.
    void leave() noexcept { permit_.reset(); }

    /// What a call ends with that would have been repeated after `last`, had it not been refused.
    [[nodiscard]] static Error stopped(Error const& refusal, Error const& last) {
        auto details = refusal.details();
        details.message += "; last: ";
        details.message += last.what();
        details.attempts = last.details().attempts;
        details.cause = std::make_shared<Error const>(last);
        return Error{std::move(details)};
    }

private:
    std::unique_ptr<CircuitBreaker::Permit> permit_{};  ///< null unless a request is under way
};

}  // namespace tinkxx::service
