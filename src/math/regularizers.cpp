#include <tinkxx/regularizers.hpp>

#include "math/check.hpp"
#include "math/loss_values.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace tinkxx::regularizers {

namespace {

using math::refuse_loss;

// The log-probabilities of all data one after the other.
class Flat {
public:
    Flat(std::string_view name, std::span<Datum const> data, std::span<TensorData const> logprobs) {
        math::check_sizes(name, data, logprobs);
        for (std::size_t i = 0; i < logprobs.size(); ++i) {
            auto const p = math::logprobs_of(name, logprobs[i], i);
            x.insert(x.end(), p.begin(), p.end());
            sizes.push_back(p.size());
            auto const& shape = logprobs[i].shape;
            auto const last =
                shape && !shape->empty() ? shape->back() : static_cast<std::int64_t>(p.size());
            columns.push_back(static_cast<std::size_t>(std::max<std::int64_t>(last, 1)));
            matrices.push_back(shape && shape->size() == 2);
        }
    }

    // The gradient in the form of the data.
    [[nodiscard]] std::vector<std::vector<float>> by_datum(
        std::vector<double> const& slopes) const {
        std::vector<std::vector<float>> out;
        std::size_t at = 0;
        for (auto const size : sizes) {
            auto& part = out.emplace_back();
            part.reserve(size);
            for (std::size_t t = 0; t < size; ++t) part.push_back(static_cast<float>(slopes[at++]));
        }
        return out;
    }

    // Calls fn(first, columns) for each row along the last axis, over all data.
    template <class Fn>
    std::size_t each_row(Fn fn) const {
        std::size_t rows = 0;
        std::size_t begin = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            for (std::size_t row = 0; row + columns[i] <= sizes[i]; row += columns[i]) {
                fn(begin + row, columns[i]);
                ++rows;
            }
            begin += sizes[i];
        }
        return rows;
    }

    std::vector<double> x{};
    std::vector<std::size_t> sizes{};
    std::vector<std::size_t> columns{};
    std::vector<bool> matrices{};
};

std::vector<double> reference_of(std::string_view name, std::span<Datum const> data,
                                 Flat const& flat, std::string const& input) {
    std::vector<double> out;
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const part = math::input_of(name, data[i], i, input, flat.sizes[i]);
        out.insert(out.end(), part.begin(), part.end());
    }
    return out;
}

// A value with its derivatives by each x.
struct Sum {
    explicit Sum(std::size_t size) : slopes(size, 0.0) {}

    void scale(double factor) {
        value *= factor;
        for (auto& slope : slopes) slope *= factor;
    }

    double value{0};
    std::vector<double> slopes;
};

CustomLossValue made(Flat const& flat, Sum sum, double lambda) {
    sum.scale(lambda);
    CustomLossValue out;
    out.loss = sum.value;
    out.gradient = flat.by_datum(sum.slopes);
    return out;
}

// What penalties of size look at: x, exp(x), or something that does not depend on x.
struct Subject {
    std::vector<double> values{};
    std::vector<double> slopes{};  // of each by its x; empty: it has none
};

template <class Options>
Subject subject(std::span<Datum const> data, Flat const& flat, Options const& options) {
    Subject out;
    if (!options.input.empty()) {
        for (auto const& datum : data) {
            auto const view = datum.loss_fn_inputs.at(options.input);
            std::visit(
                [&out](auto const& numbers) {
                    for (auto const n : numbers) out.values.push_back(static_cast<double>(n));
                },
                view.data);
        }
        return out;
    }
    out.values = flat.x;
    out.slopes.assign(flat.x.size(), 1.0);
    if (options.on == On::probabilities) {
        for (std::size_t i = 0; i < flat.x.size(); ++i) {
            out.values[i] = out.slopes[i] = std::exp(flat.x[i]);
        }
    }
    return out;
}

