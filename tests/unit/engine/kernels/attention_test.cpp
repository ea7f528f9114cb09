#include "engine/kernels/attention.hpp"

#include "support.hpp"

#include <rapidcheck.h>

#include <algorithm>

namespace tinkxx::engine {
namespace {

/// One sequence of one key/value head: its keys and values in rows and in blocks.
struct Sequence {
    std::size_t length;
    std::size_t dim;
    std::vector<float> keys;
    std::vector<float> values;
    std::vector<float> memory;
    std::vector<KvBlock> blocks;

    Sequence(std::size_t n, std::size_t d, unsigned seed)
        : length{n}, dim{d}, keys{numbers(n * d, seed)}, values{numbers(n * d, seed + 1)} {
        auto const count = (n + 63) / 64;
        memory.resize(count * 2 * 64 * d);
        for (std::size_t b = 0; b != count; ++b) {
            auto* const at = memory.data() + b * 2 * 64 * d;
            blocks.push_back({at, at + 64 * d});
            // In two pieces, as a cache is filled.
            auto const some = std::min<std::size_t>(64, n - b * 64);
            auto const first = some / 3;
            store(b, 0, first);
            store(b, first, some - first);
        }
    }
    void store(std::size_t b, std::size_t slot, std::size_t count) {
        auto const at = (b * 64 + slot) * dim;
        store_kv(blocks[b], dim, slot, count, keys.data() + at, dim, values.data() + at, dim);
    }
};

struct Exact {
    std::vector<double> out;
    std::vector<double> log_sums;
    std::vector<double> dq;
    std::vector<double> dk;
    std::vector<double> dv;
};

/// The definition, in float64; rows of q are tokens of `group` heads.
Exact defined_attention(Sequence const& s, AttentionShape const& shape, std::span<float const> q,
                        std::span<float const> dout) {
    auto const d = shape.head_dim;
    Exact e{std::vector<double>(q.size()),
            {},
            std::vector<double>(q.size()),
            std::vector<double>(s.keys.size()),
            std::vector<double>(s.keys.size())};
    for (std::size_t row = 0; row != shape.tokens * shape.group; ++row) {
        auto const seen = shape.first_position + row / shape.group + 1;
        std::vector<double> score(seen);
        for (std::size_t j = 0; j != seen; ++j) {
            for (std::size_t i = 0; i != d; ++i) {
                score[j] += static_cast<double>(q[row * d + i]) * s.keys[j * d + i] * shape.scale;
            }
        }
        auto const top = *std::max_element(score.begin(), score.end());
        double total = 0;
        for (auto const v : score) total += std::exp(v - top);
        e.log_sums.push_back(top + std::log(total));
        for (auto& v : score) v = std::exp(v - top) / total;
        for (std::size_t j = 0; j != seen; ++j) {
            for (std::size_t i = 0; i != d; ++i)
                e.out[row * d + i] += score[j] * s.values[j * d + i];
        }
        if (dout.empty()) continue;
        double common = 0;
        for (std::size_t i = 0; i != d; ++i) common += dout[row * d + i] * e.out[row * d + i];
        for (std::size_t j = 0; j != seen; ++j) {
            double dp = 0;
            for (std::size_t i = 0; i != d; ++i) {
                dp += static_cast<double>(dout[row * d + i]) * s.values[j * d + i];
                e.dv[j * d + i] += score[j] * dout[row * d + i];
            }
            auto const ds = score[j] * (dp - common) * shape.scale;
            for (std::size_t i = 0; i != d; ++i) {
                e.dq[row * d + i] += ds * s.keys[j * d + i];
                e.dk[j * d + i] += ds * q[row * d + i];
            }
        }
    }
    return e;
}

struct Result {
    std::vector<float> out;
    std::vector<float> log_sums;
};

Result attend(KernelTable const& table, Sequence const& s, AttentionShape const& shape,
              float const* q) {
    auto const width = shape.group * shape.head_dim;
    Result r{std::vector<float>(shape.tokens * width),
             std::vector<float>(shape.tokens * shape.group)};
    table.attention(shape, q, width, s.blocks.data(), r.out.data(), width, r.log_sums.data());
    return r;
}

std::vector<float> attend_back(KernelTable const& table, Sequence const& s,
                               AttentionShape const& shape, float const* q, Result const& r,
                               float const* dout) {
    auto const width = shape.group * shape.head_dim;
    auto const d = shape.head_dim;
    std::vector<float> all(shape.tokens * width + 2 * s.length * d);
    auto* const dk = all.data() + shape.tokens * width;
    table.attention_backward(shape, s.blocks.data(),
                             {.q = q,
                              .q_stride = width,
                              .out = r.out.data(),
                              .out_stride = width,
                              .log_sums = r.log_sums.data(),
                              .dout = dout,
                              .dout_stride = width,
                              .dq = all.data(),
                              .dq_stride = width,
                              .dk = dk,
                              .dk_stride = d,
                              .dv = dk + s.length * d,
                              .dv_stride = d});
    return all;
}

class AttentionOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Attention, AttentionOnEachIsa, all_isas, isa_label);

struct Shape {
    std::size_t length;
    std::size_t tokens;
    std::size_t group;
    std::size_t dim;
};

constexpr Shape shapes[]{{1, 1, 1, 16},   {70, 70, 2, 32},  {130, 130, 3, 20}, {200, 65, 1, 64},
                         {129, 1, 4, 64}, {64, 64, 1, 128}, {90, 30, 2, 256},  {65, 65, 2, 6}};

TEST_P(AttentionOnEachIsa, FollowsItsDefinitionForwardAndBackward) {
    for (auto const& [length, tokens, group, dim] : shapes) {
        Sequence const s{length, dim, 1};
        AttentionShape const shape{.tokens = tokens,
                                   .first_position = length - tokens,
                                   .group = group,
                                   .head_dim = dim,
                                   .scale = 1 / std::sqrt(static_cast<float>(dim))};
        auto const q = numbers(tokens * group * dim, 3, 2);
        auto const dout = numbers(tokens * group * dim, 4);
        auto const exact = defined_attention(s, shape, q, dout);
        auto const result = attend(table(), s, shape, q.data());
        EXPECT_LT(relative_error(result.out, exact.out), 2e-6);
        for (std::size_t i = 0; i != result.log_sums.size(); ++i) {
            EXPECT_NEAR(result.log_sums[i], exact.log_sums[i], 1e-5);
        }
        auto const back = attend_back(table(), s, shape, q.data(), result, dout.data());
        auto const parts = std::span{back};
        auto const n = q.size();
        auto const kv = length * dim;
        if (length > 1) {
            EXPECT_LT(relative_error(parts.first(n), exact.dq), 5e-6);
            EXPECT_LT(relative_error(parts.subspan(n, kv), exact.dk), 5e-6);
        }
        EXPECT_LT(relative_error(parts.subspan(n + kv, kv), exact.dv), 5e-6);
    }
}

TEST_P(AttentionOnEachIsa, HasTheBitsOfThePlainOne) {
    for (auto const& [length, tokens, group, dim] : shapes) {
        Sequence const s{length, dim, 5};
        AttentionShape const shape{.tokens = tokens,
                                   .first_position = length - tokens,
                                   .group = group,
                                   .head_dim = dim,
                                   .scale = 0.2F};
        auto const q = numbers(tokens * group * dim, 6, 2);
        auto const dout = numbers(tokens * group * dim, 7);
        auto const here = attend(table(), s, shape, q.data());
        auto const there = attend(plain(), s, shape, q.data());
        EXPECT_EQ(differing(here.out, there.out), 0U);
        EXPECT_EQ(differing(here.log_sums, there.log_sums), 0U);
        EXPECT_EQ(differing(attend_back(table(), s, shape, q.data(), here, dout.data()),
                            attend_back(plain(), s, shape, q.data(), there, dout.data())),
                  0U);
    }
}

TEST_P(AttentionOnEachIsa, AQueryHasTheSameBitsAloneAndAmongOthers) {
    std::size_t const length = 150;
    std::size_t const group = 2;
    std::size_t const dim = 32;
    Sequence const s{length, dim, 8};
    auto const q = numbers(length * group * dim, 9, 3);
    AttentionShape shape{
        .tokens = length, .first_position = 0, .group = group, .head_dim = dim, .scale = 0.2F};
    auto const together = attend(table(), s, shape, q.data());
    for (std::size_t const piece : {1UL, 7UL, 64UL}) {
        for (std::size_t at = 0; at < length; at += piece) {
            shape.first_position = at;
            shape.tokens = std::min(piece, length - at);
            auto const alone = attend(table(), s, shape, q.data() + at * group * dim);
            auto const count = shape.tokens * group * dim;
            ASSERT_EQ(
                differing(alone.out, std::span{together.out}.subspan(at * group * dim, count)), 0U);
        }
    }
}

TEST_P(AttentionOnEachIsa, WhatLiesBeyondTheLastPositionDoesNotMatter) {
    Sequence s{70, 16, 10};
    auto const q = numbers(16, 11);
    AttentionShape const shape{
        .tokens = 1, .first_position = 69, .group = 1, .head_dim = 16, .scale = 0.25F};
    auto const before = attend(table(), s, shape, q.data());
    auto const rubbish = numbers(16, 12, 1000);
    store_kv(s.blocks[1], 16, 6, 1, rubbish.data(), 16, rubbish.data(), 16);
    auto const after = attend(table(), s, shape, q.data());
    EXPECT_EQ(differing(before.out, after.out), 0U);
}

TEST(Attention, PublicFunctionsKeepToTheirRows) {
    // Heads of one of two key/value heads inside wider rows.
    Sequence const s{10, 8, 13};
    AttentionShape const shape{
        .tokens = 10, .first_position = 0, .group = 2, .head_dim = 8, .scale = 0.3F};
    auto const wide = numbers(10 * 32, 14);
    std::vector<float> narrow;
    for (std::size_t t = 0; t != 10; ++t) {
        narrow.insert(narrow.end(), wide.begin() + static_cast<std::ptrdiff_t>(t * 32 + 16),
                      wide.begin() + static_cast<std::ptrdiff_t>(t * 32 + 32));
    }
    std::vector<float> out(10 * 32, 5.0F);
    attention(shape, wide.data() + 16, 32, s.blocks.data(), out.data() + 16, 32, nullptr);
    auto const expected = attend(kernels(), s, shape, narrow.data());
    for (std::size_t t = 0; t != 10; ++t) {
        for (std::size_t i = 0; i != 16; ++i) {
            EXPECT_EQ(out[t * 32 + i], 5);
            EXPECT_EQ(out[t * 32 + 16 + i], expected.out[t * 16 + i]);
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine
