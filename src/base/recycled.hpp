#pragma once

#include <cstddef>
#include <new>

namespace tinkxx::base {

/// Gives a class whose objects come and go by the thousand on one thread a `new` that takes the
/// memory of an earlier object, up to `most` of them per thread. Sanitizers get the plain one, so
/// that they see who uses what is gone.
///
///     class Exchange final : public Recycled<Exchange, 512> { ... };
template <class T, std::size_t most>
class Recycled {
public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TINKXX_SANITIZED)
protected:
    Recycled() noexcept = default;
#else
    static void* operator new(std::size_t size) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        if (size != sizeof(T) || spare.first == nullptr) return ::operator new(size);
        auto* const block = spare.first;
        spare.first = block->next;
        --spare.count;
        return block;
    }
    static void operator delete(void* memory, std::size_t size) noexcept {
        if (size != sizeof(T) || spare.over || spare.count == most) {
            return ::operator delete(memory);
        }
        (void)keeper;  // makes sure that it goes with the thread
        spare.first = ::new (memory) Block{spare.first};
        ++spare.count;
    }

protected:
    Recycled() noexcept = default;

private:
    struct Block {
        Block* next{};
    };
    // Of trivial types, so that it can still be looked at while the thread's objects are destroyed.
    struct Spare {
        Block* first{};
        std::size_t count{0};
        bool over{false};
    };
    struct Keeper {
        Keeper() noexcept = default;
        Keeper(Keeper const&) = delete;
        Keeper& operator=(Keeper const&) = delete;
        ~Keeper() {
            spare.over = true;
            while (auto* const block = spare.first) {
                spare.first = block->next;
                ::operator delete(block);
            }
        }
    };
    static inline thread_local Spare spare{};
    static inline thread_local Keeper keeper{};
#endif
};

}  // namespace tinkxx::base
