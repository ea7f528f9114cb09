#include <tinkxx/error.hpp>
#include <tinkxx/losses.hpp>
#include <tinkxx/regularizers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <latch>
#include <thread>

namespace tinkxx::regularizers {
namespace {

using namespace std::chrono_literals;
using Floats = std::vector<float>;
using Gradient = std::vector<Floats>;

TensorData list(Floats numbers) {
    auto const size = static_cast<std::int64_t>(numbers.size());
    return {.data = std::move(numbers), .shape = {{size}}};
}
TensorData matrix(Floats numbers, std::int64_t columns) {
    auto const size = static_cast<std::int64_t>(numbers.size());
    return {.data = std::move(numbers), .shape = {{size / columns, columns}}};
}
Datum with_reference(TensorData reference) {
    return {.loss_fn_inputs = {{"reference_logprobs", std::move(reference)}}};
}

// A batch, and what a penalty makes of it.
struct Batch {
    std::vector<TensorData> logprobs{};
    std::vector<Datum> data{std::vector<Datum>(logprobs.size())};

    [[nodiscard]] CustomLossValue of(Regularizer const& penalty) const {
        // Each built-in has the derivatives of its value.
        CustomLoss const loss = [&penalty](std::span<Datum const> some,
                                           std::span<TensorData const> p) {
            return penalty(some, p, {});
        };
        auto const check = losses::check_gradient(loss, data, logprobs);
        EXPECT_TRUE(check.ok) << "datum " << check.datum << " at " << check.index << ": gives "
                              << check.analytic << ", is " << check.numeric;
        return penalty(data, logprobs, {});
    }
};

void expect_near(Gradient const& made, std::vector<std::vector<double>> const& expected) {
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        ASSERT_EQ(made[i].size(), expected[i].size());
        for (std::size_t t = 0; t < made[i].size(); ++t) {
            EXPECT_NEAR(made[i][t], expected[i][t], 1e-5) << i << ' ' << t;
        }
    }
}

TEST(L1Penalty, IsTheSumOfSizes) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-1, 2}), list({-0.5F})}};
    auto const value = batch.of(l1({.lambda = 2}));
    EXPECT_DOUBLE_EQ(value.loss, 7);
    expect_near(value.gradient, {{-2, 2}, {-2}});
    EXPECT_DOUBLE_EQ(batch.of(l1({.reduce = Reduce::mean})).loss, 3.5 / 3);
    auto const e = batch.of(l1({.on = On::probabilities}));
    EXPECT_NEAR(e.loss, std::exp(-1.0) + std::exp(2.0) + std::exp(-0.5), 1e-6);
    expect_near(e.gradient, {{std::exp(-1.0), std::exp(2.0)}, {std::exp(-0.5)}});
}

TEST(L1Penalty, OfAnotherInputDoesNotMoveWithTheModel) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-1})}, {{.loss_fn_inputs = {{"extra", {3, -4}}}}}};
    auto const value = batch.of(l1({.input = "extra"}));
    EXPECT_DOUBLE_EQ(value.loss, 7);
    expect_near(value.gradient, {{0}});
    EXPECT_THROW((void)batch.of(l1({.input = "none"})), ValidationError);
}

TEST(L2Penalty, IsTheSumOfSquaresAroundACenter) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-1, -3})}};
    EXPECT_DOUBLE_EQ(batch.of(l2()).loss, 10);
    expect_near(batch.of(l2()).gradient, {{-2, -6}});
    auto const mean = batch.of(l2({.center = L2Options::Center::mean}));
    EXPECT_DOUBLE_EQ(mean.loss, 2);
    expect_near(mean.gradient, {{2, -2}});
    auto const value =
        batch.of(l2({.center = L2Options::Center::value, .center_value = -2, .clip = 5}));
    EXPECT_DOUBLE_EQ(value.loss, 2);
    auto const clipped = batch.of(l2({.clip = 2}));
    EXPECT_DOUBLE_EQ(clipped.loss, 1 + 4);
    expect_near(clipped.gradient, {{-2, 0}});
    // Around the mean of -4 one is 4 away and held at 3; the mean moves with all three.
    Batch const three{{list({-4, -8, 0})}};
    auto const held = three.of(l2({.center = L2Options::Center::mean, .clip = 3}));
    EXPECT_DOUBLE_EQ(held.loss, 18);
    EXPECT_THROW((void)l2({.clip = 0}), ValidationError);
}

