#include <tinkxx/error.hpp>
#include <tinkxx/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tinkxx {
namespace {

using ::testing::ElementsAre;

TEST(ByteTokenizer, ATokenIsAByte) {  // R-EXT-90
    ByteTokenizer const bytes;
    EXPECT_THAT(bytes.encode("a\xc3\xa4\n"), ElementsAre(97, 195, 164, 10));
    EXPECT_THAT(bytes.encode({"\0", 1}), ElementsAre(0));
    EXPECT_THAT(bytes.encode(""), ElementsAre());
}

TEST(ByteTokenizer, LeavesOutWhatIsNoByte) {  // R-EXT-90
    ByteTokenizer const bytes;
    std::string all(256, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
    EXPECT_EQ(bytes.decode(bytes.encode(all)), all);
    EXPECT_EQ(bytes.decode(std::vector<Token>{72, 256, -1, 105, 100'000}), "Hi");
}

class TokenizersTest : public ::testing::Test {
protected:
    Tokenizers tokenizers(std::size_t capacity = Tokenizers::default_capacity) {
        return Tokenizers{[this](TokenizerId const& id) {
                              loaded.push_back(id.repository);
                              return std::make_shared<ByteTokenizer>();
                          },
                          capacity};
    }
    std::vector<std::string> loaded{};
};

TEST_F(TokenizersTest, LoadsEachOnce) {  // R-TRAIN-90
    auto const all = tokenizers();
    auto const copy = all;
    auto const first = all.get({.repository = "a/b"});
    EXPECT_EQ(copy.get({.repository = "a/b"}), first);
    EXPECT_NE(all.get({.repository = "a/b", .revision = "r"}), first);
    EXPECT_THAT(loaded, ElementsAre("a/b", "a/b"));
}

TEST_F(TokenizersTest, KeepsThe32ThatWereAskedForLast) {  // R-TRAIN-90
    auto const all = tokenizers();
    for (int i = 0; i < 32; ++i) (void)all.get({.repository = std::to_string(i)});
    (void)all.get({.repository = "0"});
    EXPECT_EQ(loaded.size(), 32U);
    (void)all.get({.repository = "new"});  // in place of 1
    (void)all.get({.repository = "0"});
    EXPECT_EQ(loaded.size(), 33U);
    (void)all.get({.repository = "1"});
    EXPECT_EQ(loaded.size(), 34U);
}

TEST_F(TokenizersTest, ALoaderThatFailsIsAskedAgain) {  // R-TRAIN-90
    int calls = 0;
    Tokenizers const all{[&calls](TokenizerId const&) -> std::shared_ptr<Tokenizer const> {
        if (++calls == 1) throw std::runtime_error{"no disk"};
        if (calls == 2) return nullptr;
        return std::make_shared<ByteTokenizer>();
    }};
    EXPECT_THROW((void)all.get({.repository = "a"}), std::runtime_error);
    EXPECT_THROW((void)all.get({.repository = "a"}), ValidationError);
    EXPECT_NE(all.get({.repository = "a"}), nullptr);
    EXPECT_THROW(Tokenizers{TokenizerLoader{}}, ValidationError);
}

TEST_F(TokenizersTest, TextBecomesInput) {  // R-EXT-90
    auto const bytes = tokenizers().get({.repository = "a"});
    EXPECT_EQ(ModelInput::from_text("hi", *bytes), ModelInput::from_tokens({104, 105}));
    EXPECT_EQ(ModelInput::from_text("", *bytes), ModelInput::empty());
}

}  // namespace
}  // namespace tinkxx
