#include <tinkxx/credentials.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tinkxx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct CredentialStoreTest : ::testing::Test {
    CredentialStoreTest() {
        auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-store-XXXXXX").string();
        folder = ::mkdtemp(pattern.data());
        path = folder + "/.tinker/credentials.json";
    }
    ~CredentialStoreTest() override { std::filesystem::remove_all(folder); }

    void write(std::string const& text) {
        std::filesystem::create_directories(folder + "/.tinker");
        std::ofstream{path} << text;
    }
    [[nodiscard]] std::string text() const {
        std::ostringstream all;
        all << std::ifstream{path}.rdbuf();
        return all.str();
    }
    static unsigned mode(std::string const& name) {
        struct stat info {};
        EXPECT_EQ(::stat(name.c_str(), &info), 0);
        return info.st_mode & 0777U;
    }

    std::string folder{};
    std::string path{};
};

TEST_F(CredentialStoreTest, AMissingFileIsAnEmptyStore) {  // R-AUTH-40
    auto const all = CredentialStore{path}.read();
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, StoredCredentials{});
    EXPECT_EQ(all->default_key(), nullptr);
    EXPECT_TRUE(CredentialStore{path}.remove("7"));
    EXPECT_FALSE(std::filesystem::exists(path)) << "nothing to remove, nothing to write";
}

TEST_F(CredentialStoreTest, KeepsKeysAndTheDefault) {  // R-AUTH-40, R-AUTH-42
    CredentialStore const store{path};
    StoredKey const first{
        .key = "tml-1", .name = "laptop", .note = "mine", .organization = "Acme", .email = "a@b.c"};
    StoredKey const second{.type = StoredKey::Type::generated, .key = "tml-2", .name = "old"};
    ASSERT_TRUE(store.put("1", first));
    ASSERT_TRUE(store.put("2", second));
    ASSERT_TRUE(store.set_default("1"));
    auto all = store.read();
    ASSERT_TRUE(all);
    EXPECT_EQ(all->keys.at("1"), first);
    EXPECT_EQ(all->keys.at("2"), second);
    EXPECT_EQ(all->default_key()->key, "tml-1");

    ASSERT_TRUE(store.put("1", {.key = "tml-3", .name = "new"}));
    EXPECT_EQ(store.read()->keys.at("1"), (StoredKey{.key = "tml-3", .name = "new"}));
    ASSERT_TRUE(store.set_default(std::nullopt));
    EXPECT_EQ(store.read()->default_key(), nullptr);
}

TEST_F(CredentialStoreTest, RemovingTheDefaultLeavesNone) {  // R-AUTH-42
    CredentialStore const store{path};
    ASSERT_TRUE(store.put("1", {.key = "tml-1"}));
    ASSERT_TRUE(store.put("2", {.key = "tml-2"}));
    ASSERT_TRUE(store.set_default("1"));
    ASSERT_TRUE(store.remove("2"));
    EXPECT_EQ(store.read()->default_id, "1");
    ASSERT_TRUE(store.remove("1"));
    EXPECT_EQ(store.read()->default_id, std::nullopt);
    EXPECT_THAT(store.read()->keys, IsEmpty());
    auto const missing = store.set_default("1");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().what(), HasSubstr("no key \"1\""));
}

TEST_F(CredentialStoreTest, OnlyTheUserCanReadIt) {  // R-AUTH-41
    ASSERT_TRUE(CredentialStore{path}.put("1", {.key = "tml-1"}));
    EXPECT_EQ(mode(folder + "/.tinker"), 0700U);
    EXPECT_EQ(mode(path), 0600U);
    std::size_t files = 0;
    for ([[maybe_unused]] auto const& entry :
         std::filesystem::directory_iterator{folder + "/.tinker"}) {
        ++files;
    }
    EXPECT_EQ(files, 1U) << "no temporary file stays";
}

TEST_F(CredentialStoreTest, WritesAsTheOfficialToolsDo) {  // R-AUTH-41
    CredentialStore const store{path};
    ASSERT_TRUE(store.put("1", {.key = "tml-1", .name = "n", .email = "a@b.c"}));
    ASSERT_TRUE(store.set_default("1"));
    EXPECT_EQ(text(), R"({
  "version": 1,
  "default": "1",
  "keys": {
    "1": {
      "type": "manual",
      "key": "tml-1",
      "name": "n",
      "details": {
        "org_details": {},
        "user_details": {
          "email": "a@b.c"
        }
      }
    }
  }
}
)");
}

TEST_F(CredentialStoreTest, UnknownMembersSurviveAndNullsDoNot) {  // R-AUTH-41
    write(R"({"version":1,"default":null,"future":{"a":[1,2]},
              "keys":{"1":{"type":"manual","key":"tml-1","name":"n","color":"red"}}})");
    CredentialStore const store{path};
    ASSERT_TRUE(store.put("1", {.key = "tml-2", .name = "m"}));
    EXPECT_THAT(text(), HasSubstr(R"("color": "red")"));
    EXPECT_THAT(text(), HasSubstr("\"future\": {\n    \"a\": [\n      1,"));
    EXPECT_THAT(text(), Not(HasSubstr("null")));
    EXPECT_EQ(store.read()->keys.at("1").key, "tml-2");
}

TEST_F(CredentialStoreTest, RefusesWhatItCannotRead) {  // R-AUTH-40
    CredentialStore const store{path};
    for (auto const* bad : {"", "[]", "{hunter2", R"({"version":2,"keys":{}})", R"({"keys":{}})",
                            R"({"version":1,"keys":{"1":{"name":"hunter2"}}})"}) {
        write(bad);
        auto const all = store.read();
        ASSERT_FALSE(all) << bad;
        EXPECT_EQ(all.error().kind(), ErrorKind::validation);
        EXPECT_EQ(all.error().field(), "credentials_file");
        EXPECT_THAT(all.error().what(), HasSubstr(path));
        EXPECT_THAT(all.error().what(), Not(HasSubstr("hunter2")));
    }
    write(R"({"version":2})");
    EXPECT_FALSE(store.put("1", {.key = "tml-1"})) << "a newer file is not overwritten";
    EXPECT_EQ(text(), R"({"version":2})");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_FALSE(store.read());
    EXPECT_FALSE(store.put("1", {.key = "tml-1"}));
}

TEST_F(CredentialStoreTest, RefusesKeysThatAreNone) {  // R-AUTH-42
    CredentialStore const store{path};
    EXPECT_FALSE(store.put("", {.key = "tml-1"}));
    EXPECT_FALSE(store.put("1", {}));
}

TEST_F(CredentialStoreTest, StandsInTheHomeFolderUnlessToldOtherwise) {  // R-AUTH-40, R-CONF-03
    EXPECT_THAT(CredentialStore{}.path(), ::testing::EndsWith("/.tinker/credentials.json"));
}

}  // namespace
}  // namespace tinkxx
