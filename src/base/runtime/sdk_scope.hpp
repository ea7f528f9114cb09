#pragma once

namespace tinkxx::base {

/// Marks the calling thread, for the time of the scope, as working for a runtime: there waiting
/// for that runtime is refused, and joining its threads would be joining oneself. Scopes nest.
class SdkScope {
public:
    explicit SdkScope(void const* runtime) noexcept : runtime_{runtime}, outer_{innermost} {
        innermost = this;
    }
    ~SdkScope() { innermost = outer_; }
    SdkScope(SdkScope const&) = delete;
    SdkScope& operator=(SdkScope const&) = delete;

    [[nodiscard]] static bool inside(void const* runtime) noexcept {
        for (auto const* scope = innermost; scope != nullptr; scope = scope->outer_) {
            if (scope->runtime_ == runtime) return true;
        }
        return false;
    }

private:
    static inline thread_local SdkScope const* innermost = nullptr;

    void const* runtime_;
    SdkScope const* outer_;
};

}  // namespace tinkxx::base
