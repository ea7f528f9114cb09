#include "unit/cli/commands_fixture.hpp"

#include <tinkxx/credentials.hpp>

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tinkxx::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Account : public CommandsTest {
protected:
    Account() {
        char name[] = "/tmp/tinkxx-auth-XXXXXX";
        folder = ::mkdtemp(name);
        credentials_file = (folder / "credentials.json").string();
        api_key = "";
        answer("GET auth/apikey/me",
               R"({"key_id":7,"name":"tinker-cli-x","note":"","details":{"org_details":)"
               R"({"name":"Org"},"user_details":{"email":"me@org"}}})");
    }
    ~Account() override { fs::remove_all(folder); }

    [[nodiscard]] std::string stored() const {
        std::ifstream file{credentials_file};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

    fs::path folder{};
};

TEST_F(Account, LoginStoresAKeyThatTheServiceKnows) {  // R-CLI-15
    typed = "  tml-secret \n";
    auto done = run({"auth", "login", "--json"});
    ASSERT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_THAT(done.err, HasSubstr("make a key named tinker-cli-"));
    EXPECT_EQ(done.out,
              "{\n  \"key_id\": \"7\",\n  \"name\": \"tinker-cli-x\",\n  \"organization\": "
              "\"Org\",\n  \"email\": \"me@org\",\n  \"path\": \"" +
                  credentials_file + "\"\n}\n");
    EXPECT_THAT(done.out + done.err, Not(HasSubstr("secret")));
    EXPECT_EQ(sent.at(0).header("X-API-Key"), "tml-secret");
    EXPECT_THAT(stored(), HasSubstr("\"default\": \"7\""));
    EXPECT_EQ(fs::status(credentials_file).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);

    done = run({"auth", "login"});
    EXPECT_EQ(done.exit, Exit::failure);
    EXPECT_THAT(done.err, HasSubstr("a key is stored already"));
    EXPECT_THAT(done.err, HasSubstr("tinker-cli-x, me@org, Org"));
}

TEST_F(Account, LoginRefusesWhatIsNoKey) {  // R-CLI-15
    for (auto const* const text : {"", "\n", "secret\n"}) {
        typed = text;
        EXPECT_EQ(run({"auth", "login"}).exit, Exit::usage);
    }
    EXPECT_THAT(sent, IsEmpty());
    typed = "tml-wrong\n";
    answer("GET auth/apikey/me", R"({"detail":"no such key"})", 401);
    auto const refused = run({"auth", "login"});
    EXPECT_EQ(refused.exit, Exit::failure);
    EXPECT_THAT(refused.err, HasSubstr("authentication failed"));
    answer("GET auth/apikey/me", std::vector{testing::Reply{.body = "<html>hello</html>"}});
    auto const page = run({"auth", "login"});
    EXPECT_EQ(page.exit, Exit::failure);
    EXPECT_THAT(page.err, HasSubstr("cannot be read"));
    EXPECT_EQ(stored(), "");
}

TEST_F(Account, LogoutKeepsAPastedKeyAlive) {  // R-CLI-15
    typed = "tml-secret\n";
    ASSERT_EQ(run({"auth", "login"}).exit, Exit::success);
    auto const done = run({"auth", "logout"});
    EXPECT_EQ(done.exit, Exit::success);
    EXPECT_THAT(done.err,
                HasSubstr("it still works elsewhere; delete it in the console, https://"));
    EXPECT_THAT(stored(), Not(HasSubstr("secret")));
    EXPECT_THAT(run({"auth", "logout"}).err, HasSubstr("no key is stored"));
}

TEST_F(Account, LogoutRevokesAGeneratedKeyAndRemovesItAnyway) {  // R-CLI-15
    auto const store = [&] {
        CredentialStore const file{credentials_file};
        ASSERT_TRUE(file.put("9", {.type = StoredKey::Type::generated,
                                   .key = "tml-made",
                                   .name = "n",
                                   .organization = "o",
                                   .email = "e"}));
        ASSERT_TRUE(file.set_default("9"));
    };
    store();
    answer("DELETE auth/apikey/me", "{}");
    EXPECT_EQ(run({"auth", "logout"}).exit, Exit::success);
    EXPECT_EQ(sent.back().header("X-API-Key"), "tml-made");
    store();
    answer("DELETE auth/apikey/me", R"({"detail":"no"})", 403);
    auto const failed = run({"auth", "logout"});
    EXPECT_EQ(failed.exit, Exit::failure);
    EXPECT_THAT(failed.err, HasSubstr("the service still takes the key"));
    EXPECT_THAT(stored(), Not(HasSubstr("tml-made")));
}

TEST_F(Account, StatusAsksTheService) {  // R-CLI-15
    auto done = run({"auth", "status", "--json"});
    EXPECT_EQ(done.exit, Exit::failure);
    EXPECT_THAT(done.out, HasSubstr("\"credentials\": false"));
    EXPECT_THAT(done.err, HasSubstr("tinkxx auth login"));
    answer("GET get_server_capabilities", R"({"supported_models":[]})");
    done = run({"auth", "status", "--api-key", "tml-x"});
    EXPECT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_EQ(done.out, "Credentials  from --api-key\nAccepted     Yes\n");
    answer("GET get_server_capabilities", R"({"detail":"who?"})", 401);
    done = run({"auth", "status", "--api-key", "tml-x", "--json"});
    EXPECT_EQ(done.exit, Exit::failure);
    EXPECT_THAT(done.out, HasSubstr("\"accepted\": false"));
    EXPECT_THAT(done.err, HasSubstr("authentication failed"));
}

TEST_F(Account, WhoamiReadsTheToken) {  // R-CLI-15
    // {"iss":"passport-x","sub":"tml:user:1","email":"me@org","org_id":"7"}
    auto const token =
        "eyJhbGciOiJub25lIn0."
        "eyJpc3MiOiJwYXNzcG9ydC14Iiwic3ViIjoidG1sOnVzZXI6MSIsImVtYWlsIjoibWVAb3JnIiwib3JnX2lkIjoiNy"
        "J9"
        ".x";
    EXPECT_EQ(run({"auth", "whoami", "--json", "--api-key", token}).out,
              "{\n  \"user_urn\": \"tml:user:1\",\n  \"org_urn\": \"tml:organization:7\",\n"
              "  \"email\": \"me@org\"\n}\n");
    EXPECT_EQ(run({"auth", "whoami", "--api-key", "tml-x"}).exit, Exit::failure);
}

}  // namespace
}  // namespace tinkxx::cli
