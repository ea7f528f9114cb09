#include "engine/sample/sampler.hpp"

#include "engine/train/trainer.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace tinkxx::engine {
namespace {

constexpr std::size_t small_page_bytes = 2UL * 2 * 2 * 16 * 64 * 4;

std::shared_ptr<Adapter> some_adapter(std::shared_ptr<Model const> const& model, int rank,
                                      std::uint64_t seed) {
    std::shared_ptr<Adapter> adapter = Adapter::create(model, {.rank = rank, .seed = seed}).value();
    std::uint64_t number = 0;
    for (auto* matrix : all_matrices(adapter->parameters())) {
        ++number;
        for (std::size_t i = 0; i < matrix->values().size(); ++i) {
            matrix->values()[i] +=
                0.05F * static_cast<float>(uniform(seed, 1000 + number, i) - 0.5);
        }
    }
    return adapter;
}

void run_all(Sampler& sampler) {
    while (sampler.step()) {
    }
}

/// Where a request's result goes.
using Answer = std::shared_ptr<std::optional<Result<SampleResult>>>;

Answer submit(Sampler& sampler, SampleRequest request) {
    auto answer = std::make_shared<std::optional<Result<SampleResult>>>();
    request.on_done = [answer](Result<SampleResult> result) { *answer = std::move(result); };
    auto const id = sampler.submit(std::move(request));
    EXPECT_TRUE(id) << id.error().what();
    return answer;
}

SampleResult sample(Sampler& sampler, SampleRequest request) {
    auto const answer = submit(sampler, std::move(request));
    run_all(sampler);
    return answer->value().value();
}

void expect_same(SampleResult const& a, SampleResult const& b) {
    ASSERT_EQ(a.sequences.size(), b.sequences.size());
    for (std::size_t i = 0; i < a.sequences.size(); ++i) {
        EXPECT_EQ(a.sequences[i].tokens, b.sequences[i].tokens) << i;
        EXPECT_EQ(a.sequences[i].logprobs, b.sequences[i].logprobs) << i;
        EXPECT_EQ(a.sequences[i].cause, b.sequences[i].cause) << i;
    }
    EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
    EXPECT_EQ(a.topk_prompt_logprobs, b.topk_prompt_logprobs);
}

class Samplers : public testing::Test {
protected:
    Samplers() : Samplers{support::random_model(support::small_config(), 3)} {}
    explicit Samplers(std::shared_ptr<Model const> of) : model{std::move(of)} {}

    std::shared_ptr<Model const> model;
    Threads threads{2};

    std::vector<std::int32_t> prompt(std::size_t count, std::uint64_t seed) const {
        return support::random_tokens(count, model->config().vocab_size, seed);
    }
};

/// Once for each type whose products have a path of their own.
class SamplersOfEachType : public Samplers, public testing::WithParamInterface<ElementType> {
protected:
    SamplersOfEachType()
        : Samplers{GetParam() == ElementType::bf16
                       ? support::random_bf16_model(support::small_config(), 3)
                       : support::random_model(support::small_config(), 3)} {}
};
INSTANTIATE_TEST_SUITE_P(Types, SamplersOfEachType,
                         testing::Values(ElementType::f32, ElementType::bf16),
                         [](auto const& variant) {
                             return variant.param == ElementType::bf16 ? "bf16" : "f32";
                         });

TEST_P(SamplersOfEachType, GiveARequestTheSameBitsAloneAndAmongFiftyOthers) {
    auto const lora = some_adapter(model, 4, 1);
    auto const other = some_adapter(model, 2, 2);
    auto const full = some_adapter(model, 0, 3);
    for (auto const& adapter : {std::shared_ptr<Adapter>{}, lora, full}) {
        SampleRequest const ask{.adapter = adapter,
                                .prompt = prompt(150, 5),
                                .filter = {.temperature = 0.9, .top_k = 40, .top_p = 0.95},
                                .max_tokens = 70,
                                .num_samples = 3,
                                .seed = 11,
                                .prompt_logprobs = true,
                                .topk_prompt_logprobs = 3};
        Threads one{1};
        Sampler lonely{model, one};
        auto const alone = sample(lonely, ask);

        Threads three{3};
        Sampler busy{model, three, {.prefill_tokens = 100}};
        std::vector<Answer> answers;
        for (std::uint64_t i = 0; i < 50; ++i) {
            std::array<std::shared_ptr<Adapter>, 4> const adapters{nullptr, lora, other, full};
            answers.push_back(submit(busy, {.adapter = adapters[i % 4],
                                            .prompt = prompt(1 + 7 * i, 100 + i),
                                            .max_tokens = 1 + i,
                                            .seed = i}));
            if (i == 20) {
                for (int k = 0; k < 5; ++k) (void)busy.step();
                answers.push_back(submit(busy, ask));
            }
        }
        run_all(busy);
        expect_same(answers.at(21)->value().value(), alone);
    }
}

TEST_P(SamplersOfEachType, ScorePromptsAsTheTrainerDoes) {
    auto const adapter = some_adapter(model, 4, 1);
    auto const tokens = prompt(200, 9);
    Datum const datum{.tokens = {tokens.begin(), tokens.end() - 1},
                      .targets = {tokens.begin() + 1, tokens.end()},
                      .weights = std::vector<float>(199, 1.0F)};
    Trainer trainer{model, threads};
    auto const scores = trainer.forward(adapter.get(), {&datum, 1}, Loss{}).value();
    Sampler sampler{model, threads};
    auto const result =
        sample(sampler, {.adapter = adapter, .prompt = tokens, .prompt_logprobs = true});
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        EXPECT_EQ(result.prompt_logprobs[i].value(), scores.outputs[0].logprobs[i - 1]) << i;
    }
}

