#include "service/auth/credential_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CredentialChoice key(std::string value) { return {CredentialChoice::Kind::key, std::move(value)}; }
CredentialChoice command(std::string value) {
    return {CredentialChoice::Kind::command, std::move(value)};
}

constexpr bool exchange = true;

wire::ClientFlags flags(bool pjwt, std::string source = "api_key") {
    return {.pjwt_auth_enabled = pjwt, .credential_default_source = std::move(source)};
}

TEST(CredentialChoice, TakesKeysAndTokensByTheirPrefix) {  // R-AUTH-02
    EXPECT_TRUE(has_key_prefix("tml-1"));
    EXPECT_TRUE(has_key_prefix("eyJhbGciOi.x.y"));
    for (auto const* bad : {"", "tm-1", "TML-1", " tml-1", "sk-1"}) {
        EXPECT_FALSE(has_key_prefix(bad)) << bad;
    }
}

TEST(CredentialChoice, FollowsTheOrderOfSources) {  // R-AUTH-23
    EXPECT_EQ(*choose_credential({.api_key = "tml-k", .command = "c", .stored = "tml-s"}),
              key("tml-k"));
    EXPECT_EQ(*choose_credential({.command = "c", .stored = "tml-s"}), command("c"));
    EXPECT_EQ(*choose_credential({.stored = "tml-s"}), key("tml-s"));
}

TEST(CredentialChoice, NamesEverySourceIfThereIsNone) {  // R-AUTH-23, R-CONF-05
    auto const refused = choose_credential({});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_EQ(refused.error().category(), ErrorCategory::user);
    EXPECT_EQ(refused.error().field(), "api_key");
    for (auto const* source :
         {"ClientOptions::api_key", "TINKER_API_KEY", "TINKER_CREDENTIAL_CMD", "auth login"}) {
        EXPECT_THAT(refused.error().what(), HasSubstr(source));
    }
}

TEST(CredentialChoice, AWrongKeyGoesToTheCommandAndNeverToTheFile) {  // R-AUTH-23, R-CONF-05
    EXPECT_EQ(*choose_credential({.api_key = "bad", .command = "c"}), command("c"));
    auto const refused =
        choose_credential({.api_key = "sk-0123456789abcdefgh", .stored = "tml-stored"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), HasSubstr("tml-"));
    EXPECT_EQ(refused.error().field(), "api_key");
    EXPECT_THAT(refused.error().what(), Not(HasSubstr("0123456789abcd"))) << "only its ends";
    auto const stored = choose_credential({.stored = "sk-0123456789abcdefgh"});
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().field(), "credentials_file");
}

TEST(CredentialChoice, ATokenThatIsGivenIsAlwaysUsed) {  // R-AUTH-21
    CredentialConfig const config{.api_key = "eyJx", .command = "c"};
    EXPECT_EQ(*choose_credential(config, flags(exchange, "credential_cmd")), key("eyJx"));
    EXPECT_EQ(*choose_credential(config, flags(exchange)), key("eyJx"));
    EXPECT_EQ(*choose_credential(config, flags(!exchange)), key("eyJx"));
}

TEST(CredentialChoice, TheServerMayRequireTheCommand) {  // R-AUTH-21
    auto const enforced = flags(exchange, "credential_cmd");
    EXPECT_EQ(*choose_credential({.api_key = "tml-k", .command = "c"}, enforced), command("c"));
    auto const refused = choose_credential({.api_key = "tml-k"}, enforced);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), HasSubstr("organisation requires dynamic credentials"));
}

TEST(CredentialChoice, OtherwiseTheKeyComesBeforeTheCommand) {  // R-AUTH-21
    EXPECT_EQ(*choose_credential({.api_key = "tml-k", .command = "c"}, flags(exchange)),
              key("tml-k"));
    EXPECT_EQ(*choose_credential({.command = "c"}, flags(exchange)), command("c"));
    EXPECT_EQ(*choose_credential({.api_key = "bad", .command = "c"}, flags(exchange)),
              command("c"));
}

TEST(CredentialChoice, WithoutTheExchangeOnlyKeysCount) {  // R-AUTH-22, R-AUTH-23
    EXPECT_EQ(*choose_credential({.api_key = "tml-k", .command = "c"}, flags(!exchange)),
              key("tml-k"));
    EXPECT_EQ(*choose_credential({.command = "c", .stored = "tml-s"}, flags(!exchange)),
              key("tml-s"));
    auto const refused = choose_credential({.command = "c"}, flags(!exchange));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field(), "credential_cmd");
    EXPECT_THAT(refused.error().what(), HasSubstr("TINKER_API_KEY"));
}

}  // namespace
}  // namespace tinkxx::service
