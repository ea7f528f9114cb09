// Every gradient of every architecture and loss against central differences of a plain model in
// float64.
#include "engine/train/trainer.hpp"
#include "support/reference_model.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tinkxx::engine {
namespace {

using support::ReferenceModel;

struct LossCase {
    std::string name{};
    Loss loss{};
};

std::vector<LossCase> loss_cases() {
    return {{"cross_entropy", {}},
            {"cross_entropy with soft targets", {}},
            {"importance_sampling", {.fn = LossFn::importance_sampling}},
            {"ppo", {.fn = LossFn::ppo}},
            {"cispo", {.fn = LossFn::cispo}},
            {"dro", {.fn = LossFn::dro, .beta = 0.3}}};
}

ReferenceModel reference(ModelConfig const& config, support::TensorTable const& tensors) {
    ReferenceModel model{.config = config};
    for (auto const& [name, values] : tensors) {
        model.tensors[name] = {values.begin(), values.end()};
    }
    return model;
}

/// Two sequences with ratios below, inside and above the range of the clipping losses, away from
/// its ends, with both signs of the advantage.
std::vector<Datum> data_for(LossCase const& loss, ReferenceModel const& model) {
    std::vector<Datum> data;
    auto const vocab = model.config.vocab_size;
    for (std::uint64_t d = 0; d < 2; ++d) {
        auto const count = d == 0 ? std::size_t{5} : std::size_t{2};
        Datum datum{.tokens = support::random_tokens(count, vocab, 40 + d)};
        datum.targets_per_token = loss.name.ends_with("soft targets") ? 3 : 1;
        auto const targets = count * datum.targets_per_token;
        datum.targets = support::random_tokens(targets, vocab, 50 + d);
        auto const p = model.logprobs(datum);
        static constexpr std::array<double, 6> ratios{0.5, 0.9, 1.1, 1.7, 0.6, 2.5};
        for (std::size_t i = 0; i < targets; ++i) {
            datum.weights.push_back(static_cast<float>(uniform(60 + d, 1, i) * 2.0 - 0.5));
            datum.advantages.push_back(i % 2 == 0 ? 1.5F : -0.75F);
            datum.logprobs.push_back(
                static_cast<float>(p[i] - std::log(ratios[(i + d) % ratios.size()])));
        }
        data.push_back(std::move(datum));
    }
    return data;
}

/// Central differences of the loss by each element of one tensor.
std::vector<double> differences(ReferenceModel& model, std::string const& tensor, Loss const& loss,
                                std::vector<Datum> const& data) {
    std::vector<ReferenceModel::Row> stopped;
    for (auto const& datum : data) stopped.push_back(model.logprobs(datum));
    auto const total = [&] {
        double sum = 0.0;
        for (std::size_t i = 0; i < data.size(); ++i) sum += model.loss(loss, data[i], stopped[i]);
        return sum;
    };
    std::vector<double> result;
    auto& values = model.tensors.at(tensor);
    for (auto& value : values) {
        constexpr double step = 1e-5;
        auto const before = value;
        value = before + step;
        auto const above = total();
        value = before - step;
        auto const below = total();
        value = before;
        result.push_back((above - below) / (2.0 * step));
    }
    return result;
}

void expect_close(std::vector<float> const& got, std::vector<double> const& want,
                  double largest_of_pass, std::string const& where) {
    ASSERT_EQ(got.size(), want.size()) << where;
    double delta = 0.0;
    double size = 0.0;
    double worst = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        auto const d = static_cast<double>(got[i]) - want[i];
        delta += d * d;
        size += want[i] * want[i];
        worst = std::max(worst, std::abs(d));
    }
    EXPECT_LE(worst, 2e-5 * largest_of_pass) << where;
    EXPECT_LE(std::sqrt(delta), 1e-4 * std::sqrt(size) + 1e-6 * largest_of_pass) << where;
}

double largest(std::map<std::string, std::vector<double>> const& gradients) {
    double most = 0.0;
    for (auto const& [name, values] : gradients) {
        for (auto const value : values) most = std::max(most, std::abs(value));
    }
    return most;
}

