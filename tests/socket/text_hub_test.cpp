// The files of a tokenizer from a hub over HTTP: the tests' own server stands in for it.
#include <tinkxx/text/hub_http.hpp>

#include "support/fake_hub.hpp"
#include "support/servers/http_server.hpp"
#include "support/text_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tinkxx::text {
namespace {

using test::TextFolder;

class HttpHubTest : public ::testing::Test {
protected:
    HttpHubTest() {
        for (int i = 0; i < 50'000; ++i) large_text_ += "line " + std::to_string(i) + "\n";
        fake_.files = {{"tokenizer.json", large_text_}, {"tokenizer_config.json", "{}"}};
        fake_.large = {"tokenizer.json"};
        fake_.token = "hf_secret";
        fake_.storage = storage_server_.url("");
    }

    static test::Reaction react(test::FakeHub const& hub, test::ReceivedRequest const& request) {
        auto const authorization = request.header("authorization");
        auto answer =
            hub.answer(request.method, request.target, request.header("range"),
                       authorization.starts_with("Bearer ") ? authorization.substr(7) : "");
        test::Reaction reaction;
        reaction.answer.status = answer.status;
        for (auto& [name, value] : answer.headers) {
            // The server counts the body itself, which an answer to HEAD does not have.
            if (name != "Content-Length") {
                reaction.answer.headers.add(name, value);
            } else if (request.method == "HEAD") {
                reaction.answer.headers.add("X-Linked-Size", value);
            }
        }
        reaction.answer.body = std::move(answer.body);
        return reaction;
    }

    std::string large_text_{};
    test::FakeHub fake_{};
    std::atomic<int> leaked_{0};
    test::HttpServer server_{
        [this](test::ReceivedRequest const& request) { return react(fake_, request); }};
    // Another port is another origin.
    test::HttpServer storage_server_{[this](test::ReceivedRequest const& request) {
        if (!request.header("authorization").empty() || !request.header("x-api-key").empty()) {
            ++leaked_;
        }
        return react(fake_, request);
    }};
    TextFolder cache_{};
};

TEST_F(HttpHubTest, FetchesOverHttpAndKeepsSecretsFromOtherHosts) {
    TokenizerHub const hub{
        {.connection = std::make_shared<HttpHubConnection>(HttpClient{{.api_key = "tml-secret"}}),
         .endpoint = server_.url(""),
         .token = "hf_secret",
         .cache = cache_.path(),
         .piece_bytes = 100'000}};
    auto const folder = hub.fetch({.repository = "org/model"});
    EXPECT_EQ(cache_.read(folder / "tokenizer.json"), large_text_);
    EXPECT_EQ(cache_.read(folder / "tokenizer_config.json"), "{}");
    EXPECT_EQ(leaked_, 0);
}

TEST_F(HttpHubTest, SeveralFetchTheSameAtOnce) {
    auto const fetch = [this] {
        TokenizerHub const hub{{.connection = std::make_shared<HttpHubConnection>(),
                                .endpoint = server_.url(""),
                                .token = "hf_secret",
                                .cache = cache_.path(),
                                .piece_bytes = 100'000}};
        EXPECT_EQ(cache_.read(hub.fetch({.repository = "org/model"}) / "tokenizer.json"),
                  large_text_);
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(fetch);
}

}  // namespace
}  // namespace tinkxx::text
