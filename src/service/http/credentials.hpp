#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

/// A credential, shared so that sending it copies no key. Null: the request goes without one.
using Credential = std::shared_ptr<std::string const>;

/// Waits for a credential that is still being fetched.
class CredentialWaiter {
public:
    virtual void on_credential(Result<Credential> credential) = 0;

protected:
    ~CredentialWaiter() = default;
};

/// Where the fetching of a credential stands, for those who wonder what takes so long.
struct CredentialStanding {
    /// In words; nothing of the credential itself.
    std::string why{};
    /// When the wait ends at the latest, if that is known.
    std::optional<TimePoint> until{};
};

/// Supplies the value of X-API-Key for each attempt. Loop thread only.
class CredentialSource {
public:
    virtual ~CredentialSource() = default;
    /// The credential, or why there is none; or nothing yet, and `waiter` is told later, once.
    [[nodiscard]] virtual std::optional<Result<Credential>> get(CredentialWaiter& waiter) = 0;
    /// `waiter` is not told any more. Harmless if it does not wait.
    virtual void forget(CredentialWaiter& waiter) noexcept = 0;
    /// While somebody waits.
    [[nodiscard]] virtual CredentialStanding standing() const { return {}; }
    /// What tells one account from another for limits that are shared (R-CONF-11): the configured
    /// key or command, never a token that rotates. A secret. Any thread.
    [[nodiscard]] virtual std::string_view identity() const noexcept = 0;
};

/// One key for ever.
class FixedCredential final : public CredentialSource {
public:
    /// An empty key means none.
    explicit FixedCredential(std::string key)
        : key_{key.empty() ? nullptr : std::make_shared<std::string const>(std::move(key))} {}

    std::optional<Result<Credential>> get(CredentialWaiter& /*waiter*/) override {
        return Result<Credential>{key_};
    }
    void forget(CredentialWaiter& /*waiter*/) noexcept override {}
    std::string_view identity() const noexcept override {
        return key_ ? std::string_view{*key_} : std::string_view{};
    }

private:
    Credential key_;
};

}  // namespace tinkxx::service
