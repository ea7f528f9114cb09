#include <tinkxx/metrics.hpp>

#include <tinkxx/error.hpp>
#include <tinkxx/observer.hpp>

#include "base/common/invalid.hpp"
#include "observe/value_window.hpp"
#include "service/http/http_error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>
#include <variant>

namespace tinkxx {

namespace {

constexpr std::array default_bounds{1.0,   2.0,   5.0,   10.0,   20.0,   50.0,
                                    100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0};

[[noreturn]] void refuse(std::string_view operation, std::string_view field, std::string_view value,
                         std::string_view problem) {
    std::string why{"the "};
    for (auto const part :
         {field, std::string_view{" '"}, value, std::string_view{"' "}, problem}) {
        why += part;
    }
    base::refuse("Metrics::" + std::string{operation}, std::string{field}, std::string{value}, why);
}

bool is_word(std::string_view text, std::string_view more) noexcept {
    auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
    auto const fits = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
               more.find(c) != std::string_view::npos;
    };
    return !text.empty() && !is_digit(text.front()) && std::ranges::all_of(text, fits);
}

void check_name(std::string_view operation, std::string_view name) {
    if (is_word(name, "_:")) return;
    refuse(operation, "name", name,
           "is none; use letters, digits and underscores, and no digit in front");
}

void check_labels(std::string_view operation, MetricLabels const& labels) {
    for (auto const& [label, value] : labels) {
        if (!is_word(label, "_") || label.starts_with("__")) {
            refuse(operation, "label", label,
                   "is none; use letters, digits and underscores, no digit and no two underscores "
                   "in front");
        }
        if (label == "le") refuse(operation, "label", label, "is kept for buckets; take another");
    }
}

// HELP texts keep their quotation marks, values of labels do not.
std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    out.reserve(text.size());
    for (char const c : text) {
        if (c == '\n') {
            out += "\\n";
        } else if (c == '\\' || (quotes && c == '"')) {
            out += '\\';
            out += c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

std::string label_text(MetricLabels const& labels) {
    std::string out;
    for (auto const& [label, value] : labels) {
        if (!out.empty()) out += ',';
        out += label + "=\"" + escaped(value, true) + '"';
    }
    return out;
}

std::string series(std::string const& name, std::string const& labels) {
    return labels.empty() ? name : name + '{' + labels + '}';
}

std::string joined(std::string const& labels, std::string const& more) {
    return labels.empty() ? more : labels + ',' + more;
}

}  // namespace

struct Metrics::Counter::Cell {
    explicit Cell(std::shared_ptr<std::atomic<bool> const> on) : enabled{std::move(on)} {}
    std::shared_ptr<std::atomic<bool> const> enabled;
    std::atomic<std::uint64_t> value{0};
};

struct Metrics::Gauge::Cell {
    explicit Cell(std::shared_ptr<std::atomic<bool> const> on) : enabled{std::move(on)} {}
    std::shared_ptr<std::atomic<bool> const> enabled;
    std::atomic<double> value{0};
};

struct Metrics::Histogram::Cell {
    Cell(std::shared_ptr<std::atomic<bool> const> on, std::vector<double> ends)
        : enabled{std::move(on)}, bounds{std::move(ends)}, buckets(bounds.size() + 1) {}

    void record(double value) {
        auto const bucket = std::ranges::lower_bound(bounds, value) - bounds.begin();
        std::lock_guard const lock{mutex};
        ++buckets[static_cast<std::size_t>(bucket)];
        min = count == 0 ? value : std::min(min, value);
        max = count == 0 ? value : std::max(max, value);
        ++count;
        sum += value;
        newest.add(value);
    }
    void reset() {
        std::lock_guard const lock{mutex};
        std::ranges::fill(buckets, 0);
        count = 0;
        sum = min = max = 0;
        newest.clear();
    }
    HistogramSnapshot snapshot() const {
        HistogramSnapshot out;
        observe::ValueWindow values;
        {
            std::lock_guard const lock{mutex};
            out.count = count;
            out.sum = sum;
            out.min = min;
            out.max = max;
            out.buckets = buckets;
            values = newest;
        }
        out.bounds = bounds;
        if (out.count == 0) return out;
        out.mean = out.sum / static_cast<double>(out.count);
        auto const ranks = values.ranks();
        out.p50 = ranks.p50;
        out.p95 = ranks.p95;
        out.p99 = ranks.p99;
        return out;
    }

    std::shared_ptr<std::atomic<bool> const> enabled;
    std::vector<double> const bounds;
    mutable std::mutex mutex{};  // guards what follows
    std::vector<std::uint64_t> buckets;
    std::uint64_t count{0};
    double sum{0};
    double min{0};
    double max{0};
    observe::ValueWindow newest{};
};

/// The mutex guards the map of families, not the values in their cells: updates of known series
/// take it shared. Series are never removed.
struct Metrics::Impl {
    template <class Cell>
    using Family = std::map<MetricLabels, std::shared_ptr<Cell>>;
    using Counters = Family<Counter::Cell>;
    using Gauges = Family<Gauge::Cell>;
    struct Histograms {
        std::vector<double> bounds{default_bounds.begin(), default_bounds.end()};
        Family<Histogram::Cell> cells{};
    };
    using AnyFamily = std::variant<Counters, Gauges, Histograms>;

    [[nodiscard]] static Counters& cells(Counters& family) noexcept { return family; }
    [[nodiscard]] static Gauges& cells(Gauges& family) noexcept { return family; }
    [[nodiscard]] static auto& cells(Histograms& family) noexcept { return family.cells; }
    [[nodiscard]] auto make(Counters const& /*family*/) const {
        return std::make_shared<Counter::Cell>(enabled);
    }
    [[nodiscard]] auto make(Gauges const& /*family*/) const {
        return std::make_shared<Gauge::Cell>(enabled);
    }
    [[nodiscard]] auto make(Histograms const& family) const {
        return std::make_shared<Histogram::Cell>(enabled, family.bounds);
    }

    // What a histogram writes beside its own name must not meet another metric.
    void check_free(std::string_view operation, std::string_view name, bool histogram) const {
        for (std::string_view const suffix : {"_bucket", "_sum", "_count"}) {
            if (histogram && families.contains(std::string{name} + std::string{suffix})) {
                refuse(
                    operation, "name", name,
                    "cannot be a histogram beside a metric that is called the same and ends in " +
                        std::string{suffix} + "; rename one of them");
            }
            if (!name.ends_with(suffix)) continue;
            auto const base = families.find(name.substr(0, name.size() - suffix.size()));
            if (base != families.end() && std::holds_alternative<Histograms>(base->second)) {
                refuse(operation, "name", name,
                       "is a part of the histogram of that name; rename one of them");
            }
        }
    }

    template <class Kind>
    Kind& family(std::string_view operation, std::string_view name) {
        auto found = families.find(name);
        if (found == families.end()) {
            check_name(operation, name);
            check_free(operation, name, std::is_same_v<Kind, Histograms>);
            found = families.emplace(std::string{name}, Kind{}).first;
        }
        auto* family = std::get_if<Kind>(&found->second);
        if (family == nullptr) {
            refuse(operation, "name", name,
                   "is in use for a metric of another kind; take another name");
        }
        return *family;
    }

    template <class Kind>
    auto cell(std::string_view operation, std::string_view name, MetricLabels const& labels) {
        {
            std::shared_lock const lock{mutex};
            auto const found = families.find(name);
            if (found != families.end()) {
                if (auto* known = std::get_if<Kind>(&found->second)) {
                    auto const cell = cells(*known).find(labels);
                    if (cell != cells(*known).end()) return cell->second;
                }
            }
        }
        check_labels(operation, labels);
        std::unique_lock const lock{mutex};
        auto& known = family<Kind>(operation, name);
        auto& cell = cells(known)[labels];
        if (!cell) cell = make(known);
        return cell;
    }

    std::shared_ptr<std::atomic<bool>> const enabled{std::make_shared<std::atomic<bool>>(true)};
    mutable std::shared_mutex mutex{};
    std::map<std::string, AnyFamily, std::less<>> families{};
    std::map<std::string, std::string, std::less<>> help{};
};

namespace {

template <class... Fns>
struct Overloaded : Fns... {
    using Fns::operator()...;
};
template <class... Fns>
Overloaded(Fns...) -> Overloaded<Fns...>;  // clang 16 does not deduce it for aggregates

}  // namespace

Metrics::Counter::Counter(std::shared_ptr<Cell> cell) noexcept : cell_{std::move(cell)} {}
void Metrics::Counter::add(std::uint64_t by) noexcept {
    if (*cell_->enabled) cell_->value.fetch_add(by, std::memory_order_relaxed);
}
std::uint64_t Metrics::Counter::value() const noexcept { return cell_->value; }

Metrics::Gauge::Gauge(std::shared_ptr<Cell> cell) noexcept : cell_{std::move(cell)} {}
void Metrics::Gauge::set(double value) noexcept {
    if (*cell_->enabled) cell_->value = value;
}
void Metrics::Gauge::add(double by) noexcept {
    if (*cell_->enabled) cell_->value.fetch_add(by, std::memory_order_relaxed);
}
double Metrics::Gauge::value() const noexcept { return cell_->value; }

Metrics::Histogram::Histogram(std::shared_ptr<Cell> cell) noexcept : cell_{std::move(cell)} {}
void Metrics::Histogram::record(double value) {
    if (*cell_->enabled && std::isfinite(value)) cell_->record(value);
}
HistogramSnapshot Metrics::Histogram::snapshot() const { return cell_->snapshot(); }

Metrics::Metrics() : impl_{std::make_shared<Impl>()} {
    describe("requests_total", "HTTP calls that ended, retries of one call counted as one");
    describe("requests_success", "HTTP calls that were answered with a status of 2xx");
    describe("requests_failure", "HTTP calls that were answered otherwise or not at all");
    describe("request_duration_ms", "Milliseconds that HTTP calls took, retries included");
    for (auto const* name : {"requests_total", "requests_success", "requests_failure"}) {
        (void)counter(name);
    }
    (void)histogram("request_duration_ms");
}

Metrics::Counter Metrics::counter(std::string_view name) { return counter(name, MetricLabels{}); }
Metrics::Counter Metrics::counter(std::string_view name, MetricLabels const& labels) {
    return Counter{impl_->cell<Impl::Counters>("counter", name, labels)};
}
Metrics::Gauge Metrics::gauge(std::string_view name) { return gauge(name, MetricLabels{}); }
Metrics::Gauge Metrics::gauge(std::string_view name, MetricLabels const& labels) {
    return Gauge{impl_->cell<Impl::Gauges>("gauge", name, labels)};
}
Metrics::Histogram Metrics::histogram(std::string_view name) {
    return histogram(name, MetricLabels{});
}
Metrics::Histogram Metrics::histogram(std::string_view name, MetricLabels const& labels) {
    return Histogram{impl_->cell<Impl::Histograms>("histogram", name, labels)};
}

void Metrics::increment(std::string_view name, std::uint64_t by) { counter(name).add(by); }
void Metrics::set_gauge(std::string_view name, double value) { gauge(name).set(value); }
void Metrics::record(std::string_view name, double value) { histogram(name).record(value); }

void Metrics::declare_histogram(std::string_view name, std::vector<double> bounds) {
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        if (!std::isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) {
            refuse("declare_histogram", "bound", number(bounds[i]),
                   "is not finite and above the one before; sort them and leave +Inf out");
        }
    }
    std::unique_lock const lock{impl_->mutex};
    auto& family = impl_->family<Impl::Histograms>("declare_histogram", name);
    if (!family.cells.empty() && family.bounds != bounds) {
        refuse("declare_histogram", "name", name,
               "is in use with other bounds; declare it before its first value");
    }
    family.bounds = std::move(bounds);
}

void Metrics::describe(std::string_view name, std::string_view text) {
    check_name("describe", name);
    std::unique_lock const lock{impl_->mutex};
    impl_->help.insert_or_assign(std::string{name}, std::string{text});
}

MetricsSnapshot Metrics::snapshot() const {
    MetricsSnapshot out;
    std::shared_lock const lock{impl_->mutex};
    for (auto const& [name, family] : impl_->families) {
        auto const each = [&name = name](auto const& cells, auto&& note) {
            for (auto const& [labels, cell] : cells) note(series(name, label_text(labels)), *cell);
        };
        std::visit(Overloaded{[&](Impl::Counters const& cells) {
                                  each(cells, [&](std::string key, Counter::Cell const& cell) {
                                      out.counters.emplace(std::move(key), cell.value);
                                  });
                              },
                              [&](Impl::Gauges const& cells) {
                                  each(cells, [&](std::string key, Gauge::Cell const& cell) {
                                      out.gauges.emplace(std::move(key), cell.value);
                                  });
                              },
                              [&](Impl::Histograms const& histograms) {
                                  each(histograms.cells,
                                       [&](std::string key, Histogram::Cell const& cell) {
                                           out.histograms.emplace(std::move(key), cell.snapshot());
                                       });
                              }},
                   family);
    }
    return out;
}

void Metrics::reset() {
    std::shared_lock const lock{impl_->mutex};
    for (auto const& [name, family] : impl_->families) {
        std::visit(Overloaded{[](Impl::Histograms const& histograms) {
                                  for (auto const& [labels, cell] : histograms.cells) cell->reset();
                              },
                              [](auto const& cells) {
                                  for (auto const& [labels, cell] : cells) cell->value = 0;
                              }},
                   family);
    }
}

void Metrics::set_enabled(bool on) noexcept { *impl_->enabled = on; }
bool Metrics::enabled() const noexcept { return *impl_->enabled; }

std::string Metrics::to_prometheus() const { return to_prometheus("tinkxx_"); }

std::string Metrics::to_prometheus(std::string_view prefix) const {
    if (!prefix.empty()) check_name("to_prometheus", prefix);
    std::string out;
    auto const line = [&out](std::string const& key, std::string const& value) {
        out += key + ' ' + value + '\n';
    };
    std::shared_lock const lock{impl_->mutex};
    for (auto const& [short_name, family] : impl_->families) {
        auto const name = std::string{prefix} + short_name;
        if (auto const help = impl_->help.find(short_name); help != impl_->help.end()) {
            line("# HELP " + name, escaped(help->second, false));
        }
        std::visit(
            Overloaded{[&](Impl::Counters const& cells) {
                           line("# TYPE " + name, "counter");
                           for (auto const& [labels, cell] : cells) {
                               line(series(name, label_text(labels)), std::to_string(cell->value));
                           }
                       },
                       [&](Impl::Gauges const& cells) {
                           line("# TYPE " + name, "gauge");
                           for (auto const& [labels, cell] : cells) {
                               line(series(name, label_text(labels)), number(cell->value));
                           }
                       },
                       [&](Impl::Histograms const& histograms) {
                           line("# TYPE " + name, "histogram");
                           for (auto const& [labels, cell] : histograms.cells) {
                               auto const text = label_text(labels);
                               auto const seen = cell->snapshot();
                               std::uint64_t below = 0;
                               for (std::size_t i = 0; i < seen.buckets.size(); ++i) {
                                   below += seen.buckets[i];
                                   auto const end =
                                       i < seen.bounds.size() ? number(seen.bounds[i]) : "+Inf";
                                   line(series(name + "_bucket", joined(text, "le=\"" + end + '"')),
                                        std::to_string(below));
                               }
                               line(series(name + "_sum", text), number(seen.sum));
                               line(series(name + "_count", text), std::to_string(seen.count));
                           }
                       }},
            family);
    }
    return out;
}

namespace {

class MetricsObserver final : public Observer {
public:
    explicit MetricsObserver(Metrics metrics)
        : total_{metrics.counter("requests_total")},
          success_{metrics.counter("requests_success")},
          failure_{metrics.counter("requests_failure")},
          duration_{metrics.histogram("request_duration_ms")} {}

    void on_http_stop(HttpStopEvent const& event) override {
        ended(service::is_success(event.status), event.duration);
    }
    void on_http_exception(HttpExceptionEvent const& event) override {
        ended(false, event.duration);
    }

private:
    void ended(bool success, std::chrono::nanoseconds duration) {
        total_.add();
        (success ? success_ : failure_).add();
        duration_.record(std::chrono::duration<double, std::milli>{duration}.count());
    }

    Metrics::Counter total_;
    Metrics::Counter success_;
    Metrics::Counter failure_;
    Metrics::Histogram duration_;
};

}  // namespace

std::shared_ptr<Observer> metrics_observer(Metrics metrics) {
    return std::make_shared<MetricsObserver>(std::move(metrics));
}

}  // namespace tinkxx
