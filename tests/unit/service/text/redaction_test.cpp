#include <tinkxx/redaction.hpp>

#include "service/text/scrubber.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Redaction, ShowsSixAndFourCharactersOfALongKey) {  // R-CONF-12
    EXPECT_EQ(redact_key("tml-abcdefghijklmnop"), "tml-ab...mnop");
}

TEST(Redaction, StarsShortKeysCompletely) {  // R-CONF-12, C-67
    EXPECT_EQ(redact_key("tml-12345678901"), "********");
    EXPECT_EQ(redact_key("abc"), "********");
    EXPECT_EQ(redact_key(""), "");
    EXPECT_EQ(redact_key("0123456789abcdef"), "012345...cdef");
}

TEST(Redaction, ReplacesValuesOfSecretHeaders) {  // R-CONF-12, R-CONF-13
    Headers const shown = redact({{"X-API-Key", "k"},
                                  {"CF-Access-Client-Secret", "k"},
                                  {"authorization", "k"},
                                  {"Proxy-Authorization", "k"},
                                  {"X-Tinker-Weights-Access-Token", "k"},
                                  {"Accept", "a"},
                                  {"CF-Access-Client-Id", "i"}});
    for (auto const& [name, value] : shown) {
        EXPECT_EQ(value == redaction_marker, name != "Accept" && name != "CF-Access-Client-Id")
            << name;
    }
    EXPECT_EQ(*shown.find("accept"), "a");
}

TEST(Redaction, RemovesCredentialsFromUrls) {
    EXPECT_EQ(redact_url("http://user:pw@proxy:8080/x"), "http://<redacted>@proxy:8080/x");
    EXPECT_EQ(redact_url("http://user:p@w@proxy"), "http://<redacted>@proxy");
    EXPECT_EQ(redact_url("http://proxy/a@b"), "http://proxy/a@b");
}

TEST(Scrubber, RemovesASecretInEveryForm) {  // R-ERR-04
    service::Scrubber scrubber;
    scrubber.add("s3cret\"/+x");
    auto const text =
        scrubber.scrub(R"(plain s3cret"/+x json s3cret\"/+x url s3cret%22%2F%2Bx end)");
    EXPECT_EQ(text, "plain <redacted> json <redacted> url <redacted> end");
}

TEST(Scrubber, KnowsTheSecretsInHeaders) {  // R-ERR-04, R-CONF-13
    service::Scrubber scrubber;
    scrubber.add_secrets_of({{"Authorization", "Basic dXNlcjpwdw=="},
                             {"x-tinker-weights-access-token", "token-1234"},
                             {"Accept", "application/json"}});
    EXPECT_EQ(scrubber.scrub("dXNlcjpwdw== token-1234 application/json"),
              "<redacted> <redacted> application/json");
    EXPECT_EQ(scrubber.scrub(Headers{{"x-echo", "token-1234"}}),
              (Headers{{"x-echo", "<redacted>"}}));
}

TEST(Scrubber, LeavesWordsAloneThatHappenToBeShort) {
    service::Scrubber scrubber;
    scrubber.add("a");
    scrubber.add("");
    EXPECT_EQ(scrubber.scrub("banana"), "banana");
}

TEST(Scrubber, LeavesNoSecretInAnyText) {  // R-ERR-04
    EXPECT_TRUE(
        rc::check("the secret is gone", [](std::string const& before, std::string const& after) {
            std::string const secret = "tml-0123456789abcdefXYZ";
            service::Scrubber scrubber;
            scrubber.add(secret);
            auto const text = scrubber.scrub(before + secret + secret + after);
            RC_ASSERT(text.find(secret) == std::string::npos);
        }));
}

TEST(Base64, EncodesWithPadding) {
    EXPECT_EQ(service::base64(""), "");
    EXPECT_EQ(service::base64("f"), "Zg==");
    EXPECT_EQ(service::base64("fo"), "Zm8=");
    EXPECT_EQ(service::base64("foo"), "Zm9v");
    EXPECT_EQ(service::base64("user:pw"), "dXNlcjpwdw==");
    EXPECT_EQ(service::base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace tinkxx
