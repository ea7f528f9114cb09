#include <tinkxx/metrics.hpp>

#include <tinkxx/error.hpp>

#include "thread/crew.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace tinkxx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string refused(std::function<void()> const& act) {
    try {
        act();
    } catch (ValidationError const& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::string{error.value()}));
        return std::string{error.field()} + ' ' + std::string{error.value()};
    }
    return "nothing";
}

TEST(Metrics, HasThoseOfHttpCallsFromTheStart) {  // R-EXT-10
    auto const snapshot = Metrics{}.snapshot();
    EXPECT_THAT(snapshot.counters,
                UnorderedElementsAre(Pair("requests_total", 0), Pair("requests_success", 0),
                                     Pair("requests_failure", 0)));
    EXPECT_THAT(snapshot.gauges, IsEmpty());
    ASSERT_TRUE(snapshot.histograms.contains("request_duration_ms"));
    auto const& duration = snapshot.histograms.at("request_duration_ms");
    EXPECT_THAT(duration.bounds, ElementsAre(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000));
    EXPECT_EQ(duration.buckets, std::vector<std::uint64_t>(13, 0));
    EXPECT_EQ(duration.count, 0U);
    EXPECT_EQ(duration.mean, 0);
}

TEST(Metrics, KeepsTheMetricsOfTheUser) {  // R-EXT-10
    Metrics metrics;
    metrics.increment("epochs");
    metrics.increment("epochs", 4);
    metrics.set_gauge("loss", 2.5);
    metrics.set_gauge("loss", -0.5);
    metrics.record("step_ms", 3);
    auto const snapshot = metrics.snapshot();
    EXPECT_EQ(snapshot.counters.at("epochs"), 5U);
    EXPECT_EQ(snapshot.gauges.at("loss"), -0.5);
    EXPECT_EQ(snapshot.histograms.at("step_ms").count, 1U);
    EXPECT_EQ(metrics.counter("epochs").value(), 5U);
    EXPECT_EQ(metrics.gauge("loss").value(), -0.5);
}

TEST(Metrics, SumsUpWhatAHistogramHasSeen) {  // R-EXT-10
    Metrics metrics;
    for (double const value : {4.0, 1.0, 5000.0, 5001.0, 2.0}) metrics.record("ms", value);
    auto const seen = metrics.snapshot().histograms.at("ms");
    EXPECT_EQ(seen.count, 5U);
    EXPECT_EQ(seen.sum, 10008);
    EXPECT_EQ(seen.mean, 10008.0 / 5);
    EXPECT_EQ(seen.min, 1);
    EXPECT_EQ(seen.max, 5001);
    EXPECT_EQ(seen.p50, 4);
    EXPECT_EQ(seen.p95, 5001);
    EXPECT_EQ(seen.p99, 5001);
    EXPECT_THAT(seen.buckets, ElementsAre(1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1))
        << "a value at a bound belongs below it";
}

TEST(Metrics, CountsEverythingButRanksTheNewestThousand) {  // R-EXT-10
    Metrics metrics;
    for (int i = 1; i <= 2000; ++i) metrics.record("ms", i);
    auto const seen = metrics.snapshot().histograms.at("ms");
    EXPECT_EQ(seen.count, 2000U);
    EXPECT_EQ(seen.mean, 1000.5);
    EXPECT_EQ(seen.min, 1);
    EXPECT_EQ(seen.p50, 1500.5);
}

TEST(Metrics, IgnoresValuesThatAreNoNumbers) {  // R-EXT-10
    Metrics metrics;
    metrics.record("ms", std::nan(""));
    metrics.record("ms", std::numeric_limits<double>::infinity());
    metrics.record("ms", 1);
    EXPECT_EQ(metrics.snapshot().histograms.at("ms").count, 1U);
    EXPECT_EQ(metrics.snapshot().histograms.at("ms").mean, 1);
}

TEST(Metrics, TakesOtherBoundsForAHistogram) {  // R-EXT-10
    Metrics metrics;
    metrics.declare_histogram("tokens", {10, 100});
    metrics.record("tokens", 50);
    EXPECT_THAT(metrics.snapshot().histograms.at("tokens").buckets, ElementsAre(0, 1, 0));
    EXPECT_NO_THROW(metrics.declare_histogram("tokens", {10, 100}));
    EXPECT_EQ(refused([&] { metrics.declare_histogram("tokens", {10}); }), "name tokens");
    EXPECT_EQ(refused([&] { metrics.declare_histogram("other", {2, 1}); }), "bound 1");
    EXPECT_EQ(refused([&] { metrics.declare_histogram("other", {1, 1}); }), "bound 1");
    EXPECT_EQ(refused([&] {
                  metrics.declare_histogram("other", {std::numeric_limits<double>::infinity()});
              }),
              "bound +Inf");
}

TEST(Metrics, TellsSeriesApartByTheirLabels) {  // R-EXT-10
    Metrics metrics;
    metrics.counter("calls", {{"model", "a"}, {"kind", "x"}}).add(2);
    metrics.counter("calls", {{"model", "b"}}).add(3);
    auto const counters = metrics.snapshot().counters;
    EXPECT_EQ(counters.at(R"(calls{kind="x",model="a"})"), 2U);
    EXPECT_EQ(counters.at(R"(calls{model="b"})"), 3U);
    metrics.gauge("level", {{"model", "a"}}).add(1.5);
    metrics.gauge("level", {{"model", "a"}}).add(-0.5);
    EXPECT_EQ(metrics.snapshot().gauges.at(R"(level{model="a"})"), 1);
    metrics.histogram("ms", {{"model", "a"}}).record(1);
    EXPECT_EQ(metrics.histogram("ms", {{"model", "a"}}).snapshot().count, 1U);
}