// The sum or mean of penalties with slopes by the subject's values, turned into slopes by x.
CustomLossValue of_subject(Flat const& flat, Subject const& subject, Sum sum, double lambda,
                           Reduce reduce) {
    if (reduce == Reduce::mean && !subject.values.empty()) {
        sum.scale(1 / static_cast<double>(subject.values.size()));
    }
    Sum by_x{flat.x.size()};
    by_x.value = sum.value;
    for (std::size_t i = 0; i < subject.slopes.size(); ++i) {
        by_x.slopes[i] = sum.slopes[i] * subject.slopes[i];
    }
    return made(flat, std::move(by_x), lambda);
}

void add_l1(Sum& sum, std::vector<double> const& values, double factor) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        sum.value += factor * std::abs(values[i]);
        sum.slopes[i] += factor * (values[i] > 0 ? 1 : values[i] < 0 ? -1 : 0);
    }
}

void add_l2(Sum& sum, std::vector<double> const& values, double factor, L2Options const& options) {
    auto center = options.center_value;
    auto const count = static_cast<double>(values.size());
    if (options.center == L2Options::Center::none) center = 0;
    if (options.center == L2Options::Center::mean && !values.empty()) {
        center = std::accumulate(values.begin(), values.end(), 0.0) / count;
    }
    double through_center = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const away = values[i] - center;
        auto const kept = options.clip ? std::clamp(away, -*options.clip, *options.clip) : away;
        sum.value += factor * kept * kept;
        auto const slope = kept == away ? 2 * factor * kept : 0;
        sum.slopes[i] += slope;
        through_center += slope;
    }
    if (options.center != L2Options::Center::mean || values.empty()) return;
    // The mean moves with each value.
    for (auto& slope : sum.slopes) slope -= through_center / count;
}

constexpr double least_log_probability = -50;
constexpr double least_probability = 1e-10;
constexpr double most_log_ratio = 100;

// Adds p (log p - log q) and its slope by log p, or by log q.
enum class By : std::uint8_t { log_p, log_q };
void add_kl(Sum& sum, std::size_t at, double log_p, double log_q, By by, double factor) {
    auto const p = std::exp(log_p);
    if (p <= least_probability) return;
    auto const ratio = std::clamp(log_p - log_q, -most_log_ratio, most_log_ratio);
    auto const moves = ratio == log_p - log_q ? 1.0 : 0.0;
    sum.value += factor * p * ratio;
    sum.slopes[at] += factor * (by == By::log_p ? p * ratio + p * moves : -p * moves);
}

void add_symmetric_kl(Sum& sum, std::vector<double> const& x, std::vector<double> const& r) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        add_kl(sum, i, x[i], r[i], By::log_p, 0.5);
        add_kl(sum, i, r[i], x[i], By::log_q, 0.5);
    }
}

// Penalises rows that are not orthogonal; `rows` are where they begin.
void add_gram(Sum& sum, std::vector<double> const& x, std::vector<std::size_t> const& rows,
              std::size_t columns, OrthogonalityOptions::Mode mode) {
    constexpr double least_norm = 1e-8;
    auto const n = rows.size();
    std::vector<double> norms(n);
    std::vector<double> unit(n * columns);
    for (std::size_t i = 0; i < n; ++i) {
        double square = 0;
        for (std::size_t k = 0; k < columns; ++k) square += x[rows[i] + k] * x[rows[i] + k];
        norms[i] = std::sqrt(square);
        auto const by = std::max(norms[i], least_norm);
        for (std::size_t k = 0; k < columns; ++k) unit[i * columns + k] = x[rows[i] + k] / by;
    }
    // The Gram matrix, then the slopes of the penalty by it.
    std::vector<double> gram(n * n, 0.0);
    double trace = 0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < columns; ++k) {
                gram[i * n + j] += unit[i * columns + k] * unit[j * columns + k];
            }
        }
        trace += gram[i * n + i];
    }
    auto const extra = trace - static_cast<double>(n);
    if (mode == OrthogonalityOptions::Mode::spectral) sum.value += extra * extra;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            auto& cell = gram[i * n + j];
            if (i != j) {
                sum.value += cell * cell;
                cell *= 2;
            } else if (mode == OrthogonalityOptions::Mode::hard) {
                sum.value += (cell - 1) * (cell - 1);
                cell = 2 * (cell - 1);
            } else {
                cell = mode == OrthogonalityOptions::Mode::spectral ? 2 * extra : 0;
            }
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> by_unit(columns, 0.0);
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < columns; ++k) {
                by_unit[k] += 2 * gram[i * n + j] * unit[j * columns + k];
            }
        }
        double along = 0;
        if (norms[i] > least_norm) {
            for (std::size_t k = 0; k < columns; ++k) along += by_unit[k] * unit[i * columns + k];
        }
        auto const by = std::max(norms[i], least_norm);
        for (std::size_t k = 0; k < columns; ++k) {
            sum.slopes[rows[i] + k] += (by_unit[k] - along * unit[i * columns + k]) / by;
        }
    }
}