/// Those whose every element is compared: under a sanitizer, where that takes ten times as long and
/// finds nothing more, the first.
auto compared_cases() {
    auto cases = loss_cases();
#ifdef TINKXX_SANITIZED
    cases.erase(cases.begin() + 1, cases.end());
#endif
    return cases;
}

/// The parameter is the number of a variant.
class GradientsOf : public testing::TestWithParam<std::size_t> {};

TEST_P(GradientsOf, AllWeightsEqualFiniteDifferences) {
    Threads threads{1};
    auto const [variant, config] = support::tiny_configs().at(GetParam());
    auto const tensors = support::random_tensors(config, 5);
    auto const model = support::model_of(config, tensors);
    Trainer trainer{model, threads};
    for (auto const& loss_case : compared_cases()) {
        auto const where = variant + ", " + loss_case.name;
        auto plain = reference(config, tensors);
        auto const data = data_for(loss_case, plain);
        auto const adapter = Adapter::create(model, {.rank = 0}).value();
        auto const result = trainer.forward_backward(*adapter, data, loss_case.loss);
        ASSERT_TRUE(result) << where << result.error().what();
        std::map<std::string, std::vector<double>> wanted;
        for (auto const& [name, values] : tensors) {
            wanted[name] = differences(plain, name, loss_case.loss, data);
        }
        auto& gradients = std::get<Weights>(adapter->gradients());
        for (auto const& slot : weight_slots(config, gradients)) {
            expect_close(support::rows_of(*slot.matrix), wanted.at(slot.name), largest(wanted),
                         where + ", " + slot.name);
        }
    }
}

TEST_P(GradientsOf, AllAdapterMatricesEqualFiniteDifferences) {
    Threads threads{1};
    LoraConfig const lora{.rank = 2};
    auto const [variant, config] = support::tiny_configs().at(GetParam());
    auto const tensors = support::random_tensors(config, 6);
    auto const model = support::model_of(config, tensors);
    Trainer trainer{model, threads};
    for (auto const& loss_case : compared_cases()) {
        auto const where = variant + ", " + loss_case.name;
        auto weights = zero_lora(config, lora);
        auto plain = reference(config, tensors);
        plain.lora_scale = static_cast<double>(lora.scale());
        std::vector<std::string> names;
        std::uint64_t number = 0;
        for (auto const& slot : lora_slots(config, lora, weights)) {
            for (auto const& [suffix, matrix] :
                 {std::pair{".lora_A", &slot.pair->a}, std::pair{".lora_B", &slot.pair->b}}) {
                std::vector<float> values(matrix->outputs() * matrix->inputs());
                ++number;
                for (std::size_t i = 0; i < values.size(); ++i) {
                    values[i] = static_cast<float>(0.3 * uniform(9, number, i) - 0.15);
                }
                matrix->assign({.type = ElementType::f32,
                                .data = values.data(),
                                .rows = matrix->outputs(),
                                .cols = matrix->inputs()});
                names.push_back(slot.module + suffix);
                plain.tensors[names.back()] = {values.begin(), values.end()};
            }
        }
        auto const data = data_for(loss_case, plain);
        Adapter adapter{model, lora, std::move(weights)};
        auto const result = trainer.forward_backward(adapter, data, loss_case.loss);
        ASSERT_TRUE(result) << where << result.error().what();
        std::map<std::string, std::vector<double>> wanted;
        for (auto const& name : names) {
            wanted[name] = differences(plain, name, loss_case.loss, data);
        }
        auto& gradients = std::get<LoraWeights>(adapter.gradients());
        for (auto const& slot : lora_slots(config, lora, gradients)) {
            expect_close(support::rows_of(slot.pair->a), wanted.at(slot.module + ".lora_A"),
                         largest(wanted), where + ", A of " + slot.module);
            expect_close(support::rows_of(slot.pair->b), wanted.at(slot.module + ".lora_B"),
                         largest(wanted), where + ", B of " + slot.module);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Variants, GradientsOf,
                         testing::Range(std::size_t{0}, support::tiny_configs().size()));

}  // namespace
}  // namespace tinkxx::engine
