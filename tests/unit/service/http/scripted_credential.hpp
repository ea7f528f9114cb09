#pragma once

#include "service/http/credentials.hpp"

#include <optional>
#include <string_view>

namespace tinkxx::service {

/// A source whose answers the test gives.
struct ScriptedCredential final : CredentialSource {
    explicit ScriptedCredential(std::string_view called = "command") : name{called} {}
    std::optional<Result<Credential>> get(CredentialWaiter& who) override {
        ++asked;
        if (now) return *now;
        waiter = &who;
        return std::nullopt;
    }
    void forget(CredentialWaiter& who) noexcept override {
        if (waiter == &who) waiter = nullptr;
    }
    std::string_view identity() const noexcept override { return name; }

    std::string_view name;
    int asked{0};
    std::optional<Result<Credential>> now{};
    CredentialWaiter* waiter{nullptr};
};

}  // namespace tinkxx::service
