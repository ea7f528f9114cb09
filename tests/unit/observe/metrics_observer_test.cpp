#include <tinkxx/metrics.hpp>
#include <tinkxx/observer.hpp>

#include <gtest/gtest.h>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

HttpStopEvent stopped(int status, std::chrono::nanoseconds duration) {
    HttpStopEvent event;
    event.status = status;
    event.duration = duration;
    return event;
}

TEST(MetricsObserver, CountsAnswersByTheirStatus) {  // R-EXT-10
    Metrics metrics;
    auto const observer = metrics_observer(metrics);
    observer->on_http_stop(stopped(200, 10ms));
    observer->on_http_stop(stopped(204, 20ms));
    observer->on_http_stop(stopped(404, 30ms));
    observer->on_http_stop(stopped(302, 40ms));
    auto const counters = metrics.snapshot().counters;
    EXPECT_EQ(counters.at("requests_total"), 4U);
    EXPECT_EQ(counters.at("requests_success"), 2U);
    EXPECT_EQ(counters.at("requests_failure"), 2U);
}

TEST(MetricsObserver, CountsMissingAnswersAsFailures) {  // R-EXT-10
    Metrics metrics;
    auto const observer = metrics_observer(metrics);
    HttpExceptionEvent event;
    event.duration = 3s;
    observer->on_http_exception(event);
    auto const snapshot = metrics.snapshot();
    EXPECT_EQ(snapshot.counters.at("requests_total"), 1U);
    EXPECT_EQ(snapshot.counters.at("requests_success"), 0U);
    EXPECT_EQ(snapshot.counters.at("requests_failure"), 1U);
    EXPECT_EQ(snapshot.histograms.at("request_duration_ms").max, 3000);
}

TEST(MetricsObserver, RecordsMillisecondsWithTheirFractions) {  // R-EXT-10
    Metrics metrics;
    auto const observer = metrics_observer(metrics);
    observer->on_http_stop(stopped(200, 1500us));
    observer->on_http_stop(stopped(200, 7ms));
    auto const duration = metrics.snapshot().histograms.at("request_duration_ms");
    EXPECT_EQ(duration.count, 2U);
    EXPECT_EQ(duration.min, 1.5);
    EXPECT_EQ(duration.max, 7);
}

TEST(MetricsObserver, CountsACallOnceHoweverOftenItIsRetried) {  // R-EXT-10
    Metrics metrics;
    auto const observer = metrics_observer(metrics);
    observer->on_http_start({});
    observer->on_http_retry({});
    observer->on_http_retry({});
    EXPECT_EQ(metrics.snapshot().counters.at("requests_total"), 0U);
    observer->on_http_stop(stopped(200, 1ms));
    EXPECT_EQ(metrics.snapshot().counters.at("requests_total"), 1U);
}

TEST(MetricsObserver, MayOutliveTheMetrics) {  // R-EXT-10
    auto const observer = metrics_observer(Metrics{});
    observer->on_http_stop(stopped(200, 1ms));
}

}  // namespace
}  // namespace tinkxx
