#include "engine/sample/filter.hpp"

#include "engine/common/random.hpp"
#include "engine/sample/page_pool.hpp"
#include "engine/sample/sampler.hpp"
#include "engine/train/trainer.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace tinkxx::engine {
namespace {

/// The filtered distribution, from its definition, in float64.
std::vector<double> exact(std::vector<float> const& logits, FilterParams const& params) {
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](auto a, auto b) { return logits[a] > logits[b]; });
    if (params.top_k > 0) order.resize(static_cast<std::size_t>(params.top_k));
    std::vector<double> weights;
    for (auto const i : order) {
        weights.push_back(std::exp(static_cast<double>(logits[i]) / params.temperature));
    }
    auto const total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> result(logits.size());
    double before = 0.0;
    double kept = 0.0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i > 0 && before >= params.top_p) break;
        result[order[i]] = weights[i];
        kept += weights[i];
        before += weights[i] / total;
    }
    for (auto& value : result) value /= kept;
    return result;
}

/// Chi-square of counts against a distribution, and its degrees of freedom. Unlikely tokens are
/// counted together.
std::pair<double, double> chi_square(std::vector<std::size_t> const& counts,
                                     std::vector<double> const& probabilities,
                                     std::size_t samples) {
    double sum = 0.0;
    double cells = 0.0;
    double rare = 0.0;
    double rare_count = 0.0;
    auto const cell = [&](double count, double wanted) {
        sum += (count - wanted) * (count - wanted) / wanted;
        cells += 1.0;
    };
    for (std::size_t i = 0; i < counts.size(); ++i) {
        auto const wanted = probabilities[i] * static_cast<double>(samples);
        if (wanted == 0.0) {
            EXPECT_EQ(counts[i], 0U) << "token " << i << " was filtered out";
        } else if (wanted < 10.0) {
            rare += wanted;
            rare_count += static_cast<double>(counts[i]);
        } else {
            cell(static_cast<double>(counts[i]), wanted);
        }
    }
    if (rare >= 5.0) cell(rare_count, rare);
    return {sum, cells - 1.0};
}

TEST(SamplingStatistics, FollowTheExactDistribution) {
    auto const model = support::random_model(support::small_config(), 3);
    Threads threads{2};
    Sampler sampler{model, threads};
    Trainer trainer{model, threads};
    auto const prompt = support::random_tokens(12, model->config().vocab_size, 4);
    auto const all = trainer.logits(nullptr, prompt).value();
    std::vector<float> const logits(all.end() - model->config().vocab_size, all.end());
    constexpr std::size_t samples = 20000;
    std::uint64_t seed = 0;
    for (auto const& params :
         {FilterParams{}, FilterParams{.temperature = 0.8}, FilterParams{.temperature = 2.0},
          FilterParams{.top_k = 7}, FilterParams{.top_p = 0.9},
          FilterParams{.temperature = 1.5, .top_k = 20, .top_p = 0.8}}) {
        std::optional<Result<SampleResult>> answer;
        (void)sampler
            .submit({.prompt = prompt,
                     .filter = params,
                     .max_tokens = 1,
                     .num_samples = samples,
                     .seed = ++seed,
                     .on_done = [&](Result<SampleResult> result) { answer = std::move(result); }})
            .value();
        while (sampler.step()) {
        }
        std::vector<std::size_t> counts(logits.size());
        for (auto const& sequence : answer->value().sequences) {
            ++counts[static_cast<std::size_t>(sequence.tokens.at(0))];
        }
        auto const [statistic, freedom] = chi_square(counts, exact(logits, params), samples);
        ASSERT_GE(freedom, 2.0);
        // Wilson and Hilferty: the cube root is nearly normal. Four deviations: 3 in 100,000.
        auto const normal = (std::cbrt(statistic / freedom) - (1.0 - 2.0 / (9.0 * freedom))) /
                            std::sqrt(2.0 / (9.0 * freedom));
        EXPECT_LT(std::abs(normal), 4.0) << "temperature " << params.temperature << " top_k "
                                         << params.top_k << " top_p " << params.top_p;
    }
}

