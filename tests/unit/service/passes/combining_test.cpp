#include "service/passes/combining.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tinkxx::service {
namespace {

ForwardBackwardOutput part(std::size_t data, MetricValues metrics, std::string type = "T") {
    ForwardBackwardOutput out{.loss_fn_output_type = std::move(type),
                              .metrics = std::move(metrics)};
    for (std::size_t i = 0; i < data; ++i) {
        out.loss_fn_outputs.push_back(
            {{"logprobs", {.data = std::vector<float>{static_cast<float>(i)}}}});
    }
    return out;
}

MetricValues combined(std::vector<ForwardBackwardOutput> parts) {
    return combine(std::move(parts)).output.metrics;
}

TEST(Combine, ConcatenatesOutputsInOrder) {  // R-TRAIN-40
    auto first = part(1, {}, "A");
    auto second = part(2, {}, "B");
    auto outputs = first.loss_fn_outputs;
    outputs.insert(outputs.end(), second.loss_fn_outputs.begin(), second.loss_fn_outputs.end());
    auto const made = combine({first, second, part(0, {}, "C")});
    EXPECT_EQ(made.output.loss_fn_output_type, "A");
    EXPECT_EQ(made.output.loss_fn_outputs, outputs);
    ASSERT_EQ(made.warnings.size(), 1U);
    EXPECT_NE(made.warnings[0].find("A and B"), std::string::npos);
    EXPECT_TRUE(combine({first, first}).warnings.empty());
}

TEST(Combine, OfNothingIsAnEmptyOutput) {  // R-TRAIN-40
    EXPECT_EQ(combine({}).output, ForwardBackwardOutput{});
}

TEST(Combine, LeavesOutMetricsThatAChunkLacks) {  // R-TRAIN-41
    auto const made =
        combine({part(1, {{"a:sum", 1}, {"b:sum", 2}}), part(1, {{"a:sum", 3}, {"c:sum", 9}})});
    EXPECT_EQ(made.output.metrics, (MetricValues{{"a:sum", 4}}));
    ASSERT_EQ(made.notes.size(), 1U);
    EXPECT_NE(made.notes[0].find("b:sum"), std::string::npos);
}

TEST(Combine, LeavesOutReductionsThatNobodyKnows) {  // R-TRAIN-41
    auto const made = combine({part(1, {{"a:last", 1}, {"a:sum", 1}})});
    EXPECT_EQ(made.output.metrics, (MetricValues{{"a:sum", 1}}));
    ASSERT_EQ(made.notes.size(), 1U);
    EXPECT_NE(made.notes[0].find("a:last"), std::string::npos);
}

TEST(Combine, ReducesByTheNumberOfOutputs) {  // R-TRAIN-42
    MetricValues const one{{"a:mean", 1}, {"a:slack", 1}, {"a:sum", 1},
                           {"a:min", 1},  {"a:max", 1},   {"u:unique", 1}};
    MetricValues const two{{"a:mean", 5}, {"a:slack", 7}, {"a:sum", 5},
                           {"a:min", 5},  {"a:max", 5},   {"u:unique", 1}};
    MetricValues const three{{"a:mean", -2}, {"a:slack", 2.5}, {"a:sum", -2},
                             {"a:min", -2},  {"a:max", -2},    {"u:unique", 3}};
    EXPECT_EQ(combined({part(3, one), part(1, two), part(4, three)}),
              (MetricValues{{"a:mean", 0},
                            {"a:slack", 4.5},
                            {"a:sum", 4},
                            {"a:min", -2},
                            {"a:max", 5},
                            {"u:unique", 1},
                            {"u:unique_1", 1},
                            {"u:unique_2", 3}}));
}

TEST(Combine, ReducesASingleChunkToo) {  // R-TRAIN-42
    EXPECT_EQ(combined({part(2, {{"a:slack", 2}, {"a:mean", 0.1}, {"a:hash2", 12345}})}),
              (MetricValues{{"a:slack", 0}, {"a:mean", 0.1}, {"a:hash2", 12345}}));
}

TEST(Combine, HashesAreThoseOfTheOfficialSdk) {  // R-TRAIN-42
    EXPECT_EQ(reduce_hash2(std::vector{3.0, 1.0, 2.0}), 6U);
    EXPECT_EQ(reduce_hash2(std::vector{-1.0}), 18446744073709551615U);
    EXPECT_EQ(reduce_hash2(std::vector{0x1p64, 1.0}), 1U);
    EXPECT_EQ(reduce_hash2(std::vector{1.9, -1.9}), 0U);
    EXPECT_EQ(reduce_hash_unordered(std::vector{0.0}), -8753497827991233192);
    EXPECT_EQ(reduce_hash_unordered(std::vector{-1.0}), 8078679518589016365);
    EXPECT_EQ(reduce_hash_unordered(std::vector{-2.0}), 8078679518589016365);
    EXPECT_EQ(reduce_hash_unordered(std::vector{3.0, 1.0, 2.0}), 529344067295497451);
    EXPECT_EQ(reduce_hash_unordered(std::vector{0x1p53}), -6041923821307568808);
    EXPECT_EQ(reduce_hash_unordered(std::vector{0x1p62, 1.0}), -3550055125485641917);
    EXPECT_EQ(reduce_hash_unordered(std::vector{0x1p64, 1.0}), 3897645075008222795);
    EXPECT_EQ(reduce_hash_unordered(std::vector{-0x1p63}), -7584273899265469182);
    EXPECT_EQ(reduce_hash_unordered(std::vector{1.9, -1.9}), 9083154820904886697);
    EXPECT_EQ(combined({part(1, {{"h:hash2", 3}, {"h:hash_unordered", 2}}),
                        part(1, {{"h:hash2", 1}, {"h:hash_unordered", 3}}),
                        part(1, {{"h:hash2", 2}, {"h:hash_unordered", 1}})}),
              (MetricValues{{"h:hash2", 6}, {"h:hash_unordered", 529344067295497451.0}}));
}

TEST(Combine, HashesOfWhatIsNoNumberDoNoHarm) {  // R-TRAIN-42
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    auto const endless = std::numeric_limits<double>::infinity();
    EXPECT_EQ(reduce_hash2(std::vector{nan, endless, -endless, 1e300, 4.0}),
              reduce_hash2(std::vector{1e300, 4.0}));
    EXPECT_EQ(reduce_hash_unordered(std::vector{nan}), reduce_hash_unordered(std::vector{0.0}));
}

TEST(Combine, WithoutAnyWeightAMeanIsZero) {  // R-TRAIN-43
    EXPECT_EQ(combined({part(0, {{"m:mean", 1}, {"s:slack", 2}, {"x:max", 2}}),
                        part(0, {{"m:mean", 2}, {"s:slack", 5}, {"x:max", 5}})}),
              (MetricValues{{"m:mean", 0}, {"s:slack", 0}, {"x:max", 5}}));
}

TEST(Combine, NamesWithoutExactlyOneColonAreLeftOut) {  // R-TRAIN-43
    auto const made = combine({part(1, {{"plain", 1}, {"a:b:sum", 1}, {"a:sum", 1}, {"a:", 1}})});
    EXPECT_EQ(made.output.metrics, (MetricValues{{"a:sum", 1}}));
    EXPECT_EQ(made.notes.size(), 3U);
}

MetricValues metrics_of(std::vector<double> const& numbers) {
    double sum = 0;
    for (auto const number : numbers) sum += number;
    auto const [least, most] = std::ranges::minmax_element(numbers);
    return {{"n:sum", sum},
            {"n:mean", sum / static_cast<double>(numbers.size())},
            {"n:min", *least},
            {"n:max", *most},
            {"n:hash2", sum}};
}

RC_GTEST_PROP(Combine, DoesNotDependOnHowABatchWasSplit, ()) {  // R-TRAIN-42, R-TEST-03
    auto const count = *rc::gen::inRange<std::size_t>(1, 30);
    std::vector<double> numbers;
    for (std::size_t i = 0; i < count; ++i) {
        numbers.push_back(*rc::gen::inRange(-1000, 1000));  // whole, so that sums are exact
    }
    std::vector<ForwardBackwardOutput> parts;
    for (std::size_t first = 0; first < count;) {
        auto const size = *rc::gen::inRange<std::size_t>(1, count - first + 1);
        auto const begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
        parts.push_back(part(size, metrics_of({begin, begin + static_cast<std::ptrdiff_t>(size)})));
        first += size;
    }
    auto const whole = combine({part(count, metrics_of(numbers))}).output;
    auto const made = combine(parts).output;
    RC_ASSERT(made.loss_fn_outputs.size() == count);
    for (auto const& [name, value] : whole.metrics) {
        RC_ASSERT(std::abs(made.metrics.at(name) - value) <= 1e-9 * (1 + std::abs(value)));
    }
}

}  // namespace
}  // namespace tinkxx::service
