#include "engine/memory.hpp"

#include "engine/model/checkpoint.hpp"
#include "engine/sample/sampler.hpp"
#include "engine/train/optimizer.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string>

// The peak of the whole process, as the kernel counts it, and how often memory is asked for.

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc{};
}
// (Inlined, they would look to g++ 12 as if `new` and `free` were mixed.)
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    ++allocations;
    auto const step = static_cast<std::size_t>(alignment);
    if (void* const memory = std::aligned_alloc(step, (bytes + step - 1) / step * step)) {
        return memory;
    }
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;

std::optional<std::size_t> kilobytes(std::string const& name) {
    std::ifstream status{"/proc/self/status"};
    std::string word;
    while (status >> word) {
        if (word != name) continue;
        std::size_t value = 0;
        status >> value;
        return value;
    }
    return std::nullopt;
}

/// Bytes that `body` takes at its peak beyond what is resident before it; nothing if the kernel
/// does not tell.
template <class Body>
std::optional<double> peak_of(Body const& body) {
    malloc_trim(0);
    std::ofstream{"/proc/self/clear_refs"} << "5\n";  // the peak begins anew
    auto const before = kilobytes("VmRSS:");
    auto const peak_before = kilobytes("VmHWM:");
    body();
    auto const peak = kilobytes("VmHWM:");
    if (!before || !peak || *peak_before > *before + 1024) return std::nullopt;
    return 1024.0 * static_cast<double>(*peak - *before);
}

/// The shape of a model with three million parameters.
ModelConfig three_million() {
    return {.vocab_size = 1024,
            .hidden_size = 256,
            .intermediate_size = 768,
            .layers = 4,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 64,
            .max_positions = 2048,
            .tied_embeddings = true};
}

Datum datum(std::size_t tokens) {
    auto ids = support::random_tokens(tokens, 1024, tokens);
    return {.tokens = ids, .targets = ids, .weights = std::vector<float>(tokens, 1.0F)};
}

class Memory : public testing::Test {
protected:
    // Made once: drawing its numbers takes longer than most of the tests.
    static std::shared_ptr<Model const> const& shared_model() {
        static auto const made = Model::random(three_million(), ElementType::bf16, 1);
        return made;
    }

    ModelConfig config = three_million();
    std::shared_ptr<Model const> model = shared_model();
};

TEST_F(Memory, OfTrainingPeaksWithinAFifthOfWhatIsStated) {
    for (int const rank : {32, 0}) {
        for (bool const again : {false, true}) {
            TrainOptions const options{.activation_bytes = again ? 1U : std::size_t{1} << 40U};
            LoraConfig const lora{.rank = rank};
            std::vector<Datum> const data{datum(700)};
            auto const measured = peak_of([&] {
                Threads threads{1};
                auto const adapter = Adapter::create(model, lora).value();
                Trainer trainer{model, threads, options};
                (void)trainer.forward_backward(*adapter, data, Loss{}).value();
                (void)optim_step(*adapter, {}, nullptr).value();
            });
            if (!measured) GTEST_SKIP() << "the kernel does not tell the peak";
            auto const stated = static_cast<double>(
                4 * adapter_bytes(config, lora) + training_bytes(config, lora, options, 1, 1, 700));
            EXPECT_LE(*measured, 1.2 * stated) << rank << again;
            EXPECT_GE(*measured, 0.8 * stated) << rank << again;
        }
    }
}

TEST_F(Memory, OfManyPiecesIsThatOfOneForEachThread) {
    LoraConfig const lora{.rank = 8};
    auto const data = std::vector<Datum>(8, datum(128));
    Threads threads{2};
    Trainer trainer{model, threads};
    auto const adapter = Adapter::create(model, lora).value();
    (void)trainer.forward_backward(*adapter, data, Loss{}).value();
    auto const stated =
        training_bytes(config, lora, {}, 2, 8, 128) - 2 * adapter_bytes(config, lora);
    EXPECT_LE(trainer.held_bytes(), stated);
    // One thread may have claimed everything.
    EXPECT_GE(trainer.held_bytes() * 5, stated * 2);
}

