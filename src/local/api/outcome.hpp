#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace tinkxx::local {

/// Why a request is refused; this becomes its answer.
struct Refused {
    int status{400};
    std::string detail{};
    std::optional<std::chrono::milliseconds> retry_after{};
};

/// What checks and endpoints return: why not, or nothing if there is no objection.
///
///     if (auto no = sessions_.check_metadata(operation, bytes)) return no;
using MaybeRefused = std::optional<Refused>;

/// A value, or why there is none. Members are named as those of `Result`.
template <class T>
class [[nodiscard]] Outcome {
public:
    using value_type = T;

    template <class U = T>
        requires(!std::same_as<std::remove_cvref_t<U>, Outcome> &&
                 !std::same_as<std::remove_cvref_t<U>, Refused> && std::is_constructible_v<T, U>)
    Outcome(U&& value) : content_{std::in_place_index<0>, std::forward<U>(value)} {}
    Outcome(Refused refused) : content_{std::in_place_index<1>, std::move(refused)} {}

    explicit operator bool() const noexcept { return content_.index() == 0; }
    /// The value, unchecked: undefined if there is none.
    [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&content_); }
    [[nodiscard]] T const& operator*() const& noexcept { return *std::get_if<0>(&content_); }
    [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
    [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&content_); }
    [[nodiscard]] T const* operator->() const noexcept { return std::get_if<0>(&content_); }
    /// Why not, unchecked: undefined if there is a value.
    [[nodiscard]] Refused const& refused() const noexcept { return *std::get_if<1>(&content_); }

private:
    std::variant<T, Refused> content_;
};

}  // namespace tinkxx::local
