#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

namespace tinkxx::detail {

/// A number as an argument: any integer, but never `{}`. So where an overload takes options
/// instead, empty braces mean those.
class Count {
public:
    template <std::integral Integer>
        requires(!std::same_as<Integer, bool>)
    constexpr Count(Integer value) noexcept  // NOLINT: integers convert, that is what it is for
        : value_{std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                                    : std::numeric_limits<std::int64_t>::max()} {}
    [[nodiscard]] constexpr std::int64_t value() const noexcept { return value_; }

private:
    std::int64_t value_;
};

}  // namespace tinkxx::detail
