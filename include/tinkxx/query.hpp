#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

/// A value in a query string: null, a boolean, a number, text, a list or named parts.
///
///     Query{{"limit", 20}, {"tags", QueryValue::List{"a", "b"}}}     limit=20&tags=a%2Cb
///
/// Nulls and empty text are omitted, lists are joined by commas, and parts become `name[part]`.
class QueryValue {
public:
    using List = std::vector<QueryValue>;
    using Parts = std::vector<std::pair<std::string, QueryValue>>;
    using Content =
        std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Parts>;

    QueryValue() noexcept : content_{nullptr} {}
    QueryValue(std::nullptr_t) noexcept : content_{nullptr} {}
    template <std::same_as<bool> T>
    QueryValue(T value) noexcept : content_{value} {}
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    QueryValue(T value) noexcept : content_{static_cast<std::int64_t>(value)} {}
    template <std::floating_point T>
    QueryValue(T value) noexcept : content_{static_cast<double>(value)} {}
    QueryValue(std::string value) : content_{std::move(value)} {}
    QueryValue(char const* value) : content_{std::string{value}} {}
    QueryValue(List values);
    QueryValue(Parts parts);

    [[nodiscard]] Content const& content() const noexcept { return content_; }

private:
    Content content_;
};

/// The parameters of a query string, in order.
using Query = QueryValue::Parts;

}  // namespace tinkxx