std::vector<TensorData> with_values(std::span<TensorData const> logprobs, Flat const& flat,
                                    std::vector<double> const& x) {
    std::vector<TensorData> out{logprobs.begin(), logprobs.end()};
    auto const parts = flat.by_datum(x);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].data = parts[i];
    return out;
}

std::vector<double> gradient_at(CustomLoss const& loss, std::span<Datum const> data,
                                std::span<TensorData const> logprobs, Flat const& flat,
                                std::vector<double> const& x) {
    auto const moved = with_values(logprobs, flat, x);
    auto const value = loss(data, moved);
    if (auto const problem = math::custom_value_problem("gradient_penalty", value, moved)) {
        throw ValidationError{*problem};
    }
    std::vector<double> out;
    for (auto const& part : value.gradient) out.insert(out.end(), part.begin(), part.end());
    return out;
}

double norm(std::vector<double> const& v) {
    double sum = 0;
    for (auto const x : v) sum += x * x;
    return std::sqrt(sum);
}

}  // namespace

Regularizer l1(SizeOptions options) {
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs,
                                          std::stop_token const&) {
        Flat const flat{"l1", data, logprobs};
        auto const of = subject(data, flat, options);
        Sum sum{of.values.size()};
        add_l1(sum, of.values, 1);
        return of_subject(flat, of, std::move(sum), options.lambda, options.reduce);
    };
}

Regularizer l2(L2Options options) {
    if (options.clip && !(*options.clip > 0)) {
        refuse_loss("l2", "clip", "the bound is not more than 0");
    }
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs,
                                          std::stop_token const&) {
        Flat const flat{"l2", data, logprobs};
        auto const of = subject(data, flat, options);
        Sum sum{of.values.size()};
        add_l2(sum, of.values, 1, options);
        return of_subject(flat, of, std::move(sum), options.lambda, options.reduce);
    };
}

Regularizer elastic_net(ElasticNetOptions options) {
    if (!(options.alpha >= 0 && options.alpha <= 1)) {
        refuse_loss("elastic_net", "alpha", "alpha must be in [0, 1]");
    }
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs,
                                          std::stop_token const&) {
        Flat const flat{"elastic_net", data, logprobs};
        auto const of = subject(data, flat, options);
        Sum sum{of.values.size()};
        add_l1(sum, of.values, options.alpha);
        add_l2(sum, of.values, 1 - options.alpha, L2Options());
        return of_subject(flat, of, std::move(sum), options.lambda, options.reduce);
    };
}

