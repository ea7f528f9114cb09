#include "wire/json/base64.hpp"
#include "wire/sampling/sample.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>

#include <cmath>
#include <limits>

namespace tinkxx::wire {
namespace {

ModelInput const prompt = ModelInput::from_tokens({1, 2, 3});

std::string body(SamplingParams const& params, SampleOptions const& options = {},
                 Members members = Members::newest, bool stability = false) {
    return encode_sample_head("S:sample:0", 7) +
           encode_sample_tail(prompt.chunks, params, options, stability, members);
}

std::string problem(ModelInput const& input, SamplingParams const& params,
                    SampleOptions const& options) {
    auto const found = sample_problem(input, params, options);
    if (!found) return "none";
    EXPECT_EQ(found->kind, ErrorKind::validation);
    EXPECT_EQ(found->category, ErrorCategory::user);
    EXPECT_FALSE(found->retryable);
    EXPECT_TRUE(
        found->message.starts_with("sample: " + found->field + " is " + found->value + "; "))
        << found->message;
    return found->field + "=" + found->value;
}
std::string problem(SampleOptions const& options) { return problem(prompt, {}, options); }
std::string problem(SamplingParams const& params) { return problem(prompt, params, {}); }

TEST(SampleRequest, IsOneObjectInTwoPieces) {  // R-SAMP-03, R-SAMP-04, R-WIRE-02
    EXPECT_EQ(
        body({}),
        R"({"sampling_session_id":"S:sample:0","seq_id":7,"num_samples":1,"prompt":{"chunks":[{"tokens":[1,2,3],"type":"encoded_text"}]},"sampling_params":{"temperature":1,"top_k":-1,"top_p":1},"prompt_logprobs":false,"topk_prompt_logprobs":0,"topk_sample_logprobs":0,"prompt_alt_tokens_k":0,"record_stability_info":false,"type":"sample"})");
}

TEST(SampleRequest, SendsWhatIsSet) {  // R-SAMP-05, R-SAMP-07, R-WIRE-09
    auto const json = boost::json::parse(
        body({.max_tokens = 64,
              .seed = std::numeric_limits<std::uint64_t>::max(),
              .stop = {"\n\n", "END"},
              .temperature = 0.7,
              .top_k = 50,
              .top_p = 0.95},
             {.num_samples = 3,
              .include_prompt_logprobs = true,
              .topk_prompt_logprobs = 2,
              .topk_sample_logprobs = 4,
              .target_prompt_logprobs =
                  TensorData{.data = std::vector<std::int64_t>{5, -1}, .shape = {{2, 1}}},
              .prompt_alt_tokens_k = 5,
              .prompt_logprobs_last_n = 1},
             Members::newest, true));
    EXPECT_EQ(json, boost::json::parse(R"({
        "sampling_session_id": "S:sample:0", "seq_id": 7, "num_samples": 3,
        "prompt": {"chunks": [{"tokens": [1, 2, 3], "type": "encoded_text"}]},
        "sampling_params": {"max_tokens": 64, "seed": 18446744073709551615, "stop": ["\n\n", "END"],
                            "temperature": 0.7, "top_k": 50, "top_p": 0.95},
        "prompt_logprobs": true, "topk_prompt_logprobs": 2, "topk_sample_logprobs": 4,
        "target_prompt_logprobs": {"data": [5, -1], "dtype": "int64", "shape": [2, 1]},
        "prompt_alt_tokens_k": 5, "prompt_logprobs_last_n": 1, "record_stability_info": true,
        "type": "sample"})"));
}

TEST(SampleRequest, KeepsEveryFormOfStopApart) {  // R-SAMP-05
    auto const stop = [](Stop const& value) -> std::optional<boost::json::value> {
        auto const json = boost::json::parse(body({.stop = value}));
        auto const* found = json.at("sampling_params").as_object().if_contains("stop");
        return found == nullptr ? std::nullopt : std::optional{*found};
    };
    EXPECT_EQ(stop({}), std::nullopt);
    EXPECT_EQ(stop(Stop::nowhere()), boost::json::array{});
    EXPECT_EQ(stop("x"), boost::json::value("x"));
    EXPECT_EQ(stop({"x"}), boost::json::array{"x"});
    EXPECT_EQ(stop({5, 6}), (boost::json::array{5, 6}));
}

TEST(SampleRequest, LeavesNewMembersOutForOldServers) {  // R-WIRE-10
    auto const json = boost::json::parse(
        body({},
             {.include_prompt_logprobs = true,
              .topk_sample_logprobs = 4,
              .target_prompt_logprobs = TensorData{.data = std::vector<std::int64_t>{1}},
              .prompt_alt_tokens_k = 5,
              .prompt_logprobs_last_n = 1},
             Members::before_0_26, true));
    EXPECT_EQ(json, boost::json::parse(R"({
        "sampling_session_id": "S:sample:0", "seq_id": 7, "num_samples": 1,
        "prompt": {"chunks": [{"tokens": [1, 2, 3], "type": "encoded_text"}]},
        "sampling_params": {"temperature": 1, "top_k": -1, "top_p": 1},
        "prompt_logprobs": true, "topk_prompt_logprobs": 0, "type": "sample"})"));
}

TEST(SampleRequest, CarriesEveryKindOfChunk) {  // R-WIRE-02
    ModelInput const mixed{
        .chunks = {
            ImageChunk{.data = "\xff\xd8", .format = ImageFormat::jpeg, .expected_tokens = 2},
            ImageChunk{.data = "PNG"}, DmelChunk{"\x04\x01\x02"},
            ImageAssetPointerChunk{.location = "asset://\xc3\xa9", .expected_tokens = 9},
            EncodedTextChunk{{std::numeric_limits<Token>::min(), 0}}, EncodedTextChunk{}}};
    auto const tail = encode_sample_tail(mixed.chunks, {}, {}, false, Members::newest);
    EXPECT_EQ(boost::json::parse("{" + tail.substr(1)).at("prompt"),
              boost::json::parse(R"({"chunks": [
        {"data": "/9g=", "format": "jpeg", "expected_tokens": 2, "type": "image"},
        {"data": "UE5H", "format": "png", "type": "image"},
        {"dmel": "BAEC", "type": "dmel"},
        {"format": "png", "location": "asset://é", "expected_tokens": 9, "type": "image_asset_pointer"},
        {"tokens": [-2147483648, 0], "type": "encoded_text"},
        {"tokens": [], "type": "encoded_text"}]})"));
}

TEST(SampleRequest, IsJsonWhateverTheArguments) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::vector<Token> const& tokens, std::string const& bytes,
                             double temperature, std::uint64_t seed, std::string const& session) {
        auto const input = ModelInput::from_tokens(tokens)
                               .append(ImageChunk{.data = bytes})
                               .append(ImageAssetPointerChunk{.location = bytes});
        SamplingParams const params{.seed = seed, .stop = bytes, .temperature = temperature};
        auto const json =
            boost::json::parse(encode_sample_head(session, 0) +
                               encode_sample_tail(input.chunks, params, {}, true, Members::newest));
        auto const& image = json.at("prompt").at("chunks").as_array().at(tokens.empty() ? 0 : 1);
        RC_ASSERT(decode_base64(std::string_view{image.at("data").as_string()}) == bytes);
        RC_ASSERT(boost::json::value_to<std::uint64_t>(json.at("sampling_params").at("seed")) ==
                  seed);
    }));
}

