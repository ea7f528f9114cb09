#include "engine/engine.hpp"

#include "engine/engine_core.hpp"
#include "support/tiny_models.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::engine {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Where a job's result goes.
template <class T>
using Answer = std::shared_ptr<std::optional<Result<T>>>;

template <class T>
std::string field_of(Answer<T> const& answer) {
    if (!answer->has_value()) return "nothing yet";
    return answer->value() ? "accepted" : std::string(answer->value().error().field());
}

Datum datum(std::size_t tokens, std::uint64_t seed) {
    return {.tokens = support::random_tokens(tokens, 96, seed),
            .targets = support::random_tokens(tokens, 96, seed + 1000),
            .weights = std::vector<float>(tokens, 1.0F)};
}

std::vector<Datum> batch(std::size_t count, std::size_t tokens, std::uint64_t seed) {
    std::vector<Datum> data;
    for (std::size_t i = 0; i < count; ++i) data.push_back(datum(tokens, seed + i));
    return data;
}

class Engines : public ::testing::TestWithParam<Drive> {
protected:
    Engines() { start({}); }

    void start(EngineOptions options) {
        options.drive = GetParam();
        options.threads = 2;
        if (options.piece_tokens == EngineOptions{}.piece_tokens) options.piece_tokens = 32;
        engine.reset();
        engine = std::make_unique<Engine>(clock, options);
        (void)get(LoadModel{.model = "base", .ready = model});
    }

    template <class Job>
    Answer<typename Job::Output> submit(Job job, JobId* id = nullptr) {
        auto answer = std::make_shared<std::optional<Result<typename Job::Output>>>();
        auto const given = engine->submit(
            std::move(job), [answer](Result<typename Job::Output> result) { *answer = result; });
        if (id != nullptr) *id = given;
        return answer;
    }
    /// Lets the engine work until `done()`.
    template <class Predicate>
    void run_until(Predicate done) {
        // The second bound is for an engine that has stopped: far more than any test needs.
        for (int i = 0; !done() && i < 100'000; ++i) {
            if (GetParam() == Drive::loop) {
                clock.advance(1ms);
            } else {
                (void)clock.turn(10s);
            }
        }
        ASSERT_TRUE(done());
    }
    template <class T>
    T wait(Answer<T> const& answer) {
        run_until([&] { return answer->has_value(); });
        return answer->value().value();
    }
    template <class Job>
    typename Job::Output get(Job job) {
        return wait(submit(std::move(job)));
    }
    static Sample sample_of(std::string const& adapter, std::size_t max_tokens = 8) {
        return {
            .adapter = adapter,
            .model = adapter.empty() ? "base" : "",
            .request = {
                .prompt = support::random_tokens(20, 96, 5), .max_tokens = max_tokens, .seed = 3}};
    }

    std::shared_ptr<Model const> model = support::random_model(support::small_config(), 3);
    testing::ManualClock clock{};
    std::unique_ptr<Engine> engine{};
};

/// Where the order of what happens is up to the test alone.
class LoopEngines : public Engines {};

TEST_P(Engines, DoTheJobsOfAnAdapterInTheOrderOfTheirSubmission) {
    // Arrange: the same by hand
    Threads threads{1};
    Trainer trainer{model, threads, {.piece_tokens = 32}};
    std::shared_ptr<Adapter> const adapter = Adapter::create(model, {.rank = 4, .seed = 1}).value();
    auto const data = batch(6, 20, 1);
    auto const sample_now = [&] {
        Sampler sampler{model, threads};
        std::optional<SampleResult> sampled;
        auto request = sample_of("a").request;
        request.adapter = adapter;
        request.on_done = [&](Result<SampleResult> result) { sampled = result.value(); };
        (void)sampler.submit(request).value();
        while (sampler.step()) {
        }
        return sampled.value().sequences[0];
    };
    auto const before = sample_now();
    auto const loss = trainer.forward_backward(*adapter, data, Loss{}).value();
    auto const step = optim_step(*adapter, {.learning_rate = 0.1}, &threads).value();
    auto const after = sample_now();
    ASSERT_NE(before.logprobs, after.logprobs);

    // Act: all at once
    auto const created =
        submit(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4, .seed = 1}});
    auto const first = submit(sample_of("a"));
    auto const backward = submit(ForwardBackward{.adapter = "a", .data = data});
    auto const between = submit(sample_of("a"));
    auto const stepped = submit(OptimStep{.adapter = "a", .params = {.learning_rate = 0.1}});
    auto const second = submit(sample_of("a"));

    // Assert
    EXPECT_EQ(wait(second).sequences[0].logprobs, after.logprobs);
    EXPECT_EQ(wait(first).sequences[0].logprobs, before.logprobs);
    EXPECT_EQ(wait(between).sequences[0].logprobs, before.logprobs);
    EXPECT_EQ(wait(backward).metrics, loss.metrics);
    EXPECT_EQ(wait(stepped).grad_norm, step.grad_norm);
    EXPECT_EQ(wait(created).model, "base");
}