TEST(Metrics, RefusesBadNames) {  // R-EXT-10
    Metrics metrics;
    for (auto const* name : {"", "1st", "with space", "with-dash", "é"}) {
        EXPECT_EQ(refused([&] { metrics.increment(name); }), std::string{"name "} + name);
    }
    for (auto const* label : {"", "1st", "a:b", "__own", "le"}) {
        EXPECT_EQ(refused([&] {
                      (void)metrics.counter("calls", {{label, "x"}});
                  }),
                  std::string{"label "} + label);
    }
    EXPECT_EQ(refused([&] { (void)metrics.to_prometheus("my-"); }), "name my-");
    EXPECT_NO_THROW(metrics.increment("_a:b9"));
    EXPECT_EQ(metrics.snapshot().counters.size(), 4U) << "what was refused left nothing behind";
}

TEST(Metrics, RefusesANameForTwoThings) {  // R-EXT-10
    Metrics metrics;
    metrics.increment("a");
    EXPECT_EQ(refused([&] { metrics.set_gauge("a", 1); }), "name a");
    EXPECT_EQ(refused([&] { metrics.record("a", 1); }), "name a");
    EXPECT_EQ(refused([&] { metrics.increment("request_duration_ms"); }),
              "name request_duration_ms");
    // A histogram writes lines of these names too.
    EXPECT_EQ(refused([&] { metrics.increment("request_duration_ms_count"); }),
              "name request_duration_ms_count");
    metrics.increment("b_sum");
    EXPECT_EQ(refused([&] { metrics.record("b", 1); }), "name b");
}

TEST(Metrics, BeginsAnewAfterAReset) {  // R-EXT-10
    Metrics metrics;
    auto epochs = metrics.counter("epochs");
    epochs.add(3);
    metrics.set_gauge("loss", 2);
    metrics.record("ms", 700);
    metrics.reset();
    auto const snapshot = metrics.snapshot();
    EXPECT_EQ(snapshot.counters.at("epochs"), 0U);
    EXPECT_EQ(snapshot.gauges.at("loss"), 0);
    EXPECT_EQ(snapshot.histograms.at("ms"),
              (HistogramSnapshot{.bounds = snapshot.histograms.at("ms").bounds,
                                 .buckets = std::vector<std::uint64_t>(13, 0)}));
    epochs.add();
    metrics.record("ms", 5);
    EXPECT_EQ(metrics.snapshot().counters.at("epochs"), 1U);
    EXPECT_EQ(metrics.snapshot().histograms.at("ms").max, 5);
    EXPECT_EQ(metrics.snapshot().histograms.at("ms").min, 5);
    EXPECT_EQ(metrics.snapshot().histograms.at("ms").p99, 5);
}

TEST(Metrics, CanBeTurnedOffAndOn) {  // R-EXT-10
    Metrics metrics;
    auto epochs = metrics.counter("epochs");
    EXPECT_TRUE(metrics.enabled());
    epochs.add();
    metrics.set_enabled(false);
    EXPECT_FALSE(metrics.enabled());
    epochs.add();
    metrics.set_gauge("loss", 1);
    metrics.record("request_duration_ms", 1);
    EXPECT_EQ(epochs.value(), 1U);
    EXPECT_EQ(metrics.snapshot().gauges.at("loss"), 0);
    EXPECT_EQ(metrics.snapshot().histograms.at("request_duration_ms").count, 0U);
    metrics.set_enabled(true);
    epochs.add();
    EXPECT_EQ(epochs.value(), 2U);
}

TEST(Metrics, SharesItsMetricsAmongCopies) {  // R-EXT-10
    Metrics metrics;
    auto copy = metrics;
    copy.increment("epochs");
    copy.flush();
    EXPECT_EQ(metrics.snapshot().counters.at("epochs"), 1U);
    auto kept = [] { return Metrics{}.counter("alone"); }();
    kept.add();
    EXPECT_EQ(kept.value(), 1U) << "a series may outlive its metrics";
}

TEST(Metrics, LosesNothingToOtherThreads) {  // R-EXT-10
    Metrics metrics;
    constexpr std::uint64_t each = 1000;
    testing::race(testing::crew, [&](int thread) {
        for (std::uint64_t i = 0; i < each; ++i) {
            metrics.increment("shared");
            metrics.increment("own_" + std::to_string(thread));
            metrics.gauge("level").add(1);
            metrics.record("ms", static_cast<double>(i));
            if (i % 200 == 0) (void)metrics.to_prometheus();
        }
    });
    auto const snapshot = metrics.snapshot();
    EXPECT_EQ(snapshot.counters.at("shared"), testing::crew * each);
    EXPECT_EQ(snapshot.counters.at("own_0"), each);
    EXPECT_EQ(snapshot.gauges.at("level"), static_cast<double>(testing::crew * each));
    EXPECT_EQ(snapshot.histograms.at("ms").count, testing::crew * each);
}

}  // namespace
}  // namespace tinkxx