TEST(SampleRequest, IsRefusedWithoutAPrompt) {  // C-61, R-SAMP-08
    EXPECT_EQ(problem(ModelInput::empty(), {}, {}), "prompt=empty");
    EXPECT_EQ(problem({.chunks = {EncodedTextChunk{}, EncodedTextChunk{}}}, {}, {}),
              "prompt=empty");
    EXPECT_EQ(problem({.chunks = {ImageChunk{}}}, {}, {}), "none");
    EXPECT_EQ(problem(prompt, {}, {}), "none");
}

TEST(SampleRequest, IsRefusedWithNumbersThatAreNone) {  // R-SAMP-08
    constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
    constexpr auto infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(problem(SamplingParams{.temperature = nan}), "temperature=NaN");
    EXPECT_EQ(problem(SamplingParams{.temperature = infinity}), "temperature=Infinity");
    EXPECT_EQ(problem(SamplingParams{.top_p = -infinity}), "top_p=-Infinity");
    EXPECT_EQ(problem(SamplingParams{.max_tokens = -1}), "max_tokens=-1");
    EXPECT_EQ(problem(SampleOptions{.num_samples = -1}), "num_samples=-1");
    EXPECT_EQ(problem(SampleOptions{.topk_prompt_logprobs = -2}), "topk_prompt_logprobs=-2");
    EXPECT_EQ(problem(SampleOptions{.topk_sample_logprobs = -2}), "topk_sample_logprobs=-2");
    EXPECT_EQ(problem(SampleOptions{.prompt_alt_tokens_k = -1}), "prompt_alt_tokens_k=-1");
    EXPECT_EQ(problem(prompt.append(ImageChunk{.expected_tokens = -4}), {}, {}),
              "prompt.chunks[1].expected_tokens=-4");
    // What only the server knows is left to it.
    EXPECT_EQ(problem(prompt, {.max_tokens = 0, .temperature = 1e16, .top_k = 0, .top_p = 0}, {}),
              "none");
}

