// Checkpoints fetched from a service and a file server that fail in all ways.
#include <tinkxx/rest_client.hpp>

#include "support/raw_tinker.hpp"
#include "support/tar_text.hpp"
#include "wire/json/base64.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openssl/evp.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Reply;
using testing::SentRequest;

constexpr std::int64_t piece = 64 * 1024;

std::string noise(std::size_t size, unsigned seed) {
    std::string out(size, '\0');
    std::uint32_t state = seed;
    for (auto& c : out) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24U);
    }
    return out;
}

std::string digest_of(std::string const& text) {
    std::string sum(32, '\0');
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(sum.data()), &size,
               EVP_sha256(), nullptr);
    return "sha-256=:" + wire::base64(sum) + ':';
}

/// A file as a server has it.
struct Served {
    std::string content{};
    std::string etag{"\"v1\""};
    std::string digest{};
    bool by_parts{true};
};

class Download : public ::testing::Test {
protected:
    Download() {
        auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-fetch-XXXXXX").string();
        root = ::mkdtemp(pattern.data());
        options.target = root / "target";
        options.piece_bytes = piece;
        tinker.on_other = [this](SentRequest const& request) { return answer(request); };
    }
    ~Download() override {
        std::error_code ignored;
        std::filesystem::remove_all(root, ignored);
    }

    std::optional<Reply> answer(SentRequest const& request) {
        bool const of_service = !request.url.starts_with("https://files.test/");
        if (request.path.ends_with("/external_weights_urls")) return links();
        if (of_service && request.path.ends_with("/archive")) {
            return json_reply(R"({"url":"https://files.test/archive?key=)" +
                              std::to_string(++links_given) + R"(","expires":")" + expiry() +
                              "\"}");
        }
        if (of_service) return std::nullopt;
        asked.push_back(request);
        if (on_file) {
            if (auto reply = on_file(request)) return reply;
        }
        return file(request);
    }
    [[nodiscard]] std::string expiry() const {
        return to_string(Timestamp{.time = std::chrono::floor<std::chrono::microseconds>(
                                       tinker.clock->wall() + lifetime)});
    }
    Reply links() {
        ++links_given;
        std::string urls;
        for (auto const& [name, served] : files) {
            urls += (urls.empty() ? "\"" : ",\"") + name + R"(":"https://files.test/)" + name +
                    "?key=" + std::to_string(links_given) + '"';
        }
        return json_reply("{\"urls\":{" + urls + R"(},"expires":")" + expiry() + "\"}");
    }
    Reply file(SentRequest const& request) {
        auto const found = files.find(request.path.substr(1));
        if (found == files.end()) return {.status = 404};
        auto const& served = found->second;
        Reply reply;
        reply.headers.add("ETag", served.etag);
        if (!served.digest.empty()) reply.headers.add("Repr-Digest", served.digest);
        auto const range = request.header("Range");
        auto const condition = request.header("If-Range");
        bool const part =
            served.by_parts && !range.empty() && (condition.empty() || condition == served.etag);
        if (!part) {
            reply.body = served.content;
        } else {
            auto const first = std::stoul(range.substr(range.find('=') + 1));
            if (first >= served.content.size()) return {.status = 416};
            auto const last =
                std::min(std::stoul(range.substr(range.find('-') + 1)), served.content.size() - 1);
            reply.status = 206;
            reply.body = served.content.substr(first, last - first + 1);
            reply.headers.add("Content-Range", "bytes " + std::to_string(first) + '-' +
                                                   std::to_string(last) + '/' +
                                                   std::to_string(served.content.size()));
        }
        reply.pieces = 3;
        return reply;
    }

    Result<DownloadedCheckpoint> fetch(std::string const& path = "tinker://r/external_weights/e") {
        RestClient const rest{tinker.options()};
        return rest.download_checkpoint(path, options).result();
    }
    [[nodiscard]] std::string content(std::string const& name) const {
        std::ifstream in{root / name, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    [[nodiscard]] std::vector<std::string> listing() const {
        std::vector<std::string> names;
        for (auto const& entry : std::filesystem::directory_iterator{root}) {
            names.push_back(entry.path().filename().string());
        }
        std::ranges::sort(names);
        return names;
    }
    [[nodiscard]] std::vector<std::string> ranges() const {
        std::vector<std::string> out;
        for (auto const& request : asked) out.push_back(request.header("Range"));
        return out;
    }

    RawTinker tinker{};
    std::filesystem::path root;
    DownloadOptions options{};
    std::map<std::string, Served> files{};
    std::chrono::seconds lifetime{3600};
    std::function<std::optional<Reply>(SentRequest const&)> on_file{};
    std::vector<SentRequest> asked{};
    int links_given{0};
};

TEST_F(Download, FetchesFilesInPartsAtOnce) {  // R-REST-12, R-CLI-10
    files["adapter_config.json"].content = "{}";
    files["sub/model.bin"].content = noise(5 * piece + 17, 1);
    files["empty"].content = "";
    std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>> told;
    options.on_progress = [&told](std::int64_t there, std::optional<std::int64_t> total) {
        told.emplace_back(there, total);
    };
    auto const made = fetch();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->folder, root / "target");
    EXPECT_THAT(made->files,
                ElementsAre(DownloadedFile{"adapter_config.json", 2}, DownloadedFile{"empty", 0},
                            DownloadedFile{"sub/model.bin", 5 * piece + 17}));
    EXPECT_EQ(content("target/sub/model.bin"), files["sub/model.bin"].content);
    EXPECT_EQ(content("target/adapter_config.json"), "{}");
    EXPECT_TRUE(std::filesystem::exists(root / "target/empty"));
    EXPECT_THAT(listing(), ElementsAre("target"));
    // R-CLI-11: so much of so much.
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back(), (std::pair{5 * piece + 19, std::optional{5 * piece + 19}}));
    EXPECT_TRUE(std::ranges::is_sorted(told));
    // What is fetched there is not the service's business.
    for (auto const& request : asked) {
        EXPECT_EQ(request.header("X-API-Key"), "");
        EXPECT_EQ(request.header("x-sdk-method"), "");
        EXPECT_EQ(request.header("Accept-Encoding"), "identity");
        EXPECT_EQ(request.timeouts.connect, 60s);
    }
    EXPECT_EQ(links_given, 1);
}

