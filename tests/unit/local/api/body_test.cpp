#include "local/api/body.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tinkxx::local {
namespace {

constexpr auto mebibyte = std::size_t{1} << 20U;

TEST(RequestBody, KeepsWhatCameInPiecesOfAnySize) {
    std::string whole;
    RequestBody body;
    for (std::size_t i = 0; whole.size() < 3 * mebibyte; ++i) {
        std::string const piece(1 + i * 7919 % 50'000, static_cast<char>('a' + i % 26));
        whole += piece;
        body.append(piece, 4 * mebibyte);
        ASSERT_EQ(body.size(), whole.size());
    }
    EXPECT_EQ(std::move(body).join(), whole);
}

TEST(RequestBody, GrowsWithoutACopyOfWhatIsThere) {
    RequestBody body;
    std::string const piece(64 << 10, 'x');
    std::size_t before = 0;
    while (body.size() < 100 * mebibyte) {
        body.append(piece, 256 * mebibyte);
        // Twice the memory of a growing piece at the most, and never twice that of the whole.
        ASSERT_LE(body.memory(), body.size() + 2 * RequestBody::largest_piece);
        ASSERT_LE(body.memory() - before, 2 * RequestBody::largest_piece);
        before = body.memory();
    }
}

TEST(RequestBody, TakesNoMoreThanWasAnnounced) {
    RequestBody body;
    for (int i = 0; i < 7; ++i) body.append(std::string(10'000, 'x'), 70'000);
    EXPECT_EQ(std::move(body).join().capacity(), 70'000U);
}

TEST(RequestBody, IsEmptyWithoutAByte) {
    EXPECT_EQ(RequestBody{}.size(), 0U);
    EXPECT_EQ(RequestBody{}.join(), "");
    EXPECT_EQ(RequestBody{std::string{"one"}}.join(), "one");
}

}  // namespace
}  // namespace tinkxx::local
