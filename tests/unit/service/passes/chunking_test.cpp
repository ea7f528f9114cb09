#include "service/passes/chunking.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace tinkxx::service {
namespace {

using wire::Encoding;

Datum datum(std::vector<ModelInputChunk> chunks, LossInputs inputs = {}) {
    return {.model_input = {.chunks = std::move(chunks)}, .loss_fn_inputs = std::move(inputs)};
}

std::vector<std::size_t> counts(std::vector<std::int64_t> const& sizes, ChunkCaps caps) {
    std::vector<std::size_t> out;
    for (auto const& chunk : split_sizes(sizes, caps)) out.push_back(chunk.count);
    return out;
}

TEST(EstimateBytes, FollowsTheEncoding) {  // R-TRAIN-22
    struct Case {
        Datum datum;
        std::int64_t json;
        std::int64_t proto;
    };
    TensorData const csr{.data = std::vector<float>{1, 2},
                         .shape = {{2, 9}},
                         .sparse_crow_indices = {{0, 1, 2}},
                         .sparse_col_indices = {{0, 8}}};
    std::vector<Case> const cases{
        {datum({EncodedTextChunk{{1, 2, 3}}}), 30, 12},
        {datum({ImageChunk{.data = "12345", .expected_tokens = 99}}), 5, 5},
        {datum({ImageAssetPointerChunk{.location = "a\xc3\xa9"}}), 2, 2},
        {datum({DmelChunk{"123"}}), 3, 3},
        {datum({}, {{"weights", {1, 2, 3}}}), 30, 12},
        {datum({}, {{"target_tokens", {1, 2, 3}}}), 30, 24},
        {datum({}, {{"weights", csr}}), 20, 8 + 24 + 16},
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(estimate_bytes(cases[i].datum, Encoding::json), cases[i].json) << i;
        EXPECT_EQ(estimate_bytes(cases[i].datum, Encoding::protobuf), cases[i].proto) << i;
    }
}

TEST(EstimateBytes, AddsUpInputAndTensorsButNoSpans) {  // R-TRAIN-23, R-TRAIN-38
    auto one = datum({EncodedTextChunk{{1, 2}}, EncodedTextChunk{{3}}},
                     {{"target_tokens", {1, 2, 3}}, {"weights", {1, 1, 1}}});
    EXPECT_EQ(estimate_bytes(one, Encoding::protobuf), 12 + 24 + 12);
    one.model_input_spans = {{.sequence_id = "s", .length = 3}};
    EXPECT_EQ(estimate_bytes(one, Encoding::protobuf), 48);
}

TEST(Split, ClosesAChunkBeforeItWouldBeTooLarge) {  // R-TRAIN-20
    using Counts = std::vector<std::size_t>;
    ChunkCaps const caps{.items = 4, .bytes = 10};
    EXPECT_EQ(counts({}, caps), Counts{});
    EXPECT_EQ(counts({5, 5}, caps), Counts{2});
    EXPECT_EQ(counts({5, 6}, caps), (Counts{1, 1}));
    EXPECT_EQ(counts({1, 1, 1, 1, 1}, caps), (Counts{4, 1}));
    EXPECT_EQ(counts({1, 20, 1, 1}, caps), (Counts{1, 1, 2})) << "an oversize datum is alone";
    EXPECT_EQ(counts({0, 0, 0, 0, 0}, caps), (Counts{4, 1}));
}

TEST(Split, HasTheCapsOfTheService) {  // R-TRAIN-21
    ChunkCaps const caps;
    EXPECT_EQ(caps.items, 1024);
    EXPECT_EQ(caps.bytes, 5'000'000);
    EXPECT_EQ(counts(std::vector<std::int64_t>(1025, 1), caps),
              (std::vector<std::size_t>{1024, 1}));
    EXPECT_EQ(counts({2'500'000, 2'500'000, 1}, caps), (std::vector<std::size_t>{2, 1}));
}

TEST(Split, CutsDataByTheEstimateOfTheEncoding) {  // R-TRAIN-22
    std::vector<Datum> const data(3, datum({EncodedTextChunk{{1, 2}}}));
    ChunkCaps const caps{.bytes = 24};
    EXPECT_EQ(split(data, Encoding::protobuf, caps),
              (std::vector<Chunk>{{.first = 0, .count = 3, .bytes = 24}}));
    EXPECT_EQ(split(data, Encoding::json, caps),
              (std::vector<Chunk>{{.first = 0, .count = 1, .bytes = 20},
                                  {.first = 1, .count = 1, .bytes = 20},
                                  {.first = 2, .count = 1, .bytes = 20}}));
}

TEST(Split, CapsThatCannotBeCountAsOne) {  // R-TRAIN-20
    EXPECT_EQ(counts({1, 1}, {.items = 0, .bytes = -5}), (std::vector<std::size_t>{1, 1}));
}

// R-TRAIN-20, R-TEST-03
RC_GTEST_PROP(Split, KeepsOrderRespectsBothCapsAndMakesNoEmptyChunk, ()) {
    auto const sizes =
        *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 30));
    ChunkCaps const caps{.items = *rc::gen::inRange<std::int64_t>(1, 6),
                         .bytes = *rc::gen::inRange<std::int64_t>(1, 40)};
    std::size_t next = 0;
    auto const chunks = split_sizes(sizes, caps);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        auto const& chunk = chunks[i];
        RC_ASSERT(chunk.first == next);
        RC_ASSERT(chunk.count > 0U);
        RC_ASSERT(static_cast<std::int64_t>(chunk.count) <= caps.items);
        auto const begin = sizes.begin() + static_cast<std::ptrdiff_t>(chunk.first);
        auto const end = begin + static_cast<std::ptrdiff_t>(chunk.count);
        RC_ASSERT(chunk.bytes == std::accumulate(begin, end, std::int64_t{0}));
        RC_ASSERT(chunk.bytes <= caps.bytes || chunk.count == 1U);
        // No chunk ends before it has to.
        if (i + 1 < chunks.size()) {
            RC_ASSERT(static_cast<std::int64_t>(chunk.count) == caps.items ||
                      chunk.bytes + *end > caps.bytes);
        }
        next += chunk.count;
    }
    RC_ASSERT(next == sizes.size());
}

}  // namespace
}  // namespace tinkxx::service