TEST_P(LoopEngines, LetSamplesPassALongBatch) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    std::vector<std::string> order;
    auto const note = [&](std::string name) {
        return [&order, name](auto const&) { order.push_back(name); };
    };
    (void)engine->submit(ForwardBackward{.adapter = "a", .data = batch(60, 30, 1)}, note("batch"));
    (void)engine->submit(sample_of("a", 20), note("sample of the same adapter"));
    (void)engine->submit(sample_of("", 20), note("sample of the bare model"));
    run_until([&] { return order.size() == 3; });
    EXPECT_EQ(order.back(), "batch");
}

TEST_P(LoopEngines, LetBatchesOfDifferentAdaptersTakeTurns) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    (void)get(CreateAdapter{.adapter = "b", .model = "base", .config = {.rank = 4}});
    auto const long_one = submit(ForwardBackward{.adapter = "a", .data = batch(60, 30, 1)});
    auto const short_one = submit(ForwardBackward{.adapter = "b", .data = batch(1, 30, 1)});
    (void)wait(short_one);
    EXPECT_FALSE(long_one->has_value());
    (void)wait(long_one);
}

TEST_P(LoopEngines, NeverBeginAJobThatIsCancelledBefore) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    JobId id = 0;
    (void)get(ForwardBackward{.adapter = "a", .data = batch(2, 20, 1)});
    auto const blocked = submit(ForwardBackward{.adapter = "a", .data = batch(20, 30, 1)});
    auto const step = submit(OptimStep{.adapter = "a"}, &id);
    engine->cancel(id);
    (void)wait(blocked);
    EXPECT_EQ(get(OptimStep{.adapter = "a"}).step, 1);
    EXPECT_FALSE(step->has_value());
    engine->cancel(id);
    engine->cancel(12345);
}

TEST_P(LoopEngines, ComputeABatchThatHasBegunToItsEndEvenIfCancelled) {
    auto const data = batch(40, 30, 1);
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    (void)get(CreateAdapter{.adapter = "b", .model = "base", .config = {.rank = 4}});
    JobId id = 0;
    auto const cancelled = submit(ForwardBackward{.adapter = "a", .data = data}, &id);
    // The samples are computed beside it, so it has begun when one is done.
    (void)get(sample_of("a", 1));
    (void)get(sample_of("a", 1));
    ASSERT_FALSE(cancelled->has_value());
    engine->cancel(id);
    (void)get(ForwardBackward{.adapter = "b", .data = data});
    EXPECT_EQ(get(OptimStep{.adapter = "a"}).grad_norm, get(OptimStep{.adapter = "b"}).grad_norm);
    EXPECT_FALSE(cancelled->has_value());
}

TEST_P(LoopEngines, EndAForwardThatIsCancelled) {
    JobId id = 0;
    auto const cancelled = submit(Forward{.model = "base", .data = batch(200, 30, 1)}, &id);
    (void)get(sample_of("", 1));
    engine->cancel(id);
    auto const next = submit(Forward{.model = "base", .data = batch(1, 30, 1)});
    EXPECT_EQ(wait(next).outputs.size(), 1U);
    EXPECT_FALSE(cancelled->has_value());
}

TEST_P(LoopEngines, FreeTheMemoryOfACancelledSample) {
    // Pages for one sample of 200 tokens, and no more.
    start({.cache_bytes = 4 * 2UL * 2 * 2 * 16 * 64 * 4});
    JobId id = 0;
    std::size_t tokens = 0;
    auto first = sample_of("", 200);
    first.request.on_token = [&](std::size_t, std::int32_t, float) { ++tokens; };
    auto const endless = submit(std::move(first), &id);
    auto const waiting = submit(sample_of("", 200));
    run_until([&] { return tokens > 3; });
    EXPECT_FALSE(waiting->has_value());
    engine->cancel(id);
    EXPECT_EQ(wait(waiting).sequences[0].tokens.size(), 200U);
    EXPECT_FALSE(endless->has_value());
}

TEST_P(Engines, LetRequestsWaitForMemoryAndRefuseOneThatCanNeverFit) {
    start({.cache_bytes = 4 * 2UL * 2 * 2 * 16 * 64 * 4});
    std::vector<Answer<SampleResult>> answers;
    for (int i = 0; i < 5; ++i) answers.push_back(submit(sample_of("", 150)));
    auto const never = submit(sample_of("", 400));
    for (auto const& answer : answers) EXPECT_EQ(wait(answer).sequences[0].tokens.size(), 150U);
    run_until([&] { return never->has_value(); });
    EXPECT_EQ(field_of(never), "max_tokens");
}

