#include "engine/kernels/optimizer.hpp"

#include "support.hpp"

#include <rapidcheck.h>

namespace tinkxx::engine {
namespace {

struct State {
    std::vector<float> parameters;
    std::vector<float> gradients;
    std::vector<float> moment1;
    std::vector<float> moment2;

    explicit State(std::size_t count)
        : parameters{numbers(count, 1)},
          gradients{numbers(count, 2)},
          moment1(count, 0.0F),
          moment2(count, 0.0F) {}
};

TEST(AdamW, FollowsTheDefinitionOfPyTorch) {
    std::size_t const count = 77;
    State state{count};
    auto p = doubles(state.parameters);
    std::vector<double> m(count);
    std::vector<double> v(count);
    AdamWStep step{.learning_rate = 1e-2,
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .eps = 1e-8,
                   .weight_decay = 0.1,
                   .gradient_factor = 0.5};
    for (step.step = 1; step.step <= 5; ++step.step) {
        state.gradients = numbers(count, static_cast<unsigned>(10 + step.step));
        adamw_step(step, state.parameters.data(), state.gradients.data(), state.moment1.data(),
                   state.moment2.data(), count);
        auto const t = static_cast<double>(step.step);
        for (std::size_t i = 0; i != count; ++i) {
            double const g = state.gradients[i] * step.gradient_factor;
            p[i] *= 1 - step.learning_rate * step.weight_decay;
            m[i] += (g - m[i]) * (1 - step.beta1);
            v[i] = v[i] * step.beta2 + (1 - step.beta2) * g * g;
            auto const denominator =
                std::sqrt(v[i]) / std::sqrt(1 - std::pow(step.beta2, t)) + step.eps;
            p[i] -= step.learning_rate / (1 - std::pow(step.beta1, t)) * m[i] / denominator;
        }
    }
    EXPECT_LT(relative_error(state.parameters, p), 1e-6);
    EXPECT_LT(relative_error(state.moment1, m), 1e-6);
    EXPECT_LT(relative_error(state.moment2, v), 1e-6);
}

TEST(AdamW, LeavesAParameterWithoutGradientAloneButForDecay) {
    State state{3};
    state.gradients.assign(3, 0.0F);
    auto const before = state.parameters;
    adamw_step({}, state.parameters.data(), state.gradients.data(), state.moment1.data(),
               state.moment2.data(), 3);
    EXPECT_EQ(state.parameters, before);
}

class OptimizerOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Optimizer, OptimizerOnEachIsa, all_isas, isa_label);

TEST_P(OptimizerOnEachIsa, HasTheBitsOfThePlainOne) {
    auto const& here = table();
    EXPECT_TRUE(rc::check([&] {
        auto const count = *rc::gen::inRange<std::size_t>(0, 100);
        State a{count};
        a.moment2 = numbers(count, 3);
        for (auto& v : a.moment2) v *= v;
        auto b = a;
        AdamWConstants const constants{0.7F, 0.99F, 0.1F, 0.95F, 0.05F, 0.3F, 1e-12F, 1e-3F};
        here.adamw(constants, a.parameters.data(), a.gradients.data(), a.moment1.data(),
                   a.moment2.data(), count);
        plain().adamw(constants, b.parameters.data(), b.gradients.data(), b.moment1.data(),
                      b.moment2.data(), count);
        RC_ASSERT(differing(a.parameters, b.parameters) == 0U);
        RC_ASSERT(differing(a.moment1, b.moment1) == 0U);
        RC_ASSERT(differing(a.moment2, b.moment2) == 0U);
        RC_ASSERT(here.sum_of_squares(a.gradients.data(), count) ==
                  plain().sum_of_squares(a.gradients.data(), count));
    }));
}

TEST(SumOfSquares, IsExactWhereFloatsWouldNotBe) {
    std::vector<float> values(10000, 0.01F);
    values[0] = 1e4F;
    // In floats every small one would vanish beside the large one.
    auto const exact = 1e8 + 9999 * (static_cast<double>(0.01F) * static_cast<double>(0.01F));
    EXPECT_NEAR(sum_of_squares(values.data(), values.size()), exact, 1e-5);
}

}  // namespace
}  // namespace tinkxx::engine
