#include "text/unicode/aligned_text.hpp"
#include "text/unicode/normal_forms.hpp"
#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tinkxx::text {
namespace {

using ::testing::ElementsAre;

std::string in_form(std::string_view text, NormalForm form) {
    std::string result;
    for (auto const& change : normalized(text, form)) append_utf8(result, change.character);
    return result;
}

TEST(NormalForms, ComposeAndDecompose) {
    EXPECT_EQ(in_form("e\u0301", NormalForm::nfc), "é");
    EXPECT_EQ(in_form("é", NormalForm::nfd), "e\u0301");
    EXPECT_EQ(in_form("q\u0307\u0323", NormalForm::nfc), "q\u0323\u0307");
    EXPECT_EQ(in_form("\u1100\u1161\u11a8", NormalForm::nfc), "각");
    EXPECT_EQ(in_form("각", NormalForm::nfd), "\u1100\u1161\u11a8");
    EXPECT_EQ(in_form("ﬁ①", NormalForm::nfkc), "fi1");
    EXPECT_EQ(in_form("\u212b", NormalForm::nfc), "Å");
    EXPECT_EQ(in_form("\u0344", NormalForm::nfc), "\u0308\u0301");
}

TEST(NormalForms, AreSureOnlyOfTextsThatStay) {
    for (char32_t c = 0; c < 0x30000; ++c) {
        if (c >= 0xd800 && c < 0xe000) continue;
        for (auto const* before : {"", "a", "\u0c46", "\u1100", "a\u0323"}) {
            std::string text{before};
            append_utf8(text, c);
            if (is_surely_nfc(text)) {
                ASSERT_EQ(in_form(text, NormalForm::nfc), text)
                    << std::hex << static_cast<unsigned>(c);
            }
        }
    }
    EXPECT_TRUE(is_surely_nfc("Größe, 中文, русский, हिन्दी"));
    EXPECT_FALSE(is_surely_nfc("e\u0301"));
}

TEST(Utf8, FindsTheFirstBrokenByte) {
    EXPECT_EQ(find_invalid_utf8("aé中😀"), std::string_view{"aé中😀"}.size());
    for (auto const* broken : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                               "\xf4\x90\x80\x80", "\xf8", "\xe4\xb8", "\xff"}) {
        auto const text = std::string(37, 'a') + broken;
        EXPECT_EQ(find_invalid_utf8(text), 37U);
    }
}

TEST(Properties, KnowTheClassesOfCharacters) {
    EXPECT_EQ(classes_of(U'a'), letter | lower | word);
    EXPECT_EQ(classes_of(U'Ǆ'), letter | upper | word);
    EXPECT_EQ(classes_of(U'中'), letter | word);
    EXPECT_EQ(classes_of(0x20000), letter | word);
    EXPECT_EQ(classes_of(0x301), mark | word);
    EXPECT_EQ(classes_of(U'½'), number);
    EXPECT_EQ(classes_of(0x85), space);
    EXPECT_EQ(classes_of(0x200b), 0);
    EXPECT_EQ(classes_of(0x10ffff), 0);
    EXPECT_THAT(to_lower(U'Ж'), ElementsAre(U'ж', 0));
    EXPECT_THAT(to_lower(0x130), ElementsAre(U'i', 0x307));
}

TEST(Clusters, AreWhatAReaderTakesForOneCharacter) {
    for (std::string_view const cluster :
         {"a", "e\u0301", "\r\n", "👩‍👩‍👧", "🇩🇪", "각", "क्षि", "👍🏽"}) {
        EXPECT_EQ(cluster_length(std::string{cluster} + "x"), cluster.size()) << cluster;
    }
    EXPECT_EQ(cluster_length("\n\u0301"), 1U);
    EXPECT_EQ(cluster_length("🇩🇪🇫"), 8U);
}

TEST(AlignedText, KnowsWhereItsBytesComeFrom) {
    AlignedText text;
    text.assign("aé", 10, true);
    text.prepend("__");
    text.replace(std::vector<TextRange>{{.begin = 3, .end = 5}}, "xyz");
    EXPECT_EQ(text.text(), "__axyz");
    EXPECT_EQ(original_range(text, 0, 3), (TextRange{.begin = 10, .end = 11}));
    EXPECT_EQ(original_range(text, 4, 5), (TextRange{.begin = 11, .end = 13}));
}

}  // namespace
}  // namespace tinkxx::text
