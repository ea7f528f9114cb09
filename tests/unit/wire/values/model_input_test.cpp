#include "wire/values/model_input.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace tinkxx {
namespace {

using Chunks = std::vector<ModelInputChunk>;

TEST(ModelInput, IsBuiltFromTokensAndGivesThemBack) {  // R-WIRE-08
    auto const input = ModelInput::from_tokens({1, 2, 3});
    EXPECT_EQ(input.chunks, (Chunks{EncodedTextChunk{{1, 2, 3}}}));
    EXPECT_EQ(input.to_tokens(), (std::vector<Token>{1, 2, 3}));
    EXPECT_EQ(input.length(), 3);
    EXPECT_TRUE(ModelInput::from_tokens({}).chunks.empty());
    EXPECT_EQ(ModelInput::from_tokens({}), ModelInput::empty());
    EXPECT_EQ(ModelInput::empty().length(), 0);

    ModelInput const two{.chunks = {EncodedTextChunk{{1}}, EncodedTextChunk{{2, 3}}}};
    EXPECT_EQ(two.to_tokens(), (std::vector<Token>{1, 2, 3}));
}

TEST(ModelInput, HasTokensOnlyIfAllOfItIsText) {  // R-WIRE-08
    auto const input = ModelInput::from_tokens({1}).append(ImageChunk{.expected_tokens = 4});
    try {
        (void)input.to_tokens();
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "chunks/1");
        EXPECT_EQ(error.category(), ErrorCategory::user);
    }
}

TEST(ModelInput, GrowsByCopies) {  // R-WIRE-08, R-EXT-90
    auto const input = ModelInput::from_tokens({1});
    EXPECT_EQ(input.append_int(2).chunks, (Chunks{EncodedTextChunk{{1, 2}}}));
    EXPECT_EQ(input.append(EncodedTextChunk{{2}}).chunks,
              (Chunks{EncodedTextChunk{{1}}, EncodedTextChunk{{2}}}));
    EXPECT_EQ(input, ModelInput::from_tokens({1}));
    EXPECT_EQ(ModelInput::empty().append_int(5), ModelInput::from_tokens({5}));
    auto const image = input.append(ImageChunk{}).append_int(7);
    EXPECT_EQ(image.chunks.size(), 3);
    EXPECT_EQ(image.chunks.back(), (ModelInputChunk{EncodedTextChunk{{7}}}));
}

TEST(ModelInput, CountsTheTokensOfEveryKind) {  // R-WIRE-08
    ModelInput const input{.chunks = {EncodedTextChunk{{1, 2}}, ImageChunk{.expected_tokens = 10},
                                      ImageAssetPointerChunk{.expected_tokens = 100},
                                      DmelChunk{std::string{"\x04\x02\x03\x05", 4}}}};
    EXPECT_EQ(input.length(), 115);
    EXPECT_EQ(length(input.chunks[3]), 3);
    EXPECT_EQ(wire::known_length(input), 115);
}

TEST(ModelInput, HasNoLengthIfAnImageDoesNotSay) {  // R-WIRE-08
    for (ModelInputChunk const& chunk :
         Chunks{ImageChunk{}, ImageAssetPointerChunk{}, ImageChunk{.expected_tokens = -1}}) {
        auto const input = ModelInput::from_tokens({1}).append(chunk);
        EXPECT_EQ(wire::known_length(input), std::nullopt);
        try {
            (void)input.length();
            FAIL();
        } catch (ValidationError const& error) {
            EXPECT_EQ(error.field(), "expected_tokens");
        }
    }
}

TEST(ModelInput, RefusesMoreTokensThanCanBeCounted) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    auto const input = ModelInput::from_tokens({1}).append(ImageChunk{.expected_tokens = most});
    EXPECT_THROW((void)input.length(), ValidationError);
}

TEST(ModelInput, ReadsAudioHeadersWhateverTheyHold) {  // R-WIRE-08
    auto const count = [](std::string bytes) -> std::optional<std::int64_t> {
        auto const tokens = wire::token_count(ModelInputChunk{DmelChunk{std::move(bytes)}});
        return tokens ? std::optional{*tokens} : std::nullopt;
    };
    EXPECT_EQ(count("\xfe\x04\x02\x80\x01\x07"), 128);
    EXPECT_EQ(count(std::string{"\x04\x02\x03", 3}),
              std::nullopt);  // the second dimension is cut off
    EXPECT_EQ(count("\x04\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
              std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(count("\x04\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), std::nullopt);
    EXPECT_EQ(count("\x04\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), std::nullopt);
    EXPECT_EQ(count("\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05"), std::nullopt);
    EXPECT_TRUE(rc::check([&](std::string const& bytes) {
        if (auto const tokens = count(bytes)) RC_ASSERT(*tokens >= 0);
    }));
}

}  // namespace
}  // namespace tinkxx
