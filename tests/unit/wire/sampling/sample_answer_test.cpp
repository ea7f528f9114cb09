#include "wire/sampling/sample.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace tinkxx::wire {
namespace {

SampleResponse const one_sequence{.sequences = {{.tokens = {5, 6}, .logprobs = {{-0.5F, -0.25F}}}}};

CompletedSample completed(SampleResponse response, SampleOptions const& options = {},
                          std::optional<std::int64_t> prompt_length = 3) {
    return complete_sample(std::move(response), nullptr, prompt_length, options, false).value();
}
SampleResponse complete(SampleResponse response, SampleOptions const& options = {},
                        std::optional<std::int64_t> prompt_length = 3) {
    return completed(std::move(response), options, prompt_length).response;
}
std::string lacking(SampleResponse response, SampleOptions const& options,
                    std::optional<std::int64_t> prompt_length = 3) {
    return completed(std::move(response), options, prompt_length).unanswered;
}

TEST(Submitted, IsAPromise) {  // R-SAMP-03, R-SAMP-72
    auto const answer = decode_submitted(
        R"({"request_id": "r", "model_id": "m", "sample_sequence_ids": ["a", "b"]})");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->request_id, "r");
    EXPECT_EQ(answer->model_id, "m");
    EXPECT_EQ(answer->sample_sequence_ids, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(answer->result.empty());
}

// Both ways of reading it agree; what the quick one cannot read is left to the thorough one.
TEST(Submitted, IsReadHoweverItIsWritten) {  // R-SAMP-03, R-SAMP-72
    for (auto const* json : {R"({"request_id":"r","sample_sequence_ids":["a","b\u0063"]})",
                             R"({"request_id":"r","sample_sequence_ids":["a","bc"]})",
                             R"({"request_id":"\u0072","sample_sequence_ids":[ "a" , "bc" ]})",
                             R"({"type":"x","request_id":"r","sample_sequence_ids":["a","bc"]})",
                             R"({"n":[1],"request_id":"r","sample_sequence_ids":["a","bc"]})"}) {
        auto const answer = decode_submitted(json);
        ASSERT_TRUE(answer.has_value()) << json;
        EXPECT_EQ(answer->request_id, "r") << json;
        EXPECT_EQ(answer->sample_sequence_ids, (std::vector<std::string>{"a", "bc"})) << json;
    }
    for (auto const* json :
         {R"({"request_id":"r","sample_sequence_ids":["a",]})", R"({"request_id":"r",})",
          R"({"request_id":"r","sample_sequence_ids":["a""b"]})", R"({"request_id":"r"} x)",
          R"({"request_id":"r","sample_sequence_ids":["a)", R"({"request_id":"r","n":tru})",
          "{\"request_id\":\"r\x01\"}", "{\"request_id\":\"\xff\"}"}) {
        EXPECT_FALSE(decode_submitted(json).has_value()) << json;
    }
}

TEST(Submitted, NeedsNoIdsOfSequences) {  // R-WIRE-06, R-WIRE-10
    auto const answer =
        decode_submitted(R"({"future_id": 5, "status": "pending", "request_id": "5"})");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->request_id, "5");
    EXPECT_EQ(answer->sample_sequence_ids, std::nullopt);
}

TEST(Submitted, MayBeTheResultItself) {  // R-SAMP-03
    std::string const result = R"({"sequences": [{"stop_reason": "stop", "tokens": [9]}]})";
    EXPECT_EQ(decode_submitted(result).value().result, result);
    EXPECT_EQ(
        decode_submitted(R"({"status": "completed", "result": )" + result + "}").value().result,
        result);
}

TEST(Submitted, IsRefusedWithoutAPromise) {  // R-SAMP-03
    for (auto const* json : {"{}", R"({"model_id": "m"})", R"({"request_id": 5})", "null", "",
                             "hello", R"({"status": "completed"})", R"({"result": {}})",
                             R"({"request_id": "r", "sample_sequence_ids": [1]})"}) {
        EXPECT_FALSE(decode_submitted(json).has_value()) << json;
    }
    EXPECT_EQ(decode_submitted(R"({"model_id": "m"})").error().field(), "/request_id");
}

