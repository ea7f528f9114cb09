#include <tinkxx/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Sample {
    std::string name{};
    MetricLabels labels{};
    double value{0};
};

struct Family {
    std::string type{};
    std::optional<std::string> help{};
    std::vector<Sample> samples{};
};

/// Reads the text format, version 0.0.4, and refuses whatever its rules do not allow.
class Reader {
public:
    explicit Reader(std::string_view text) : text_{text} {
        while (!text_.empty()) read_line();
        for (auto const& [name, family] : families) {
            if (family.type.empty()) fail("no TYPE for " + name);
            if (family.type == "histogram") check_histogram(name, family);
        }
    }

    std::map<std::string, Family> families{};

private:
    [[noreturn]] static void fail(std::string const& what) { throw std::runtime_error{what}; }

    void read_line() {
        auto const end = text_.find('\n');
        if (end == std::string_view::npos) fail("the last line does not end");
        line_ = text_.substr(0, end);
        text_.remove_prefix(end + 1);
        if (line_.starts_with("# ")) {
            line_.remove_prefix(2);
            auto const word = until(' ');
            auto const name = until(' ');
            auto& family = enter(name);
            if (!family.samples.empty()) fail("comment after samples of " + name);
            if (word == "HELP") {
                if (family.help) fail("two HELP lines for " + name);
                family.help = unescaped(line_, false);
            } else if (word == "TYPE") {
                if (!family.type.empty()) fail("two TYPE lines for " + name);
                family.type = line_;
                if (line_ != "counter" && line_ != "gauge" && line_ != "histogram") {
                    fail("type " + family.type);
                }
            } else {
                fail("comment " + word);
            }
            return;
        }
        Sample sample{.name = word(true)};
        if (line_.starts_with('{')) {
            line_.remove_prefix(1);
            while (!line_.starts_with('}')) {
                auto const label = word(false);
                expect("=\"");
                if (!sample.labels.emplace(label, quoted()).second) fail("label twice: " + label);
                if (line_.starts_with(',')) line_.remove_prefix(1);
            }
            line_.remove_prefix(1);
        }
        expect(" ");
        sample.value = number(std::string{line_});
        auto base = sample.name;
        for (std::string_view const suffix : {"_bucket", "_sum", "_count"}) {
            if (!base.ends_with(suffix)) continue;
            auto const shorter = base.substr(0, base.size() - suffix.size());
            auto const found = families.find(shorter);
            if (found != families.end() && found->second.type == "histogram") base = shorter;
        }
        auto& family = enter(base);
        if (family.type.empty()) fail("a sample before the TYPE of " + base);
        for (auto const& other : family.samples) {
            if (other.name == sample.name && other.labels == sample.labels) {
                fail("series twice: " + sample.name);
            }
        }
        family.samples.push_back(std::move(sample));
    }

    // All lines of a family stand together.
    Family& enter(std::string const& name) {
        if (name != current_ && families.contains(name)) fail("torn apart: " + name);
        current_ = name;
        return families[name];
    }

