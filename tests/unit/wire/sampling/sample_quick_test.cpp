#include "wire/sampling/sample_quick.hpp"

#include "wire/sampling/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(QuickSample, ReadsWhatServersUsuallyWrite) {  // R-WIRE-05
    auto const read = quick_sample(R"( {"type": "sample", "sequences": [
        {"stop_reason":"length","tokens":[1, -2,2147483647],"logprobs":[-0.5,-1e-3, 0],
         "topk_logprobs":null,"sequence_id":"s-1"},
        {"tokens":[],"logprobs":null,"stop_reason":"stop"}],
        "prompt_logprobs":null,"prompt_cache_hit_tokens":7} )");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->prompt_cache_hit_tokens, 7);
    ASSERT_EQ(read->sequences.size(), 2U);
    EXPECT_THAT(read->sequences[0].tokens, ElementsAre(1, -2, 2147483647));
    EXPECT_THAT(read->sequences[0].logprobs, Optional(ElementsAre(-0.5F, -1e-3F, 0.0F)));
    EXPECT_EQ(read->sequences[0].stop_reason, StopReason::length);
    EXPECT_EQ(read->sequences[0].sequence_id, "s-1");
    EXPECT_EQ(read->sequences[1].stop_reason, StopReason::stop);
    EXPECT_FALSE(read->sequences[1].logprobs);
}

TEST(QuickSample, LeavesAllElseToTheThoroughWay) {
    auto const with = [](std::string_view sequence) {
        return R"({"sequences":[)" + std::string{sequence} + "]}";
    };
    for (std::string const& text : {
             std::string{},
             std::string{"[]"},
             std::string{"{}"},
             std::string{R"({"sequences":[]} x)"},
             std::string{R"({"sequences":[],"sequences":[]})"},
             std::string{R"({"sequences":[],"type":"other"})"},
             std::string{R"({"sequences":[],"prompt_logprobs":[null]})"},
             std::string{R"({"sequences":[],"unknown":null})"},
             std::string{R"({"sequences":[)"},
             with(R"({"stop_reason":"stop"})"),
             with(R"({"tokens":[1]})"),
             with(R"({"tokens":[1],"stop_reason":"other"})"),
             with(R"({"tokens":[1,],"stop_reason":"stop"})"),
             with(R"({"tokens":[01],"stop_reason":"stop"})"),
             with(R"({"tokens":[1.0],"stop_reason":"stop"})"),
             with(R"({"tokens":[-],"stop_reason":"stop"})"),
             with(R"({"tokens":[2147483648],"stop_reason":"stop"})"),
             with(R"({"tokens":[99999999999999999999],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"tokens":[1],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[.5],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[1.],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[00.5],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[1e],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[1e999],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[NaN],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"logprobs":[null],"stop_reason":"stop"})"),
             with(R"({"tokens":[1],"stop_reason":"st\u006fp"})"),
             with(R"({"tokens":[1],"stop_reason":"stop","sequence_id":"\n"})"),
             with("{\"tokens\":[1],\"stop_reason\":\"stop\",\"sequence_id\":\"\xc3\xa4\"}"),
         }) {
        EXPECT_FALSE(quick_sample(text)) << text;
    }
}

TEST(QuickSample, CutAnywhereItSaysNothing) {
    std::string const whole =
        R"({"sequences":[{"stop_reason":"stop","tokens":[12,3],"logprobs":[-0.5,-1.25e-1]}]})";
    ASSERT_TRUE(quick_sample(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(quick_sample(whole.substr(0, size))) << size;
    }
}

TEST(QuickSample, ReadsEveryNumberAsItWasWritten) {
    EXPECT_TRUE(rc::check([](std::vector<Token> const& tokens, std::vector<std::uint32_t> bits) {
        std::vector<float> logprobs;
        for (auto const each : bits) {
            float number = 0;
            static_assert(sizeof number == sizeof each);
            std::memcpy(&number, &each, sizeof number);
            if (std::isfinite(number)) logprobs.push_back(number);
        }
        std::string text = R"({"sequences":[{"stop_reason":"stop","tokens":[)";
        for (auto const token : tokens) text += std::to_string(token) + ',';
        if (!tokens.empty()) text.pop_back();
        text += R"(],"logprobs":[)";
        for (auto const logprob : logprobs) {
            std::array<char, 64> digits{};
            auto const format =
                *rc::gen::element(std::chars_format::general, std::chars_format::scientific);
            auto const end =
                std::to_chars(digits.data(), digits.data() + digits.size(), logprob, format).ptr;
            text.append(digits.data(), end) += ',';
        }
        if (!logprobs.empty()) text.pop_back();
        text += "]}]";
        auto const quick = quick_sample(text + "}");
        RC_ASSERT(quick);
        RC_ASSERT(quick->sequences[0].tokens == tokens);
        RC_ASSERT(quick->sequences[0].logprobs == logprobs);
        // A member that nobody knows leads to the thorough way.
        auto const thorough = decode_sample_json(text + R"(,"unknown":1})");
        RC_ASSERT(thorough);
        RC_ASSERT(thorough->sequences[0].tokens == tokens);
    }));
}

}  // namespace
}  // namespace tinkxx::wire
