#include "engine/sample/sampler.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Who gets memory and time when there is not enough for all.

namespace tinkxx::engine {
namespace {

std::string_view letter_of(std::int32_t token) {
    static constexpr std::string_view letters = "abcdefghijklm";
    return letters.substr(static_cast<std::size_t>(token), 1);
}

/// A request under way, and everything that was said about it.
struct Asked {
    Sampler::RequestId id{0};
    std::optional<Result<SampleResult>> result{};
    std::map<std::size_t, std::vector<std::int32_t>> tokens{};
    int answers{0};

    [[nodiscard]] bool done() const noexcept { return result.has_value(); }
};
using AskedPtr = std::shared_ptr<Asked>;

class FairSamplers : public testing::Test {
protected:
    static constexpr std::size_t page_bytes = std::size_t{2} * 2 * 2 * 6 * 64 * 4;

    [[nodiscard]] std::unique_ptr<Sampler> sampler(std::size_t pages) {
        return std::make_unique<Sampler>(
            model, threads,
            SamplerOptions{.cache_bytes = pages * page_bytes, .token_bytes = letter_of});
    }
    [[nodiscard]] std::vector<std::int32_t> prompt(std::size_t count, std::uint64_t seed) const {
        return support::random_tokens(count, model->config().vocab_size, seed);
    }
    static AskedPtr submit(Sampler& to, SampleRequest request) {
        auto asked = std::make_shared<Asked>();
        request.on_done = [asked](Result<SampleResult> result) {
            ++asked->answers;
            asked->result = std::move(result);
        };
        request.on_token = [asked](std::size_t sample, std::int32_t token, float) {
            asked->tokens[sample].push_back(token);
        };
        auto const id = to.submit(std::move(request));
        EXPECT_TRUE(id) << (id ? "" : id.error().what());
        if (id) asked->id = *id;
        return asked;
    }
    /// What the request gives when nobody else is there.
    SampleResult alone(SampleRequest const& request) {
        auto const quiet = sampler(1000);
        auto const asked = submit(*quiet, request);
        while (quiet->step()) {
        }
        return asked->result.value().value();
    }
    static int steps_until_done(Sampler& with, AskedPtr const& asked, int limit = 1000) {
        int steps = 0;
        while (!asked->done() && steps < limit) {
            (void)with.step();
            ++steps;
        }
        return steps;
    }
    static void expect_same(Asked const& asked, SampleResult const& expected) {
        ASSERT_TRUE(asked.done());
        ASSERT_TRUE(*asked.result) << asked.result->error().what();
        EXPECT_EQ(difference(asked, expected), "");
    }
    /// The first thing that differs; empty if nothing does.
    static std::string difference(Asked const& asked, SampleResult const& expected) {
        auto const& result = asked.result->value();
        if (asked.answers != 1) return "answers";
        if (result.sequences.size() != expected.sequences.size()) return "samples";
        for (std::size_t i = 0; i < expected.sequences.size(); ++i) {
            auto const number = " of sample " + std::to_string(i);
            if (result.sequences[i].tokens != expected.sequences[i].tokens)
                return "tokens" + number;
            if (result.sequences[i].logprobs != expected.sequences[i].logprobs) {
                return "logprobs" + number;
            }
            if (result.sequences[i].cause != expected.sequences[i].cause) return "cause" + number;
            if (asked.tokens.at(i) != expected.sequences[i].tokens) return "callbacks" + number;
        }
        if (result.prompt_logprobs != expected.prompt_logprobs) return "prompt logprobs";
        if (result.topk_prompt_logprobs != expected.topk_prompt_logprobs) return "top logprobs";
        return "";
    }