TEST(SampleRequest, IsRefusedWithNumbersOutOfTheirRange) {  // R-SAMP-05, R-SAMP-08
    constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(problem(SamplingParams{.temperature = -1}), "temperature=-1");
    EXPECT_EQ(problem(SamplingParams{.top_p = 7}), "top_p=7");
    EXPECT_EQ(problem(SamplingParams{.top_p = -0.5}), "top_p=-0.5");
    EXPECT_EQ(problem(SamplingParams{.top_p = nan}), "top_p=NaN");
    EXPECT_EQ(problem(SamplingParams{.top_k = -2}), "top_k=-2");
    EXPECT_EQ(problem(SamplingParams{.stop = {7, -3}}), "stop=-3");
    EXPECT_EQ(problem(SampleOptions{.num_samples = 0}), "num_samples=0");
    auto const found = sample_problem(prompt, {.top_p = 7}, {});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->message, "sample: top_p is 7; give a probability, from 0 to 1");
}

TEST(SampleRequest, IsRefusedWithTextThatJsonCannotCarry) {  // R-WIRE-02
    EXPECT_EQ(problem(SamplingParams{.stop = "\xff"}), "stop=no UTF-8");
    EXPECT_EQ(problem(SamplingParams{.stop = {"fine", "\xc3"}}), "stop=no UTF-8");
    EXPECT_EQ(problem(SamplingParams{.stop = {"fine", "\xc3\xa9"}}), "none");
    EXPECT_EQ(problem({.chunks = {ImageAssetPointerChunk{.location = "\xff"}}}, {}, {}),
              "prompt.chunks[0].location=no UTF-8");
}

TEST(SampleRequest, ChecksTheTargetTensor) {  // R-SAMP-08
    auto const target = [](TensorData tensor) {
        return problem(SampleOptions{.target_prompt_logprobs = std::move(tensor)});
    };
    EXPECT_EQ(target({.data = std::vector<float>{5}, .shape = {{1, 1}}}),
              "target_prompt_logprobs=of float32");
    EXPECT_EQ(target({.data = std::vector<std::int64_t>{5}, .shape = {{1}}}),
              "target_prompt_logprobs=of 1 dimensions");
    EXPECT_EQ(target({.data = std::vector<std::int64_t>{5}}),
              "target_prompt_logprobs=of 1 dimensions");
    EXPECT_EQ(target({.data = std::vector<std::int64_t>{5}, .shape = {{1, 1}}}),
              "target_prompt_logprobs=of 1 rows for a prompt of 3 tokens");
    EXPECT_EQ(target({.data = std::vector<std::int64_t>{5, -1}, .shape = {{2, 1}}}), "none");
    // With an image of unknown length only the server can tell.
    SampleOptions const options{.target_prompt_logprobs = TensorData{
                                    .data = std::vector<std::int64_t>{5}, .shape = {{1, 1}}}};
    EXPECT_EQ(problem(prompt.append(ImageChunk{}), {}, options), "none");
}

TEST(SampleRequest, ChecksHowManyPromptTokensAreScored) {  // R-SAMP-08
    auto const last = [](std::int64_t n, bool include) {
        return problem(
            SampleOptions{.include_prompt_logprobs = include, .prompt_logprobs_last_n = n});
    };
    EXPECT_EQ(last(0, true), "prompt_logprobs_last_n=0");
    EXPECT_EQ(last(1, false), "prompt_logprobs_last_n=1 without prompt logprobs");
    EXPECT_EQ(last(3, true), "prompt_logprobs_last_n=3 for a prompt of 3 tokens");
    EXPECT_EQ(last(2, true), "none");
    SampleOptions const options{.include_prompt_logprobs = true, .prompt_logprobs_last_n = 100};
    EXPECT_EQ(problem(prompt.append(ImageChunk{}), {}, options), "none");
}

TEST(SampleRequest, EstimatesTheBytesOfAPrompt) {  // R-SAMP-27
    EXPECT_EQ(estimate_prompt_bytes(ModelInput::empty()), 0);
    EXPECT_EQ(estimate_prompt_bytes(prompt), 30);
    EXPECT_EQ(estimate_prompt_bytes(
                  {.chunks = {ImageChunk{.data = std::string(13, 'x')},
                              ImageAssetPointerChunk{.location = "asset://\xc3\xa9\xe6\xbc\xa2"},
                              DmelChunk{std::string(19, 'x')}, EncodedTextChunk{{1}}}}),
              13 + 10 + 19 + 10);
}

}  // namespace
}  // namespace tinkxx::wire
