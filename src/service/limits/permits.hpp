#pragma once

#include "base/common/intrusive_list.hpp"
#include "base/loop/destruction_flag.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace tinkxx::service {

class PermitLimit;

/// Waits for a permit of one limit; a base of the call that needs it, so that waiting never
/// allocates. Destroying it forgets. Loop thread only.
class PermitWaiter {
public:
    PermitWaiter() noexcept = default;
    PermitWaiter(PermitWaiter const&) = delete;
    PermitWaiter& operator=(PermitWaiter const&) = delete;

    /// The permit is the waiter's now, and has to be released. Comes from inside the `release` of
    /// somebody else, so it must not destroy whoever that may be; itself it may destroy.
    virtual void on_permit() = 0;

    [[nodiscard]] bool waits() const noexcept { return limit_ != nullptr; }
    /// Harmless if it does not wait.
    void stop_waiting() noexcept;

protected:
    virtual ~PermitWaiter();

private:
    friend class PermitLimit;
    PermitLimit* limit_{nullptr};
    base::ListLinks<PermitWaiter> links_{};
    std::int64_t cost_{0};
};

/// What both kinds of limit have in common: a balance, and a queue that is served in the order of
/// arrival. Outlives the permits it gave. Loop thread only.
class PermitLimit {
public:
    PermitLimit(PermitLimit const&) = delete;
    PermitLimit& operator=(PermitLimit const&) = delete;
    /// Those who wait are not told.
    ~PermitLimit();

    /// `waiter` is not told any more. Harmless if it does not wait here.
    void forget(PermitWaiter& waiter) noexcept;
    [[nodiscard]] std::size_t waiting() const noexcept { return queue_.size(); }

protected:
    PermitLimit(std::int64_t balance, std::int64_t least) noexcept
        : balance_{balance}, least_{least} {}

    [[nodiscard]] std::int64_t balance() const noexcept { return balance_; }
    bool take(PermitWaiter& waiter, std::int64_t cost) noexcept;
    void give_back(std::int64_t cost);

private:
    friend class Permit;
    [[nodiscard]] bool open() const noexcept { return balance_ >= least_; }
    void serve();

    std::int64_t balance_;
    std::int64_t const least_;  ///< balance at which one more is admitted
    base::IntrusiveList<PermitWaiter, &PermitWaiter::links_> queue_{};
    base::DestructionFlag destroyed_{};  ///< watched by the `serve` that runs
};

/// Bytes that may be under way at once (R-SAMP-23). Who comes while the balance is not negative is
/// admitted, whatever the cost: what is larger than the whole budget goes alone rather than never.
class ByteBudget final : public PermitLimit {
public:
    explicit ByteBudget(std::int64_t bytes) noexcept;

    /// True: granted, and to be released. False: `waiter`, which must not be waiting anywhere, is
    /// told when it is. A negative cost counts as none.
    [[nodiscard]] bool acquire(PermitWaiter& waiter, std::int64_t bytes) noexcept;
    /// Gives back exactly what was acquired; serves those who wait. A release from inside
    /// `on_permit` is worked off by the one that called it: grants never nest.
    void release(std::int64_t bytes);
    /// Below zero while something larger than the rest is under way.
    [[nodiscard]] std::int64_t free() const noexcept { return balance(); }
};

/// How many may be under way at once.
class CountLimit final : public PermitLimit {
public:
    /// Empty: no limit.
    explicit CountLimit(std::optional<std::int64_t> size) noexcept;

    /// As `ByteBudget::acquire`.
    [[nodiscard]] bool acquire(PermitWaiter& waiter) noexcept;
    void release();
    /// Empty if there is no limit.
    [[nodiscard]] std::optional<std::int64_t> free() const noexcept;
    [[nodiscard]] std::int64_t in_use() const noexcept;

private:
    std::optional<std::int64_t> size_;
};

/// A permit that was granted; released when this goes.
class Permit {
public:
    Permit() noexcept = default;
    /// Takes over what `acquire` or `on_permit` granted.
    Permit(ByteBudget& budget, std::int64_t bytes) noexcept;
    explicit Permit(CountLimit& limit) noexcept : limit_{&limit}, cost_{1} {}
    Permit(Permit&& other) noexcept
        : limit_{std::exchange(other.limit_, nullptr)}, cost_{other.cost_} {}
    Permit& operator=(Permit&& other) noexcept;
    ~Permit() { release(); }

    explicit operator bool() const noexcept { return limit_ != nullptr; }
    /// Now rather than at the end. Harmless if there is none.
    void release();

private:
    PermitLimit* limit_{nullptr};
    std::int64_t cost_{0};
};

}  // namespace tinkxx::service
