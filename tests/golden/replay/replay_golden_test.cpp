// Every recording of the folder, replayed by the public call that it was made with.
#include "golden/recordings/golden.hpp"
#include "golden/recordings/not_applied.hpp"
#include "golden/replay/request_replay.hpp"
#include "golden/replay/response_replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace tinkxx::golden {
namespace {

/// What becomes of a recording.
struct Judgement {
    /// Empty: it is replayed as it is.
    std::optional<NotApplied> listed{};
    /// Neither is it listed, nor does anybody here know what it is.
    bool unknown{false};
};

Judgement judge(std::string const& file, value const& recording) {
    Judgement judgement;
    judgement.listed = not_applied_by_form(recording);
    if (judgement.listed && judgement.listed->skipped()) return judgement;
    bool const request = file.starts_with("requests/");
    if (request ? replays_call(recording) : replays_operation(recording)) return judgement;
    judgement.listed = request ? not_applied("call", text(recording, "call"))
                               : not_applied("operation", text(recording, "operation"));
    judgement.unknown = !judgement.listed;
    return judgement;
}

std::string word(Judgement const& judgement) {
    if (judgement.unknown) return "unknown";
    if (!judgement.listed) return "replayed";
    switch (judgement.listed->verdict) {
        case Verdict::waits:
            return "waits";
        case Verdict::never:
            return "never";
        case Verdict::differs:
            return "differs";
        case Verdict::older:
            return "older";
    }
    return "unknown";
}

void replay(std::string const& file, void (*by)(value const&)) {
    auto const recording = load(file);
    auto const judgement = judge(file, recording);
    ASSERT_FALSE(judgement.unknown)
        << file << ": nobody here knows how to replay it; see wire-not-applied.txt";
    if (judgement.listed && judgement.listed->skipped()) {
        GTEST_SKIP() << word(judgement) << ": " << judgement.listed->reason;
    }
    by(recording);
}

class GoldenRequest : public ::testing::TestWithParam<std::string> {};

// R-CONF-31, R-CONF-41, R-AUTH-10, R-SESS-01, R-SESS-04, R-SESS-10, R-SESS-22, R-SESS-36, R-SAMP-02
// R-SAMP-03, R-SAMP-05, R-SAMP-07, R-SAMP-08, R-WIRE-02, R-WIRE-09, R-WIRE-10, R-FUT-60, R-FUT-64
// R-TEL-01, R-TEL-02, R-TEL-03, R-TEL-22, R-TEL-30, R-TEL-31, R-TEL-40, R-REST-00, R-REST-02
TEST_P(GoldenRequest, IsWhatTheOfficialSdkSends) { replay(GetParam(), replay_call); }

INSTANTIATE_TEST_SUITE_P(golden_wire, GoldenRequest, ::testing::ValuesIn(recordings("requests")),
                         [](auto const& one) { return test_name(one.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenRequest);

class GoldenAnswer : public ::testing::TestWithParam<std::string> {};

// R-CONF-09, R-CONF-20, R-CONF-21, R-CONF-22, R-CONF-30, R-SESS-02, R-SESS-14, R-RETRY-80..82
// R-SAMP-09, R-REST-00, R-REST-05, R-REST-10, R-SAMP-70..73, R-FUT-03, R-FUT-05, R-FUT-07,
// R-FUT-30, R-FUT-40, R-WIRE-07
TEST_P(GoldenAnswer, MeansWhatItMeansToTheOfficialSdk) { replay(GetParam(), replay_operation); }

INSTANTIATE_TEST_SUITE_P(golden_wire, GoldenAnswer, ::testing::ValuesIn(recordings("responses")),
                         [](auto const& one) { return test_name(one.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAnswer);

/// The files that no test reads.
std::vector<std::string> unclaimed(std::vector<std::string> all) {
    std::regex const known{
        R"(README\.md|delays\.json|proto-fields\.json|requests/[\w.]+/[^/]+\.json|responses/[^/]+\.json)"};
    std::erase_if(all, [&known](auto const& file) { return std::regex_match(file, known); });
    return all;
}

TEST(GoldenFolder, AFileThatNoTestReadsIsNoticed) {
    std::vector<std::string> const known{"README.md", "delays.json", "proto-fields.json",
                                         "requests/0.36.0/001-a.json", "responses/001-b.json"};
    EXPECT_THAT(unclaimed(known), ::testing::IsEmpty());
    std::vector<std::string> const others{"notes.txt", "requests/001-a.json",
                                          "requests/0.36.0/001-a.json.gz",
                                          "responses/more/001-b.json", "streams/001-c.json"};
    EXPECT_EQ(unclaimed(others), others);
}

TEST(GoldenFolder, OfTheTreeIsWhole) {
    std::filesystem::path const root{own_folder()};
    for (auto const* file : {"README.md", "delays.json", "proto-fields.json"}) {
        EXPECT_TRUE(std::filesystem::exists(root / file)) << file;
    }
    std::map<std::string, std::ptrdiff_t> counts;
    for (auto const* place :
         {"requests/0.7.0", "requests/0.25.0", "requests/0.36.0", "responses"}) {
        counts[place] = std::distance(std::filesystem::directory_iterator{root / place},
                                      std::filesystem::directory_iterator{});
    }
    EXPECT_THAT(counts, ::testing::UnorderedElementsAre(::testing::Pair("requests/0.7.0", 148),
                                                        ::testing::Pair("requests/0.25.0", 214),
                                                        ::testing::Pair("requests/0.36.0", 254),
                                                        ::testing::Pair("responses", 428)));
}

TEST(GoldenFolder, HoldsNothingThatIsNotReplayedOrListed) {
    auto const all = files();
    ASSERT_FALSE(all.empty()) << "there is nothing in " << folder();
    EXPECT_THAT(unclaimed(all), ::testing::IsEmpty());
    auto claimed = recordings("requests");
    for (auto const& file : recordings("responses")) claimed.push_back(file);
    std::map<std::string, int> counts;
    for (auto const& file : claimed) {
        try {
            auto const judgement = judge(file, load(file));
            EXPECT_FALSE(judgement.unknown) << file << ": nobody here knows how to replay it";
            ++counts[word(judgement)];
        } catch (std::exception const& problem) {
            ADD_FAILURE() << file << ": " << problem.what();
        }
    }
    for (auto const& [name, count] : counts) {
        RecordProperty(name, count);
        std::cout << name << ": " << count << '\n';
    }
    EXPECT_GT(counts["replayed"], 0);
    // Who names another folder wants to know of the others, and not of their share.
    auto const apart = counts["never"] + (folder() == own_folder() ? counts["differs"] : 0);
    if (claimed.size() < 100) return;
    // Those of the REST client that wait for an archive, and two kinds that are kept as they come,
    // took it above three.
    EXPECT_LE(100 * apart, 4 * static_cast<int>(claimed.size()))
        << apart << " of " << claimed.size() << " do not apply as they are";
}

}  // namespace
}  // namespace tinkxx::golden
