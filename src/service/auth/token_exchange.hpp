#pragma once

#include "service/auth/credential_queue.hpp"
#include "service/auth/token_clock.hpp"
#include "service/common/alarm.hpp"
#include "service/http/http_call.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace tinkxx::service {

/// Exchanges a credential for a short-lived token, and renews that in time (R-AUTH-10..17). Never
/// two exchanges at once. Loop thread only; the context outlives it.
class TokenExchange final : private HttpCall::Listener, private CredentialWaiter {
public:
    static constexpr std::string_view path = "/api/v1/auth/token";

    TokenExchange(HttpContext& context, std::shared_ptr<CredentialSource> raw);
    ~TokenExchange();

    /// As `CredentialSource::get`. A token that could not be renewed is used as it is; where there
    /// is none, the failure of the exchange is the answer.
    [[nodiscard]] std::optional<Result<Credential>> get(CredentialWaiter& waiter);
    void forget(CredentialWaiter& waiter) noexcept;
    /// The token that is held; null before the first.
    [[nodiscard]] Credential const& token() const noexcept { return token_; }
    [[nodiscard]] bool exchanging() const noexcept { return exchanging_; }
    [[nodiscard]] CredentialStanding standing() const;
    /// Ends the renewals (R-AUTH-16). The token stays; who has none to fall back to gets an error.
    void stop() noexcept;

private:
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_credential(Result<Credential> credential) override;

    void begin(bool background);
    void send(Credential const& credential);
    void renew();
    void tell_failure();
    void failed(Error error);

    HttpContext* context_;
    std::shared_ptr<CredentialSource> const raw_;
    HttpCall call_;
    Alarm<TokenExchange> renewal_{*this, &TokenExchange::renew};
    Alarm<TokenExchange> failure_{*this, &TokenExchange::tell_failure};
    TokenClock clock_{};
    Credential token_{};
    CredentialQueue waiters_{};
    std::optional<Error> error_{};
    bool exchanging_{false};
    bool background_{false};
    bool stopped_{false};
};

}  // namespace tinkxx::service
