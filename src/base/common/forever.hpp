#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace tinkxx::base {

/// A `T` that is never destroyed: for what threads and objects with static storage may use until
/// the very end of the process. To be declared `static`.
template <class T>
class Forever {
public:
    template <class... Arguments>
    explicit Forever(Arguments&&... arguments) {
        ::new (static_cast<void*>(space_)) T(std::forward<Arguments>(arguments)...);
    }
    Forever(Forever const&) = delete;
    Forever& operator=(Forever const&) = delete;
    ~Forever() = default;

    [[nodiscard]] T& get() noexcept { return *std::launder(reinterpret_cast<T*>(space_)); }

private:
    alignas(T) std::byte space_[sizeof(T)];
};

}  // namespace tinkxx::base
