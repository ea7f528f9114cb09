#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace tinkxx::detail {

template <class Signature>
class UniqueFunction;

/// A move-only callable, as `std::move_only_function` will be in C++23. Callables of up to
/// `inline_bytes` that move without throwing live inside it; larger ones cost one allocation.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
public:
    static constexpr std::size_t inline_bytes = 40;

    UniqueFunction() noexcept = default;
    UniqueFunction(std::nullptr_t) noexcept {}

    template <class Fn>
        requires(!std::is_same_v<std::remove_cvref_t<Fn>, UniqueFunction> &&
                 std::is_invocable_r_v<R, std::decay_t<Fn>&, Args...>)
    UniqueFunction(Fn&& fn) {
        using Stored = std::decay_t<Fn>;
        if constexpr (fits<Stored>) {
            ::new (static_cast<void*>(space_)) Stored(std::forward<Fn>(fn));
            ops_ = &inline_ops<Stored>;
        } else {
            ::new (static_cast<void*>(space_)) Stored*(new Stored(std::forward<Fn>(fn)));
            ops_ = &heap_ops<Stored>;
        }
    }

    UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
    UniqueFunction& operator=(UniqueFunction&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    UniqueFunction(UniqueFunction const&) = delete;
    UniqueFunction& operator=(UniqueFunction const&) = delete;
    ~UniqueFunction() { reset(); }

    explicit operator bool() const noexcept { return ops_ != nullptr; }
    R operator()(Args... args) { return ops_->call(space_, std::forward<Args>(args)...); }

private:
    struct Ops {
        R (*call)(void*, Args&&...);
        void (*move)(void* from, void* to) noexcept;
        void (*destroy)(void*) noexcept;
    };

    template <class Fn>
    static constexpr bool fits =
        sizeof(Fn) <= inline_bytes && alignof(Fn) <= alignof(std::max_align_t) &&
        std::is_nothrow_move_constructible_v<Fn>;

    template <class Fn>
    static constexpr Ops inline_ops{
        [](void* self, Args&&... args) -> R {
            return (*static_cast<Fn*>(self))(std::forward<Args>(args)...);
        },
        [](void* from, void* to) noexcept {
            ::new (to) Fn(std::move(*static_cast<Fn*>(from)));
            static_cast<Fn*>(from)->~Fn();
        },
        [](void* self) noexcept { static_cast<Fn*>(self)->~Fn(); },
    };

    template <class Fn>
    static constexpr Ops heap_ops{
        [](void* self, Args&&... args) -> R {
            return (**static_cast<Fn**>(self))(std::forward<Args>(args)...);
        },
        [](void* from, void* to) noexcept { ::new (to) Fn*(*static_cast<Fn**>(from)); },
        [](void* self) noexcept { delete *static_cast<Fn**>(self); },
    };

    void take(UniqueFunction& other) noexcept {
        if (other.ops_ != nullptr) {
            other.ops_->move(other.space_, space_);
            ops_ = std::exchange(other.ops_, nullptr);
        }
    }
    void reset() noexcept {
        if (auto const* ops = std::exchange(ops_, nullptr)) ops->destroy(space_);
    }

    alignas(std::max_align_t) std::byte space_[inline_bytes];
    Ops const* ops_{nullptr};
};

}  // namespace tinkxx::detail
