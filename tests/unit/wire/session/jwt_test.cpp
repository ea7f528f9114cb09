#include "wire/session/jwt.hpp"

#include "wire/json/base64.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

using namespace std::chrono_literals;

Result<JwtClaims> claims(std::string_view payload) {
    return decode_jwt("e30." + base64url(payload) + ".c2ln");
}

TEST(Jwt, GivesTheClaimsOfItsPayload) {  // R-AUTH-11, R-AUTH-30, R-AUTH-31
    auto const read = claims(
        R"({"exp": 1900000000, "sub": "tml:user:1", "email": "a@example.org", "org_id": "o", "iss": "passport-x", "aud": []})");
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->exp, WallTime{1'900'000'000s});
    EXPECT_EQ(read->sub, "tml:user:1");
    EXPECT_EQ(read->email, "a@example.org");
    EXPECT_EQ(read->org_id, "o");
    EXPECT_EQ(read->iss, "passport-x");
}

TEST(Jwt, ReadsTheEndAsANumberOrAsText) {  // R-AUTH-11
    EXPECT_EQ(claims(R"({"exp": 1900000000.5})").value().exp, WallTime{1'900'000'000'500ms});
    EXPECT_EQ(claims(R"({"exp": "1900000000"})").value().exp, WallTime{1'900'000'000s});
    for (auto const* payload : {"{}", R"({"exp": null})", R"({"exp": []})", R"({"exp": "soon"})",
                                R"({"exp": "nan"})", R"({"exp": true})"}) {
        EXPECT_EQ(claims(payload).value().exp, std::nullopt) << payload;
    }
}

TEST(Jwt, KeepsTheEndWithinWhatAClockCanSay) {  // R-AUTH-11
    EXPECT_GT(claims(R"({"exp": 1e300})").value().exp, WallTime{1'900'000'000s});
    EXPECT_LT(claims(R"({"exp": -1e300})").value().exp, WallTime{0s});
}

TEST(Jwt, TakesClaimsOfAnotherTypeAsAbsent) {  // R-AUTH-30
    auto const read = claims(R"({"sub": 5, "email": null, "org_id": {}, "iss": []})");
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->sub, std::nullopt);
    EXPECT_EQ(read->email, std::nullopt);
    EXPECT_EQ(read->org_id, std::nullopt);
    EXPECT_EQ(read->iss, std::nullopt);
}

TEST(Jwt, AcceptsPaddingAndTwoParts) {  // R-AUTH-11
    EXPECT_TRUE(decode_jwt("e30.e30=.x").has_value());
    EXPECT_TRUE(decode_jwt("e30.e30").has_value());
}

TEST(Jwt, RefusesOthersWithoutShowingThem) {  // R-AUTH-11, R-CONF-12
    for (std::string const token : {"", "abc", "tml-secret", "a.secr!t.b", "..", "a.b", "eyJ.!!!.x",
                                    "e30.W10.c2ln", "e30.eA.c2ln"}) {
        auto const read = decode_jwt(token);
        ASSERT_FALSE(read.has_value()) << token;
        EXPECT_EQ(read.error().kind(), ErrorKind::validation);
        EXPECT_EQ(std::string_view{read.error().what()}.find("secr"), std::string_view::npos);
        EXPECT_TRUE(read.error().value().empty());
    }
    EXPECT_TRUE(rc::check([](std::string const& token) { (void)decode_jwt(token); }));
}

}  // namespace
}  // namespace tinkxx::wire
