#include "dialog/csv.hpp"
#include "dialog/progress.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"
#include "output/words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <sstream>

namespace tinkxx::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Timestamp::Time const noon = parse_timestamp("2026-01-02T12:00:00Z")->time;

TEST(SizeWords, CountInStepsOf1024) {  // R-CLI-05
    EXPECT_EQ(size_words(0), "0 B");
    EXPECT_EQ(size_words(1023), "1023 B");
    EXPECT_EQ(size_words(1536), "1.5 KB");
    EXPECT_EQ(size_words(std::int64_t{5} << 40U), "5.0 TB");
    EXPECT_EQ(size_words(std::int64_t{1} << 62U), "4096.0 PB");
    EXPECT_EQ(size_words(std::nullopt), "N/A");
}

TEST(TimeWords, AreRelativeForAMonth) {  // R-CLI-05
    auto const words = [](auto ago) { return time_words({.time = noon - ago}, noon); };
    EXPECT_EQ(words(59s), "just now");
    EXPECT_EQ(words(1min), "1 minute ago");
    EXPECT_EQ(words(59min), "59 minutes ago");
    EXPECT_EQ(words(3h), "3 hours ago");
    EXPECT_EQ(words(std::chrono::days{7}), "7 days ago");
    EXPECT_EQ(words(std::chrono::days{15}), "2 weeks ago");
    EXPECT_EQ(words(std::chrono::days{31}), "2025-12-02");
    EXPECT_EQ(words(-26h), "in 1 day");
    EXPECT_EQ(words(-5s), "in a moment");
    EXPECT_EQ(expiry_words(std::nullopt, noon), "Never");
    EXPECT_EQ(yes_or_no(true) + yes_or_no(false), "YesNo");
}

std::string table_of(Screen screen) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{out, err, screen};
    TextTable table{terminal,
                    {{.title = "Name", .least = 6},
                     {.title = "Size", .right = true, .least = 4},
                     {.title = "Note", .least = 4, .spare = 1}}};
    table.add({"alpha", "1", "first"});
    table.add({"a very long name indeed", "1000", "second\nline"});
    table.add({"日本", "20", ""});
    table.finish();
    return out.str();
}

TEST(Table, FitsTheTerminal) {
    EXPECT_EQ(table_of({.out = true, .width = 80}),
              "Name                     Size  Note\n"
              "alpha                       1  first\n"
              "a very long name indeed  1000  second line\n"
              "日本                       20\n");
    EXPECT_EQ(table_of({.out = true, .width = 30}),
              "Name         Size  Note\n"
              "alpha           1  first\n"
              "a very lon…  1000  second line\n"
              "日本           20\n");
    EXPECT_EQ(table_of({.out = true, .width = 14}),
              "Name      Size\n"
              "alpha        1\n"
              "a very …  1000\n"
              "日本        20\n");
}

TEST(Table, CutsNothingForPrograms) {
    EXPECT_EQ(table_of({.width = 14}), table_of({.out = true, .width = 200}));
}

TEST(Table, IsColouredOnlyWherePeopleReadIt) {
    EXPECT_THAT(table_of({.out = true, .colour = true}), HasSubstr("\x1b[1mName"));
    EXPECT_THAT(table_of({.out = false, .colour = true}), Not(HasSubstr("\x1b")));
    EXPECT_THAT(table_of({.out = true, .colour = false}), Not(HasSubstr("\x1b")));
}

TEST(JsonWriter, IndentsByTwo) {  // R-CLI-04
    std::ostringstream out;
    JsonWriter json{out};
    json.begin_object();
    json.member("text", "a\"b\n");
    json.member("number", 1.5);
    json.member("nothing", std::optional<int>{});
    json.member("yes", true);
    json.begin_list("empty");
    json.end_list();
    json.begin_list("list");
    json.value(1);
    json.begin_object();
    json.end_object();
    json.end_list();
    json.member("not a number", std::numeric_limits<double>::quiet_NaN());
    json.end_object();
    EXPECT_EQ(out.str(), R"({
  "text": "a\"b\u000a",
  "number": 1.5,
  "nothing": null,
  "yes": true,
  "empty": [],
  "list": [
    1,
    {}
  ],
  "not a number": null
}
)");
}

TEST(Progress, SaysRateAndTimeLeftAfterASecond) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{out, err, {.err = true, .width = 70}};
    auto now = noon;
    Context context{.terminal = terminal};
    context.now = [&now] { return now; };
    {
        Progress progress{context, "downloading", Progress::Unit::bytes};
        progress.show(0, 1 << 20);
        now += 999ms;
        progress.show(1 << 10, 1 << 20);
        EXPECT_THAT(err.str(), IsEmpty());
        now += 1001ms;
        progress.show(1 << 18, 1 << 20);
        EXPECT_EQ(err.str(), "\rdownloading  256.0 KB of 1.0 MB (25%), 128.0 KB/s, 6 s left\033[K");
    }
    EXPECT_THAT(err.str(), ::testing::EndsWith("\r\033[K"));
    EXPECT_THAT(out.str(), IsEmpty());
}

TEST(Progress, IsSilentForPrograms) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{out, err, {}};
    auto now = noon;
    Context context{.terminal = terminal};
    context.now = [&now] { return now += 1h; };
    Progress{context, "x", Progress::Unit::things}.show(1, 2);
    EXPECT_THAT(err.str(), IsEmpty());
}

TEST(Csv, QuotesWhatNeedsIt) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{out, err, {}};
    Context context{.terminal = terminal};
    CsvFile file{"-", context};
    file.row({"a", "b,c", "d\"e", ""});
    file.finish();
    EXPECT_EQ(out.str(), "a,\"b,c\",\"d\"\"e\",\r\n");
}

}  // namespace
}  // namespace tinkxx::cli