    std::string until(char end) {
        auto const at = line_.find(end);
        if (at == std::string_view::npos) fail("line ends early");
        std::string found{line_.substr(0, at)};
        line_.remove_prefix(at + 1);
        return found;
    }
    std::string word(bool colons) {
        std::string found;
        auto const fits = [&](char c) {
            return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                   (colons && c == ':') ||
                   (!found.empty() && std::isdigit(static_cast<unsigned char>(c)) != 0);
        };
        while (!line_.empty() && fits(line_.front())) {
            found += line_.front();
            line_.remove_prefix(1);
        }
        if (found.empty()) fail("a name is missing at " + std::string{line_});
        return found;
    }
    void expect(std::string_view text) {
        if (!line_.starts_with(text)) fail("expected " + std::string{text});
        line_.remove_prefix(text.size());
    }
    std::string quoted() {
        std::size_t end = 0;
        while (end < line_.size() && line_[end] != '"') end += line_[end] == '\\' ? 2U : 1U;
        if (end >= line_.size()) fail("a quotation does not end");
        auto value = unescaped(line_.substr(0, end), true);
        line_.remove_prefix(end + 1);
        return value;
    }
    static std::string unescaped(std::string_view text, bool quotes) {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '\\') {
                out += text[i];
                continue;
            }
            if (++i == text.size()) fail("a backslash at the end");
            if (text[i] == 'n') {
                out += '\n';
            } else if (text[i] == '\\' || (quotes && text[i] == '"')) {
                out += text[i];
            } else {
                fail("a bad escape");
            }
        }
        return out;
    }
    static double number(std::string const& text) {
        if (text == "+Inf") return std::numeric_limits<double>::infinity();
        if (text == "-Inf") return -std::numeric_limits<double>::infinity();
        if (text == "NaN") return std::nan("");
        char* end = nullptr;
        auto const value = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0' || std::isalpha(static_cast<unsigned char>(text[0]))) {
            fail("no number: " + text);
        }
        return value;
    }

    static void check_histogram(std::string const& name, Family const& family) {
        struct Series {
            double last_bound{-std::numeric_limits<double>::infinity()};
            double last_count{0};
            bool ended{false};
            bool has_sum{false};
            std::optional<double> count{};
        };
        std::map<MetricLabels, Series> all;
        for (auto const& sample : family.samples) {
            auto labels = sample.labels;
            auto const le = labels.find("le");
            if (sample.name == name + "_bucket") {
                if (le == labels.end()) fail("a bucket without le");
                auto const bound = number(le->second);
                labels.erase(le);
                auto& series = all[labels];
                if (bound <= series.last_bound) fail("buckets out of order");
                if (sample.value < series.last_count) fail("buckets do not add up");
                series.last_bound = bound;
                series.last_count = sample.value;
                series.ended = std::isinf(bound);
            } else if (sample.name == name + "_sum") {
                all[labels].has_sum = true;
            } else if (sample.name == name + "_count") {
                all[labels].count = sample.value;
            } else {
                fail("a histogram has no line " + sample.name);
            }
        }
        for (auto const& [labels, series] : all) {
            if (!series.ended) fail("no bucket of +Inf");
            if (!series.has_sum) fail("no sum");
            if (series.count != series.last_count) fail("the count is not that of +Inf");
        }
    }

    std::string_view text_;
    std::string_view line_{};
    std::string current_{};
};

TEST(Prometheus, WritesCountersAndGauges) {  // R-EXT-10
    Metrics metrics;
    metrics.increment("epochs", 3);
    metrics.set_gauge("loss", 0.1);
    Reader const read{metrics.to_prometheus()};
    EXPECT_EQ(read.families.at("tinkxx_epochs").type, "counter");
    EXPECT_EQ(read.families.at("tinkxx_epochs").samples.at(0).value, 3);
    EXPECT_EQ(read.families.at("tinkxx_loss").type, "gauge");
    EXPECT_EQ(read.families.at("tinkxx_loss").samples.at(0).value, 0.1);
    EXPECT_THAT(metrics.to_prometheus(), HasSubstr("# TYPE tinkxx_epochs counter\n"
                                                   "tinkxx_epochs 3\n"));
}

TEST(Prometheus, WritesHistogramsInRisingBuckets) {  // R-EXT-10
    Metrics metrics;
    metrics.declare_histogram("ms", {1, 2.5});
    for (double const value : {0.5, 1.0, 2.0, 9.0}) metrics.record("ms", value);
    Reader const read{metrics.to_prometheus()};
    EXPECT_EQ(read.families.at("tinkxx_ms").type, "histogram");
    EXPECT_THAT(metrics.to_prometheus(), HasSubstr("# TYPE tinkxx_ms histogram\n"
                                                   "tinkxx_ms_bucket{le=\"1\"} 2\n"
                                                   "tinkxx_ms_bucket{le=\"2.5\"} 3\n"
                                                   "tinkxx_ms_bucket{le=\"+Inf\"} 4\n"
                                                   "tinkxx_ms_sum 12.5\n"
                                                   "tinkxx_ms_count 4\n"));
}

TEST(Prometheus, WritesTheMetricsOfHttpCallsWithTheirHelp) {  // R-EXT-10
    Reader const read{Metrics{}.to_prometheus()};
    EXPECT_EQ(read.families.size(), 4U);
    for (auto const& [name, family] : read.families) EXPECT_TRUE(family.help) << name;
    EXPECT_EQ(read.families.at("tinkxx_request_duration_ms").samples.size(), 15U);
}

TEST(Prometheus, LabelsEverySeries) {  // R-EXT-10
    Metrics metrics;
    metrics.counter("calls", {{"model", "a"}}).add(1);
    metrics.counter("calls", {{"model", "b"}}).add(2);
    metrics.histogram("ms", {{"model", "a"}}).record(1);
    metrics.histogram("ms", {{"model", "b"}}).record(1);
    Reader const read{metrics.to_prometheus()};
    auto const& calls = read.families.at("tinkxx_calls").samples;
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[1].labels, (MetricLabels{{"model", "b"}}));
    EXPECT_EQ(calls[1].value, 2);
    EXPECT_THAT(metrics.to_prometheus(), HasSubstr(R"(tinkxx_ms_bucket{model="b",le="1"} 1)"));
    EXPECT_THAT(metrics.to_prometheus(), HasSubstr(R"(tinkxx_ms_sum{model="b"} 1)"));
}