TEST(SampleAnswer, IsReadFromJson) {  // R-SAMP-70, R-FUT-05
    auto const answer = decode_sample_json(R"({
        "sequences": [{"stop_reason": "length", "tokens": [5, 6], "logprobs": [-0.5, -0.25]},
                      {"stop_reason": "stop", "tokens": [], "logprobs": null, "extra": 1}],
        "prompt_logprobs": [null, -1, -2.5],
        "topk_prompt_logprobs": [null, [[7, -0.5], [8, -1.0]], []],
        "prompt_cache_hit_tokens": 5, "type": "sample", "new": {"a": 1}})");
    ASSERT_TRUE(answer.has_value()) << answer.error().what();
    EXPECT_EQ(
        *answer,
        (SampleResponse{.sequences = {{.stop_reason = StopReason::length,
                                       .tokens = {5, 6},
                                       .logprobs = {{-0.5F, -0.25F}}},
                                      {}},
                        .prompt_logprobs = {{std::nullopt, -1.0F, -2.5F}},
                        .topk_prompt_logprobs = {{std::nullopt,
                                                  std::vector<TokenLogprob>{{7, -0.5F}, {8, -1.0F}},
                                                  std::vector<TokenLogprob>{}}},
                        .prompt_cache_hit_tokens = 5}));
}

TEST(SampleAnswer, TakesTheNewerMembersFromJsonToo) {  // R-SAMP-73
    auto const answer = decode_sample_json(R"({
        "sequences": [{"stop_reason": "stop", "tokens": [5], "topk_logprobs": [[[5, -0.5]]], "sequence_id": "q"}],
        "target_prompt_logprobs": {"data": [-1, 0], "dtype": "float32", "shape": [2, 1]},
        "prompt_alt_tokens": {"tokens": {"data": [1, 2], "dtype": "int64", "shape": [2, 1]},
                              "logprobs": {"data": [-1, -2], "dtype": "float32", "shape": [2, 1]}}})");
    ASSERT_TRUE(answer.has_value()) << answer.error().what();
    EXPECT_EQ(answer->sequences[0].sequence_id, "q");
    EXPECT_EQ(answer->sequences[0].topk_logprobs,
              (TopkLogprobs{std::vector<TokenLogprob>{{5, -0.5F}}}));
    EXPECT_EQ(answer->target_prompt_logprobs,
              (TensorData{.data = std::vector<float>{-1, 0}, .shape = {{2, 1}}}));
    EXPECT_EQ(answer->prompt_alt_tokens->tokens,
              (TensorData{.data = std::vector<std::int64_t>{1, 2}, .shape = {{2, 1}}}));
}

TEST(SampleAnswer, NamesThePlaceOfWhatIsWrong) {  // R-SAMP-70
    std::vector<std::pair<std::string, std::string>> const cases{
        {R"({})", "/sequences"},
        {R"({"sequences": null})", "/sequences"},
        {R"({"sequences": [{"tokens": [1]}]})", "/sequences/0/stop_reason"},
        {R"({"sequences": [{"stop_reason": "eos", "tokens": [1]}]})", "/sequences/0/stop_reason"},
        {R"({"sequences": [{"stop_reason": "stop"}]})", "/sequences/0/tokens"},
        {R"({"sequences": [{"stop_reason": "stop", "tokens": [1, 2, 3, 4.5]}]})",
         "/sequences/0/tokens/3"},
        {R"({"sequences": [{"stop_reason": "stop", "tokens": [1], "logprobs": [null]}]})",
         "/sequences/0/logprobs/0"},
        {R"({"sequences": [], "type": "other"})", "/type"},
        {R"({"sequences": [], "topk_prompt_logprobs": [[[1]]]})", "/topk_prompt_logprobs/0/0"},
        {R"({"sequences": [], "topk_prompt_logprobs": [[["x", 1]]]})",
         "/topk_prompt_logprobs/0/0/0"},
        {R"({"sequences": [], "prompt_logprobs": ["x"]})", "/prompt_logprobs/0"},
        {"null", ""},
    };
    for (auto const& [json, field] : cases) {
        auto const answer = decode_sample_json(json);
        ASSERT_FALSE(answer.has_value()) << json;
        EXPECT_EQ(answer.error().field(), field) << json;
        EXPECT_EQ(answer.error().kind(), ErrorKind::validation);
    }
}

TEST(SampleAnswer, OfForeignBytesIsAnErrorOrAnAnswer) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::string const& bytes) {
        (void)decode_sample_json(bytes);
        (void)decode_submitted(bytes);
    }));
    std::string const whole =
        R"({"sequences": [{"stop_reason": "stop", "tokens": [1, 2], "logprobs": [-1, -2]}], "prompt_logprobs": [null, 1]})";
    ASSERT_TRUE(decode_sample_json(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_sample_json(whole.substr(0, size)).has_value()) << size;
    }
}

