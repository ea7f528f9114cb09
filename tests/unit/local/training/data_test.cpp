// What a batch may hold, and how it is said that it may not.
#include "local/training/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tinkxx::local {
namespace {

using ::testing::HasSubstr;
using wire::server::ForwardBackward;

TensorData numbers(std::vector<float> values) { return {.data = std::move(values)}; }

ForwardBackward request(std::string loss = "cross_entropy") {
    Datum datum;
    datum.model_input = ModelInput::from_tokens({1, 2, 3});
    datum.loss_fn_inputs.set("target_tokens", std::vector<std::int64_t>{2, 3, 4});
    if (loss == "cross_entropy") {
        datum.loss_fn_inputs.set("weights", numbers({0, 1, 1}));
    } else {
        datum.loss_fn_inputs.set("logprobs", numbers({-1, -1, -1}));
        datum.loss_fn_inputs.set("advantages", numbers({1, 1, 1}));
    }
    return {.model_id = "M", .data = {datum}, .loss_fn = std::move(loss)};
}

struct Bad {
    std::string name{};
    std::function<void(ForwardBackward&)> spoil{};
    std::string field{};
    std::string why{};
};

/// Replaces an input of the first datum.
auto with(std::string name, TensorData tensor) {
    return [name = std::move(name), tensor = std::move(tensor)](ForwardBackward& request) {
        request.data[0].loss_fn_inputs.set(name, tensor);
    };
}

std::vector<Bad> bad_batches() {
    auto const inputs = std::string{"data/0/loss_fn_inputs"};
    std::vector<std::int64_t> const many(6, 1);
    return {
        {"NoData", [](auto& r) { r.data.clear(); }, "data", "there are no data"},
        {"AnUnknownLoss", [](auto& r) { r.loss_fn = "stable_reinforce"; }, "loss_fn",
         "stable_reinforce"},
        {"ATextForANumber", [](auto& r) { r.config["clip"] = std::string{"high"}; },
         "loss_fn_config/clip", "clip is a text; only numbers are known here"},
        {"TooLong",
         [](auto& r) {
             r.data[0].model_input = ModelInput::from_tokens(std::vector<Token>(101, 1));
         },
         "data/0/model_input", "has 101 tokens, and the limit is 100; cut it"},
        {"AnImage",
         [](auto& r) { r.data[0].model_input.chunks.push_back(ImageChunk{.data = "x"}); },
         "data/0/model_input", "images and audio are not supported"},
        {"AMissingInput",
         [](auto& r) {
             Datum datum;
             datum.model_input = r.data[0].model_input;
             datum.loss_fn_inputs.set("weights", numbers({0, 1, 1}));
             r.data[0] = datum;
         },
         inputs, "has no target_tokens, which the loss cross_entropy needs"},
        {"AnInputOfAnotherLoss", with("advantages", numbers({1, 1, 1})), inputs + "/advantages",
         "the loss cross_entropy has no input advantages; leave it out"},
        {"TooFewNumbers", with("weights", numbers({1, 1})), inputs + "/weights",
         "has 2 entries for 3 tokens"},
        {"ThreeDimensions",
         with("weights",
              {.data = std::vector<float>{0, 1, 1}, .shape = std::vector<std::int64_t>{3, 1, 1}}),
         inputs + "/weights", "has 3 dimensions; it may have one or two"},
        {"FloatsForTokens", with("target_tokens", numbers({2, 3, 4})), inputs + "/target_tokens",
         "must be of int64"},
        {"IntegersForFloats", with("weights", {.data = std::vector<std::int64_t>{0, 1, 1}}),
         inputs + "/weights", "must be of float32"},
        {"RowsForOtherTokens",
         with("target_tokens", {.data = many, .shape = std::vector<std::int64_t>{2, 3}}),
         inputs + "/target_tokens", "has 2 entries for 3 tokens"},
    };
}

constexpr BatchLimits limits{.tokens = 100, .columns = 1000, .cells = 10'000};

class BadBatches : public ::testing::TestWithParam<Bad> {};
INSTANTIATE_TEST_SUITE_P(, BadBatches, ::testing::ValuesIn(bad_batches()),
                         [](auto const& each) { return each.param.name; });

TEST_P(BadBatches, AreRefusedByPlaceAndReason) {
    auto spoilt = request();
    GetParam().spoil(spoilt);
    auto const batch = to_batch(spoilt, limits);
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().kind(), ErrorKind::validation);
    EXPECT_EQ(batch.error().category(), ErrorCategory::user);
    EXPECT_EQ(batch.error().field(), GetParam().field) << batch.error().what();
    EXPECT_THAT(batch.error().what(), HasSubstr(GetParam().why));
    EXPECT_THAT(batch.error().what(), HasSubstr("forward_backward: "));
}

TEST(Batches, AreNotExpandedBeyondTheirLimits) {
    // Three stored numbers that stand for millions.
    auto const sparse = [](std::int64_t columns) {
        return TensorData{.data = std::vector<std::int64_t>{1, 2, 3},
                          .shape = std::vector<std::int64_t>{3, columns},
                          .sparse_crow_indices = std::vector<std::int64_t>{0, 1, 2, 3},
                          .sparse_col_indices = std::vector<std::int64_t>{0, 0, 0}};
    };
    auto bomb = request();
    bomb.data[0].loss_fn_inputs.set("target_tokens", sparse(65'536));
    EXPECT_THAT(to_batch(bomb, limits).error().what(),
                HasSubstr("has 65536 columns; a token can have no more targets than"));
    // Each is allowed, and all of them together are not.
    bomb.data[0].loss_fn_inputs.set("target_tokens", sparse(1000));
    bomb.data[0].loss_fn_inputs.set(
        "weights", TensorData{.data = std::vector<float>{1, 1, 1},
                              .shape = std::vector<std::int64_t>{3, 1000},
                              .sparse_crow_indices = std::vector<std::int64_t>{0, 1, 2, 3},
                              .sparse_col_indices = std::vector<std::int64_t>{0, 0, 0}});
    EXPECT_TRUE(to_batch(bomb, limits));
    bomb.data.push_back(bomb.data[0]);
    EXPECT_THAT(to_batch(bomb, limits).error().what(),
                HasSubstr("datum 1: weights has 3 x 1000 entries, and those of all data"));
}

TEST(Batches, NameTheOutputOfEachLoss) {
    for (auto const& [loss, type] : {std::pair{"cross_entropy", "CrossEntropyLossReturn"},
                                     {"importance_sampling", "ImportanceSamplingLossReturn"},
                                     {"ppo", "PpoLossReturn"},
                                     {"cispo", "CispoLossReturn"},
                                     {"dro", "DroLossReturn"}}) {
        auto asked = request(loss);
        if (asked.loss_fn == "dro") asked.config["beta"] = 0.05;
        auto const batch = to_batch(asked, limits);
        ASSERT_TRUE(batch) << batch.error().what();
        EXPECT_EQ(batch->tokens, 3U);
        EXPECT_EQ(to_output(loss, batch->columns, {}).loss_fn_output_type, type);
    }
}

TEST(Batches, TakeSeveralTargetsForEachToken) {
    auto wide = request();
    wide.data[0].loss_fn_inputs.set("target_tokens",
                                    TensorData{.data = std::vector<std::int64_t>{1, 2, 3, 4, 5, 6},
                                               .shape = std::vector<std::int64_t>{3, 2}});
    wide.data[0].loss_fn_inputs.set(
        "weights",
        TensorData{.data = std::vector<float>(6, 0.5F), .shape = std::vector<std::int64_t>{3, 2}});
    auto const batch = to_batch(wide, limits);
    ASSERT_TRUE(batch) << batch.error().what();
    EXPECT_EQ(batch->columns, std::vector<std::size_t>{2});
    EXPECT_EQ(batch->data[0].targets_per_token, 2U);
    EXPECT_EQ(batch->data[0].targets.size(), 6U);
}

}  // namespace
}  // namespace tinkxx::local