TEST(Prometheus, EscapesLabelsAndHelp) {  // R-EXT-10
    Metrics metrics;
    metrics.counter("calls", {{"path", "a\\b\"c\nd"}}).add();
    metrics.describe("calls", "one \"line\"\nand a \\ more");
    auto const text = metrics.to_prometheus();
    EXPECT_THAT(text, HasSubstr(R"(tinkxx_calls{path="a\\b\"c\nd"} 1)"));
    EXPECT_THAT(text, HasSubstr(R"(# HELP tinkxx_calls one "line"\nand a \\ more)"));
    Reader const read{text};
    EXPECT_EQ(read.families.at("tinkxx_calls").samples.at(0).labels.at("path"), "a\\b\"c\nd");
    EXPECT_EQ(read.families.at("tinkxx_calls").help, "one \"line\"\nand a \\ more");
}

TEST(Prometheus, WritesNumbersThatAreNone) {  // R-EXT-10
    Metrics metrics;
    metrics.set_gauge("a", std::numeric_limits<double>::infinity());
    metrics.set_gauge("b", -std::numeric_limits<double>::infinity());
    metrics.set_gauge("c", std::nan(""));
    auto const text = metrics.to_prometheus();
    EXPECT_THAT(text, HasSubstr("tinkxx_a +Inf\n"));
    EXPECT_THAT(text, HasSubstr("tinkxx_b -Inf\n"));
    EXPECT_THAT(text, HasSubstr("tinkxx_c NaN\n"));
    EXPECT_NO_THROW(Reader{text});
}

TEST(Prometheus, TakesAnotherPrefixOrNone) {  // R-EXT-10
    Metrics metrics;
    EXPECT_TRUE(Reader{metrics.to_prometheus("my_")}.families.contains("my_requests_total"));
    EXPECT_TRUE(Reader{metrics.to_prometheus("")}.families.contains("requests_total"));
}

TEST(Prometheus, DescribesOnlyWhatThereIs) {  // R-EXT-10
    Metrics metrics;
    metrics.describe("later", "to come");
    EXPECT_THAT(metrics.to_prometheus(), Not(HasSubstr("later")));
    metrics.set_gauge("later", 1);
    EXPECT_EQ(Reader{metrics.to_prometheus()}.families.at("tinkxx_later").help, "to come");
}

TEST(PrometheusReader, RefusesWhatTheFormatForbids) {
    for (auto const* text : {
             "a 1\n",                                                      // no TYPE
             "# TYPE a counter\na 1",                                      // no end of line
             "# TYPE a counter\na{b=\"x} 1\n",                             // no end of quotation
             "# TYPE a counter\na{b=\"\\x\"} 1\n",                         // a bad escape
             "# TYPE a counter\na one\n",                                  // no number
             "# TYPE a counter\na 1\na 2\n",                               // twice
             "# TYPE a counter\na 1\n# TYPE b gauge\nb 1\na{x=\"\"} 1\n",  // torn apart
             "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",  // no +Inf
             ("# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\n"
              "a_count 1\n"),  // falling
         }) {
        EXPECT_THROW(Reader{text}, std::runtime_error) << text;
    }
}

RC_GTEST_PROP(PrometheusProperty, IsReadBackAsItWas, ()) {  // R-EXT-10
    Metrics metrics;
    auto const text = *rc::gen::arbitrary<std::string>();
    auto const value = *rc::gen::arbitrary<double>();
    auto const values = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6000));
    metrics.gauge("level", {{"label", text}}).set(value);
    metrics.describe("level", text);
    for (auto const one : values) metrics.histogram("ms", {{"label", text}}).record(one);
    Reader const read{metrics.to_prometheus()};
    auto const& level = read.families.at("tinkxx_level");
    RC_ASSERT(level.samples.at(0).labels.at("label") == text);
    RC_ASSERT(level.samples.at(0).value == value);
    RC_ASSERT(level.help.value() == text);
    if (!values.empty()) {
        RC_ASSERT(read.families.at("tinkxx_ms").samples.back().value ==
                  static_cast<double>(values.size()));
    }
}

}  // namespace
}  // namespace tinkxx