TEST_F(Memory, OfSamplingIsThatOfItsKeysAndValues) {
    auto const measured = peak_of([&] {
        Threads threads{1};
        Sampler sampler{model, threads};
        for (std::uint64_t i = 0; i < 20; ++i) {
            (void)sampler.submit({.prompt = support::random_tokens(640, 1024, i), .max_tokens = 2})
                .value();
        }
        while (sampler.step()) {
        }
    });
    if (!measured) GTEST_SKIP() << "the kernel does not tell the peak";
    auto const stated = static_cast<double>(20 * cache_bytes(config, 641));
    EXPECT_LE(*measured, 1.2 * stated);
    EXPECT_GE(*measured, 0.8 * stated);
}

TEST_F(Memory, OfAModelInTwoByteWeightsIsFourBytesAParameterWhileItLoads) {
    auto const folder = fs::path(testing::TempDir()) / "memory_of_a_model";
    ASSERT_TRUE(save_model(folder, config, model->weights(), ElementType::bf16));
    auto const parameters = static_cast<double>(config.parameters());
    EXPECT_LE(static_cast<double>(model_bytes(config, ElementType::bf16)), 2.02 * parameters);
    EXPECT_EQ(model_bytes(config, ElementType::bf16), model->bytes());
    std::shared_ptr<Model const> loaded;
    auto const measured = peak_of([&] { loaded = Model::load(folder).value(); });
    fs::remove_all(folder);
    if (!measured) GTEST_SKIP() << "the kernel does not tell the peak";
    EXPECT_LE(*measured, 4.4 * parameters);
}

TEST_F(Memory, IsNotAskedForWhileSamplesAreDrawn) {
    Threads threads{2};
    std::shared_ptr<Adapter> const adapter = Adapter::create(model, {.rank = 8}).value();
    Sampler sampler{model, threads};
    for (std::uint64_t i = 0; i < 5; ++i) {
        (void)sampler
            .submit({.adapter = i % 2 == 0 ? adapter : nullptr,
                     .prompt = support::random_tokens(20, 1024, i),
                     .filter = {.temperature = 0.8, .top_k = 50, .top_p = 0.9},
                     .max_tokens = 40,
                     .seed = i})
            .value();
    }
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(sampler.step());
    // Each thread has memory of its own, and one may have done everything so far.
    auto least = std::numeric_limits<std::size_t>::max();
    for (int i = 0; i < 5; ++i) {
        auto const before = allocations.load();
        for (int step = 0; step < 5; ++step) ASSERT_TRUE(sampler.step());
        least = std::min(least, allocations.load() - before);
    }
    EXPECT_EQ(least, 0U);
}

TEST_F(Memory, IsNotAskedForWhileABatchIsComputedAgain) {
    auto const data = std::vector<Datum>(6, datum(100));
    Threads threads{2};
    for (int const rank : {8, 0}) {
        auto const adapter = Adapter::create(model, {.rank = rank}).value();
        Trainer trainer{model, threads};
        auto const step = [&] {
            auto run = trainer.begin(adapter.get(), adapter.get(), data, Loss{}).value();
            auto const before = allocations.load();
            while (run.advance(2)) {
            }
            return allocations.load() - before;
        };
        // Each thread has memory of its own, and one may claim everything the first time.
        std::size_t least = step();
        for (int i = 0; i < 4; ++i) least = std::min(least, step());
        EXPECT_EQ(least, 0U) << rank;
        (void)optim_step(*adapter, {}, &threads).value();
    }
}

TEST_F(Memory, IsNotTakenTwiceToSave) {
    auto const folder = fs::path(testing::TempDir()) / "memory_of_saving";
    auto const adapter = Adapter::create(model, {.rank = 0}).value();
    (void)adapter->gradients();
    (void)adapter->moment1();
    (void)adapter->moment2();
    auto const measured =
        peak_of([&] { ASSERT_TRUE(save_adapter(folder, *adapter, "base", OptimizerState::with)); });
    fs::remove_all(folder);
    if (!measured) GTEST_SKIP() << "the kernel does not tell the peak";
    EXPECT_LE(*measured, 0.25 * static_cast<double>(adapter_bytes(config, {.rank = 0})));
}

}  // namespace
}  // namespace tinkxx::engine