TEST_F(Download, GoesOnAfterTenInterruptions) {  // R-CLI-10
    std::size_t const parts = 40;
    files["model.bin"].content = noise(parts * piece - 5, 2);
    // After some parts the server is gone, and the download with it.
    std::size_t left = 0;
    std::map<std::string, int> whole;
    on_file = [&](SentRequest const& request) -> std::optional<Reply> {
        if (left == 0) {
            auto cut = file(request);
            cut.failure = Failure{.kind = FailureKind::reset, .seen = Seen::maybe};
            cut.body.resize(cut.body.size() / 2);
            cut.headers.add("Content-Length", std::to_string(piece));
            return cut;
        }
        --left;
        ++whole[request.header("Range")];
        return std::nullopt;
    };
    for (int i = 0; i < 10; ++i) {
        left = 3;
        auto const cut = fetch();
        ASSERT_FALSE(cut);
        EXPECT_EQ(cut.error().kind(), ErrorKind::connection) << cut.error().what();
        EXPECT_THAT(listing(), ElementsAre("target.partial"));
    }
    left = 1000;
    auto const made = fetch();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(content("target/model.bin"), files["model.bin"].content);
    // No part was fetched twice.
    EXPECT_EQ(whole.size(), parts);
    for (auto const& [range, times] : whole) EXPECT_EQ(times, 1) << range;
    EXPECT_THAT(listing(), ElementsAre("target"));
}

TEST_F(Download, BeginsAnewWithAFileThatHasChanged) {  // R-CLI-10
    files["model.bin"].content = noise(6 * piece, 3);
    int left = 3;
    on_file = [&](SentRequest const&) -> std::optional<Reply> {
        if (left-- > 0) return std::nullopt;
        return testing::failing(FailureKind::reset);
    };
    ASSERT_FALSE(fetch());
    files["model.bin"] = {.content = noise(6 * piece + 1, 4), .etag = "\"v2\""};
    on_file = nullptr;
    auto const made = fetch();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(content("target/model.bin"), files["model.bin"].content);
}