Regularizer entropy(EntropyOptions options) {
    if (options.temperature && !(*options.temperature > 0)) {
        refuse_loss("entropy", "temperature", "the temperature is not more than 0");
    }
    return [options](std::span<Datum const> data, std::span<TensorData const> logprobs,
                     std::stop_token const&) {
        Flat const flat{"entropy", data, logprobs};
        auto const& x = flat.x;
        Sum sum{x.size()};
        auto const rows = flat.each_row([&](std::size_t first, std::size_t columns) {
            // With a temperature: y = x / T less the logarithm of the sum of exp(x / T).
            auto const t = options.temperature.value_or(1);
            double shift = 0;
            if (options.temperature) {
                auto const most =
                    *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(first),
                                      x.begin() + static_cast<std::ptrdiff_t>(first + columns)) /
                    t;
                for (std::size_t k = first; k < first + columns; ++k)
                    shift += std::exp(x[k] / t - most);
                shift = most + std::log(shift);
            }
            double h = 0;
            for (std::size_t k = first; k < first + columns; ++k) {
                auto const y = x[k] / t - shift;
                if (y > least_log_probability) h -= std::exp(y) * y;
            }
            auto const scale =
                options.normalize && columns > 1 ? 1 / std::log(static_cast<double>(columns)) : 1.0;
            sum.value += scale * h;
            double kept = 0;  // how the renormalisation feels the cells that count
            if (options.temperature) {
                for (std::size_t k = first; k < first + columns; ++k) {
                    auto const y = x[k] / t - shift;
                    if (y > least_log_probability) kept -= std::exp(y) * (y + 1);
                }
            }
            for (std::size_t k = first; k < first + columns; ++k) {
                auto const y = x[k] / t - shift;
                auto const own = y > least_log_probability ? -std::exp(y) * (y + 1) : 0;
                sum.slopes[k] += scale * (own - std::exp(y) * kept) / t;
            }
        });
        if (options.reduce == Reduce::mean && rows > 0) sum.scale(1 / static_cast<double>(rows));
        if (options.aim == EntropyOptions::Aim::maximize) sum.scale(-1);
        return made(flat, std::move(sum), options.lambda);
    };
}

Regularizer kl_divergence(KlDivergenceOptions options) {
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs,
                                          std::stop_token const&) {
        Flat const flat{"kl_divergence", data, logprobs};
        auto const r = reference_of("kl_divergence", data, flat, options.reference);
        Sum sum{flat.x.size()};
        switch (options.direction) {
            case KlDivergenceOptions::Direction::forward:
                for (std::size_t i = 0; i < r.size(); ++i) {
                    add_kl(sum, i, flat.x[i], r[i], By::log_p, 1);
                }
                break;
            case KlDivergenceOptions::Direction::reverse:
                for (std::size_t i = 0; i < r.size(); ++i) {
                    add_kl(sum, i, r[i], flat.x[i], By::log_q, 1);
                }
                break;
            case KlDivergenceOptions::Direction::symmetric:
                add_symmetric_kl(sum, flat.x, r);
                break;
        }
        auto const rows = flat.each_row([](std::size_t, std::size_t) {});
        if (options.reduce == Reduce::mean && rows > 0) sum.scale(1 / static_cast<double>(rows));
        return made(flat, std::move(sum), options.lambda);
    };
}

Regularizer consistency(ConsistencyOptions options) {
    return [options = std::move(options)](std::span<Datum const> data,
                                          std::span<TensorData const> logprobs,
                                          std::stop_token const&) {
        Flat const flat{"consistency", data, logprobs};
        auto const& x = flat.x;
        auto const r = reference_of("consistency", data, flat, options.reference);
        Sum sum{x.size()};
        if (x.empty()) return made(flat, std::move(sum), options.lambda);
        auto const count = static_cast<double>(x.size());
        switch (options.measure) {
            case ConsistencyOptions::Measure::mse:
                for (std::size_t i = 0; i < x.size(); ++i) {
                    auto const d = x[i] - r[i];
                    sum.value += d * d / count;
                    sum.slopes[i] = 2 * d / count;
                }
                break;
            case ConsistencyOptions::Measure::l1:
                for (std::size_t i = 0; i < x.size(); ++i) {
                    auto const d = x[i] - r[i];
                    sum.value += std::abs(d) / count;
                    sum.slopes[i] = (d > 0 ? 1 : d < 0 ? -1 : 0) / count;
                }
                break;
            case ConsistencyOptions::Measure::cosine: {
                constexpr double least_norm = 1e-8;
                auto const a = std::max(norm(x), least_norm);
                auto const b = std::max(norm(r), least_norm);
                auto const cosine =
                    std::inner_product(x.begin(), x.end(), r.begin(), 0.0) / (a * b);
                sum.value = 1 - cosine;
                auto const turns = a > least_norm ? 1.0 : 0.0;
                for (std::size_t i = 0; i < x.size(); ++i) {
                    sum.slopes[i] = -(r[i] / (a * b) - turns * cosine * x[i] / (a * a));
                }
                break;
            }
            case ConsistencyOptions::Measure::symmetric_kl:
                add_symmetric_kl(sum, x, r);
                sum.scale(1 / count);
                break;
        }
        return made(flat, std::move(sum), options.lambda);
    };
}

