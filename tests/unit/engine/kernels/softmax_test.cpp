#include "engine/kernels/elementwise.hpp"

#include "support.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>

namespace tinkxx::engine {
namespace {

double defined_log_sum_exp(std::span<float const> logits) {
    double const top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double const logit : logits) sum += std::exp(logit - top);
    return top + std::log(sum);
}

TEST(Softmax, LogSumIsRightForAnyLengthAndScale) {
    EXPECT_TRUE(rc::check([] {
        auto const count = *rc::gen::inRange<std::size_t>(1, 500);
        auto const spread = *rc::gen::elementOf(std::vector<float>{0.01F, 1, 30, 1000});
        auto const logits = numbers(count, 4, spread);
        SoftmaxState state;
        softmax_update(state, logits.data(), count);
        auto const expected = defined_log_sum_exp(logits);
        RC_ASSERT(std::abs(state.log_sum_exp() - expected) <=
                  2e-6 * std::max(1.0, std::abs(expected)));
    }));
}

TEST(Softmax, CutsAtMultiplesOf64DoNotChangeABit) {
    auto const logits = numbers(1000, 5, 10);
    SoftmaxState whole;
    softmax_update(whole, logits.data(), logits.size());
    for (std::size_t const piece : {64UL, 128UL, 448UL}) {
        SoftmaxState parts;
        for (std::size_t at = 0; at < logits.size(); at += piece) {
            softmax_update(parts, logits.data() + at, std::min(piece, logits.size() - at));
        }
        EXPECT_EQ(differing(whole.sum, parts.sum), 0U);
        EXPECT_EQ(whole.log_sum_exp(), parts.log_sum_exp());
    }
}

TEST(Softmax, MinusInfinityHasNoWeight) {
    auto logits = numbers(100, 6);
    logits[3] = -std::numeric_limits<float>::infinity();
    logits[99] = -std::numeric_limits<float>::infinity();
    SoftmaxState state;
    softmax_update(state, logits.data(), logits.size());
    EXPECT_NEAR(state.log_sum_exp(), defined_log_sum_exp(logits), 1e-5);
    state.reset();
    EXPECT_EQ(state.sum[0], 0);
}

TEST(Softmax, ApplyingGivesProbabilitiesAndGradients) {
    auto const logits = numbers(200, 7, 3);
    SoftmaxState state;
    softmax_update(state, logits.data(), logits.size());
    std::vector<float> p(logits.size());
    softmax_apply(p.data(), logits.data(), p.size(), state.log_sum_exp(), 1);
    double sum = 0;
    for (double const value : p) sum += value;
    EXPECT_NEAR(sum, 1, 1e-6);
    // d(2.5 * logprob(target)) / d(logit), by a difference in float64.
    auto gradient = logits;
    softmax_apply(gradient.data(), gradient.data(), gradient.size(), state.log_sum_exp(), -2.5F);
    gradient[17] += 2.5F;
    for (std::size_t const i : {0UL, 17UL, 199UL}) {
        auto const value = [&](float by) {
            auto moved = logits;
            moved[i] += by;
            return 2.5 * (moved[17] - defined_log_sum_exp(moved));
        };
        EXPECT_NEAR(gradient[i], (value(0.0625F) - value(-0.0625F)) / 0.125, 2e-3);
    }
}

class SoftmaxOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Softmax, SoftmaxOnEachIsa, all_isas, isa_label);

TEST_P(SoftmaxOnEachIsa, HasTheBitsOfThePlainOne) {
    auto const& here = table();
    EXPECT_TRUE(rc::check([&] {
        auto const count = *rc::gen::inRange<std::size_t>(1, 400);
        auto const logits = numbers(count, 8, 20);
        SoftmaxState a;
        SoftmaxState b;
        here.softmax_update(a, logits.data(), count);
        plain().softmax_update(b, logits.data(), count);
        RC_ASSERT(differing(a.max, b.max) == 0U);
        RC_ASSERT(differing(a.sum, b.sum) == 0U);
        RC_ASSERT(here.softmax_log_sum(a) == plain().softmax_log_sum(b));
        auto x = logits;
        auto y = logits;
        here.softmax_apply(x.data(), x.data(), count, 3.5F, 0.3F);
        plain().softmax_apply(y.data(), y.data(), count, 3.5F, 0.3F);
        RC_ASSERT(differing(x, y) == 0U);
    }));
}

}  // namespace
}  // namespace tinkxx::engine
