#pragma once

#include <tinkxx/error.hpp>

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace tinkxx {

/// A value or an `Error`. Members are named as in `std::expected`.
template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    using error_type = Error;

    template <class U = T>
        requires(!std::same_as<std::remove_cvref_t<U>, Result> &&
                 !std::derived_from<std::remove_cvref_t<U>, Error> && std::is_constructible_v<T, U>)
    Result(U&& value) : content_{std::in_place_index<0>, std::forward<U>(value)} {}
    Result(Error error) : content_{std::in_place_index<1>, std::move(error)} {}
    Result(ErrorDetails details) : content_{std::in_place_index<1>, std::move(details)} {}

    [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /// The value. Throws the error, as the class of its kind, if there is no value.
    [[nodiscard]] T& value() & {
        check();
        return std::get<0>(content_);
    }
    [[nodiscard]] T const& value() const& {
        check();
        return std::get<0>(content_);
    }
    [[nodiscard]] T&& value() && {
        check();
        return std::get<0>(std::move(content_));
    }
    /// The value. Undefined behaviour if there is none.
    [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&content_); }
    [[nodiscard]] T const& operator*() const& noexcept { return *std::get_if<0>(&content_); }
    [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
    [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&content_); }
    [[nodiscard]] T const* operator->() const noexcept { return std::get_if<0>(&content_); }
    /// The error. Undefined behaviour if there is a value.
    [[nodiscard]] Error const& error() const noexcept { return *std::get_if<1>(&content_); }

    template <class U>
    [[nodiscard]] T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }

private:
    void check() const {
        if (!has_value()) error().raise();
    }

    std::variant<T, Error> content_;
};

/// Success or an `Error`.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    using error_type = Error;

    Result() noexcept : content_{std::in_place_index<0>} {}
    Result(Error error) : content_{std::in_place_index<1>, std::move(error)} {}
    Result(ErrorDetails details) : content_{std::in_place_index<1>, std::move(details)} {}

    [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (!has_value()) error().raise();
    }
    void operator*() const noexcept {}
    [[nodiscard]] Error const& error() const noexcept { return *std::get_if<1>(&content_); }

private:
    std::variant<std::monostate, Error> content_;
};

}  // namespace tinkxx
