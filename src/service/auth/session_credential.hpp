#pragma once

#include "service/auth/token_exchange.hpp"
#include "service/http/credentials.hpp"

#include <memory>
#include <optional>
#include <string>

namespace tinkxx::service {

/// The credential of a session's requests: the configured one until the server's flags are known,
/// then that, or a token for it. Loop thread only, but for `identity`.
class SessionCredential final : public CredentialSource {
public:
    /// `identity` is what was configured (R-CONF-11).
    SessionCredential(std::shared_ptr<CredentialSource> raw, std::string identity) noexcept
        : raw_{std::move(raw)}, identity_{std::move(identity)} {}

    /// From now on as it is.
    void use(std::shared_ptr<CredentialSource> raw) { raw_ = std::move(raw); }
    /// From now on exchanged for a token.
    void exchange(std::shared_ptr<CredentialSource> raw, HttpContext& context) {
        raw_ = raw;
        exchange_.emplace(context, std::move(raw));
    }

    std::optional<Result<Credential>> get(CredentialWaiter& waiter) override {
        return exchange_ ? exchange_->get(waiter) : raw_->get(waiter);
    }
    void forget(CredentialWaiter& waiter) noexcept override {
        if (exchange_) exchange_->forget(waiter);
        raw_->forget(waiter);
    }
    CredentialStanding standing() const override {
        return exchange_ ? exchange_->standing() : raw_->standing();
    }
    std::string_view identity() const noexcept override { return identity_; }

    /// Null if none is exchanged.
    [[nodiscard]] TokenExchange const* exchanged() const noexcept {
        return exchange_ ? &*exchange_ : nullptr;
    }
    void stop() noexcept {
        if (exchange_) exchange_->stop();
    }

private:
    std::shared_ptr<CredentialSource> raw_;
    std::optional<TokenExchange> exchange_{};
    std::string const identity_;
};

}  // namespace tinkxx::service