TEST(CompleteSample, PutsTheIdsOnTheSequences) {  // R-SAMP-72
    std::vector<std::string> const ids{"a", "b"};
    auto const done = complete_sample({.sequences = {{}, {}}}, &ids, 3, {}, true);
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->response.sequences[0].sequence_id, "a");
    EXPECT_EQ(done->response.sequences[1].sequence_id, "b");
}

TEST(CompleteSample, RefusesAnotherNumberOfIds) {  // R-SAMP-72
    for (std::vector<std::string> const& ids :
         std::vector<std::vector<std::string>>{{}, {"a"}, {"a", "b", "c"}}) {
        auto const done = complete_sample({.sequences = {{}, {}}}, &ids, 3, {}, false);
        ASSERT_FALSE(done.has_value());
        EXPECT_EQ(done.error().field(), "sample_sequence_ids");
    }
}

TEST(CompleteSample, NeedsIdsOnlyForStabilityInfo) {  // R-SAMP-72; C-29
    EXPECT_EQ(complete(one_sequence).sequences[0].sequence_id, "");
    auto const refused = complete_sample(one_sequence, nullptr, 3, {}, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_FALSE(refused.error().retryable());
    EXPECT_EQ(refused.error().field(), "record_stability_info");
    EXPECT_EQ(refused.error().details().unsupported_feature, "record_stability_info");
    EXPECT_NE(std::string_view{refused.error().what()}.find("may predate this feature"),
              std::string_view::npos);
}

TEST(CompleteSample, PutsTheLeadingNullBack) {  // R-WIRE-10
    SampleResponse const short_one{.prompt_logprobs = {{-1.0F, -2.0F}}};
    std::vector<std::optional<float>> const whole{std::nullopt, -1.0F, -2.0F};
    EXPECT_EQ(complete(short_one).prompt_logprobs, whole);
    EXPECT_EQ(complete({.prompt_logprobs = whole}).prompt_logprobs, whole);
    EXPECT_EQ(complete(short_one, {}, std::nullopt).prompt_logprobs->size(), 2);
    // One that begins with a null lacks something else.
    std::vector<std::optional<float>> const other{std::nullopt, -1.0F};
    EXPECT_EQ(complete({.prompt_logprobs = other}).prompt_logprobs, other);
    EXPECT_EQ(complete(short_one, {}, 9).prompt_logprobs->size(), 2);
}

TEST(CompleteSample, ForgetsScoresBeforeTheLastN) {  // R-SAMP-09; C-30
    SampleOptions const options{.include_prompt_logprobs = true, .prompt_logprobs_last_n = 1};
    std::vector<std::optional<float>> const wanted{std::nullopt, std::nullopt, -2.0F};
    SampleResponse const scored_all{.prompt_logprobs = {{std::nullopt, -1.0F, -2.0F}}};
    EXPECT_EQ(lacking(scored_all, options), "prompt_logprobs_last_n");
    EXPECT_EQ(complete(scored_all, options).prompt_logprobs, wanted);
    EXPECT_EQ(lacking({.prompt_logprobs = wanted}, options), "");
    EXPECT_EQ(lacking({.prompt_logprobs = {{-2.0F}}}, options, std::nullopt), "");
}

TEST(CompleteSample, NamesWhatWasAskedForAndNotAnsweredButKeepsTheRest) {  // R-SAMP-09; C-30
    SampleOptions const all{.include_prompt_logprobs = true,
                            .topk_prompt_logprobs = 2,
                            .topk_sample_logprobs = 2,
                            .target_prompt_logprobs = TensorData{},
                            .prompt_alt_tokens_k = 2};
    EXPECT_EQ(lacking(one_sequence, all),
              "include_prompt_logprobs, topk_prompt_logprobs, prompt_alt_tokens_k, "
              "target_prompt_logprobs, topk_sample_logprobs");
    EXPECT_EQ(complete(one_sequence, all), one_sequence);

    auto full = one_sequence;
    full.prompt_logprobs.emplace();
    full.topk_prompt_logprobs.emplace();
    full.prompt_alt_tokens.emplace();
    full.target_prompt_logprobs.emplace();
    full.sequences[0].topk_logprobs.emplace();
    full.sequences.emplace_back();  // one without tokens has nothing to report
    EXPECT_EQ(lacking(full, all), "");
}

}  // namespace
}  // namespace tinkxx::wire
