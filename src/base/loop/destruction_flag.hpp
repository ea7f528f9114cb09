#pragma once

#include <utility>

namespace tinkxx::base {

/// A member by which a function notices that somebody it called has destroyed its object:
///
///     DestructionFlag::Watch const watch{destroyed_};
///     waiter.on_permit();
///     if (watch.destroyed()) return;
///
/// Watches of one object may nest: all of them notice. For one thread at a time.
class DestructionFlag {
public:
    class Watch {
    public:
        explicit Watch(DestructionFlag& flag) noexcept
            : flag_{&flag}, outer_{std::exchange(flag.innermost_, this)} {}
        Watch(Watch const&) = delete;
        Watch& operator=(Watch const&) = delete;
        ~Watch() {
            if (flag_ != nullptr) flag_->innermost_ = outer_;
        }

        [[nodiscard]] bool destroyed() const noexcept { return flag_ == nullptr; }

    private:
        friend class DestructionFlag;
        DestructionFlag* flag_;
        Watch* const outer_;
    };

    DestructionFlag() noexcept = default;
    DestructionFlag(DestructionFlag const&) = delete;
    DestructionFlag& operator=(DestructionFlag const&) = delete;
    ~DestructionFlag() {
        for (auto* watch = innermost_; watch != nullptr; watch = watch->outer_) {
            watch->flag_ = nullptr;
        }
    }

    /// Whether a function of the object watches now.
    [[nodiscard]] bool watched() const noexcept { return innermost_ != nullptr; }

private:
    Watch* innermost_{nullptr};
};

}  // namespace tinkxx::base
