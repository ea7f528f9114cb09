#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace tinkxx::detail {

/// Memory for objects that come and go by the thousand, often made on one thread and ended on
/// another, which is what a general allocator is slowest at. A bounded number of blocks is kept
/// for the next object of about that size. Throws `std::bad_alloc`. Any thread.
[[nodiscard]] void* take_block(std::size_t bytes);
/// `bytes` is what was asked for. Any thread.
void give_block(void* block, std::size_t bytes) noexcept;

/// Gives a class a `new` of that kind.
///
///     class Exchange final : public detail::InBlocks { ... };
struct InBlocks {
    static void* operator new(std::size_t bytes) { return take_block(bytes); }
    static void operator delete(void* block, std::size_t bytes) noexcept {
        give_block(block, bytes);
    }
};

/// For a `std::unique_ptr` to what was made by `make_in_block`.
template <class T>
struct GiveBlock {
    void operator()(T* object) const noexcept {
        object->~T();
        give_block(object, sizeof(T));
    }
};

template <class T, class... Args>
[[nodiscard]] std::unique_ptr<T, GiveBlock<T>> make_in_block(Args&&... args) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    struct Unused {
        void operator()(void* block) const noexcept { give_block(block, sizeof(T)); }
    };
    std::unique_ptr<void, Unused> block{take_block(sizeof(T))};
    auto* const made = ::new (block.get()) T(std::forward<Args>(args)...);
    (void)block.release();
    return std::unique_ptr<T, GiveBlock<T>>{made};
}

/// For `std::allocate_shared`.
template <class T>
struct BlockAllocator {
    using value_type = T;

    BlockAllocator() noexcept = default;
    template <class U>
    BlockAllocator(BlockAllocator<U> const&) noexcept {}  // NOLINT: allocators convert

    [[nodiscard]] T* allocate(std::size_t count) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        return static_cast<T*>(take_block(count * sizeof(T)));
    }
    void deallocate(T* block, std::size_t count) noexcept { give_block(block, count * sizeof(T)); }

    bool operator==(BlockAllocator const&) const = default;
};

}  // namespace tinkxx::detail