TEST_P(Engines, TellOfEachTokenInOrder) {
    std::vector<std::int32_t> told;
    auto job = sample_of("", 12);
    job.request.on_token = [&](std::size_t, std::int32_t token, float) { told.push_back(token); };
    auto const result = get(std::move(job));
    EXPECT_EQ(told, result.sequences[0].tokens);
}

TEST_P(Engines, KeepACopyAsItWas) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 0}});
    (void)get(CopyAdapter{.adapter = "a", .to = "copy"});
    auto const before = get(sample_of("copy"));
    (void)get(ForwardBackward{.adapter = "a", .data = batch(3, 20, 1)});
    (void)get(OptimStep{.adapter = "a", .params = {.learning_rate = 0.1}});
    EXPECT_EQ(get(sample_of("copy")).sequences[0].logprobs, before.sequences[0].logprobs);
    EXPECT_NE(get(sample_of("a")).sequences[0].logprobs, before.sequences[0].logprobs);
}

TEST_P(Engines, GoOnFromASavedAdapter) {
    // Of this process: the other instance of this test may run at the same time.
    auto const folder =
        fs::path(::testing::TempDir()) / ("engine_saved_adapter." + std::to_string(::getpid()));
    fs::remove_all(folder);
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4, .seed = 2}});
    (void)get(ForwardBackward{.adapter = "a", .data = batch(3, 20, 1)});
    auto const saved =
        submit(SaveAdapter{.adapter = "a", .folder = folder, .state = OptimizerState::with});
    auto const step = get(OptimStep{.adapter = "a", .params = {.learning_rate = 0.1}});
    ASSERT_TRUE(saved->value());
    (void)get(LoadAdapter{
        .adapter = "b", .model = "base", .folder = folder, .state = OptimizerState::with});
    auto const again = get(OptimStep{.adapter = "b", .params = {.learning_rate = 0.1}});
    EXPECT_EQ(again.grad_norm, step.grad_norm);
    EXPECT_EQ(get(sample_of("a")).sequences[0].logprobs, get(sample_of("b")).sequences[0].logprobs);
    fs::remove_all(folder);
}

TEST_P(Engines, NameWhatIsWrong) {
    auto const field = [&](auto job) {
        auto const answer = submit(std::move(job));
        run_until([&] { return answer->has_value(); });
        return field_of(answer);
    };
    CreateAdapter const create{.adapter = "a", .model = "base", .config = {.rank = 4}};
    EXPECT_EQ(field(create), "accepted");
    EXPECT_EQ(field(create), "model_id");
    EXPECT_EQ(field(CreateAdapter{.adapter = "b", .model = "other"}), "base_model");
    EXPECT_EQ(field(CreateAdapter{.adapter = "b", .model = "base", .config = {.rank = -1}}),
              "rank");
    EXPECT_EQ(field(LoadModel{.model = "base", .ready = model}), "base_model");
    EXPECT_EQ(field(LoadModel{.model = "none", .folder = "no/such/folder"}), "folder");
    EXPECT_EQ(field(sample_of("b")), "model_id");
    EXPECT_EQ(field(Sample{.adapter = "a", .model = "base"}), "model_id");
    EXPECT_EQ(field(Sample{.model = "other"}), "base_model");
    EXPECT_EQ(field(Forward{.data = batch(1, 2, 1)}), "model_id");
    EXPECT_EQ(field(ForwardBackward{.adapter = "a"}), "data");
    EXPECT_EQ(field(ForwardBackward{.adapter = "b", .data = batch(1, 2, 1)}), "model_id");
    EXPECT_EQ(field(ForwardBackward{.data = batch(1, 2, 1)}), "model_id");
    EXPECT_EQ(field(OptimStep{.adapter = "b"}), "model_id");
    EXPECT_EQ(field(CopyAdapter{.adapter = "a", .to = "a"}), "model_id");
    EXPECT_EQ(field(DropAdapter{.adapter = "a"}), "accepted");
    EXPECT_EQ(field(DropAdapter{.adapter = "a"}), "model_id");
    EXPECT_EQ(field(create), "accepted");
    auto huge = sample_of("a");
    huge.request.num_samples = std::size_t{1} << 60U;
    EXPECT_NE(field(std::move(huge)), "accepted");
}

TEST_P(Engines, TellNobodyAnythingOnceTheyAreGone) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    std::vector<Answer<BatchResult>> answers;
    for (int i = 0; i < 5; ++i) {
        answers.push_back(submit(ForwardBackward{.adapter = "a", .data = batch(30, 30, 1)}));
    }
    (void)get(sample_of("a", 1));
    engine.reset();
    auto const told = [&] {
        return std::ranges::count_if(answers,
                                     [](auto const& answer) { return answer->has_value(); });
    };
    auto const before = told();
    while (clock.run_ready()) {
    }
    EXPECT_EQ(told(), before);
}

