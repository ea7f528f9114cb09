#include "engine/files/token_bytes.hpp"

#include "engine/files/atomic_write.hpp"

#include <gtest/gtest.h>

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;

class TokenFolders : public testing::Test {
protected:
    TokenFolders() {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    ~TokenFolders() override { fs::remove_all(folder); }

    void say(std::string_view text) { ASSERT_TRUE(write_file(folder / "tinkxx.json", text)); }

    /// Tests run at the same time, each in a folder of its own.
    fs::path folder = fs::path(testing::TempDir()) /
                      (std::string{"token_bytes_"} +
                       testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(TokenFolders, ThatSayBytesHaveOneByteForEachToken) {
    say(R"({"tokens": "bytes"})");
    auto const bytes = read_token_bytes(folder).value();
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes('A'), "A");
    EXPECT_EQ(bytes(0), std::string_view("\0", 1));
    EXPECT_EQ(bytes(255), "\xff");
    EXPECT_EQ(bytes(256), "");
    EXPECT_EQ(bytes(-1), "");
}

TEST_F(TokenFolders, ThatSayNothingHaveNoBytes) { EXPECT_FALSE(read_token_bytes(folder).value()); }

TEST_F(TokenFolders, ThatSaySomethingElseAreRefused) {
    for (auto const* text : {"", "[]", "{}", R"({"tokens": 1})", R"({"tokens": "words"})"}) {
        say(text);
        auto const result = read_token_bytes(folder);
        ASSERT_FALSE(result) << text;
        EXPECT_NE(std::string_view(result.error().what()).find("tinkxx.json"), std::string::npos);
    }
}

}  // namespace
}  // namespace tinkxx::engine
