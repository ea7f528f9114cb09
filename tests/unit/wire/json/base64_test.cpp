#include "wire/json/base64.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

TEST(Base64, IsThatOfTheStandard) {  // R-WIRE-02
    std::vector<std::pair<std::string, std::string>> const cases{{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xff\xd8", "/9g="},
                                                                 {"\xfb\xff", "+/8="}};
    for (auto const& [bytes, text] : cases) {
        EXPECT_EQ(base64(bytes), text);
        EXPECT_EQ(decode_base64(text), bytes);
        std::string out = "x";
        append_base64(out, bytes);
        EXPECT_EQ(out, "x" + text);
    }
}

TEST(Base64, HasAFormForUrlsWithoutPadding) {  // R-SESS-35
    EXPECT_EQ(base64url("\xfb\xff"), "-_8");
    EXPECT_EQ(decode_base64url("-_8"), "\xfb\xff");
    EXPECT_EQ(decode_base64url("-_8="), "\xfb\xff");
    EXPECT_EQ(decode_base64url("+/8="), std::nullopt);
    EXPECT_EQ(decode_base64("-_8="), std::nullopt);
}

TEST(Base64, RefusesWhatIsNone) {  // R-AUTH-11
    for (auto const* text : {"Z", "Zg=", "Zg===", "=", "====", "Zg==Zg==", "Z g=", "Zm9v\n",
                             "Zm9\xff", "Zh==", "Zm9=", "Zm9vZ"}) {
        EXPECT_EQ(decode_base64(text), std::nullopt) << text;
    }
}

TEST(Base64, GivesBackWhatItWasGiven) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::string const& bytes) {
        RC_ASSERT(decode_base64(base64(bytes)) == bytes);
        RC_ASSERT(decode_base64url(base64url(bytes)) == bytes);
        if (auto const decoded = decode_base64url(bytes)) {
            RC_ASSERT(base64url(*decoded).size() <= bytes.size());
        }
    }));
}

}  // namespace
}  // namespace tinkxx::wire