TEST_P(Engines, SurviveCancellationAtAnyMoment) {
    (void)get(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = 4}});
    for (int i = 0; i < 20; ++i) {
        JobId batch_id = 0;
        JobId forward_id = 0;
        JobId sample_id = 0;
        auto const trained =
            submit(ForwardBackward{.adapter = "a", .data = batch(4, 30, 1)}, &batch_id);
        auto const passed = submit(Forward{.model = "base", .data = batch(4, 30, 1)}, &forward_id);
        auto const sampled = submit(sample_of("a", 20), &sample_id);
        for (int k = 0; k < i % 5; ++k) (void)get(sample_of("", 1));
        engine->cancel(batch_id);
        engine->cancel(forward_id);
        engine->cancel(sample_id);
        bool const told = trained->has_value();
        (void)get(OptimStep{.adapter = "a"});
        EXPECT_EQ(trained->has_value(), told);
    }
    EXPECT_EQ(get(sample_of("a", 5)).sequences[0].tokens.size(), 5U);
}

TEST_P(Engines, MayBeDestroyedInACallback) {
    bool told = false;
    (void)engine->submit(sample_of("", 3), [&](auto const&) {
        engine.reset();
        told = true;
    });
    (void)submit(sample_of("", 30));
    run_until([&] { return told; });
}

INSTANTIATE_TEST_SUITE_P(Drives, Engines, ::testing::Values(Drive::own_threads, Drive::loop),
                         [](auto const& drive) {
                             return drive.param == Drive::loop ? "Loop" : "OwnThreads";
                         });

INSTANTIATE_TEST_SUITE_P(Drives, LoopEngines, ::testing::Values(Drive::loop),
                         [](auto const&) { return "Loop"; });

TEST(EngineCore, LetsSamplesInBetweenTheLayersOfALongText) {
    auto const job = [](JobId id, auto asked, auto done) {
        auto entry = std::make_shared<JobEntry>();
        entry->id = id;
        entry->ticket = Ticket<decltype(asked)>{.job = std::move(asked), .done = std::move(done)};
        return entry;
    };
    std::vector<std::string> order;
    auto const note = [&](std::string name) {
        return [&order, name](auto const&) { order.push_back(name); };
    };
    std::chrono::nanoseconds time{0};
    int asked = 0;
    JobPtr late;
    std::unique_ptr<EngineCore> core;
    core = std::make_unique<EngineCore>(
        CoreOptions{.threads = 1,
                    .clock = [&] { return time += 1ms; },
                    .deliver = [](Task task) { task(); },
                    // The sample comes when the text has been begun.
                    .intake =
                        [&] {
                            if (late != nullptr && ++asked == 2)
                                core->accept(std::exchange(late, nullptr));
                        }});
    auto const model = support::random_model(support::small_config(), 3);
    core->accept(job(1, LoadModel{.model = "base", .ready = model}, note("model")));
    core->accept(job(2, CreateAdapter{.adapter = "a", .model = "base"}, note("adapter")));
    while (core->step()) {
    }
    core->accept(job(3, ForwardBackward{.adapter = "a", .data = batch(1, 400, 1)}, note("batch")));
    late = job(4, Sample{.model = "base", .request = {.prompt = support::random_tokens(20, 96, 5)}},
               note("sample"));
    EXPECT_TRUE(core->step());
    EXPECT_EQ(order, (std::vector<std::string>{"model", "adapter", "sample", "batch"}));
}

TEST(LoopEngine, TakesTheTimeOfItsTokens) {
    testing::ManualClock clock;
    Engine engine{clock, {.drive = Drive::loop, .token_time = 1ms}};
    std::optional<Result<SampleResult>> answer;
    (void)engine.submit(
        LoadModel{.model = "base", .ready = support::random_model(support::small_config(), 3)},
        [](auto const&) {});
    clock.run_ready();
    (void)engine.submit(
        Sample{.model = "base",
               .request = {.prompt = support::random_tokens(10, 96, 5), .max_tokens = 5}},
        [&](Result<SampleResult> result) { answer = std::move(result); });
    clock.advance(13ms);
    EXPECT_FALSE(answer);
    // Ten tokens of the prompt, and four of the five sampled ones are fed back.
    clock.advance(1ms);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->has_value());
    EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST(EngineLog, SaysWhichInstructionsAreUsed) {
    testing::ManualClock clock;
    std::string lines;
    Engine const engine{clock, {.drive = Drive::loop, .log = [&](LogLevel, std::string_view line) {
                                    lines += std::string(line) + "\n";
                                }}};
    EXPECT_NE(lines.find("instruction set " + std::string(engine.instruction_set())),
              std::string::npos);
}

}  // namespace
}  // namespace tinkxx::engine
