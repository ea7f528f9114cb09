#include <tinkxx/detail/blocks.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx::detail {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kept = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kept = false;
#else
constexpr bool kept = true;
#endif
#else
constexpr bool kept = true;
#endif

std::vector<void*> take(std::size_t count, std::size_t bytes) {
    std::vector<void*> blocks(count);
    std::ranges::generate(blocks, [bytes] { return take_block(bytes); });
    return blocks;
}

void give(std::vector<void*> const& blocks, std::size_t bytes) {
    for (auto* const block : blocks) give_block(block, bytes);
}

TEST(Blocks, OfEverySizeHoldWhatIsWritten) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (std::size_t bytes = 1; bytes < 2000; bytes += 7) {
        auto* const block = take_block(bytes);
        std::memset(block, static_cast<int>(bytes % 251), bytes);
        blocks.emplace_back(block, bytes);
    }
    for (auto const& [block, bytes] : blocks) {
        auto const* const text = static_cast<unsigned char const*>(block);
        EXPECT_TRUE(std::all_of(text, text + bytes, [bytes = bytes](unsigned char c) {
            return c == bytes % 251;
        })) << bytes;
        give_block(block, bytes);
    }
}

TEST(Blocks, AreUsedAgainForObjectsOfThatSize) {
    if (!kept) GTEST_SKIP() << "a sanitizer gets a new one each time";
    auto* const block = take_block(808);
    give_block(block, 808);
    auto* const next = take_block(801);  // rounded up, as big
    EXPECT_EQ(next, block);
    auto* const other = take_block(1024);
    EXPECT_NE(other, block);
    give_block(next, 801);
    give_block(other, 1024);
}

TEST(Blocks, ComeBackFromTheThreadThatEndedTheirObjects) {
    if (!kept) GTEST_SKIP() << "a sanitizer gets a new one each time";
    constexpr std::size_t count = 512;
    constexpr std::size_t bytes = 1504;
    auto const first = take(count, bytes);
    std::thread{[&] { give(first, bytes); }}.join();
    auto const second = take(count, bytes);
    std::set<void*> const known{first.begin(), first.end()};
    auto const again =
        std::ranges::count_if(second, [&](void* block) { return known.contains(block); });
    EXPECT_GE(again, static_cast<std::ptrdiff_t>(count - 64));  // but for the last, open bundle
    give(second, bytes);
}

TEST(Blocks, AreOneThreadsAtATime) {
    constexpr std::size_t bytes = 200;
    std::vector<std::thread> threads;
    for (unsigned char mark = 1; mark <= 8; ++mark) {
        threads.emplace_back([mark] {
            for (int round = 0; round < 50; ++round) {
                auto const blocks = take(150, bytes);
                for (auto* const block : blocks) std::memset(block, mark, bytes);
                for (auto* const block : blocks) {
                    auto const* const text = static_cast<unsigned char const*>(block);
                    ASSERT_EQ(std::count(text, text + bytes, mark), std::ptrdiff_t{bytes});
                }
                give(blocks, bytes);
            }
        });
    }
    for (auto& thread : threads) thread.join();
}

TEST(Blocks, AreGivenBackIfTheObjectCannotBeMade) {
    struct Refuses {
        Refuses() { throw std::runtime_error{"no"}; }
        std::array<char, 300> text{};
    };
    EXPECT_THROW((void)make_in_block<Refuses>(), std::runtime_error);  // ASan sees a leak
}

}  // namespace
}  // namespace tinkxx::detail
