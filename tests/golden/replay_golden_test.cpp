// Every recording of the folder, replayed by the public call that it was made with.
#include "golden.hpp"
#include "not_applied.hpp"
#include "request_replay.hpp"
#include "response_replay.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <optional>
#include <regex>

namespace tinkxx::golden {
namespace {

/// How a recording is known in wire-not-applied.txt: by the release, or `responses`, and its name.
std::string known_as(std::string const& file, value const& recording) {
    auto const folder = std::filesystem::path{file}.parent_path().filename().string();
    return folder + '/' + text(recording, "name");
}

/// Why a recording is not replayed.
struct Verdict {
    std::optional<NotApplied> listed{};
    /// Neither is it listed, nor does anybody here know what it is.
    bool unknown{false};
};

Verdict judge(std::string const& file, value const& recording) {
    Verdict verdict;
    verdict.listed = not_applied("name", known_as(file, recording));
    if (verdict.listed) return verdict;
    bool const request = file.starts_with("requests/");
    if (request ? replays_call(recording) : replays_operation(recording)) return verdict;
    verdict.listed = request ? not_applied("call", text(recording, "call"))
                             : not_applied("operation", text(recording, "operation"));
    verdict.unknown = !verdict.listed;
    return verdict;
}

void replay(std::string const& file, void (*by)(value const&)) {
    auto const recording = load(file);
    auto const verdict = judge(file, recording);
    ASSERT_FALSE(verdict.unknown)
        << file << ": nobody here knows how to replay it; see wire-not-applied.txt";
    if (verdict.listed) {
        GTEST_SKIP() << (verdict.listed->waits ? "waits: " : "never: ") << verdict.listed->reason;
    }
    by(recording);
}

class GoldenRequest : public ::testing::TestWithParam<std::string> {};

// R-CONF-31, R-CONF-41, R-AUTH-10, R-SESS-01, R-SESS-04, R-SESS-10, R-SESS-22, R-SESS-36, R-SAMP-02
// R-SAMP-03, R-SAMP-05, R-SAMP-07, R-SAMP-08, R-WIRE-02, R-WIRE-09, R-WIRE-10, R-FUT-60, R-FUT-64
// R-TEL-01, R-TEL-02, R-TEL-03, R-TEL-22, R-TEL-30, R-TEL-31, R-TEL-40
TEST_P(GoldenRequest, IsWhatTheOfficialSdkSends) { replay(GetParam(), replay_call); }

INSTANTIATE_TEST_SUITE_P(golden_wire, GoldenRequest, ::testing::ValuesIn(recordings("requests")),
                         [](auto const& one) { return test_name(one.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenRequest);

class GoldenAnswer : public ::testing::TestWithParam<std::string> {};

// R-CONF-09, R-CONF-20, R-CONF-21, R-CONF-22, R-CONF-30, R-SESS-02, R-SESS-14, R-RETRY-80..82
// R-SAMP-09, R-SAMP-70..73, R-FUT-03, R-FUT-05, R-FUT-07, R-FUT-30, R-FUT-40, R-WIRE-07
TEST_P(GoldenAnswer, MeansWhatItMeansToTheOfficialSdk) { replay(GetParam(), replay_operation); }

INSTANTIATE_TEST_SUITE_P(golden_wire, GoldenAnswer, ::testing::ValuesIn(recordings("responses")),
                         [](auto const& one) { return test_name(one.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAnswer);

TEST(GoldenFolder, HoldsNothingThatIsNotReplayedOrListed) {
    std::regex const known{
        R"(README\.md|delays\.json|proto-fields\.json|requests/[\w.]+/[^/]+\.json|responses/[^/]+\.json)"};
    auto const all = files();
    ASSERT_FALSE(all.empty()) << "there is nothing in " << folder();
    int applied = 0;
    int never = 0;
    for (auto const& file : all) {
        EXPECT_TRUE(std::regex_match(file, known)) << file << ": what is that?";
        if (!file.starts_with("requests/") && !file.starts_with("responses/")) continue;
        if (!file.ends_with(".json")) continue;
        try {
            auto const verdict = judge(file, load(file));
            EXPECT_FALSE(verdict.unknown) << file << ": nobody here knows how to replay it";
            if (!verdict.listed && !verdict.unknown) ++applied;
            if (verdict.listed && !verdict.listed->waits) ++never;
        } catch (std::exception const& problem) {
            ADD_FAILURE() << file << ": " << problem.what();
        }
    }
    EXPECT_GT(applied, 0);
    EXPECT_LE(20 * never, applied + never) << never << " of " << applied + never << " never apply";
}

}  // namespace
}  // namespace tinkxx::golden