    /// Many long samples, far more than fit into memory.
    SampleRequest hog(std::string party, std::size_t samples = 1000) const {
        return {.prompt = prompt(10, 1),
                .max_tokens = 200,
                .num_samples = samples,
                .seed = 3,
                .party = std::move(party)};
    }
    SampleRequest one_token(std::string party, std::uint64_t seed = 1) const {
        return {.prompt = prompt(5, seed), .seed = seed, .party = std::move(party)};
    }

    std::shared_ptr<Model const> model =
        support::random_model(support::tiny_configs()[3].second, 3);
    Threads threads{1};
};

TEST_F(FairSamplers, StartANewcomerAtOnceBesideAHogOfAnotherParty) {
    auto const busy = sampler(64);
    (void)submit(*busy, hog("hog"));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    ASSERT_GT(busy->usage().committed, 60U);
    auto const small = submit(*busy, one_token("small"));
    EXPECT_LE(steps_until_done(*busy, small), 1);
    expect_same(*small, alone(one_token("small")));
}

TEST_F(FairSamplers, StartANewcomerAtOnceBesideAHogOfItsOwnParty) {
    auto const busy = sampler(64);
    (void)submit(*busy, hog("one"));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    ASSERT_GT(busy->usage().committed, 60U);
    EXPECT_LE(steps_until_done(*busy, submit(*busy, one_token("one"))), 1);
}

TEST_F(FairSamplers, StartNewcomersAtOnceWhereSamplesTakeAllThatAStepMayCost) {
    auto const busy = std::make_unique<Sampler>(
        model, threads,
        SamplerOptions{
            .cache_bytes = 3000 * page_bytes, .prefill_tokens = 64, .decode_tokens = 128});
    (void)submit(*busy, hog("one"));
    for (std::uint64_t i = 0; i < 300; ++i) {
        (void)submit(*busy, {.prompt = prompt(250, 100 + i), .max_tokens = 5, .party = "reader"});
    }
    for (int i = 0; i < 20; ++i) (void)busy->step();
    for (std::uint64_t i = 0; i < 60; ++i) {
        auto const* const party = i % 2 == 0 ? "one" : "small";
        EXPECT_EQ(steps_until_done(*busy, submit(*busy, one_token(party, i))), 1) << i;
    }
}

TEST_F(FairSamplers, StartANewcomerAtOnceBesideManyHogs) {
    auto const busy = sampler(64);
    for (int i = 0; i < 40; ++i) (void)submit(*busy, hog("hog " + std::to_string(i), 20));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    ASSERT_GT(busy->usage().committed, 60U);
    EXPECT_LE(steps_until_done(*busy, submit(*busy, one_token("small"))), 2);
    EXPECT_LE(steps_until_done(*busy, submit(*busy, one_token("hog 7"))), 2);
}

TEST_F(FairSamplers, StartANewcomerAtOnceBesideHundredsOfLongPrompts) {
    for (std::string const party : {"small", "reader"}) {
        auto const busy = sampler(64);
        for (std::uint64_t i = 0; i < 300; ++i) {
            (void)submit(*busy,
                         {.prompt = prompt(250, 100 + i), .max_tokens = 5, .party = "reader"});
        }
        for (int i = 0; i < 5; ++i) (void)busy->step();
        ASSERT_GT(busy->usage().committed, 60U);
        EXPECT_LE(steps_until_done(*busy, submit(*busy, one_token(party))), 2) << party;
    }
}

TEST_F(FairSamplers, StartANewcomerAtOnceBesideManyPartiesWithLongPrompts) {
    auto const busy = sampler(64);
    for (std::uint64_t i = 0; i < 100; ++i) {
        (void)submit(*busy, {.prompt = prompt(250, 100 + i),
                             .max_tokens = 5,
                             .num_samples = 3,
                             .party = "reader " + std::to_string(i)});
    }
    for (int i = 0; i < 5; ++i) (void)busy->step();
    EXPECT_LE(steps_until_done(*busy, submit(*busy, one_token("small"))), 2);
}

TEST_F(FairSamplers, GiveEachPartyATurnInEachStep) {
    auto const busy = sampler(4000);
    (void)submit(*busy, hog("hog"));
    for (int i = 0; i < 10; ++i) (void)busy->step();
    ASSERT_GT(busy->usage().running, 500U);
    auto ask = one_token("small");
    ask.max_tokens = 20;
    EXPECT_LE(steps_until_done(*busy, submit(*busy, ask)), 20);
    ask.party = "hog";
    EXPECT_LE(steps_until_done(*busy, submit(*busy, ask)), 20);
}

TEST_F(FairSamplers, ComputeABoundedNumberOfTokensInAStep) {
    auto const busy = sampler(4000);
    (void)submit(*busy, hog("hog"));
    for (std::uint64_t i = 0; i < 50; ++i) {
        (void)submit(*busy, {.prompt = prompt(250, 100 + i), .max_tokens = 5, .party = "reader"});
    }
    for (int i = 0; i < 50; ++i) {
        auto const before = busy->usage().computed;
        (void)busy->step();
        EXPECT_LE(busy->usage().computed - before, 256U);
    }
}

TEST_F(FairSamplers, ComputeAllSamplesInTurn) {
    auto const busy = sampler(4000);
    auto const asked = submit(*busy, hog("hog", 300));
    while (busy->step() && !asked->done()) {
        std::size_t least = 200;
        std::size_t most = 0;
        for (auto const& [sample, tokens] : asked->tokens) {
            least = std::min(least, tokens.size());
            most = std::max(most, tokens.size());
        }
        if (asked->tokens.size() < 300) continue;
        ASSERT_LE(most, least + 2);
    }
}

TEST_F(FairSamplers, ShareMemoryBetweenTwoHogs) {
    auto const busy = sampler(64);
    auto const first = submit(*busy, hog("first"));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    auto const second = submit(*busy, hog("second"));
    for (int i = 0; i < 30; ++i) (void)busy->step();
    // Four pages for each sample: 16 at once, of which each has half.
    auto const tokens = [](AskedPtr const& asked) {
        std::size_t sum = 0;
        for (auto const& [sample, sampled] : asked->tokens) sum += sampled.size();
        return sum;
    };
    auto const before = std::pair{tokens(first), tokens(second)};
    for (int i = 0; i < 50; ++i) (void)busy->step();
    auto const one = static_cast<double>(tokens(first) - before.first);
    auto const other = static_cast<double>(tokens(second) - before.second);
    EXPECT_GT(other, 0.8 * one);
    EXPECT_GT(one, 0.8 * other);
}

TEST_F(FairSamplers, TakeNothingToAndFroBetweenTwoHogs) {
    auto const busy = sampler(64);
    auto const first = submit(*busy, hog("first"));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    auto const second = submit(*busy, hog("second"));
    for (int i = 0; i < 30; ++i) (void)busy->step();
    auto const suspended = busy->usage().suspended;
    EXPECT_GT(suspended, 0U);
    for (int i = 0; i < 50; ++i) {
        // Nothing is computed twice: each token is a new one of a running sample.
        auto const before = busy->usage().computed;
        (void)busy->step();
        EXPECT_LE(busy->usage().computed - before, busy->usage().running);
        EXPECT_EQ(busy->usage().suspended, suspended);
    }
}

TEST_F(FairSamplers, EndAHogThoughNewcomersKeepTakingItsPages) {
    auto const busy = sampler(15);
    auto ask = hog("hog", 12);
    ask.max_tokens = 100;
    ask.stop_strings = {"abc", "ml"};
    ask.prompt_logprobs = true;
    auto const large = submit(*busy, ask);
    std::size_t suspended = 0;
    for (std::uint64_t i = 0; !large->done() && i < 3000; ++i) {
        (void)busy->step();  // the hog has what there is
        auto small = one_token("small", i);
        small.max_tokens = 3;
        auto const asked = submit(*busy, small);
        (void)busy->step();
        suspended += busy->usage().suspended;
        EXPECT_LE(steps_until_done(*busy, asked), 5) << i;
        EXPECT_LE(busy->usage().committed, 15U);
    }
    EXPECT_GT(suspended, 0U);
    expect_same(*large, alone(ask));
    while (busy->step()) {
    }
    EXPECT_EQ(busy->usage().pinned, 0U);
    EXPECT_EQ(busy->usage().committed, 0U);
}

TEST_F(FairSamplers, ScoreAPromptOnceThoughItIsComputedAgain) {
    SampleRequest const ask{.prompt = prompt(250, 9),
                            .max_tokens = 6,
                            .num_samples = 2,
                            .prompt_logprobs = true,
                            .topk_prompt_logprobs = 3,
                            .party = "scored"};
    auto const expected = alone(ask);
    // Interrupted at any step, in the middle of the prompt and behind it.
    for (int begun = 1; begun < 12; ++begun) {
        Sampler busy{model, threads, {.cache_bytes = 6 * page_bytes, .prefill_tokens = 40}};
        auto const asked = submit(busy, ask);
        for (int i = 0; i < begun; ++i) (void)busy.step();
        auto small = one_token("small");
        small.prompt = prompt(30, 4);
        small.max_tokens = 60;
        auto const other = submit(busy, small);
        (void)busy.step();
        EXPECT_EQ(busy.usage().waiting + busy.usage().suspended > 0, !asked->done()) << begun;
        while (busy.step()) {
        }
        expect_same(*asked, expected);
        expect_same(*other, alone(small));
        EXPECT_EQ(busy.usage().committed, 0U);
    }
}

TEST_F(FairSamplers, FreeEverythingWhenARequestWithSuspendedSamplesIsCancelled) {
    auto const busy = sampler(17);
    auto const large = submit(*busy, hog("hog", 20));
    for (int i = 0; i < 20; ++i) (void)busy->step();
    std::vector<AskedPtr> others;
    for (std::uint64_t i = 0; i < 2; ++i) {
        auto small = one_token("small", i);
        small.max_tokens = 30;
        others.push_back(submit(*busy, small));
    }
    for (int i = 0; i < 3; ++i) (void)busy->step();
    ASSERT_GT(busy->usage().suspended, 0U);
    busy->cancel(large->id);
    EXPECT_EQ(busy->usage().suspended, 0U);
    EXPECT_EQ(busy->usage().committed, 2U);
    EXPECT_EQ(busy->usage().pinned, 2U);
    while (busy->step()) {
    }
    EXPECT_FALSE(large->done());
    for (auto const& other : others) EXPECT_TRUE(other->done());
    EXPECT_EQ(busy->usage().committed, 0U);
    EXPECT_EQ(busy->usage().pinned, 0U);
}

TEST_F(FairSamplers, ServeARequestThatNeedsAllOfMemoryThoughSmallOnesKeepComing) {
    auto const busy = sampler(4);
    SampleRequest const ask{
        .prompt = prompt(120, 2), .max_tokens = 130, .seed = 5, .party = "large"};
    ASSERT_EQ(Sampler::pages_for(120, 130), 4U);
    std::vector<AskedPtr> small;
    auto const more = [&] {
        auto next = one_token("small " + std::to_string(small.size() % 3), small.size());
        next.max_tokens = 20;
        small.push_back(submit(*busy, next));
    };
    for (int i = 0; i < 4; ++i) more();
    (void)busy->step();
    auto const large = submit(*busy, ask);
    for (int i = 0; !large->done() && i < 20000; ++i) {
        (void)busy->step();
        auto const open =
            std::ranges::count_if(small, [](AskedPtr const& one) { return !one->done(); });
        if (open < 4) more();
    }
    expect_same(*large, alone(ask));
    // Nor is any of the small ones forgotten.
    while (busy->step()) {
    }
    EXPECT_TRUE(std::ranges::all_of(small, &Asked::done));
    EXPECT_EQ(busy->usage().committed, 0U);
}

TEST_F(FairSamplers, ReadLongPromptsThoughShortOnesKeepComing) {
    auto const busy = sampler(1000);
    auto const slow = submit(*busy, {.prompt = prompt(250, 2), .max_tokens = 2, .party = "one"});
    int steps = 0;
    for (std::uint64_t i = 0; !slow->done() && steps < 1000; ++steps) {
        for (int k = 0; k < 40; ++k) (void)submit(*busy, one_token("one", ++i));
        (void)busy->step();
    }
    EXPECT_LE(steps, 10);
}

TEST_F(FairSamplers, GiveTheSameBitsInAnyMixOfRequests) {
    EXPECT_TRUE(rc::check([this] {
        auto const pages = *rc::gen::inRange<std::size_t>(4, 24);
        auto const count = *rc::gen::inRange<std::size_t>(1, 14);
        Sampler busy{model,
                     threads,
                     {.cache_bytes = pages * page_bytes,
                      .prefill_tokens = *rc::gen::inRange<std::size_t>(1, 200),
                      .decode_tokens = *rc::gen::inRange<std::size_t>(1, 20),
                      .token_bytes = letter_of}};
        struct Case {
            SampleRequest request{};
            AskedPtr asked{};
            bool cancelled{false};
        };
        std::vector<Case> cases;
        for (std::size_t i = 0; i < count; ++i) {
            auto const length = *rc::gen::inRange<std::size_t>(1, 140);
            SampleRequest ask{.prompt = prompt(length, *rc::gen::inRange<std::uint64_t>(0, 4)),
                              .max_tokens = *rc::gen::inRange<std::size_t>(1, 90),
                              .num_samples = *rc::gen::inRange<std::size_t>(1, 7),
                              .seed = i,
                              .prompt_logprobs = *rc::gen::arbitrary<bool>(),
                              .party = std::string(1, *rc::gen::element('a', 'b', 'c'))};
            if (*rc::gen::arbitrary<bool>()) ask.stop_strings = {"abc", "mm"};
            if (*rc::gen::arbitrary<bool>()) ask.topk_prompt_logprobs = 2;
            if (Sampler::pages_for(length, ask.max_tokens) + 1 > pages) ask.max_tokens = 1;
            cases.push_back({.request = ask, .asked = submit(busy, ask)});
            auto const steps = *rc::gen::inRange(0, 30);
            for (int step = 0; step < steps; ++step) {
                (void)busy.step();
                RC_ASSERT(busy.usage().committed <= pages);
                RC_ASSERT(busy.usage().pinned <= busy.usage().committed);
            }
            auto& some = cases[*rc::gen::inRange<std::size_t>(0, cases.size())];
            if (*rc::gen::inRange(0, 8) == 0 && !some.asked->done()) {
                busy.cancel(some.asked->id);
                some.cancelled = true;
            }
        }
        int steps = 0;
        while (busy.step()) {
            RC_ASSERT(busy.usage().committed <= pages);
            RC_ASSERT(busy.usage().pinned <= busy.usage().committed);
            RC_ASSERT(++steps < 100'000);
        }
        for (auto const& one : cases) {
            RC_ASSERT(one.asked->done() == !one.cancelled);
            if (one.cancelled) continue;
            RC_ASSERT(one.asked->result->has_value());
            RC_ASSERT(difference(*one.asked, alone(one.request)) == "");
        }
        auto const left = busy.usage();
        RC_ASSERT(left.committed == 0U);
        RC_ASSERT(left.pinned == 0U);
        RC_ASSERT(left.waiting == 0U);
        RC_ASSERT(left.running == 0U);
        RC_ASSERT(left.suspended == 0U);
    }));
}

}  // namespace
}  // namespace tinkxx::engine