TEST_F(Download, TakesWholeFilesOfAServerWithoutParts) {  // R-CLI-10
    files["model.bin"] = {.content = noise(3 * piece, 5), .by_parts = false};
    int failures = 2;
    on_file = [&](SentRequest const& request) -> std::optional<Reply> {
        if (failures-- <= 0) return std::nullopt;
        auto cut = file(request);
        cut.headers.add("Content-Length", std::to_string(cut.body.size()));
        cut.body.resize(1000);
        cut.failure = Failure{.kind = FailureKind::reset, .seen = Seen::maybe};
        return cut;
    };
    auto const made = fetch();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(content("target/model.bin"), files["model.bin"].content);
    EXPECT_EQ(asked.size(), 3U);
}

TEST_F(Download, HasLinksSignedAgainBeforeTheyExpire) {  // R-REST-12
    files["a"].content = noise(4 * piece, 6);
    options.streams = 1;
    lifetime = 8min;
    on_file = [this](SentRequest const& request) -> std::optional<Reply> {
        auto slow = file(request);
        slow.delay = 55s;
        return slow;
    };
    ASSERT_TRUE(fetch());
    // After 165 s, when the last part is asked for, more than five minutes are left.
    std::vector<std::string> keys;
    for (auto const& request : asked) keys.push_back(request.query);
    EXPECT_THAT(keys, ElementsAre("key=1", "key=1", "key=1", "key=1"));
    EXPECT_EQ(links_given, 1);

    std::filesystem::remove_all(root / "target");
    asked.clear();
    links_given = 0;
    lifetime = 6min;
    ASSERT_TRUE(fetch());
    keys.clear();
    for (auto const& request : asked) keys.push_back(request.query);
    EXPECT_THAT(keys, ElementsAre("key=1", "key=1", "key=2", "key=2"));
}

TEST_F(Download, HasLinksSignedAgainThatAreRefused) {  // R-REST-12
    files["a"].content = noise(4 * piece, 7);
    on_file = [](SentRequest const& request) -> std::optional<Reply> {
        if (request.query == "key=1" && !request.header("If-Range").empty()) {
            return Reply{.status = 403};
        }
        return std::nullopt;
    };
    auto const made = fetch();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(links_given, 2);
    EXPECT_EQ(content("target/a"), files["a"].content);

    // But not for ever.
    std::filesystem::remove_all(root / "target");
    on_file = [](SentRequest const&) { return Reply{.status = 403}; };
    auto const refused = fetch();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().http_status(), 403);
    EXPECT_THAT(std::string{refused.error().what()}, ::testing::Not(HasSubstr("key=")));
    EXPECT_EQ(links_given, 4);
}

TEST_F(Download, ComparesChecksums) {  // R-CLI-10
    files["a"].content = noise(2 * piece, 8);
    files["a"].digest = digest_of(files["a"].content);
    ASSERT_TRUE(fetch());
    std::filesystem::remove_all(root / "target");
    files["a"].digest = digest_of("something else");
    auto const refused = fetch();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_THAT(refused.error().what(), HasSubstr("checksum"));
    EXPECT_THAT(listing(), IsEmpty());
}

TEST_F(Download, WritesNothingUnderNamesThatLeadElsewhere) {  // R-REST-12
    for (std::string const name : {"../out", "/etc/out", "a/../../b", "", "a//b"}) {
        files = {{name, {.content = "x"}}};
        auto const refused = fetch();
        ASSERT_FALSE(refused) << name;
        EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
        EXPECT_THAT(listing(), IsEmpty());
    }
    files.clear();
    EXPECT_THAT(fetch().error().what(), HasSubstr("names no files"));
    EXPECT_THAT(listing(), IsEmpty());
}

