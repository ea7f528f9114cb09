#include <tinkxx/detail/blocks.hpp>

#include "base/common/fork.hpp"

#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

// A sanitizer has to see who uses what is gone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TINKXX_PLAIN_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TINKXX_PLAIN_BLOCKS 1
#endif
#endif

namespace tinkxx::detail {

#ifdef TINKXX_PLAIN_BLOCKS

void* take_block(std::size_t bytes) { return ::operator new(bytes); }
void give_block(void* block, std::size_t /*bytes*/) noexcept { ::operator delete(block); }

#else

namespace {

// Blocks of a class have the same size, a multiple of `step`. A thread has at most one bundle of a
// class in hand; full ones go through the depot to whoever needs some.
constexpr std::size_t step = 16;
constexpr std::size_t largest = 1536;
constexpr std::size_t classes = largest / step;
constexpr unsigned bundle_blocks = 64;
constexpr unsigned most_bundles = 64;

struct Block {
    Block* next{};
    Block* next_bundle{};  // of the first block of a bundle in the depot
};

struct Depot {
    std::mutex mutex{};
    std::array<Block*, classes> bundles{};
    std::array<unsigned, classes> counts{};
};

// Never destroyed: threads that outlive `main` still give blocks back.
Depot& depot() {
    static auto* const one = [] {
        auto* const made = new Depot;
        base::hold_while_forking(base::ProcessLock::blocks, made->mutex);
        return made;
    }();
    return *one;
}

void free_all(Block* block) noexcept {
    while (block != nullptr) ::operator delete(std::exchange(block, block->next));
}

// Of trivial types, so that it can still be looked at while the thread's objects are destroyed.
struct Hand {
    std::array<Block*, classes> first{};
    std::array<unsigned, classes> count{};
    bool over{false};
};
thread_local Hand hand{};

struct Keeper {
    Keeper() noexcept = default;
    Keeper(Keeper const&) = delete;
    Keeper& operator=(Keeper const&) = delete;
    ~Keeper() {
        hand.over = true;
        for (auto& first : hand.first) free_all(std::exchange(first, nullptr));
        hand.count = {};
    }
};
thread_local Keeper keeper{};

/// Takes a bundle from the depot, if there is one.
bool refill(std::size_t which) noexcept {
    if (hand.over) return false;
    (void)keeper;  // makes sure that it goes with the thread
    auto& from = depot();
    std::lock_guard const lock{from.mutex};
    auto* const bundle = from.bundles[which];
    if (bundle == nullptr) return false;
    from.bundles[which] = bundle->next_bundle;
    --from.counts[which];
    hand.first[which] = bundle;
    hand.count[which] = bundle_blocks;
    return true;
}

/// Gives the bundle in hand, which is full, to the depot, or back to the system.
void pass_on(std::size_t which) noexcept {
    auto* const bundle = std::exchange(hand.first[which], nullptr);
    hand.count[which] = 0;
    {
        auto& to = depot();
        std::lock_guard const lock{to.mutex};
        if (to.counts[which] < most_bundles) {
            bundle->next_bundle = std::exchange(to.bundles[which], bundle);
            ++to.counts[which];
            return;
        }
    }
    free_all(bundle);
}

constexpr std::size_t class_of(std::size_t bytes) noexcept { return (bytes - 1) / step; }

}  // namespace

void* take_block(std::size_t bytes) {
    if (bytes == 0 || bytes > largest) return ::operator new(bytes);
    auto const which = class_of(bytes);
    auto*& first = hand.first[which];
    if (first == nullptr && !refill(which)) return ::operator new((which + 1) * step);
    auto* const block = first;
    first = block->next;
    --hand.count[which];
    return block;
}

void give_block(void* memory, std::size_t bytes) noexcept {
    if (bytes == 0 || bytes > largest || hand.over) return ::operator delete(memory);
    auto const which = class_of(bytes);
    (void)keeper;
    if (hand.count[which] == bundle_blocks) pass_on(which);
    auto*& first = hand.first[which];
    first = ::new (memory) Block{.next = first};
    ++hand.count[which];
}

#endif

}  // namespace tinkxx::detail