TEST(SamplingStatistics, OfLaterTokensFollowTheirOwnDistribution) {
    // Positions of one sample must not be correlated with one another.
    std::vector<std::size_t> pairs(16);
    constexpr std::size_t samples = 40000;
    for (std::size_t i = 0; i < samples; ++i) {
        auto const first = static_cast<std::size_t>(uniform(7, i, 0) * 4.0);
        auto const second = static_cast<std::size_t>(uniform(7, i, 1) * 4.0);
        ++pairs[4 * first + second];
    }
    auto const [statistic, freedom] =
        chi_square(pairs, std::vector<double>(16, 1.0 / 16.0), samples);
    EXPECT_LT(statistic, 45.0);  // 15 degrees of freedom: 8 in 100,000
    EXPECT_GT(statistic, 2.0);
    EXPECT_EQ(freedom, 15.0);
}

TEST(TokenFilter, IsExactOnLargeVocabularies) {
    std::vector<float> logits(50000);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        logits[i] = static_cast<float>(8.0 * uniform(1, 2, i) - 4.0);
    }
    TokenFilter filter;
    for (auto const& params : {FilterParams{.top_p = 0.9}, FilterParams{.top_p = 0.01},
                               FilterParams{.temperature = 0.7, .top_k = 1000, .top_p = 0.5},
                               FilterParams{.top_p = 0.9999999}}) {
        filter.apply(logits, params);
        auto const got = filter.probabilities(logits.size());
        auto const want = exact(logits, params);
        double worst = 0.0;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            worst = std::max(worst, std::abs(got[i] - want[i]));
            kept += want[i] > 0.0 ? 1U : 0U;
        }
        EXPECT_LT(worst, 1e-8);
        EXPECT_NEAR(static_cast<double>(filter.tokens().size()), static_cast<double>(kept),
                    1.0 + 1e-4 * static_cast<double>(kept));
    }
}

TEST(TokenFilter, DrawsTheEnds) {
    TokenFilter filter;
    filter.apply(std::vector<float>{0.0F, -1000.0F, 1.0F, 0.5F}, {});
    EXPECT_EQ(filter.pick(0.0), 0);
    EXPECT_EQ(filter.pick(0x1.fffffffffffffp-1), 3);
    filter.apply(std::vector<float>{0.0F, 2.0F, 2.0F, 0.5F}, {.temperature = 0.0});
    EXPECT_EQ(filter.pick(0.7), 1);
}

TEST(PagePools, GiveUpTheOldestUnusedPrefixFirst) {
    KvLayout const layout{.layers = 1, .kv_heads = 1, .head_dim = 2};
    PagePool pool{layout, 3 * layout.page_floats() * sizeof(float)};
    ASSERT_EQ(pool.capacity(), 3U);
    std::vector<std::int32_t> const a(64, 1);
    std::vector<std::int32_t> const b(64, 2);
    auto const first = pool.take();
    auto const parent = pool.remember({}, 0, a, first);
    auto const second = pool.take();
    (void)pool.remember({}, parent, b, second);
    auto const third = pool.take();
    (void)pool.remember({}, 0, b, third);
    for (auto const page : {first, second, third}) pool.release(page);
    EXPECT_EQ(pool.pinned(), 0U);
    EXPECT_EQ(pool.cached(), 3U);
    // The parent is older than its child, but useless to give up before it.
    auto const fresh = pool.take();
    EXPECT_EQ(pool.find({}, parent, b).node, 0U);
    auto const hit = pool.find({}, 0, a);
    EXPECT_EQ(hit.page, first);
    EXPECT_EQ(pool.pinned(), 2U);
    pool.release(fresh);
    pool.release(hit.page);
    EXPECT_EQ(pool.find({.adapter = 1}, 0, a).node, 0U);
    EXPECT_EQ(pool.find({.version = 1}, 0, a).node, 0U);
}

}  // namespace
}  // namespace tinkxx::engine
