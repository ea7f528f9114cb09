#include "service/auth/identity.hpp"

#include "wire/json/base64.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using ::testing::HasSubstr;

std::string jwt(std::string const& claims) {
    return wire::base64url(R"({"alg":"none"})") + '.' + wire::base64url(claims) + ".c2ln";
}

TEST(Whoami, ReadsTheClaims) {  // R-AUTH-30, R-AUTH-31
    auto const who = whoami(jwt(R"({"sub":"tml:user:1","email":"a@b.c","org_id":"o-1"})"));
    ASSERT_TRUE(who);
    EXPECT_EQ(*who, (Identity{.user_urn = "tml:user:1",
                              .email = "a@b.c",
                              .organization_urn = "tml:organization:o-1"}));
}

TEST(Whoami, NeedsNeitherEmailNorOrganization) {  // R-AUTH-30, R-AUTH-31
    EXPECT_EQ(*whoami(jwt(R"({"sub":"u","email":" "})")), Identity{.user_urn = "u"});
    EXPECT_FALSE(whoami(jwt(R"({"email":"a@b.c"})")));
    EXPECT_FALSE(whoami("nonsense"));
}

TEST(Whoami, ExplainsWhyAPlainKeySaysNothing) {  // R-AUTH-30
    auto const who = whoami("");
    ASSERT_FALSE(who);
    EXPECT_THAT(who.error().what(), HasSubstr("plain API key"));
}

TEST(Whoami, TrustsOnlyTokensOfThePassport) {  // R-AUTH-30
    EXPECT_TRUE(names_its_user(jwt(R"({"iss":"passport-prod","sub":"u"})")));
    EXPECT_FALSE(names_its_user(jwt(R"({"iss":"other","sub":"u"})")));
    EXPECT_FALSE(names_its_user(jwt(R"({"sub":"u"})")));
    EXPECT_FALSE(names_its_user("tml-key"));
    EXPECT_FALSE(names_its_user("eyJnonsense"));
}

}  // namespace
}  // namespace tinkxx::service
