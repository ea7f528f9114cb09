// The figures of the guides are those of the code. `tests/lint/guides.py` compiles their programs.
#include <tinkxx/options.hpp>
#include <tinkxx/retry_config.hpp>

#include "service/core/client_core.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

std::string guide(std::string const& name) {
    std::ifstream file{std::string{TINKXX_SOURCE_DIR "/docs/"} + name};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::string without_ticks(std::string text) {
    std::erase(text, '`');
    auto const first = text.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

using Row = std::vector<std::string>;

/// Rows of all tables of a guide, by the cell in `column`.
std::map<std::string, Row> rows_by(std::string const& text, std::size_t column) {
    std::map<std::string, Row> rows;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| ")) continue;
        Row row;
        std::istringstream cells{line.substr(1)};
        for (std::string cell; std::getline(cells, cell, '|');) row.push_back(without_ticks(cell));
        if (row.size() > column) rows[row[column]] = row;
    }
    return rows;
}

std::string seconds(std::chrono::milliseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

TEST(Guides, SamplingGoesFromTheClientToTheResultAndTellsTheLimits) {  // R-DOC-01
    auto const text = guide("sampling.md");
    for (std::string_view const step : {"tinkxx::ServiceClient service", "create_sampling_client(",
                                        "sampler.sample(", ".get()", "service.close("}) {
        EXPECT_THAT(text, HasSubstr(step));
    }
    EXPECT_THAT(text, HasSubstr("## How many at once"));
    auto const limits = rows_by(text, 2);
    using Limits = service::ClientCore;
    EXPECT_EQ(limits.at("ClientOptions::dispatch.count")[1], std::to_string(Limits::default_count));
    EXPECT_EQ(limits.at("dispatch.throttled")[1], std::to_string(Limits::default_throttled));
}

TEST(Guides, RetriesNameEveryOptionBesideItsPythonName) {  // R-DOC-02
    auto const rows = rows_by(guide("retries.md"), 1);
    for (std::string const name :
         {"max_connections", "progress_timeout", "retry_delay_base", "retry_delay_max",
          "jitter_factor", "enable_retry_logic", "enable_stuck_detection"}) {
        ASSERT_THAT(rows, Contains(Key(name)));
        EXPECT_EQ(rows.at(name)[0], name) << "the Python SDK has the same name";
    }
    EXPECT_THAT(rows, AllOf(Contains(Key("retryable_errors, retry_if")),
                            Contains(Key("retryable_statuses")), Contains(Key("max_retries")),
                            Contains(Key("retry_budget")), Contains(Key("semaphore_key"))));
    EXPECT_THAT(guide("retries.md"), HasSubstr("**Turn retries off**"));
}

TEST(Guides, DefaultsStandThereWithTheirUnits) {  // R-DOC-03
    RetryConfig const config;
    auto const rows = rows_by(guide("retries.md"), 1);
    EXPECT_EQ(rows.at("progress_timeout")[2], seconds(config.progress_timeout));
    EXPECT_EQ(rows.at("retry_delay_base")[2],
              std::to_string(config.retry_delay_base.count()) + " ms");
    EXPECT_EQ(rows.at("retry_delay_max")[2], seconds(config.retry_delay_max));
    EXPECT_EQ(std::stod(rows.at("jitter_factor")[2]), config.jitter_factor);
    for (auto const* name : {"max_connections", "progress_timeout", "jitter_factor"}) {
        EXPECT_FALSE(rows.at(name)[3].empty()) << name << " has no unit";
    }
}

TEST(Guides, TellWhatDiffersFromThePythonSdk) {  // R-DOC-03
    auto const text = guide("retries.md");
    auto const heading = text.find("## Where it differs from the Python SDK");
    ASSERT_NE(heading, std::string::npos);
    auto const notes = text.substr(heading);
    for (std::string_view const topic :
         {"429", "max_connections", "retries off", "billing pause", "completion poll"}) {
        EXPECT_THAT(notes, HasSubstr(topic));
    }
}

}  // namespace
}  // namespace tinkxx