TEST_F(Samplers, DrawEachSampleFromItsOwnSeed) {
    Sampler sampler{model, threads};
    SampleRequest ask{.prompt = prompt(20, 1), .max_tokens = 30, .num_samples = 8, .seed = 3};
    auto const first = sample(sampler, ask);
    expect_same(sample(sampler, ask), first);
    EXPECT_NE(first.sequences[0].tokens, first.sequences[1].tokens);
    ask.seed = 4;
    EXPECT_NE(sample(sampler, ask).sequences[0].tokens, first.sequences[0].tokens);
    // A sample is the same whether others of its request are asked for or not.
    ask.seed = 3;
    ask.num_samples = 2;
    EXPECT_EQ(sample(sampler, ask).sequences[1].tokens, first.sequences[1].tokens);
}

TEST_F(Samplers, ChooseTheMostLikelyTokenAtTemperatureZero) {
    Sampler sampler{model, threads};
    Trainer trainer{model, threads};
    auto tokens = prompt(30, 2);
    auto const result =
        sample(sampler, {.prompt = tokens, .filter = {.temperature = 0.0}, .max_tokens = 40});
    for (auto const token : result.sequences[0].tokens) {
        auto const logits = trainer.logits(nullptr, tokens).value();
        auto const last = logits.end() - model->config().vocab_size;
        ASSERT_EQ(token, std::max_element(last, logits.end()) - last);
        tokens.push_back(token);
    }
}

TEST_F(Samplers, StopAtATokenAndIncludeIt) {
    Sampler sampler{model, threads};
    SampleRequest ask{.prompt = prompt(20, 1), .max_tokens = 60, .seed = 3};
    auto const free = sample(sampler, ask).sequences[0];
    EXPECT_EQ(free.cause, StopCause::length);
    EXPECT_EQ(free.tokens.size(), 60U);
    auto const stop = free.tokens[17];
    auto const expected =
        std::ranges::find(free.tokens, stop) - free.tokens.begin() + std::ptrdiff_t{1};
    ask.stop_tokens = {stop};
    auto const stopped = sample(sampler, ask).sequences[0];
    EXPECT_EQ(stopped.cause, StopCause::stop);
    EXPECT_TRUE(std::ranges::equal(
        stopped.tokens, std::span{free.tokens}.first(static_cast<std::size_t>(expected))));
    EXPECT_EQ(stopped.logprobs.size(), stopped.tokens.size());
}

