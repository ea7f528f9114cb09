#include "wire/sampling/sample.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <protozero/pbf_writer.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tinkxx::wire {
namespace {

using protozero::pbf_writer;

constexpr float pad = -99999.0F;

template <class T>
std::string packed(std::vector<T> const& numbers) {
    std::string out(numbers.size() * sizeof(T), '\0');
    if (!numbers.empty()) std::memcpy(out.data(), numbers.data(), out.size());
    return out;
}

template <class Fn>
std::string message(Fn fill) {
    std::string out;
    pbf_writer writer{out};
    fill(writer);
    return out;
}

// An answer with one member.
template <class Fn>
Result<SampleResponse> answer(Fn fill) {
    return decode_sample_proto(message(fill));
}

std::string topk(std::vector<Token> const& tokens, std::vector<float> const& logprobs,
                 std::uint32_t k, std::uint32_t length) {
    return message([&](pbf_writer& out) {
        out.add_bytes(1, packed(tokens));
        out.add_bytes(2, packed(logprobs));
        out.add_uint32(3, k);
        out.add_uint32(4, length);
    });
}

std::string dense(std::string const& bytes, std::int32_t dtype,
                  std::vector<std::int64_t> const& shape) {
    return message([&](pbf_writer& out) {
        out.add_bytes(1, bytes);
        out.add_enum(3, dtype);
        out.add_packed_int64(4, shape.begin(), shape.end());
    });
}

std::string csr(std::vector<float> const& values, std::vector<std::int64_t> const& rows,
                std::vector<std::int64_t> const& columns, std::vector<std::int64_t> const& shape) {
    return message([&](pbf_writer& out) {
        out.add_message(2, message([&](pbf_writer& inner) {
                            inner.add_bytes(1, packed(values));
                            inner.add_bytes(2, packed(rows));
                            inner.add_bytes(3, packed(columns));
                        }));
        out.add_enum(3, 1);
        out.add_packed_int64(4, shape.begin(), shape.end());
    });
}

std::string field_of(Result<SampleResponse> const& result) {
    if (result) return "none";
    EXPECT_EQ(result.error().kind(), ErrorKind::validation);
    EXPECT_TRUE(std::string_view{result.error().what()}.starts_with("sample: the protobuf answer "))
        << result.error().what();
    return std::string{result.error().field()};
}

Result<SampleResponse> target(std::string const& tensor) {
    return answer([&](pbf_writer& out) { out.add_message(5, tensor); });
}

// What the service would send for an answer.
std::string encode(SampleResponse const& response) {
    auto const rows = [](TopkLogprobs const& table) {
        std::size_t k = 1;
        for (auto const& row : table) k = std::max(k, row ? row->size() : 0);
        std::vector<Token> tokens(table.size() * k, 0);
        std::vector<float> logprobs(table.size() * k, pad);
        for (std::size_t i = 0; i < table.size(); ++i) {
            for (std::size_t j = 0; table[i] && j < table[i]->size(); ++j) {
                tokens[i * k + j] = (*table[i])[j].token;
                logprobs[i * k + j] = (*table[i])[j].logprob;
            }
        }
        return topk(tokens, logprobs, static_cast<std::uint32_t>(k),
                    static_cast<std::uint32_t>(table.size()));
    };
    return message([&](pbf_writer& out) {
        for (auto const& sequence : response.sequences) {
            out.add_message(1, message([&](pbf_writer& inner) {
                                if (sequence.stop_reason == StopReason::length)
                                    inner.add_enum(1, 1);
                                inner.add_bytes(2, packed(sequence.tokens));
                                if (sequence.logprobs)
                                    inner.add_bytes(3, packed(*sequence.logprobs));
                                if (sequence.topk_logprobs) {
                                    inner.add_message(4, rows(*sequence.topk_logprobs));
                                }
                            }));
        }
        if (response.prompt_logprobs) {
            std::vector<float> numbers;
            for (auto const& one : *response.prompt_logprobs) {
                numbers.push_back(one.value_or(std::numeric_limits<float>::quiet_NaN()));
            }
            out.add_bytes(2, packed(numbers));
        }
        if (response.topk_prompt_logprobs) out.add_message(3, rows(*response.topk_prompt_logprobs));
        out.add_int32(4, static_cast<std::int32_t>(response.prompt_cache_hit_tokens));
    });
}

TEST(SampleProto, GivesBackEveryAnswer) {  // R-SAMP-71, R-TEST-03
    EXPECT_TRUE(rc::check([] {
        auto const logprob = rc::gen::map(rc::gen::inRange(-1'000'000, 0),
                                          [](int n) { return static_cast<float>(n) / 1024; });
        auto const table = [&](std::size_t length) {
            TopkLogprobs rows(length);
            for (auto& row : rows) {
                if (*rc::gen::arbitrary<bool>()) continue;
                row.emplace(*rc::gen::inRange<std::size_t>(1, 5));
                for (auto& cell : *row) cell = {*rc::gen::arbitrary<Token>(), *logprob};
            }
            return rows;
        };
        SampleResponse response;
        response.sequences.resize(*rc::gen::inRange<std::size_t>(0, 4));
        for (auto& sequence : response.sequences) {
            sequence.tokens = *rc::gen::arbitrary<std::vector<Token>>();
            auto const size = sequence.tokens.size();
            if (*rc::gen::arbitrary<bool>()) sequence.stop_reason = StopReason::length;
            if (size > 0 && *rc::gen::arbitrary<bool>()) {
                sequence.logprobs = *rc::gen::container<std::vector<float>>(size, logprob);
            }
            if (size > 0 && *rc::gen::arbitrary<bool>()) sequence.topk_logprobs = table(size);
        }
        auto const prompt = *rc::gen::inRange<std::size_t>(0, 20);
        if (prompt > 0) {
            response.prompt_logprobs.emplace(prompt);
            for (auto& one : *response.prompt_logprobs) {
                if (*rc::gen::arbitrary<bool>()) one = *logprob;
            }
            if (*rc::gen::arbitrary<bool>()) response.topk_prompt_logprobs = table(prompt);
        }
        response.prompt_cache_hit_tokens = *rc::gen::inRange(0, 100);
        RC_ASSERT(decode_sample_proto(encode(response)).value() == response);
    }));
}

TEST(SampleProto, ReadsEmptyListsAsAbsent) {  // R-SAMP-71
    auto const read = answer([](pbf_writer& out) {
        out.add_message(1, message([](pbf_writer& inner) {
                            inner.add_bytes(2, packed<Token>({5}));
                            inner.add_bytes(3, "");
                        }));
        out.add_bytes(2, "");
    });
    EXPECT_EQ(read.value(), (SampleResponse{.sequences = {{.tokens = {5}}}}));
    EXPECT_EQ(decode_sample_proto("").value(), SampleResponse{});
}

TEST(SampleProto, KeepsNumbersThatAreNoneInSampledLogprobs) {  // R-SAMP-71
    constexpr auto infinity = std::numeric_limits<float>::infinity();
    auto const read = answer([](pbf_writer& out) {
        out.add_message(1, message([](pbf_writer& inner) {
                            inner.add_bytes(2, packed<Token>({1, 2}));
                            inner.add_bytes(3, packed<float>({std::nanf(""), -infinity}));
                        }));
        out.add_bytes(2, packed<float>({std::nanf(""), -infinity, -std::nanf("")}));
    });
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(std::isnan(read->sequences[0].logprobs->at(0)));
    EXPECT_EQ(read->sequences[0].logprobs->at(1), -infinity);
    EXPECT_EQ(read->prompt_logprobs,
              (std::vector<std::optional<float>>{std::nullopt, -infinity, std::nullopt}));
}

TEST(SampleProto, CutsEmptyCellsOfTopkRows) {  // R-SAMP-71
    auto const read = [](std::string const& table) {
        return answer([&](pbf_writer& out) { out.add_message(3, table); })
            .value()
            .topk_prompt_logprobs;
    };
    using Row = std::vector<TokenLogprob>;
    EXPECT_EQ(read(topk({0, 7, 7, 0, 1, 2}, {pad, -1, -1, pad, -1, -2}, 2, 3)),
              (TopkLogprobs{std::nullopt, Row{{7, -1}}, Row{{1, -1}, {2, -2}}}));
    // An empty cell is both of the two, and one in the middle stays.
    EXPECT_EQ(read(topk({0, 4, 7, 0, 8}, {-0.25F, pad, -1, pad, -2}, 1, 2)),
              (TopkLogprobs{Row{{0, -0.25F}}, Row{{4, pad}}}));
    EXPECT_EQ(read(topk({7, 0, 8}, {-1, pad, -2}, 3, 1)),
              (TopkLogprobs{Row{{7, -1}, {0, pad}, {8, -2}}}));
    EXPECT_EQ(read(topk({}, {}, 0, 3)), std::nullopt);
    EXPECT_EQ(read(topk({}, {}, 3, 0)), std::nullopt);
}

TEST(SampleProto, RefusesTablesLargerThanTheirBytes) {  // R-SAMP-71, R-TEST-03
    auto const read = [](std::string const& table) {
        return field_of(answer([&](pbf_writer& out) { out.add_message(3, table); }));
    };
    EXPECT_EQ(read(topk({1, 2}, {-1, -2}, 2, 2)), "/topk_prompt_logprobs");
    EXPECT_EQ(read(topk({1, 2}, {-1}, 2, 1)), "/topk_prompt_logprobs");
    EXPECT_EQ(read(topk({1}, {-1}, 0xffffffff, 0xffffffff)), "/topk_prompt_logprobs");
    EXPECT_EQ(read(topk({1}, {-1}, 0x80000000, 2)), "/topk_prompt_logprobs");
}

TEST(SampleProto, RefusesBrokenMembersByName) {  // R-SAMP-71
    auto const sequence = [](auto fill) {
        return field_of(answer([&](pbf_writer& out) {
            out.add_message(1, std::string{});
            out.add_message(1, message(fill));
        }));
    };
    EXPECT_EQ(sequence([](pbf_writer& out) { out.add_enum(1, 2); }), "/sequences/1/stop_reason");
    EXPECT_EQ(sequence([](pbf_writer& out) { out.add_bytes(2, "abc"); }), "/sequences/1/tokens");
    EXPECT_EQ(sequence([](pbf_writer& out) { out.add_bytes(3, "abcde"); }),
              "/sequences/1/logprobs");
    EXPECT_EQ(sequence([](pbf_writer& out) { out.add_message(4, topk({1}, {1}, 1, 2)); }),
              "/sequences/1/topk_sampled_logprobs");
    EXPECT_EQ(field_of(answer([](pbf_writer& out) { out.add_bytes(2, "abc"); })),
              "/prompt_logprobs");
}

TEST(SampleProto, ReadsTargetLogprobsInTheirLayout) {  // R-SAMP-73
    EXPECT_EQ(
        target(dense(packed<float>({-1, 0, -2, -3}), 1, {2, 2})).value().target_prompt_logprobs,
        (TensorData{.data = std::vector<float>{-1, 0, -2, -3}, .shape = {{2, 2}}}));
    EXPECT_EQ(target(csr({-1, -2}, {0, 1, 2}, {0, 3}, {2, 8})).value().target_prompt_logprobs,
              (TensorData{.data = std::vector<float>{-1, -2},
                          .shape = {{2, 8}},
                          .sparse_crow_indices = {{0, 1, 2}},
                          .sparse_col_indices = {{0, 3}}}));
    // bfloat16 is the upper half of a float.
    EXPECT_EQ(target(dense(packed<std::uint16_t>({0xbf80, 0x4049}), 4, {2}))
                  .value()
                  .target_prompt_logprobs,
              (TensorData{.data = std::vector<float>{-1, 3.140625F}, .shape = {{2}}}));
    EXPECT_EQ(target(dense(packed<float>({-1}), 1, {})).value().target_prompt_logprobs,
              (TensorData{.data = std::vector<float>{-1}}));
}

TEST(SampleProto, WidensAlternativeTokens) {  // R-SAMP-73
    for (auto const& tokens : {dense(packed<std::int32_t>({7, -8}), 3, {2, 1}),
                               dense(packed<std::int64_t>({7, -8}), 2, {2, 1})}) {
        auto const read = answer([&](pbf_writer& out) {
            out.add_message(6, message([&](pbf_writer& inner) {
                                inner.add_message(1, tokens);
                                inner.add_message(2, dense(packed<float>({-1, -2}), 1, {2, 1}));
                            }));
        });
        ASSERT_TRUE(read.has_value()) << read.error().what();
        EXPECT_EQ(read->prompt_alt_tokens,
                  (PromptAltTokens{
                      .tokens = {.data = std::vector<std::int64_t>{7, -8}, .shape = {{2, 1}}},
                      .logprobs = {.data = std::vector<float>{-1, -2}, .shape = {{2, 1}}}}));
    }
}

TEST(SampleProto, RefusesTensorsThatDoNotFit) {  // R-WIRE-05, R-SAMP-73
    for (auto const& tensor :
         {dense(packed<float>({1}), 0, {1}), dense(packed<float>({1}), 9, {1}),
          dense(packed<float>({1}), 1, {2}), dense(packed<float>({1}), 1, {-1}),
          dense(packed<std::int64_t>({1}), 2, {1}), dense("abc", 1, {}),
          csr({1}, {0, 2}, {0}, {1, 1}), csr({1}, {0, 1}, {1}, {1, 1}), csr({1}, {0, 1}, {0}, {}),
          csr({1}, {}, {}, {1, 1})}) {
        EXPECT_EQ(field_of(target(tensor)), "/target_prompt_logprobs");
    }
    EXPECT_EQ(field_of(answer([](pbf_writer& out) {
                  out.add_message(6, message([](pbf_writer& inner) {
                                      inner.add_message(1, dense(packed<float>({1}), 1, {1}));
                                  }));
              })),
              "/prompt_alt_tokens/tokens");
}

TEST(SampleProto, ReadsAShapeThatIsNotPacked) {  // R-WIRE-04
    auto const tensor = message([](pbf_writer& out) {
        out.add_bytes(1, packed<float>({1, 2}));
        out.add_enum(3, 1);
        out.add_int64(4, 1);
        out.add_int64(4, 2);
    });
    EXPECT_EQ(target(tensor).value().target_prompt_logprobs->shape,
              (std::vector<std::int64_t>{1, 2}));
}

TEST(SampleProto, IgnoresFieldsItDoesNotKnow) {  // R-CONF-09
    auto const read = answer([](pbf_writer& out) {
        out.add_fixed64(99, 5);
        out.add_string(98, "new");
        out.add_message(1, message([](pbf_writer& inner) {
                            inner.add_fixed32(50, 7);
                            inner.add_bytes(2, packed<Token>({5}));
                            inner.add_string(1, "a stop reason of another type");
                        }));
        out.add_string(4, "a number of another type");
        out.add_fixed64(3, 1);
        out.add_int32(5, 1);
    });
    EXPECT_EQ(read.value(), (SampleResponse{.sequences = {{.tokens = {5}}}}));
}

TEST(SampleProto, CutAtAnyByteIsAnErrorOrAPrefix) {  // R-TEST-03
    SampleResponse const whole{
        .sequences = {{.stop_reason = StopReason::length,
                       .tokens = {5, 6},
                       .logprobs = {{-0.5F, -0.25F}},
                       .topk_logprobs = {{std::vector<TokenLogprob>{{5, -0.5F}}, std::nullopt}}},
                      {.tokens = {7}}},
        .prompt_logprobs = {{std::nullopt, -1.0F}},
        .topk_prompt_logprobs = {{std::nullopt, std::vector<TokenLogprob>{{7, -1.0F}}}},
        .prompt_cache_hit_tokens = 300};
    auto const bytes = encode(whole);
    ASSERT_EQ(decode_sample_proto(bytes).value(), whole);
    int prefixes = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        auto const read = decode_sample_proto(std::string_view{bytes}.substr(0, size));
        if (!read) {
            EXPECT_EQ(read.error().kind(), ErrorKind::validation);
            continue;
        }
        ++prefixes;
        ASSERT_LE(read->sequences.size(), whole.sequences.size());
        EXPECT_TRUE(
            std::equal(read->sequences.begin(), read->sequences.end(), whole.sequences.begin()));
    }
    EXPECT_EQ(prefixes, 5);  // before each of the five members
}

TEST(SampleProto, OfForeignBytesIsAnErrorOrAnAnswer) {  // R-TEST-03
    auto const bytes = encode({.sequences = {{.tokens = {5, 6}, .logprobs = {{-0.5F, -0.25F}}}},
                               .prompt_logprobs = {{std::nullopt, -1.0F}}});
    EXPECT_TRUE(rc::check([&](std::string const& foreign, std::uint8_t byte) {
        (void)decode_sample_proto(foreign);
        auto changed = bytes;
        changed[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(byte);
        (void)decode_sample_proto(changed);
    }));
}

}  // namespace
}  // namespace tinkxx::wire
