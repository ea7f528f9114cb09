#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {

class Observer;

/// Tells the series of one metric apart, e.g. `{{"model", "Qwen/Qwen3-8B"}}`.
using MetricLabels = std::map<std::string, std::string>;

/// What a histogram has seen. Without values all numbers are 0.
struct HistogramSnapshot {
    std::uint64_t count{0};
    double sum{0};
    double mean{0};
    double min{0};
    double max{0};
    /// Of the newest 1000 values: the median (of the two middle ones, their mean), and by nearest
    /// rank the values that 95 and 99 of 100 do not exceed.
    double p50{0};
    double p95{0};
    double p99{0};
    /// Upper ends of the buckets, ascending; a last bucket without an end is not listed.
    std::vector<double> bounds{};
    /// Values in each bucket, that is, not above its end but above the one before; one entry more
    /// than `bounds`.
    std::vector<std::uint64_t> buckets{};

    bool operator==(HistogramSnapshot const&) const = default;
};

/// All metrics at one time, by name; a series with labels has the name `name{label="value"}`.
struct MetricsSnapshot {
    std::map<std::string, std::uint64_t> counters{};
    std::map<std::string, double> gauges{};
    std::map<std::string, HistogramSnapshot> histograms{};

    bool operator==(MetricsSnapshot const&) const = default;
};

/// Counts, levels and distributions: those of a client's HTTP calls, and the user's own.
///
///     Metrics metrics;
///     ServiceClient service{{.observers = {metrics_observer(metrics)}}};
///     metrics.increment("epochs");
///     std::cout << metrics.to_prometheus();
///
/// There from the start: the counters `requests_total`, `requests_success` and
/// `requests_failure`, and the histogram `request_duration_ms`. Any other metric begins with its
/// first use. Names are those that Prometheus allows; a bad one, or one that is already in use
/// for another kind of metric, is refused with a `ValidationError`.
///
/// A cheap handle: copies share the metrics. Every member may be called from any thread.
class Metrics {
public:
    class Counter;
    class Gauge;
    class Histogram;

    Metrics();

    /// A series to be kept by whoever updates it often: that takes no look-up and, but for
    /// histograms, no lock.
    [[nodiscard]] Counter counter(std::string_view name);
    [[nodiscard]] Counter counter(std::string_view name, MetricLabels const& labels);
    [[nodiscard]] Gauge gauge(std::string_view name);
    [[nodiscard]] Gauge gauge(std::string_view name, MetricLabels const& labels);
    /// With the bounds given to `declare_histogram`, else those of `request_duration_ms`: 1, 2, 5,
    /// 10 … 5000.
    [[nodiscard]] Histogram histogram(std::string_view name);
    [[nodiscard]] Histogram histogram(std::string_view name, MetricLabels const& labels);

    void increment(std::string_view name, std::uint64_t by = 1);
    void set_gauge(std::string_view name, double value);
    void record(std::string_view name, double value);

    /// Sets the bounds of a histogram that is not yet in use; they are finite and ascend.
    void declare_histogram(std::string_view name, std::vector<double> bounds);
    /// Says what a metric is, in its HELP line. It need not be in use yet.
    void describe(std::string_view name, std::string_view text);

    [[nodiscard]] MetricsSnapshot snapshot() const;
    /// Sets everything to 0. Series and those who hold them stay.
    void reset();
    /// Returns once all updates made before are in the next snapshot. They are as soon as their
    /// calls return, so there is nothing to wait for.
    void flush() const noexcept {}

    /// Off: updates are ignored and values stay as they are.
    void set_enabled(bool on) noexcept;
    [[nodiscard]] bool enabled() const noexcept;

    /// Everything in the text format of Prometheus, version 0.0.4, for
    /// `Content-Type: text/plain; version=0.0.4`. Names get the prefix `tinkxx_`.
    [[nodiscard]] std::string to_prometheus() const;
    [[nodiscard]] std::string to_prometheus(std::string_view prefix) const;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

/// A number that only grows. A cheap handle; any thread.
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

/// A number that goes up and down. A cheap handle; any thread.
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
    /// Infinities and what is not a number are ignored: they would spoil sum and mean for ever.
    void record(double value);
    [[nodiscard]] HistogramSnapshot snapshot() const;

private:
    friend class Metrics;
    struct Cell;
    explicit Histogram(std::shared_ptr<Cell> cell) noexcept;
    std::shared_ptr<Cell> cell_;
};

/// An observer that counts the HTTP calls of a client, retries of one call as one, and records
/// how long they took. A status of 2xx is a success; anything else, and no answer, a failure.
[[nodiscard]] std::shared_ptr<Observer> metrics_observer(Metrics metrics);

}  // namespace tinkxx