TEST_F(Samplers, StopAtAStringThatSpansTokens) {
    std::vector<std::string> texts;
    for (int i = 0; i < 96; ++i) texts.push_back("<" + std::to_string(i) + ">");
    SamplerOptions const options{.token_bytes = [&](std::int32_t token) -> std::string_view {
        return texts[static_cast<std::size_t>(token)];
    }};
    Sampler sampler{model, threads, options};
    SampleRequest ask{.prompt = prompt(20, 1), .max_tokens = 40, .seed = 3};
    auto const free = sample(sampler, ask).sequences[0].tokens;
    auto const text = [&](std::size_t i) { return texts[static_cast<std::size_t>(free[i])]; };
    ask.stop_strings = {"never", text(9).substr(1) + text(10) + text(11).substr(0, 2)};
    auto const stopped = sample(sampler, ask).sequences[0];
    EXPECT_EQ(stopped.cause, StopCause::stop);
    EXPECT_EQ(stopped.tokens, (std::vector<std::int32_t>{free.begin(), free.begin() + 12}));
}

TEST_F(Samplers, CallBackForEachTokenInOrder) {
    Sampler sampler{model, threads};
    std::map<std::size_t, std::vector<std::int32_t>> seen;
    SampleRequest ask{.prompt = prompt(70, 1), .max_tokens = 9, .num_samples = 4, .seed = 3};
    ask.on_token = [&](std::size_t index, std::int32_t token, float) {
        seen[index].push_back(token);
    };
    auto const result = sample(sampler, ask);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(seen[i], result.sequences[i].tokens);
}

TEST_F(Samplers, ComputeASharedPromptOnce) {
    Sampler sampler{model, threads, {.cache_bytes = 200 * small_page_bytes}};
    SampleRequest ask{.prompt = prompt(200, 1), .max_tokens = 2, .num_samples = 64, .seed = 3};
    auto const answer = submit(sampler, ask);
    EXPECT_TRUE(sampler.step());  // the prompt
    // Three full pages are shared; the fourth is each sample's own.
    EXPECT_EQ(sampler.usage().running, 64U);
    EXPECT_EQ(sampler.usage().pinned, 3U + 64U);
    run_all(sampler);
    EXPECT_EQ(sampler.usage().pinned, 0U);
    auto const first = answer->value().value();
    EXPECT_EQ(first.cached_tokens, 0U);
    // A later request with the same beginning finds it.
    auto later = ask;
    later.num_samples = 1;
    auto const again = sample(sampler, later);
    EXPECT_EQ(again.cached_tokens, 192U);
    EXPECT_EQ(again.sequences[0].tokens, first.sequences[0].tokens);
    EXPECT_EQ(again.sequences[0].logprobs, first.sequences[0].logprobs);
    // One of another adapter does not.
    later.adapter = some_adapter(model, 2, 1);
    EXPECT_EQ(sample(sampler, later).cached_tokens, 0U);
}

TEST_F(Samplers, ComputeEqualBeginningsOnceEvenIfAskedForAtTheSameTime) {
    Sampler sampler{model, threads, {.prefill_tokens = 4096}};
    auto const start = prompt(130, 1);
    std::vector<Answer> answers;
    for (std::int32_t i = 0; i < 4; ++i) {
        auto tokens = start;
        tokens.push_back(i);
        answers.push_back(submit(sampler, {.prompt = tokens, .max_tokens = 2}));
    }
    run_all(sampler);
    std::size_t cached = 0;
    for (auto const& answer : answers) cached += answer->value().value().cached_tokens;
    EXPECT_EQ(cached, 3U * 128U);
}

TEST_F(Samplers, ContinueAConversationFromItsPages) {
    Sampler sampler{model, threads};
    auto tokens = prompt(50, 1);
    auto const turn = sample(sampler, {.prompt = tokens, .max_tokens = 100, .seed = 1});
    tokens.insert(tokens.end(), turn.sequences[0].tokens.begin(), turn.sequences[0].tokens.end());
    tokens.push_back(5);
    SampleRequest const ask{.prompt = tokens, .max_tokens = 20, .seed = 2};
    auto const next = sample(sampler, ask);
    EXPECT_EQ(next.cached_tokens, 128U);
    Sampler fresh{model, threads};
    auto const plain = sample(fresh, ask);
    EXPECT_EQ(plain.cached_tokens, 0U);
    EXPECT_EQ(next.sequences[0].tokens, plain.sequences[0].tokens);
    EXPECT_EQ(next.sequences[0].logprobs, plain.sequences[0].logprobs);
}

