#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {

class Observer;

/// Distinguishes the series of one metric, e.g. `{{"model", "Qwen/Qwen3-8B"}}`.
using MetricLabels = std::map<std::string, std::string>;

/// A snapshot of a histogram. All numbers are 0 if it has no values.
struct HistogramSnapshot {
    std::uint64_t count{0};
    double sum{0};
    double mean{0};
    double min{0};
    double max{0};
    /// Quantiles of the newest 1000 values: the median (the mean of the two middle values if their
    /// number is even), and the 95th and 99th percentile by nearest rank.
    double p50{0};
    double p95{0};
    double p99{0};
    /// Upper bounds of the buckets, ascending; the last bucket, which has none, is not listed.
    std::vector<double> bounds{};
    /// The number of values in each bucket, that is, above the previous bound and not above its
    /// own; one entry more than `bounds`.
    std::vector<std::uint64_t> buckets{};

    bool operator==(HistogramSnapshot const&) const = default;
};

/// All metrics at one point in time, by name. A series with labels is named
/// `name{label="value"}`.
struct MetricsSnapshot {
    std::map<std::string, std::uint64_t> counters{};
    std::map<std::string, double> gauges{};
    std::map<std::string, HistogramSnapshot> histograms{};

    bool operator==(MetricsSnapshot const&) const = default;
};

/// Counters, gauges and histograms: those of a client's HTTP calls, and your own.
///
///     Metrics metrics;
///     ServiceClient service{{.observers = {metrics_observer(metrics)}}};
///     metrics.increment("epochs");
///     std::cout << metrics.to_prometheus();
///
/// Three counters, `requests_total`, `requests_success` and `requests_failure`, and the histogram
/// `request_duration_ms` exist from the start. Any other metric is created by its first use. Names
/// follow the rules of Prometheus; an invalid name, or one that is used for another kind of metric,
/// throws `ValidationError`.
///
/// A cheap handle: copies share the metrics. Every member may be called from any thread.
class Metrics {
public:
    class Counter;
    class Gauge;
    class Histogram;

    Metrics();

    /// A handle of one series, for code that updates it often: updates through it need no look-up
    /// and, except for histograms, no lock.
    [[nodiscard]] Counter counter(std::string_view name);
    [[nodiscard]] Counter counter(std::string_view name, MetricLabels const& labels);
    [[nodiscard]] Gauge gauge(std::string_view name);
    [[nodiscard]] Gauge gauge(std::string_view name, MetricLabels const& labels);
    /// Uses the bounds given to `declare_histogram`, or else those of `request_duration_ms`: 1, 2,
    /// 5, 10 … 5000.
    [[nodiscard]] Histogram histogram(std::string_view name);
    [[nodiscard]] Histogram histogram(std::string_view name, MetricLabels const& labels);

    void increment(std::string_view name, std::uint64_t by = 1);
    void set_gauge(std::string_view name, double value);
    void record(std::string_view name, double value);

    /// Sets the bounds of a histogram that is not in use yet; they must be finite and ascending.
    void declare_histogram(std::string_view name, std::vector<double> bounds);
    /// Sets the HELP text of a metric, which may be created later.
    void describe(std::string_view name, std::string_view text);

    [[nodiscard]] MetricsSnapshot snapshot() const;
    /// Sets all values to 0. Series and their handles stay valid.
    void reset();
    /// Returns once all updates made before are in the next snapshot. They are as soon as their
    /// calls return, so there is nothing to wait for.
    void flush() const noexcept {}

    /// If false, updates are ignored and values do not change.
    void set_enabled(bool on) noexcept;
    [[nodiscard]] bool enabled() const noexcept;

    /// All metrics in the text format of Prometheus, version 0.0.4, for
    /// `Content-Type: text/plain; version=0.0.4`. Names get the prefix `tinkxx_`.
    [[nodiscard]] std::string to_prometheus() const;
    [[nodiscard]] std::string to_prometheus(std::string_view prefix) const;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

/// A number that only increases. A cheap handle; any thread.
class Metrics::Counter {
public:
    void add(std::uint64_t by = 1) noexcept;
    [[nodiscard]] std::uint64_t value() const noexcept;

private:
    friend class Metrics;
    struct Cell;
    explicit Counter(std::shared_ptr<Cell> cell) noexcept;
    std::shared_ptr<Cell> cell_;
};

/// A number that can increase and decrease. A cheap handle; any thread.
class Metrics::Gauge {
public:
    void set(double value) noexcept;
    void add(double by) noexcept;
    [[nodiscard]] double value() const noexcept;

private:
    friend class Metrics;
    struct Cell;
    explicit Gauge(std::shared_ptr<Cell> cell) noexcept;
    std::shared_ptr<Cell> cell_;
};

/// The distribution of a number. A cheap handle; any thread.
class Metrics::Histogram {
public:
    /// NaN and infinity are ignored, since they would make sum and mean useless.
    void record(double value);
    [[nodiscard]] HistogramSnapshot snapshot() const;

private:
    friend class Metrics;
    struct Cell;
    explicit Histogram(std::shared_ptr<Cell> cell) noexcept;
    std::shared_ptr<Cell> cell_;
};

/// An observer that counts the HTTP calls of a client and records how long they took. A call and
/// its retries count once. A status of 2xx is a success; any other status, or no answer, is a
/// failure.
[[nodiscard]] std::shared_ptr<Observer> metrics_observer(Metrics metrics);

}  // namespace tinkxx
