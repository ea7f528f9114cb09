#include <tinkxx/error.hpp>
#include <tinkxx/text/hub.hpp>

#include "support/fake_hub.hpp"
#include "support/text_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace tinkxx::text {
namespace {

namespace fs = std::filesystem;
using test::FakeHub;
using test::TextFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

struct Sent {
    std::string method{};
    std::string url{};
    std::string token{};
    std::string range{};
};

/// Carries requests to a `FakeHub`, and breaks off when told to.
class FakeConnection final : public HubConnection {
public:
    explicit FakeConnection(FakeHub const& hub) : hub_{hub} {}

    void send(HubRequest const& request, std::function<void(HubHead const& head)> const& on_head,
              std::function<void(std::string_view data)> const& on_data) override {
        Sent one{.method = request.method, .url = request.url};
        for (auto const& [name, value] : request.headers) {
            if (name == "authorization") one.token = value.substr(7);
            if (name == "range") one.range = value;
        }
        sent.push_back(one);
        auto const path = request.url.substr(request.url.find('/', 8));
        auto answer = hub_.answer(one.method, path, one.range, one.token);
        on_head({.status = answer.status, .headers = answer.headers});
        std::string_view rest = answer.body;
        while (!rest.empty()) {
            auto const piece = rest.substr(0, 7);
            if (bytes_left < piece.size()) {
                throw ConnectionError{{.kind = ErrorKind::connection, .message = "broke off"}};
            }
            bytes_left -= piece.size();
            on_data(piece);
            rest.remove_prefix(piece.size());
        }
    }

    std::vector<Sent> sent{};
    std::size_t bytes_left{std::numeric_limits<std::size_t>::max()};

private:
    FakeHub const& hub_;
};

class TokenizerHubTest : public ::testing::Test {
protected:
    TokenizerHubTest() {
        for (int i = 0; i < 500; ++i) large_text_ += "line " + std::to_string(i) + "\n";
        fake_.files = {{"tokenizer.json", large_text_}, {"tokenizer_config.json", "{\"a\": 1}"}};
        fake_.large = {"tokenizer.json"};
        options_.connection = connection_;
        options_.cache = cache_.path();
        options_.piece_bytes = 1000;
        options_.endpoint = "https://hub.example";
        options_.environment = [this](char const* name) -> std::optional<std::string> {
            auto const found = variables_.find(name);
            return found == variables_.end() ? std::nullopt : std::optional{found->second};
        };
    }

    fs::path fetch() { return TokenizerHub{options_}.fetch({.repository = "org/model"}); }
    void expect_refusal(::testing::Matcher<std::string> const& message) {
        EXPECT_THAT([this] { (void)fetch(); }, ThrowsMessage<Error>(message));
    }
    [[nodiscard]] fs::path inside(std::string const& name) const {
        return cache_.path() / "models--org--model" / name;
    }
    [[nodiscard]] std::string blob() const { return "blobs/" + test::sha256_of(large_text_); }
    [[nodiscard]] std::vector<std::string> ranges() const {
        std::vector<std::string> all;
        for (auto const& one : connection_->sent) {
            if (one.url.starts_with("https://storage")) all.push_back(one.range);
        }
        return all;
    }