TEST_F(Samplers, LetNobodyWaitForALongPrompt) {
    Sampler sampler{model, threads, {.prefill_tokens = 128}};
    auto const slow = submit(sampler, {.prompt = prompt(500, 1), .max_tokens = 2});
    auto const quick = submit(sampler, {.prompt = prompt(10, 2), .max_tokens = 3});
    for (int i = 0; i < 3; ++i) (void)sampler.step();
    EXPECT_TRUE(quick->has_value());
    EXPECT_FALSE(slow->has_value());
    run_all(sampler);
    EXPECT_TRUE(slow->has_value());
}

TEST_F(Samplers, ServeThoseFirstWhoCameFirst) {
    Sampler sampler{model, threads};
    std::vector<std::uint64_t> ended;
    for (std::uint64_t i = 0; i < 200; ++i) {
        SampleRequest ask{.prompt = prompt(50, i), .max_tokens = 2};
        ask.on_done = [&ended, i](Result<SampleResult> const&) { ended.push_back(i); };
        ASSERT_TRUE(sampler.submit(std::move(ask)));
    }
    // Five fit into a step, and a part of the sixth, which is ended before others are begun.
    while (sampler.step()) EXPECT_LE(sampler.usage().pinned, 16U);
    ASSERT_EQ(ended.size(), 200U);
    for (std::uint64_t i = 0; i < 200; ++i) {
        EXPECT_LE(ended[i], i + 8) << i;
        EXPECT_GE(ended[i] + 8, i) << i;
    }
}

TEST_F(Samplers, LetRequestsWaitForMemoryAndGiveTheSameResults) {
    Sampler roomy{model, threads};
    Sampler tight{model, threads, {.cache_bytes = 5 * small_page_bytes}};
    std::vector<Answer> wide;
    std::vector<Answer> narrow;
    for (std::uint64_t i = 0; i < 12; ++i) {
        SampleRequest const ask{
            .prompt = prompt(60 + 5 * i, i), .max_tokens = 60, .num_samples = 1 + i % 3, .seed = i};
        wide.push_back(submit(roomy, ask));
        narrow.push_back(submit(tight, ask));
    }
    run_all(roomy);
    (void)tight.step();
    EXPECT_GT(tight.usage().waiting, 0U);
    while (tight.step()) EXPECT_LE(tight.usage().pinned, 5U);
    for (std::size_t i = 0; i < wide.size(); ++i) {
        expect_same(narrow[i]->value().value(), wide[i]->value().value());
    }
    EXPECT_EQ(tight.usage().pinned, 0U);
}

TEST_F(Samplers, RefuseWhatCanNeverFit) {
    Sampler sampler{model, threads, {.cache_bytes = 2 * small_page_bytes}};
    auto const never = sampler.submit({.prompt = prompt(100, 1), .max_tokens = 60});
    ASSERT_FALSE(never);
    EXPECT_NE(std::string(never.error().what()).find("never"), std::string::npos);
    EXPECT_TRUE(sampler.submit({.prompt = prompt(100, 1), .max_tokens = 29}));
    EXPECT_FALSE(sampler.submit({.prompt = prompt(100, 1), .max_tokens = 29, .num_samples = 2}));
    EXPECT_TRUE(sampler.submit({.prompt = prompt(60, 1), .max_tokens = 3, .num_samples = 2}));
    run_all(sampler);
    EXPECT_EQ(sampler.usage().pinned, 0U);
}

