#pragma once

#include "service/http/credentials.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tinkxx::service {

/// Those who wait for one credential, in the order of their coming. Loop thread only.
class CredentialQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
    void push(CredentialWaiter& waiter) { waiting_.push_back(&waiter); }

    void forget(CredentialWaiter& waiter) noexcept {
        std::erase(waiting_, &waiter);
        std::ranges::replace(telling_, &waiter, nullptr);
    }

    /// Tells all who wait now. Inside, others may come, who are not told, and go.
    void tell(Result<Credential> const& credential) {
        telling_.swap(waiting_);
        for (auto* waiter : telling_) {
            if (waiter != nullptr) waiter->on_credential(credential);
        }
        telling_.clear();
    }

private:
    std::vector<CredentialWaiter*> waiting_{};
    std::vector<CredentialWaiter*> telling_{};
};

}  // namespace tinkxx::service
