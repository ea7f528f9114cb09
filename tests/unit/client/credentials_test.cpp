#include <tinkxx/credentials.hpp>
#include <tinkxx/options.hpp>

#include "client/options/resolved_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tinkxx {
namespace {

using ::testing::HasSubstr;

/// A machine without credentials, but for what a test gives it.
struct CredentialsTest : ::testing::Test {
    CredentialsTest() {
        auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-home-XXXXXX").string();
        folder = ::mkdtemp(pattern.data());
        for (auto const* name : {"TINKER_API_KEY", "TINKER_CREDENTIAL_CMD"}) ::unsetenv(name);
        options.credentials_file = folder + "/credentials.json";
    }
    ~CredentialsTest() override { std::filesystem::remove_all(folder); }
    void store(std::string const& key) const {
        CredentialStore const file{options.credentials_file};
        ASSERT_TRUE(file.put("1", {.key = key}));
        ASSERT_TRUE(file.set_default("1"));
    }
    [[nodiscard]] service::ClientConfig config() const {
        return client::with_credential(
            client::resolve(options, [](char const*) { return std::optional<std::string>{}; }));
    }

    std::string folder{};
    ClientOptions options{};
};

TEST_F(CredentialsTest, AreSoughtWithoutARequest) {  // R-AUTH-43
    EXPECT_FALSE(has_credentials(options));
    EXPECT_EQ(static_token(options), std::nullopt);
    store("tml-stored");
    EXPECT_TRUE(has_credentials(options));
    EXPECT_EQ(static_token(options), "tml-stored");
    options.api_key = "tml-given";
    EXPECT_EQ(static_token(options), "tml-given");
}

TEST_F(CredentialsTest, ACommandCountsButIsNotRun) {  // R-AUTH-43
    options.credential_cmd = "touch " + folder + "/ran; echo tml-1";
    EXPECT_TRUE(has_credentials(options));
    EXPECT_EQ(static_token(options), std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
    store("tml-stored");
    EXPECT_EQ(static_token(options), "tml-stored");
}

TEST_F(CredentialsTest, ComeFromTheEnvironmentToo) {  // R-AUTH-43, R-CONF-01
    ::setenv("TINKER_API_KEY", "tml-env", 1);
    EXPECT_EQ(static_token(options), "tml-env");
    EXPECT_TRUE(has_credentials(options));
    ::unsetenv("TINKER_API_KEY");
}

TEST_F(CredentialsTest, AWrongKeyIsNone) {  // R-AUTH-02
    options.api_key = "wrong";
    EXPECT_FALSE(has_credentials(options));
    EXPECT_EQ(static_token(options), std::nullopt);
}

TEST_F(CredentialsTest, ASessionIsNotMadeWithoutOne) {  // R-CONF-05, R-AUTH-23
    EXPECT_THROW((void)config(), ValidationError);
    options.api_key = "wrong-0123456789abcdef";
    try {
        (void)config();
        FAIL() << "a wrong key was taken";
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.category(), ErrorCategory::user);
        EXPECT_THAT(e.what(), HasSubstr("tml-"));
    }
}

TEST_F(CredentialsTest, TheStoredKeyIsReadAndKeptOutOfLogs) {  // R-AUTH-40, R-AUTH-42, R-ERR-04
    store("tml-stored-0123456789");
    auto const made = config();
    EXPECT_EQ(made.credentials.stored, "tml-stored-0123456789");
    EXPECT_EQ(made.scrubber.scrub("a tml-stored-0123456789 b"), "a <redacted> b");
    options.api_key = "tml-given";
    EXPECT_EQ(config().credentials.stored, "") << "not needed, not read";
}

TEST_F(CredentialsTest, AnUnreadableFileIsAnErrorOnlyWhereItIsNeeded) {  // R-AUTH-40
    std::ofstream{options.credentials_file} << "{";
    EXPECT_THROW((void)config(), ValidationError);
    EXPECT_THROW((void)has_credentials(options), ValidationError);
    options.credential_cmd = "echo";
    EXPECT_EQ(config().credentials.command, "echo");
    options.api_key = "tml-given";
    EXPECT_EQ(config().credentials.api_key, "tml-given");
}

}  // namespace
}  // namespace tinkxx