    std::string large_text_{};
    FakeHub fake_{};
    std::shared_ptr<FakeConnection> connection_{std::make_shared<FakeConnection>(fake_)};
    TextFolder cache_{};
    HubOptions options_{};
    std::map<std::string, std::string> variables_{};
};

TEST_F(TokenizerHubTest, FetchesIntoTheLayoutOfTheCache) {
    auto const folder = fetch();
    EXPECT_EQ(folder, inside("snapshots/" + fake_.commit));
    EXPECT_EQ(cache_.read("models--org--model/refs/main"), fake_.commit);
    EXPECT_EQ(fs::read_symlink(folder / "tokenizer.json"), fs::path{"../.."} / blob());
    EXPECT_EQ(cache_.read(folder / "tokenizer.json"), large_text_);
    EXPECT_EQ(fs::read_symlink(folder / "tokenizer_config.json").filename(),
              test::git_name_of("{\"a\": 1}"));
    EXPECT_FALSE(fs::exists(folder / "chat_template.jinja"));
    EXPECT_FALSE(fs::exists(inside(blob() + ".incomplete")));
    EXPECT_EQ(find_tokenizer("org/model", {.cache = cache_.path()}), folder);
}

TEST_F(TokenizerHubTest, AsksForPiecesAndGoesOnWhereItBrokeOff) {
    ASSERT_EQ(large_text_.size(), 4390U);
    connection_->bytes_left = 1500;
    expect_refusal(HasSubstr("broke off"));
    // The last whole 7 bytes of what came.
    EXPECT_EQ(fs::file_size(inside(blob() + ".incomplete")), 1497U);
    EXPECT_FALSE(fs::exists(inside("snapshots")));
    connection_->sent.clear();
    connection_->bytes_left = std::numeric_limits<std::size_t>::max();
    EXPECT_EQ(cache_.read(fetch() / "tokenizer.json"), large_text_);
    EXPECT_THAT(ranges(), ElementsAre("bytes=1497-2496", "bytes=2497-3496", "bytes=3497-4389"));
}

TEST_F(TokenizerHubTest, TakesTheWholeFileFromAServerThatKnowsNoRanges) {
    connection_->bytes_left = 1500;
    expect_refusal(HasSubstr("broke off"));
    connection_->bytes_left = std::numeric_limits<std::size_t>::max();
    fake_.knows_ranges = false;
    EXPECT_EQ(cache_.read(fetch() / "tokenizer.json"), large_text_);
}

TEST_F(TokenizerHubTest, AsksForNothingThatItHas) {
    (void)fetch();
    connection_->sent.clear();
    (void)fetch();  // only which commit is the newest
    EXPECT_THAT(connection_->sent, Each(::testing::Field(&Sent::method, "HEAD")));
    connection_->sent.clear();
    (void)TokenizerHub{options_}.fetch({.repository = "org/model", .revision = fake_.commit});
    EXPECT_THAT(connection_->sent,
                Each(::testing::Field(&Sent::url, Not(HasSubstr("tokenizer.json")))));
}

TEST_F(TokenizerHubTest, FollowsTheBranchToANewCommit) {
    auto const old = fetch();
    fake_.commit = std::string(40, 'd');
    fake_.files["tokenizer_config.json"] = "{}";
    auto const folder = fetch();
    EXPECT_EQ(folder.filename(), fake_.commit);
    EXPECT_EQ(cache_.read("models--org--model/refs/main"), fake_.commit);
    EXPECT_EQ(cache_.read(folder / "tokenizer_config.json"), "{}");
    EXPECT_EQ(cache_.read(old / "tokenizer_config.json"), "{\"a\": 1}");
}

TEST_F(TokenizerHubTest, RefusesAFileWithoutItsChecksumAndForgetsIt) {
    fake_.damages = true;
    expect_refusal(AllOf(HasSubstr("damaged"), HasSubstr(test::sha256_of(large_text_))));
    EXPECT_FALSE(fs::exists(inside(blob())));
    EXPECT_FALSE(fs::exists(inside(blob() + ".incomplete")));
    fake_.damages = false;
    EXPECT_EQ(cache_.read(fetch() / "tokenizer.json"), large_text_);
}

TEST_F(TokenizerHubTest, StartsAnewWhereAnOlderDownloadLeftTooMuch) {
    cache_.write("models--org--model/" + blob() + ".incomplete", std::string(9000, 'x'));
    EXPECT_EQ(cache_.read(fetch() / "tokenizer.json"), large_text_);
}

TEST_F(TokenizerHubTest, RefusesAFileThatIsTooLarge) {
    options_.max_file_bytes = 4389;
    expect_refusal(
        AllOf(HasSubstr("tokenizer.json"), HasSubstr("4390"), HasSubstr("max_file_bytes")));
    EXPECT_THAT(ranges(), IsEmpty());
}

TEST_F(TokenizerHubTest, SendsTheTokenToTheHubAlone) {
    fake_.token = "hf_secret";
    variables_["HF_TOKEN"] = "hf_secret\n";
    (void)fetch();
    for (auto const& one : connection_->sent) {
        EXPECT_EQ(one.token, one.url.starts_with("https://hub.example/") ? "hf_secret" : "")
            << one.url;
    }
    EXPECT_THAT(ranges(), Not(IsEmpty()));
}

TEST_F(TokenizerHubTest, SendsNoTokenInTheClear) {
    options_.token = "hf_secret";
    options_.endpoint = "http://hub.example";
    (void)fetch();
    EXPECT_THAT(connection_->sent, Each(::testing::Field(&Sent::token, "")));
    options_.endpoint = "http://127.0.0.1:8000";
    (void)TokenizerHub{options_}.fetch({.repository = "org/model"});
    EXPECT_EQ(connection_->sent.back().token, "hf_secret");
}

TEST_F(TokenizerHubTest, ReadsTheTokenWhereOtherProgramsKeepIt) {
    TextFolder const home;
    home.write(".cache/huggingface/token", "hf_stored\n");
    variables_["HOME"] = home.path().string();
    (void)fetch();
    EXPECT_EQ(connection_->sent.front().token, "hf_stored");
    variables_["HF_TOKEN_PATH"] = home.write("other", "hf_other").string();
    (void)fetch();
    EXPECT_EQ(connection_->sent.back().token, "hf_other");
}

TEST_F(TokenizerHubTest, TellsNoSecret) {
    options_.token = "hf_secret\x01";
    EXPECT_THAT([this] { (void)fetch(); }, ThrowsMessage<ValidationError>(AllOf(
                                               HasSubstr("token"), Not(HasSubstr("secret")))));
    options_.token = "hf_secret";
    fake_.token = "another";
    expect_refusal(AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("secret"))));
}