Regularizer orthogonality(OrthogonalityOptions options) {
    return [options](std::span<Datum const> data, std::span<TensorData const> logprobs,
                     std::stop_token const&) {
        Flat const flat{"orthogonality", data, logprobs};
        Sum sum{flat.x.size()};
        auto const lists = std::ranges::none_of(flat.matrices, [](bool matrix) { return matrix; });
        std::vector<std::size_t> rows;
        std::size_t begin = 0;
        for (std::size_t i = 0; i < flat.sizes.size(); ++i) {
            if (lists) {
                if (flat.sizes[i] != flat.sizes[0]) {
                    refuse_loss("orthogonality", "logprobs/" + std::to_string(i),
                                "datum " + std::to_string(i) + " has " +
                                    std::to_string(flat.sizes[i]) + " numbers and datum 0 has " +
                                    std::to_string(flat.sizes[0]) +
                                    "; rows must be equally long, so use matrices or cut the data");
                }
                rows.push_back(begin);
            } else if (flat.matrices[i]) {
                rows.clear();
                for (std::size_t row = 0; row + flat.columns[i] <= flat.sizes[i];
                     row += flat.columns[i]) {
                    rows.push_back(begin + row);
                }
                add_gram(sum, flat.x, rows, flat.columns[i], options.mode);
            }
            begin += flat.sizes[i];
        }
        if (lists && !rows.empty()) add_gram(sum, flat.x, rows, flat.sizes[0], options.mode);
        return made(flat, std::move(sum), options.lambda);
    };
}

Regularizer gradient_penalty(CustomLoss loss, GradientPenaltyOptions options) {
    if (!loss) refuse_loss("gradient_penalty", "loss", "there is no loss");
    if (!(options.step > 0)) refuse_loss("gradient_penalty", "step", "the step is not more than 0");
    return [loss = std::move(loss), options = std::move(options)](
               std::span<Datum const> data, std::span<TensorData const> logprobs,
               std::stop_token const&) {
        Flat const flat{"gradient_penalty", data, logprobs};
        auto x = flat.x;
        double share = 1;
        if (!options.reference.empty()) {
            auto const r = reference_of("gradient_penalty", data, flat, options.reference);
            // The generator alone gives the same place with every standard library.
            std::mt19937 draw{static_cast<std::uint32_t>(options.seed ^ (options.seed >> 32U))};
            share = static_cast<double>(draw()) / 0x1p32;
            for (std::size_t i = 0; i < x.size(); ++i) x[i] = share * x[i] + (1 - share) * r[i];
        }
        auto const gradient = gradient_at(loss, data, logprobs, flat, x);
        auto const size = norm(gradient);
        Sum sum{x.size()};
        sum.value = (size - 1) * (size - 1);
        if (size > 0) {
            // The matrix of second derivatives times the direction of the gradient.
            auto above = x;
            auto below = x;
            for (std::size_t i = 0; i < x.size(); ++i) {
                above[i] += options.step * gradient[i] / size;
                below[i] -= options.step * gradient[i] / size;
            }
            auto const high = gradient_at(loss, data, logprobs, flat, above);
            auto const low = gradient_at(loss, data, logprobs, flat, below);
            for (std::size_t i = 0; i < x.size(); ++i) {
                auto const turn = (high[i] - low[i]) / (2 * options.step);
                sum.slopes[i] = 2 * (size - 1) * turn * share;
            }
        }
        auto out = made(flat, std::move(sum), options.lambda);
        out.metrics["gradient_norm"] = size;
        return out;
    };
}

}  // namespace tinkxx::regularizers