TEST(ElasticNet, MixesBoth) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-1, -3})}};
    auto const value = batch.of(elastic_net({.lambda = 2, .alpha = 0.25}));
    EXPECT_DOUBLE_EQ(value.loss, 2 * (0.25 * 4 + 0.75 * 10));
    expect_near(value.gradient, {{2 * (-0.25 - 1.5), 2 * (-0.25 - 4.5)}});
    EXPECT_DOUBLE_EQ(batch.of(elastic_net()).loss, 7);
    EXPECT_THROW((void)elastic_net({.alpha = 2}), ValidationError);
}

TEST(EntropyPenalty, IsOverTheLastAxis) {  // R-EXT-51, R-EXT-52
    auto const half = static_cast<float>(std::log(0.5));
    auto const quarter = static_cast<float>(std::log(0.25));
    Batch const batch{{matrix({half, half, half, quarter}, 2)}};
    auto const h1 = std::log(2.0);
    auto const h2 = 0.5 * std::log(2.0) + 0.25 * std::log(4.0);
    EXPECT_NEAR(batch.of(entropy()).loss, -(h1 + h2), 1e-6);
    EXPECT_NEAR(batch.of(entropy({.aim = EntropyOptions::Aim::minimize})).loss, h1 + h2, 1e-6);
    EXPECT_NEAR(batch.of(entropy({.normalize = true, .reduce = Reduce::mean})).loss,
                -(h1 + h2) / 2 / std::log(2.0), 1e-6);
    expect_near(batch.of(entropy()).gradient,
                {{0.5 * (1 + half), 0.5 * (1 + half), 0.5 * (1 + half), 0.25 * (1 + quarter)}});
}

TEST(EntropyPenalty, IgnoresCellsOfNoProbability) {  // R-EXT-51
    Batch const batch{{list({-0.5F, -51, -1e30F})}};
    auto const value = batch.of(entropy({.aim = EntropyOptions::Aim::minimize}));
    EXPECT_NEAR(value.loss, 0.5 * std::exp(-0.5), 1e-6);
    expect_near(value.gradient, {{-0.5 * std::exp(-0.5), 0, 0}});
}

TEST(EntropyPenalty, WithATemperatureLooksAtTheRenormalisedDistribution) {  // R-EXT-51, R-EXT-52
    // x / 2 = 0 and -log 3, so the distribution is 3/4 and 1/4.
    Batch const batch{{list({0, static_cast<float>(-2 * std::log(3.0))})}};
    auto const value = batch.of(entropy({.aim = EntropyOptions::Aim::minimize, .temperature = 2}));
    auto const h = 0.75 * std::log(4.0 / 3) + 0.25 * std::log(4.0);
    EXPECT_NEAR(value.loss, h, 1e-6);
    expect_near(value.gradient,
                {{-0.75 * (std::log(0.75) + h) / 2, -0.25 * (std::log(0.25) + h) / 2}});
    EXPECT_THROW((void)entropy({.temperature = 0}), ValidationError);
}

TEST(KlPenalty, GoesBothWays) {  // R-EXT-51, R-EXT-52
    auto const p = std::array{std::log(0.5), std::log(0.25)};
    auto const q = std::array{std::log(0.25), std::log(0.5)};
    auto const f = [](double x) { return static_cast<float>(x); };
    Batch const batch{{list({f(p[0]), f(p[1])})}, {with_reference(list({f(q[0]), f(q[1])}))}};
    using Direction = KlDivergenceOptions::Direction;
    auto const log2 = std::log(2.0);
    // 0.5 log 2 - 0.25 log 2, and 0.25 * -log 2 + 0.5 log 2.
    auto const forward = batch.of(kl_divergence());
    EXPECT_NEAR(forward.loss, 0.25 * log2, 1e-6);
    expect_near(forward.gradient, {{0.5 * (log2 + 1), 0.25 * (-log2 + 1)}});
    auto const reverse = batch.of(kl_divergence({.direction = Direction::reverse}));
    EXPECT_NEAR(reverse.loss, 0.25 * log2, 1e-6);
    expect_near(reverse.gradient, {{-0.25, -0.5}});
    auto const both = batch.of(kl_divergence({.direction = Direction::symmetric, .lambda = 2}));
    EXPECT_NEAR(both.loss, 0.5 * log2, 1e-6);
    expect_near(both.gradient, {{0.5 * (log2 + 1) - 0.25, 0.25 * (-log2 + 1) - 0.5}});
}