TEST_F(Download, RefusesAFileThatIsTooLarge) {  // R-CLI-11
    files["a"].content = noise(2 * piece, 11);
    for (bool const by_parts : {true, false}) {
        files["a"].by_parts = by_parts;
        options.most_bytes = 2 * piece - 1;
        auto const refused = fetch();
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().what(), HasSubstr("most_bytes"));
        options.most_bytes = 2 * piece;
        ASSERT_TRUE(fetch());
        std::filesystem::remove_all(root / "target");
    }
}

TEST_F(Download, ReplacesNothing) {  // R-CLI-10
    files["a"].content = "x";
    std::filesystem::create_directory(root / "target");
    auto const refused = fetch();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), HasSubstr("is there already"));
    EXPECT_TRUE(std::filesystem::is_empty(root / "target"));
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(Download, RefusesOptionsThatCannotWork) {  // R-CLI-10
    options.streams = 0;
    EXPECT_EQ(fetch().error().field(), "streams");
    options.streams = 1;
    options.piece_bytes = 1;
    EXPECT_EQ(fetch().error().field(), "piece_bytes");
    options.piece_bytes = piece;
    options.most_bytes = 0;
    EXPECT_EQ(fetch().error().field(), "most_bytes");
    EXPECT_EQ(fetch("tinker://r/a").error().field(), "path");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(Download, TakesArchivesApart) {  // R-REST-11, R-CLI-10
    auto const model = noise(3 * piece, 9);
    files["archive"].content = support::tar_entry("adapter_config.json", "{}") +
                               support::tar_entry("adapter_model.safetensors", model) +
                               support::tar_entry("checkpoint_complete", "") + support::tar_end();
    auto const made = fetch("tinker://r/sampler_weights/s");
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_THAT(made->files, ElementsAre(DownloadedFile{"adapter_config.json", 2},
                                         DownloadedFile{"adapter_model.safetensors", 3 * piece},
                                         DownloadedFile{"checkpoint_complete", 0}));
    EXPECT_EQ(content("target/adapter_model.safetensors"), model);
    EXPECT_THAT(listing(), ElementsAre("target"));
}

TEST_F(Download, RemovesAnArchiveThatIsHostile) {  // R-CLI-11
    files["archive"].content =
        support::tar_entry("good", "g") + support::tar_entry("../evil", "e") + support::tar_end();
    auto const refused = fetch("tinker://r/sampler_weights/s");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), HasSubstr("leads out of the folder"));
    EXPECT_THAT(refused.error().what(), HasSubstr("download_checkpoint: "));
    EXPECT_THAT(listing(), IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(root.parent_path() / "evil"));
}

TEST_F(Download, StopsWhenCancelledAndKeepsWhatIsThere) {  // R-REST-00
    files["a"].content = noise(8 * piece, 10);
    int count = 0;
    on_file = [&count](SentRequest const&) -> std::optional<Reply> {
        if (++count <= 3) return std::nullopt;
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    RestClient const rest{tinker.options()};
    tinker.clock->set_auto_advance(false);
    auto pending = rest.download_checkpoint("tinker://r/external_weights/e", options);
    while (tinker.clock->run_ready()) {
    }
    auto status = rest.status();
    while (tinker.clock->run_ready()) {
    }
    auto const shown = status.get().pending;
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].operation, "download_checkpoint");
    EXPECT_EQ(shown[0].stage, Stage::streaming);
    EXPECT_THAT(shown[0].why, HasSubstr("0 of 1 files are there"));
    pending.cancel();
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::cancelled);
    while (tinker.clock->run_ready()) {
    }
    EXPECT_EQ(tinker.transport->open_count(), 0U);
    tinker.clock->set_auto_advance(true);
    on_file = nullptr;
    asked.clear();
    ASSERT_TRUE(fetch());
    EXPECT_THAT(ranges(), ::testing::Not(Contains("bytes=0-65535")));
    EXPECT_EQ(asked.size(), 5U);
    EXPECT_EQ(content("target/a"), files["a"].content);
}

}  // namespace
}  // namespace tinkxx
