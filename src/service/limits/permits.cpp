#include "service/limits/permits.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace tinkxx::service {

namespace {

constexpr auto unlimited = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t cost_of(std::int64_t bytes) noexcept {
    return std::max<std::int64_t>(bytes, 0);
}

}  // namespace

PermitWaiter::~PermitWaiter() { stop_waiting(); }

void PermitWaiter::stop_waiting() noexcept {
    if (limit_ != nullptr) limit_->forget(*this);
}

PermitLimit::~PermitLimit() {
    while (!queue_.empty()) forget(*queue_.front());
}

void PermitLimit::forget(PermitWaiter& waiter) noexcept {
    if (waiter.limit_ != this) return;
    queue_.erase(waiter);
    waiter.limit_ = nullptr;
}

bool PermitLimit::take(PermitWaiter& waiter, std::int64_t cost) noexcept {
    assert(!waiter.waits());
    // While others are being served the balance may already allow the next: they come first.
    if (queue_.empty() && open()) {
        balance_ -= cost;
        return true;
    }
    waiter.limit_ = this;
    waiter.cost_ = cost;
    queue_.push_back(waiter);
    return false;
}

void PermitLimit::give_back(std::int64_t cost) {
    balance_ += cost;
    if (!destroyed_.watched()) serve();
}

void PermitLimit::serve() {
    base::DestructionFlag::Watch const watch{destroyed_};
    while (!watch.destroyed() && !queue_.empty() && open()) {
        auto& waiter = *queue_.front();
        forget(waiter);
        balance_ -= waiter.cost_;
        waiter.on_permit();
    }
}

ByteBudget::ByteBudget(std::int64_t bytes) noexcept : PermitLimit{cost_of(bytes), 0} {}

bool ByteBudget::acquire(PermitWaiter& waiter, std::int64_t bytes) noexcept {
    return take(waiter, cost_of(bytes));
}

void ByteBudget::release(std::int64_t bytes) { give_back(cost_of(bytes)); }

CountLimit::CountLimit(std::optional<std::int64_t> size) noexcept
    : PermitLimit{size.value_or(unlimited), 1}, size_{size} {}

bool CountLimit::acquire(PermitWaiter& waiter) noexcept { return take(waiter, 1); }

void CountLimit::release() { give_back(1); }

std::optional<std::int64_t> CountLimit::free() const noexcept {
    if (!size_) return std::nullopt;
    return balance();
}

std::int64_t CountLimit::in_use() const noexcept { return size_.value_or(unlimited) - balance(); }

Permit::Permit(ByteBudget& budget, std::int64_t bytes) noexcept
    : limit_{&budget}, cost_{cost_of(bytes)} {}

Permit& Permit::operator=(Permit&& other) noexcept {
    if (this != &other) {
        release();
        limit_ = std::exchange(other.limit_, nullptr);
        cost_ = other.cost_;
    }
    return *this;
}

void Permit::release() {
    if (limit_ != nullptr) std::exchange(limit_, nullptr)->give_back(cost_);
}

}  // namespace tinkxx::service