TEST(KlPenalty, IsBounded) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-1, -30})}, {with_reference(list({-1000, 0}))}};
    auto const value = batch.of(kl_divergence());
    EXPECT_NEAR(value.loss, std::exp(-1.0) * 100, 1e-4) << "the second has no probability";
    expect_near(value.gradient, {{std::exp(-1.0) * 100, 0}});
}

TEST(ConsistencyPenalty, MeasuresTheDistanceToAReference) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-3, -4})}, {with_reference(list({-4, -2}))}};
    using Measure = ConsistencyOptions::Measure;
    auto const mse = batch.of(consistency());
    EXPECT_DOUBLE_EQ(mse.loss, 2.5);
    expect_near(mse.gradient, {{1, -2}});
    auto const l1_distance = batch.of(consistency({.measure = Measure::l1}));
    EXPECT_DOUBLE_EQ(l1_distance.loss, 1.5);
    expect_near(l1_distance.gradient, {{0.5, -0.5}});
    auto const cosine = batch.of(consistency({.measure = Measure::cosine}));
    EXPECT_NEAR(cosine.loss, 1 - 20 / (5 * std::sqrt(20.0)), 1e-9);
    auto const kl = batch.of(consistency({.measure = Measure::symmetric_kl}));
    auto const symmetric = [](double x, double r) {
        return (std::exp(x) * (x - r) + std::exp(r) * (r - x)) / 2;
    };
    EXPECT_NEAR(kl.loss, (symmetric(-3, -4) + symmetric(-4, -2)) / 2, 1e-9);
}

TEST(OrthogonalityPenalty, LooksAtTheGramMatrix) {  // R-EXT-51, R-EXT-52
    // Rows (3, 4) and (1, 0): the cosine is 0.6.
    Batch const batch{{matrix({3, 4, 1, 0}, 2)}};
    using Mode = OrthogonalityOptions::Mode;
    EXPECT_NEAR(batch.of(orthogonality()).loss, 2 * 0.36, 1e-6);
    EXPECT_NEAR(batch.of(orthogonality({.mode = Mode::hard})).loss, 2 * 0.36, 1e-6);
    EXPECT_NEAR(batch.of(orthogonality({.mode = Mode::spectral})).loss, 2 * 0.36, 1e-6);
    // Lists are the rows of one matrix.
    Batch const lists{{list({3, 4}), list({1, 0})}};
    EXPECT_NEAR(lists.of(orthogonality()).loss, 2 * 0.36, 1e-6);
    Batch const ragged{{list({3, 4}), list({1})}};
    EXPECT_THROW((void)orthogonality()(ragged.data, ragged.logprobs, {}), ValidationError);
    // A row of nothing has no direction.
    Batch const nothing{{matrix({0, 0, 1, 0}, 2)}};
    auto const hard = orthogonality({.mode = Mode::hard})(nothing.data, nothing.logprobs, {});
    EXPECT_NEAR(hard.loss, 1, 1e-9);
    auto const spectral =
        orthogonality({.mode = Mode::spectral})(nothing.data, nothing.logprobs, {});
    EXPECT_NEAR(spectral.loss, 1, 1e-9);
}

// Sum of a * x^2 / 2, with gradient a * x.
CustomLoss bowl(double a) {
    return [a](std::span<Datum const>, std::span<TensorData const> logprobs) {
        CustomLossValue out;
        for (auto const& tensor : logprobs) {
            auto& gradient = out.gradient.emplace_back();
            for (auto const x : std::get<Floats>(tensor.data)) {
                out.loss += a * static_cast<double>(x) * static_cast<double>(x) / 2;
                gradient.push_back(static_cast<float>(a * static_cast<double>(x)));
            }
        }
        return out;
    };
}

TEST(GradientPenalty, WantsGradientsOfNormOne) {  // R-EXT-51, R-EXT-52
    Batch const batch{{list({-3, -4})}};
    auto const value = batch.of(gradient_penalty(bowl(2)));
    EXPECT_NEAR(value.loss, 81, 1e-4);  // (2 * 5 - 1)^2
    // 2 * 9 * 2 * x / |x|
    auto const slope = 36 / 5.0;
    ASSERT_EQ(value.gradient.size(), 1U);
    EXPECT_NEAR(value.gradient[0][0], -3 * slope, 2e-2);
    EXPECT_NEAR(value.gradient[0][1], -4 * slope, 2e-2);
    EXPECT_NEAR(value.metrics.at("gradient_norm"), 10, 1e-6);
}