TEST_F(TokenizerHubTest, AsksNobodyWhenItIsOffline) {
    variables_["HF_HUB_OFFLINE"] = "1";
    expect_refusal(HasSubstr("HF_HUB_OFFLINE"));
    EXPECT_THAT(connection_->sent, IsEmpty());
}

TEST_F(TokenizerHubTest, SaysWhatIsNotThere) {
    fake_.files.erase("tokenizer.json");
    expect_refusal(HasSubstr("neither tokenizer.json nor tiktoken.model"));
    fake_.branch = "other";
    expect_refusal(HasSubstr("no revision main"));
    fake_.repository = "org/other";
    expect_refusal(HasSubstr("org/model does not exist"));
}

TEST_F(TokenizerHubTest, TakesRanksWhereThereIsNoJson) {
    fake_.files = {{"tiktoken.model", "IQ== 0\n"}};
    EXPECT_EQ(find_tokenizer_files(fetch()).format, TokenizerFormat::tiktoken);
}

TEST_F(TokenizerHubTest, DoesNotFollowARedirectOutOfTls) {
    fake_.storage = "http://storage.example";
    expect_refusal(HasSubstr("redirects"));
}

TEST_F(TokenizerHubTest, RefusesAddressesThatAreNone) {
    for (auto const* address : {"hub.example", "ftp://hub.example", "https://",
                                "https://me@hub.example", "https://hub.example/?x"}) {
        options_.endpoint = address;
        EXPECT_THAT([this] { (void)fetch(); },
                    ThrowsMessage<ValidationError>(HasSubstr("not the address of a hub")))
            << address;
    }
    options_.connection = nullptr;
    EXPECT_THROW((void)fetch(), ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
