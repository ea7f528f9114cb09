#include <tinkxx/error.hpp>
#include <tinkxx/text/load.hpp>

#include "support/text_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tinkxx::text {
namespace {

using test::TextFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string const commit(40, 'a');
std::string const pinned(40, 'b');

Environment environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](char const* name) -> std::optional<std::string> {
        auto const found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

TEST(HubCacheFolder, IsWhereTheEnvironmentSays) {
    std::map<std::string, std::string> set;
    auto const expect = [&](char const* name, char const* value, char const* folder) {
        set[name] = value;
        EXPECT_EQ(hub_cache_folder(environment(set)), folder);
    };
    EXPECT_EQ(hub_cache_folder(environment({})), "");
    expect("HOME", "/users/me", "/users/me/.cache/huggingface/hub");
    expect("XDG_CACHE_HOME", "/cache", "/cache/huggingface/hub");
    expect("HF_HOME", "~/hf", "/users/me/hf/hub");
    expect("HUGGINGFACE_HUB_CACHE", "/old", "/old");
    expect("HF_HUB_CACHE", "~/new", "/users/me/new");
    expect("HF_HUB_CACHE", "", "/old");
}

TEST(FindTokenizer, FollowsTheReferenceOfTheCache) {
    TextFolder const folder;
    folder.write("models--org--model/refs/main", commit);
    folder.write("models--org--model/snapshots/" + commit + "/tokenizer.json", "{}");
    folder.write("models--org--model/snapshots/" + pinned + "/tokenizer.json", "{}");
    TokenizerPlaces const places{.cache = folder.path()};
    auto const snapshots = folder.path() / "models--org--model/snapshots";
    EXPECT_EQ(find_tokenizer("org/model", places), snapshots / commit);
    EXPECT_EQ(find_tokenizer({.repository = "org/model", .revision = pinned}, places),
              snapshots / pinned);
}

TEST(FindTokenizer, LooksInFoldersOfModelsFirst) {
    TextFolder const cache;
    TextFolder const models;
    cache.write("models--org--model/refs/main", commit);
    cache.write("models--org--model/snapshots/" + commit + "/tokenizer.json", "{}");
    TokenizerPlaces const places{.folders = {models.path()}, .cache = cache.path()};
    models.write("model/tokenizer.json", "{}");
    EXPECT_EQ(find_tokenizer("org/model", places), models.path() / "model");
    models.write("org/model/tokenizer.json", "{}");
    EXPECT_EQ(find_tokenizer("org/model", places), models.path() / "org/model");
    // A folder does not say which revision it is of.
    EXPECT_THROW((void)find_tokenizer({.repository = "org/model", .revision = pinned}, places),
                 ValidationError);
}

TEST(FindTokenizer, MapsModelsAsTheServiceDoes) {  // R-TRAIN-90
    TextFolder const folder;
    auto const repository =
        std::string{"models--thinkingmachineslabinc--meta-llama-3-instruct-tokenizer"};
    folder.write(repository + "/refs/main", commit);
    folder.write(repository + "/snapshots/" + commit + "/tokenizer.json", "{}");
    folder.write(
        "models--moonshotai--Kimi-K2.5/snapshots/"
        "4d01dfe0332d63057c186e0b262165819efb6611/tiktoken.model",
        "");
    TokenizerPlaces const places{.cache = folder.path()};
    EXPECT_EQ(find_tokenizer("meta-llama/Llama-3.1-8B", places),
              folder.path() / repository / "snapshots" / commit);
    EXPECT_EQ(find_tokenizer("moonshotai/Kimi-K2.5", places).filename(),
              "4d01dfe0332d63057c186e0b262165819efb6611");
}

TEST(FindTokenizer, RefusesModelsThatHaveNone) {  // R-TRAIN-91
    EXPECT_THAT(
        [] { (void)find_tokenizer("thinkingmachines/x", TokenizerPlaces{.cache = "/none"}); },
        ThrowsMessage<ValidationError>(HasSubstr("renderer")));
}

TEST(FindTokenizer, TakesWhatTheUsersTableSays) {  // R-TRAIN-90
    TokenizerPlaces places{.cache = "/none"};
    places.table.add("my/model", TokenizerId{.repository = "org/other"})
        .add("org/other", std::filesystem::path{"/somewhere/tokenizer.json"})
        .add("thinkingmachines/x", std::filesystem::path{"/elsewhere"});
    EXPECT_EQ(find_tokenizer("my/model", places), "/somewhere/tokenizer.json");
    EXPECT_EQ(find_tokenizer("thinkingmachines/x", places), "/elsewhere");
    EXPECT_EQ(places.table.id_of("my/model", "org/explicit:variant").repository, "org/explicit");
    EXPECT_EQ(places.table.id_of("a/b/c").repository, "a/b");
}

TEST(FindTokenizer, NamesTheFileAndEveryPlaceWhereItIsNot) {  // R-TRAIN-90
    TextFolder const folder;
    folder.write("models--org--model/refs/main", commit);
    TokenizerPlaces const places{.folders = {"/models"}, .cache = folder.path()};
    EXPECT_THAT(
        [&] { (void)find_tokenizer("org/model", places); },
        ThrowsMessage<ValidationError>(AllOf(
            HasSubstr("tokenizer.json of org/model"), HasSubstr("/models/org/model/tokenizer.json"),
            HasSubstr("/models/model/tokenizer.json"),
            HasSubstr((folder.path() / "models--org--model/snapshots" / commit / "tokenizer.json")
                          .string()),
            HasSubstr("huggingface-cli download org/model"))));
    EXPECT_THAT([&] { (void)find_tokenizer("org/new", places); },
                ThrowsMessage<ValidationError>(
                    HasSubstr((folder.path() / "models--org--new/refs/main").string())));
    EXPECT_THAT(
        [&] { (void)find_tokenizer("org/new", TokenizerPlaces{.environment = environment({})}); },
        ThrowsMessage<ValidationError>(HasSubstr("neither HF_HOME nor HOME is set")));
}

TEST(FindTokenizer, RefusesNamesThatLeaveTheCache) {
    TokenizerPlaces const places{.cache = "/none"};
    for (auto const* name : {"../x", "org/..", "", "org/", "/x", "a b/c", "org/x\n"}) {
        EXPECT_THAT([&] { (void)find_tokenizer(TokenizerId{.repository = name}, places); },
                    ThrowsMessage<ValidationError>(HasSubstr("not the name of a repository")))
            << name;
    }
    EXPECT_THAT([&] { (void)find_tokenizer({.repository = "a/b", .revision = "../../x"}, places); },
                ThrowsMessage<ValidationError>(HasSubstr("not a revision")));
}

TEST(FindTokenizer, AsksForADownloadLast) {
    TextFolder const folder;
    std::vector<TokenizerId> asked;
    TokenizerPlaces places{.cache = folder.path()};
    places.download = [&](TokenizerId const& id) {
        asked.push_back(id);
        return std::filesystem::path{"/fetched"};
    };
    EXPECT_EQ(find_tokenizer("org/model", places), "/fetched");
    EXPECT_THAT(asked, ::testing::ElementsAre(TokenizerId{.repository = "org/model"}));
    folder.write("models--org--model/refs/main", commit);
    folder.write("models--org--model/snapshots/" + commit + "/tokenizer.json", "{}");
    (void)find_tokenizer("org/model", places);
    EXPECT_EQ(asked.size(), 1U);
}

TEST(TokenizerLoader, LoadsForTokenizers) {  // R-TRAIN-90
    TextFolder const folder;
    auto const file = folder.write("own.json", R"({"model": {"type": "WordLevel", "unk_token": "?",
        "vocab": {"?": 0, "hi": 1}}, "added_tokens": []})");
    TokenizerPlaces places{.cache = "/none"};
    places.table.add("org/model", file);
    Tokenizers const all{tokenizer_loader(places)};
    auto const tokenizer = all.get(places.table.id_of("org/model"));
    EXPECT_THAT(tokenizer->encode("hi"), ::testing::ElementsAre(1));
    EXPECT_EQ(all.get(places.table.id_of("org/model")), tokenizer);
}

}  // namespace
}  // namespace tinkxx::text