TEST(GradientPenalty, LooksAtAPlaceBetweenThatTheSeedDecides) {  // R-EXT-51
    Batch const batch{{list({-3})}, {with_reference(list({-1}))}};
    auto const at = [&](std::uint64_t seed) {
        return batch
            .of(gradient_penalty(bowl(1), {.reference = "reference_logprobs", .seed = seed}))
            .metrics.at("gradient_norm");
    };
    EXPECT_EQ(at(1), at(1));
    EXPECT_NE(at(1), at(2));
    for (std::uint64_t seed = 0; seed < 9; ++seed) {
        EXPECT_GE(at(seed), 1);
        EXPECT_LE(at(seed), 3);
    }
}

// with_regularizers -------------------------------------------------------------------------------

Regularizer constant(double value, Gradient gradient, MetricValues metrics = {}) {
    return [=](std::span<Datum const>, std::span<TensorData const>, std::stop_token) {
        return CustomLossValue{.loss = value, .gradient = gradient, .metrics = metrics};
    };
}

TEST(WithRegularizers, AddsWeightedPenalties) {  // R-EXT-50
    Batch const batch{{list({-1, -1})}};
    auto const loss = with_regularizers(
        bowl(1), {{.name = "a", .weight = 2, .fn = constant(3, {{1, 2}}, {{"own", 7}})},
                  {.name = "b", .weight = 0.5, .fn = constant(4, {{-3, 4}})}});
    auto const value = loss(batch.data, batch.logprobs);
    EXPECT_DOUBLE_EQ(value.loss, 1 + 6 + 2);
    expect_near(value.gradient, {{-1 + 2 - 1.5, -1 + 4 + 2}});
    auto metrics = value.metrics;
    for (auto const& [name, expected] : MetricValues{{"loss_total", 9},
                                                     {"base_loss", 1},
                                                     {"regularizer_total", 8},
                                                     {"total_grad_norm", std::sqrt(0.25 + 25)},
                                                     {"a/value", 3},
                                                     {"a/weight", 2},
                                                     {"a/contribution", 6},
                                                     {"a/grad_norm", std::sqrt(5.0)},
                                                     {"a/grad_norm_weighted", 2 * std::sqrt(5.0)},
                                                     {"a/own", 7},
                                                     {"b/value", 4},
                                                     {"b/weight", 0.5},
                                                     {"b/contribution", 2},
                                                     {"b/grad_norm", 5},
                                                     {"b/grad_norm_weighted", 2.5}}) {
        ASSERT_TRUE(metrics.contains(name)) << name;
        EXPECT_NEAR(metrics.at(name), expected, 1e-6) << name;
        metrics.erase(name);
    }
    EXPECT_TRUE(metrics.empty()) << metrics.begin()->first;
    auto const bare = with_regularizers(bowl(1), {{.name = "a", .fn = constant(3, {{1, 2}})}},
                                        {.grad_norms = false})(batch.data, batch.logprobs);
    EXPECT_FALSE(bare.metrics.contains("a/grad_norm"));
    EXPECT_FALSE(bare.metrics.contains("total_grad_norm"));
}

TEST(WithRegularizers, SpecsAreChecked) {  // R-EXT-50
    auto const fn = constant(0, {});
    auto const refused = [](std::vector<RegularizerSpec> specs) {
        try {
            (void)with_regularizers(bowl(1), std::move(specs));
        } catch (ValidationError const& error) {
            return std::string{error.field()};
        }
        return std::string{"nothing"};
    };
    EXPECT_EQ(refused({{.name = "", .fn = fn}}), "specs/0/name");
    EXPECT_EQ(refused({{.name = "a", .fn = fn}, {.name = "a", .fn = fn}}), "specs/1/name");
    EXPECT_EQ(refused({{.name = "a", .weight = -1, .fn = fn}}), "specs/0/weight");
    EXPECT_EQ(refused({{.name = "a"}}), "specs/0/fn");
    EXPECT_EQ(refused({{.name = "a", .weight = 0, .fn = fn}}), "nothing");
    EXPECT_THROW((void)with_regularizers({}, {}), ValidationError);
    EXPECT_THROW((void)with_regularizers(bowl(1), {}, {.time_limit = 0ms}), ValidationError);
}

