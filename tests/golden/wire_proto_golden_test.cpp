// Our schema against the official one, and our decoder against protoc.
#include "golden/recordings/golden.hpp"
#include "wire/sampling/sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>

namespace tinkxx::wire {
namespace {

std::string read_file(std::string const& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

// The schema in the form of proto-fields.json. It is our own file, so a few patterns read it.
boost::json::object schema() {
    boost::json::object enums;
    boost::json::object messages;
    std::istringstream in{read_file(TINKXX_SOURCE_DIR "/proto/tinker.proto")};
    std::regex const open{R"(^(\s*)(enum|message|oneof) (\w+) \{$)"};
    std::regex const close{R"(^(\s*)\}$)"};
    std::regex const entry{R"(^\s+(\w+) = (\d+);.*)"};
    std::regex const field{R"(^\s+(optional )?((?:repeated )?[\w<>, ]+) (\w+) = (\d+);.*)"};
    boost::json::object* block = nullptr;
    bool in_enum = false;
    std::string oneof;
    for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (std::regex_match(line, match, open)) {
            if (match[2] == "oneof") {
                oneof = match[3];
            } else {
                in_enum = match[2] == "enum";
                auto& made = (in_enum ? enums : messages)[match[3].str()];
                block = &made.emplace_object();
            }
        } else if (std::regex_match(line, match, close)) {
            if (!match[1].str().empty()) oneof.clear();
        } else if (block != nullptr && in_enum && std::regex_match(line, match, entry)) {
            (*block)[match[1].str()] = std::stoi(match[2]);
        } else if (block != nullptr && std::regex_match(line, match, field)) {
            boost::json::object made{{"number", std::stoi(match[4])}, {"type", match[2].str()}};
            if (match[1].matched) made["optional"] = true;
            if (!oneof.empty()) made["oneof"] = oneof;
            (*block)[match[3].str()] = made;
        }
    }
    return {{"enums", enums}, {"messages", messages}};
}

TEST(GoldenProto, SchemaHasTheNumbersOfTheOfficialOne) {  // R-WIRE-04
    if (!golden::has("proto-fields.json")) GTEST_SKIP() << "the folder has none";
    auto const official = golden::load("proto-fields.json").at("0.36.0");
    auto const ours = schema();
    EXPECT_EQ(ours.at("enums"), official.at("enums"));
    for (auto const& message : official.at("messages").as_object()) {
        auto const* made = ours.at("messages").as_object().if_contains(message.key());
        ASSERT_NE(made, nullptr) << message.key();
        EXPECT_EQ(*made, message.value()) << message.key();
    }
    EXPECT_EQ(ours.at("messages").as_object().size(), official.at("messages").as_object().size());
}

TEST(GoldenProto, SchemaStillHasTheNumbersOfOlderReleases) {  // R-WIRE-04
    if (!golden::has("proto-fields.json")) GTEST_SKIP() << "the folder has none";
    // Two names changed since; the numbers are what counts.
    std::map<std::string, std::string> const renamed{{"TopkPromptLogprobs", "TopkLogprobs"},
                                                     {"prompt_length", "length"}};
    auto const now = [&renamed](std::string const& name) {
        auto const found = renamed.find(name);
        return found == renamed.end() ? name : found->second;
    };
    auto const ours = schema();
    auto const old = golden::load("proto-fields.json").at("0.25.0");
    for (auto const& message : old.at("messages").as_object()) {
        auto const& made = ours.at("messages").at(now(message.key()));
        for (auto const& field : message.value().as_object()) {
            EXPECT_EQ(made.at(now(field.key())).at("number"), field.value().at("number"))
                << message.key() << '.' << field.key();
        }
    }
}

// The bytes of a message written as text, as protoc makes them; empty without protoc.
std::string by_protoc(std::string const& message, std::string const& text) {
    auto const base = testing::TempDir() + "tinkxx-protoc-" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ofstream{base + ".txt"} << text;
    auto const command = "protoc --proto_path='" TINKXX_SOURCE_DIR
                         "/proto' --encode=tinker_public." +
                         message + " tinker.proto < '" + base + ".txt' > '" + base + ".bin'";
    auto const status = std::system(command.c_str());
    auto bytes = read_file(base + ".bin");
    std::remove((base + ".txt").c_str());
    std::remove((base + ".bin").c_str());
    EXPECT_EQ(status, 0) << command;
    return bytes;
}

TEST(GoldenProto, DecoderReadsWhatProtocWrites) {  // R-WIRE-04, R-SAMP-71, R-SAMP-73
    if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no protoc here";
    auto const bytes = by_protoc("SampleResponse", R"(
        sequences {
            stop_reason: STOP_REASON_LENGTH
            tokens: "\005\000\000\000\006\000\000\000"
            logprobs: "\000\000\000\277\000\000\200\276"
            topk_sampled_logprobs {
                token_ids: "\005\000\000\000\011\000\000\000\006\000\000\000\000\000\000\000"
                logprobs: "\000\000\000\277\000\000\200\277\000\000\200\276\200O\303\307"
                k: 2
                length: 2
            }
        }
        sequences { tokens: "\007\000\000\000" }
        prompt_logprobs: "\000\000\300\177\000\000\300\177\000\000\200\277"
        topk_prompt_logprobs {
            token_ids: "\000\000\000\000\003\000\000\000"
            logprobs: "\200O\303\307\000\000\300\277"
            k: 1
            length: 2
        }
        prompt_cache_hit_tokens: 300
        target_prompt_logprobs {
            sparse_csr {
                values: "\000\000\000\300"
                crow_indices: "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000"
                col_indices: "\000\000\000\000\000\000\000\000"
            }
            dtype: DTYPE_FLOAT32
            shape: 2
            shape: 1
        }
        prompt_alt_tokens {
            tokens { dense: "\007\000\000\000\010\000\000\000" dtype: DTYPE_INT32 shape: [2, 1] }
            logprobs { dense: "\000\000\200\277\000\000\000\300" dtype: DTYPE_FLOAT32 shape: [2, 1] }
        })");
    auto const read = decode_sample_proto(bytes);
    ASSERT_TRUE(read.has_value()) << read.error().what();
    using Row = std::vector<TokenLogprob>;
    EXPECT_EQ(
        *read,
        (SampleResponse{
            .sequences = {{.stop_reason = StopReason::length,
                           .tokens = {5, 6},
                           .logprobs = {{-0.5F, -0.25F}},
                           .topk_logprobs = {{Row{{5, -0.5F}, {9, -1.0F}}, Row{{6, -0.25F}}}}},
                          {.tokens = {7}}},
            .prompt_logprobs = {{std::nullopt, std::nullopt, -1.0F}},
            .topk_prompt_logprobs = {{std::nullopt, Row{{3, -1.5F}}}},
            .prompt_cache_hit_tokens = 300,
            .target_prompt_logprobs = TensorData{.data = std::vector<float>{-2},
                                                 .shape = {{2, 1}},
                                                 .sparse_crow_indices = {{0, 0, 1}},
                                                 .sparse_col_indices = {{0}}},
            .prompt_alt_tokens = PromptAltTokens{
                .tokens = {.data = std::vector<std::int64_t>{7, 8}, .shape = {{2, 1}}},
                .logprobs = {.data = std::vector<float>{-1, -2}, .shape = {{2, 1}}}}}));
}

TEST(GoldenProto, DecoderReadsTheExampleOfTheProtocol) {  // R-SAMP-71, R-SAMP-73
    constexpr std::string_view hex =
        "0a400801120805000000060000001a08000000bf000080be22280a100500000009000000060000000000000012"
        "1000000"
        "0bf000080bf000080be804fc3c718022002120c0000c07f0000c07f000080bf20012a32122a0a04000000c0121"
        "8000000"
        "0000000000000000000000000001000000000000001a08000000000000000018012202020132240a100a080700"
        "0000080"
        "0000018032202020112100a08000080bf000000c0180122020201";
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16));
    }
    ASSERT_EQ(bytes.size(), 172);
    auto const read = decode_sample_proto(bytes);
    ASSERT_TRUE(read.has_value()) << read.error().what();
    EXPECT_EQ(read->sequences.at(0).topk_logprobs->at(1)->size(), 1);
    EXPECT_EQ(read->target_prompt_logprobs->shape, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(std::get<1>(read->prompt_alt_tokens->tokens.data), (std::vector<std::int64_t>{7, 8}));
    EXPECT_EQ(read->prompt_cache_hit_tokens, 1);
}

}  // namespace
}  // namespace tinkxx::wire