TEST_F(Samplers, RefuseRequestsThatAreWrong) {
    Sampler sampler{model, threads};
    auto const field = [&](SampleRequest const& ask) {
        auto const id = sampler.submit(ask);
        return id ? std::string("accepted") : std::string(id.error().field());
    };
    EXPECT_EQ(field({}), "prompt");
    EXPECT_EQ(field({.prompt = {96}}), "prompt");
    EXPECT_EQ(field({.prompt = {-1}}), "prompt");
    EXPECT_EQ(field({.prompt = {1}, .max_tokens = 0}), "max_tokens");
    EXPECT_EQ(field({.prompt = {1}, .max_tokens = 513}), "max_tokens");
    EXPECT_EQ(field({.prompt = {1}, .max_tokens = ~std::size_t{0}}), "max_tokens");
    EXPECT_EQ(field({.prompt = {1}, .num_samples = 0}), "num_samples");
    EXPECT_EQ(field({.prompt = {1}, .filter = {.temperature = -1.0}}), "temperature");
    EXPECT_EQ(
        field({.prompt = {1}, .filter = {.temperature = std::numeric_limits<double>::quiet_NaN()}}),
        "temperature");
    EXPECT_EQ(field({.prompt = {1}, .filter = {.top_p = 1.5}}), "top_p");
    EXPECT_EQ(field({.prompt = {1}, .stop_strings = {"x"}}), "stop");
    EXPECT_EQ(field({.prompt = {1}, .topk_prompt_logprobs = 97}), "topk_prompt_logprobs");
    auto const foreign = some_adapter(support::random_model(support::small_config(), 8), 2, 1);
    EXPECT_EQ(field({.adapter = foreign, .prompt = {1}}), "model_path");
}

TEST_F(Samplers, FreePagesAtOnceWhenARequestIsCancelled) {
    Sampler sampler{model, threads};
    bool called = false;
    SampleRequest ask{.prompt = prompt(100, 1), .max_tokens = 50, .num_samples = 4};
    ask.on_done = [&](Result<SampleResult> const&) { called = true; };
    ask.on_token = [&](std::size_t, std::int32_t, float) { called = true; };
    auto const other = submit(sampler, {.prompt = prompt(10, 1), .max_tokens = 30});
    auto const running = sampler.submit(ask).value();
    for (int i = 0; i < 3; ++i) (void)sampler.step();
    EXPECT_TRUE(called);
    called = false;
    sampler.cancel(running);
    EXPECT_EQ(sampler.usage().pinned, 1U);  // the other request's
    auto const waiting = sampler.submit(ask).value();
    sampler.cancel(waiting);
    EXPECT_EQ(sampler.usage().waiting, 0U);
    run_all(sampler);
    EXPECT_FALSE(called);
    EXPECT_TRUE(other->has_value());
    EXPECT_EQ(sampler.usage().pinned, 0U);
}

TEST_F(Samplers, MayBeCalledFromTheirCallbacks) {
    Sampler sampler{model, threads};
    Sampler::RequestId id = 0;
    std::size_t tokens = 0;
    bool done = false;
    Answer follow_up;
    SampleRequest ask{.prompt = prompt(10, 1), .max_tokens = 50, .num_samples = 3};
    ask.on_token = [&](std::size_t, std::int32_t, float) {
        if (++tokens != 5) return;
        sampler.cancel(id);
        follow_up = submit(sampler, {.prompt = prompt(5, 1), .max_tokens = 4});
    };
    ask.on_done = [&](Result<SampleResult> const&) { done = true; };
    id = sampler.submit(ask).value();
    run_all(sampler);
    EXPECT_EQ(tokens, 5U);
    EXPECT_FALSE(done);
    EXPECT_EQ(follow_up->value().value().sequences[0].tokens.size(), 4U);
}

TEST_F(Samplers, FailWhereWeightsAreNoNumbersAndServeTheOthers) {
    auto const broken = some_adapter(model, 2, 1);
    all_matrices(broken->parameters())[1]->values()[0] = std::numeric_limits<float>::quiet_NaN();
    Sampler sampler{model, threads};
    auto const good = submit(sampler, {.prompt = prompt(100, 1), .max_tokens = 20, .seed = 1});
    auto const bad = submit(sampler, {.adapter = broken, .prompt = prompt(9, 1), .max_tokens = 9});
    run_all(sampler);
    ASSERT_FALSE(bad->value());
    EXPECT_NE(std::string(bad->value().error().what()).find("not finite"), std::string::npos);
    // The pages that held NaN are used again.
    auto const later = sample(sampler, {.prompt = prompt(100, 1), .max_tokens = 20, .seed = 1});
    EXPECT_EQ(later.sequences[0].logprobs, good->value().value().sequences[0].logprobs);
}

}  // namespace
}  // namespace tinkxx::engine
