#include "service/passes/combining.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

namespace tinkxx::service {

namespace {

// What one metric is in each chunk, and how much each chunk weighs.
struct Series {
    std::vector<double> values{};
    std::span<double const> weights{};
};

double weighted_mean(Series const& series) {
    double sum = 0;
    double total = 0;
    for (std::size_t i = 0; i < series.values.size(); ++i) {
        sum += series.values[i] * series.weights[i];
        total += series.weights[i];
    }
    return total == 0 ? 0 : sum / total;  // R-TRAIN-43
}

// As in Python a NaN wins only if it comes first.
double largest(Series const& series) { return *std::ranges::max_element(series.values); }

double reduced_mean(Series const& series) { return weighted_mean(series); }
double reduced_slack(Series const& series) {
    double total = 0;
    for (auto const weight : series.weights) total += weight;
    return total == 0 ? 0 : largest(series) - weighted_mean(series);
}
double reduced_sum(Series const& series) {
    double sum = 0;
    for (auto const value : series.values) sum += value;
    return sum;
}
double reduced_min(Series const& series) { return *std::ranges::min_element(series.values); }
double reduced_max(Series const& series) { return largest(series); }
double reduced_hash2(Series const& series) {
    return static_cast<double>(reduce_hash2(series.values));
}
double reduced_hash_unordered(Series const& series) {
    return static_cast<double>(reduce_hash_unordered(series.values));
}

struct Reduction {
    std::string_view name;
    double (*reduce)(Series const&);  // none: all values are kept
};
constexpr std::array<Reduction, 8> reductions{{
    {"hash2", reduced_hash2},
    {"hash_unordered", reduced_hash_unordered},
    {"max", reduced_max},
    {"mean", reduced_mean},
    {"min", reduced_min},
    {"slack", reduced_slack},
    {"sum", reduced_sum},
    {"unique", nullptr},
}};
constexpr auto reduction_names = [] {
    std::array<std::string_view, reductions.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = reductions[i].name;
    return names;
}();

// What stands behind the only colon of a metric's name.
std::string_view reduction_of(std::string_view name) {
    auto const colon = name.find(':');
    if (colon == std::string_view::npos || name.find(':', colon + 1) != std::string_view::npos) {
        return {};
    }
    return name.substr(colon + 1);
}

void reduce_into(Combined& out, std::string const& name, Series const& series) {
    auto const wanted = reduction_of(name);
    if (wanted.empty()) {
        out.notes.push_back("metric " + name + " is left out: it is no name:reduction");
        return;
    }
    auto const* const found = std::ranges::find(reductions, wanted, &Reduction::name);
    if (found == reductions.end()) {
        out.notes.push_back("metric " + name + " is left out: nobody knows the reduction " +
                            std::string{wanted});
        return;
    }
    auto& metrics = out.output.metrics;
    if (found->reduce != nullptr) {
        metrics.insert_or_assign(name, found->reduce(series));
        return;
    }
    for (std::size_t i = 0; i < series.values.size(); ++i) {
        metrics.insert_or_assign(i == 0 ? name : name + "_" + std::to_string(i), series.values[i]);
    }
}

// A remainder of Mersenne's 2^61 - 1, by which Python hashes integers.
constexpr unsigned hash_bits = 61;
constexpr std::uint64_t hash_modulus = (std::uint64_t{1} << hash_bits) - 1;

std::int64_t python_hash(double whole) {
    int exponent = 0;
    // 53 bits times a power of two, of which only the remainder of the exponent counts.
    auto mantissa =
        static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(whole), &exponent), 53));
    exponent -= 53;
    if (exponent < 0) {
        mantissa >>= static_cast<unsigned>(-exponent);  // whole, so these bits are zero
        exponent = 0;
    }
    auto const turn = static_cast<unsigned>(exponent) % hash_bits;
    auto rest = mantissa;
    if (turn != 0) {
        rest = ((mantissa << turn) & hash_modulus) | (mantissa >> (hash_bits - turn));
    }
    rest %= hash_modulus;
    auto const hash =
        whole < 0 ? -static_cast<std::int64_t>(rest) : static_cast<std::int64_t>(rest);
    return hash == -1 ? -2 : hash;
}

double whole(double value) { return std::isfinite(value) ? std::trunc(value) : 0; }

}  // namespace

std::span<std::string_view const> known_reductions() noexcept { return reduction_names; }

std::uint64_t reduce_hash2(std::span<double const> values) noexcept {
    std::uint64_t sum = 0;
    for (auto const value : values) {
        auto const rest = std::fmod(whole(value), 0x1p64);
        auto const size = static_cast<std::uint64_t>(std::abs(rest));
        sum += rest < 0 ? -size : size;
    }
    return sum;
}

std::int64_t reduce_hash_unordered(std::span<double const> values) {
    std::vector<double> sorted;
    sorted.reserve(values.size());
    std::ranges::transform(values, std::back_inserter(sorted), whole);
    std::ranges::sort(sorted);
    // The hash of a tuple in CPython, which is that of xxHash with its lanes in one row.
    constexpr std::uint64_t prime1 = 11400714785074694791U;
    constexpr std::uint64_t prime2 = 14029467366897019727U;
    constexpr std::uint64_t prime5 = 2870177450012600261U;
    std::uint64_t sum = prime5;
    for (auto const value : sorted) {
        sum += static_cast<std::uint64_t>(python_hash(value)) * prime2;
        sum = std::rotl(sum, 31) * prime1;
    }
    sum += sorted.size() ^ (prime5 ^ 3527539U);
    if (sum == ~std::uint64_t{0}) sum = 1546275796U;
    return static_cast<std::int64_t>(sum);
}

Combined combine(std::vector<ForwardBackwardOutput> chunks) {
    Combined out;
    if (chunks.empty()) return out;
    out.output.loss_fn_output_type = chunks.front().loss_fn_output_type;
    std::vector<double> weights;
    weights.reserve(chunks.size());
    for (auto const& chunk : chunks) {
        weights.push_back(static_cast<double>(chunk.loss_fn_outputs.size()));
        if (out.warnings.empty() && chunk.loss_fn_output_type != out.output.loss_fn_output_type) {
            out.warnings.push_back("the parts of one call gave outputs of type " +
                                   out.output.loss_fn_output_type + " and " +
                                   chunk.loss_fn_output_type + "; the first is taken");
        }
    }
    for (auto const& [name, first] : chunks.front().metrics) {
        Series series{.values = {}, .weights = weights};
        for (auto const& chunk : chunks) {
            auto const found = chunk.metrics.find(name);
            if (found == chunk.metrics.end()) break;
            series.values.push_back(found->second);
        }
        if (series.values.size() == chunks.size()) {
            reduce_into(out, name, series);
        } else {
            out.notes.push_back("metric " + name + " is left out: not every part has it");
        }
    }
    auto& outputs = out.output.loss_fn_outputs;
    outputs = std::move(chunks.front().loss_fn_outputs);
    for (std::size_t i = 1; i < chunks.size(); ++i) {
        auto& more = chunks[i].loss_fn_outputs;
        outputs.insert(outputs.end(), std::make_move_iterator(more.begin()),
                       std::make_move_iterator(more.end()));
    }
    return out;
}

}  // namespace tinkxx::service