TEST(WithRegularizers, TheFirstFailureInTheirOrderWins) {  // R-EXT-50
    Batch const batch{{list({-1})}};
    auto const failing = [](char const* text) -> Regularizer {
        return [text](std::span<Datum const>, std::span<TensorData const>,
                      std::stop_token) -> CustomLossValue { throw std::runtime_error{text}; };
    };
    for (unsigned const parallel : {1U, 4U}) {
        auto const loss = with_regularizers(bowl(1),
                                            {{.name = "fine", .fn = constant(0, {{0}})},
                                             {.name = "one", .fn = failing("one")},
                                             {.name = "two", .fn = failing("two"), .async = false}},
                                            {.parallel = parallel});
        try {
            (void)loss(batch.data, batch.logprobs);
            FAIL();
        } catch (std::runtime_error const& error) {
            EXPECT_STREQ(error.what(), "one");
        }
    }
}

TEST(WithRegularizers, RunsSideBySide) {  // R-EXT-50
    Batch const batch{{list({-1})}};
    std::latch both{2};
    // Neither ends before the other has begun.
    Regularizer const meets = [&both](std::span<Datum const>, std::span<TensorData const>,
                                      std::stop_token) {
        both.arrive_and_wait();
        return CustomLossValue{.gradient = {{0}}};
    };
    auto const loss = with_regularizers(
        bowl(1), {{.name = "a", .fn = meets}, {.name = "b", .fn = meets}}, {.parallel = 2});
    EXPECT_NO_THROW((void)loss(batch.data, batch.logprobs));
}

TEST(WithRegularizers, WhatIsNotAsyncRunsOnTheCallersThread) {  // R-EXT-50
    Batch const batch{{list({-1})}};
    std::thread::id where;
    Regularizer const notes = [&where](std::span<Datum const>, std::span<TensorData const>,
                                       std::stop_token) {
        where = std::this_thread::get_id();
        return CustomLossValue{.gradient = {{0}}};
    };
    std::vector<RegularizerSpec> specs{{.name = "own", .fn = notes, .async = false}};
    for (auto const* name : {"a", "b", "c"}) {
        specs.push_back({.name = name, .fn = constant(0, {{0}})});
    }
    (void)with_regularizers(bowl(1), specs, {.parallel = 3})(batch.data, batch.logprobs);
    EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(WithRegularizers, OneThatTakesTooLongFailsTheLossAndStopsTheOthers) {  // R-EXT-50
    Batch const batch{{list({-1})}};
    auto clock = 0ns;
    bool stopped = false;
    Regularizer const slow = [&clock](std::span<Datum const>, std::span<TensorData const>,
                                      std::stop_token) {
        clock += 30001ms;
        return CustomLossValue{.gradient = {{0}}};
    };
    Regularizer const next = [&stopped](std::span<Datum const>, std::span<TensorData const>,
                                        std::stop_token stop) {
        stopped = stop.stop_requested();
        return CustomLossValue{.gradient = {{0}}};
    };
    RegularizerOptions options{.parallel = 1, .now = [&clock] { return clock; }};
    EXPECT_EQ(options.time_limit, 30s);
    auto const loss = with_regularizers(
        bowl(1), {{.name = "slow", .fn = slow}, {.name = "next", .fn = next}}, options);
    try {
        (void)loss(batch.data, batch.logprobs);
        FAIL();
    } catch (TimeoutError const& error) {
        EXPECT_EQ(error.field(), "slow");
        EXPECT_NE(std::string{error.what()}.find("took 30001 ms"), std::string::npos);
    }
    EXPECT_TRUE(stopped);
}

TEST(WithRegularizers, FeedsACustomLossWithARightGradient) {  // R-EXT-52
    Batch const batch{{list({-1, -2}), list({-3})},
                      {with_reference(list({-2, -2})), with_reference(list({-2}))}};
    auto const loss =
        with_regularizers(bowl(1), {{.name = "l2", .weight = 0.1, .fn = l2()},
                                    {.name = "kl", .weight = 0.3, .fn = kl_divergence()},
                                    {.name = "entropy", .weight = 0.2, .fn = entropy()}});
    EXPECT_TRUE(losses::check_gradient(loss, batch.data, batch.logprobs).ok);
}

}  // namespace
}  // namespace tinkxx::regularizers
