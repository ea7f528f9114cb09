// One measurement of the engine, as JSON. `engine` runs them all and judges them.
//
//   bench_engine train    tokens a second of forward_backward and optim_step, and of its products
//   alone bench_engine sample   tokens a second that are drawn, and of its products alone
//   bench_engine read     bytes a second of reading the weights once, and of drawing one token
//   bench_engine prefill  seconds of one prompt for one sample and for 64
//   bench_engine wait     the longest that a sample waits beside a long batch, in milliseconds
//   bench_engine memory   the peak of training, and what was stated
//
// Options: --shape 3m|100m|600m  --type float32|bfloat16  --threads N  --batch N  --prompt N
//          --tokens N  --rank N  --seconds X

#include "engine/engine.hpp"
#include "engine/kernels/convert.hpp"
#include "engine/kernels/isa/isa.hpp"
#include "engine/kernels/products.hpp"
#include "engine/memory.hpp"
#include "engine/model/pass.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tinkxx::engine;

struct Case {
    std::string name{};
    ModelConfig config{};
    ElementType type{ElementType::f32};
    unsigned threads{1};
    std::size_t batch{16};
    std::size_t prompt{64};
    std::size_t tokens{256};
    int rank{32};
    double seconds{2};
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

ModelConfig shape_named(std::string const& name) {
    if (name == "3m") {
        return {.vocab_size = 1024,
                .hidden_size = 256,
                .intermediate_size = 768,
                .layers = 4,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 64,
                .max_positions = 4096,
                .tied_embeddings = true};
    }
    if (name == "100m") {
        return {.vocab_size = 32000,
                .hidden_size = 768,
                .intermediate_size = 2048,
                .layers = 12,
                .heads = 12,
                .kv_heads = 4,
                .head_dim = 64,
                .max_positions = 4096,
                .tied_embeddings = true};
    }
    if (name == "600m") {
        return {.architecture = Architecture::qwen3,
                .vocab_size = 151936,
                .hidden_size = 1024,
                .intermediate_size = 3072,
                .layers = 28,
                .heads = 16,
                .kv_heads = 8,
                .head_dim = 128,
                .max_positions = 4096,
                .qk_norm = true,
                .tied_embeddings = true};
    }
    throw std::runtime_error{"no shape " + name + "; there are 3m, 100m and 600m"};
}

/// As `Model::random`, but in seconds for large models too.
std::shared_ptr<Model const> random_model(ModelConfig const& config, ElementType type) {
    Weights weights;
    std::uint32_t state = 1;
    auto const slots = weight_slots(config, weights);
    auto arena = arena_for(slots, element_bytes(type));
    for (auto const& slot : slots) {
        bool const as_it_is = slot.vector || type == ElementType::f32;
        *slot.matrix = PackedMatrix(slot.rows, slot.cols, as_it_is ? &arena : nullptr);
        for (auto& value : slot.matrix->values()) {
            state = state * 1664525U + 1013904223U;
            value = slot.vector ? 1.0F : 0.035F * (static_cast<float>(state >> 8U) * 0x1p-23F - 1);
        }
        if (as_it_is) continue;
        auto const values = slot.matrix->values();
        std::vector<std::uint16_t> halves(values.size());
        narrow(halves.data(), type, values.data(), values.size());
        *slot.matrix = PackedMatrix(
            {.type = type, .data = halves.data(), .rows = slot.rows, .cols = slot.cols}, nullptr,
            &arena);
    }
    return std::make_shared<Model const>(config, std::move(weights));
}

std::vector<std::int32_t> random_tokens(std::size_t count, int vocab, std::uint32_t seed) {
    std::vector<std::int32_t> tokens(count);
    for (auto& token : tokens) {
        seed = seed * 1664525U + 1013904223U;
        token = static_cast<std::int32_t>((seed >> 8U) % static_cast<std::uint32_t>(vocab));
    }
    return tokens;
}

std::vector<Datum> random_batch(Case const& c) {
    std::vector<Datum> data;
    for (std::uint32_t i = 0; i < c.batch; ++i) {
        auto tokens = random_tokens(c.tokens, c.config.vocab_size, i + 1);
        data.push_back(
            {.tokens = tokens, .targets = tokens, .weights = std::vector<float>(c.tokens, 1.0F)});
    }
    return data;
}

/// The best of several runs of `body`, at least one, for about the time given.
template <class Body>
double best_seconds(double limit, Body const& body) {
    double best = 1e9;
    auto const begin = now();
    do {
        auto const start = now();
        body();
        best = std::min(best, now() - start);
    } while (now() - begin < limit);
    return best;
}

/// The linear products of rows through a model, and nothing else.
class Products {
public:
    Products(Model const& model, std::size_t rows, int rank)
        : model_{model}, rows_{rows}, rank_{wide(rank)} {
        auto const& config = model.config();
        chunk_ = std::min(rows, std::clamp<std::size_t>(
                                    (std::size_t{4} << 20U) / wide(config.vocab_size), 8, 256));
        auto const most = std::max(
            rows * wide(std::max({config.intermediate_size, config.q_size(), config.hidden_size})),
            chunk_ * wide(config.vocab_size));
        x_.assign(most, 0.01F);
        y_.assign(most, 0.01F);
        dx_.assign(most, 0);
        h_.assign(rows * std::max<std::size_t>(rank_, 1), 0.01F);
        dh_ = h_;
        if (rank > 0) {
            adapter_ =
                Adapter::create(std::shared_ptr<Model const>(std::shared_ptr<void>{}, &model),
                                {.rank = rank})
                    .value();
            (void)adapter_->gradients();
        }
    }

    void run(bool backward, Threads* threads) {
        auto const& weights = model_.weights();
        for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
            for (auto const module : all_modules) {
                auto const index = static_cast<std::size_t>(module);
                LoraPair* pair = nullptr;
                LoraPair* gradient = nullptr;
                if (adapter_ != nullptr) {
                    pair =
                        &std::get<LoraWeights>(adapter_->parameters()).layers[layer].modules[index];
                    gradient =
                        &std::get<LoraWeights>(adapter_->gradients()).layers[layer].modules[index];
                }
                linear(weights.layers[layer][module], pair, gradient, rows_, backward, threads);
            }
        }
        LoraPair* pair = nullptr;
        LoraPair* gradient = nullptr;
        if (adapter_ != nullptr) {
            pair = &std::get<LoraWeights>(adapter_->parameters()).head;
            gradient = &std::get<LoraWeights>(adapter_->gradients()).head;
        }
        for (std::size_t begin = 0; begin < rows_; begin += chunk_) {
            linear(weights.unembedding(), pair, gradient, std::min(chunk_, rows_ - begin), backward,
                   threads);
        }
    }

private:
    void linear(PackedMatrix const& w, LoraPair* pair, LoraPair* gradient, std::size_t rows,
                bool backward, Threads* threads) {
        MatrixView const x{x_.data(), rows, w.inputs()};
        MatrixView const y{y_.data(), rows, w.outputs()};
        // Apart, or what is multiplied would vanish or grow from one product to the next.
        MatrixView const dx{dx_.data(), rows, w.inputs()};
        MatrixView const h{h_.data(), rows, rank_};
        MatrixView const dh{dh_.data(), rows, rank_};
        forward(y, x, w, Write::set, nullptr, worth(threads, rows, w));
        if (pair != nullptr) {
            forward(h, x, pair->a, Write::set, nullptr, worth(threads, rows, pair->a));
            forward(y, h, pair->b, Write::add, nullptr, worth(threads, rows, pair->b));
        }
        if (!backward) return;
        if (pair != nullptr) {
            backward_input(dh, y, pair->b, Write::set, worth(threads, rows, pair->b));
            backward_weight(gradient->b, y, h, worth(threads, rows, pair->b));
            backward_weight(gradient->a, dh, x, worth(threads, rows, pair->a));
            backward_input(dx, dh, pair->a, Write::set, worth(threads, rows, pair->a));
        }
        backward_input(dx, y, w, pair != nullptr ? Write::add : Write::set,
                       worth(threads, rows, w));
    }

    Model const& model_;
    std::size_t rows_;
    std::size_t rank_;
    std::size_t chunk_{0};
    std::vector<float> x_{};
    std::vector<float> y_{};
    std::vector<float> dx_{};
    std::vector<float> h_{};
    std::vector<float> dh_{};
    std::unique_ptr<Adapter> adapter_{};
};

using Report = std::map<std::string, double>;

Report measure_train(Case const& c) {
    auto const model = random_model(c.config, c.type);
    Threads threads{c.threads};
    Trainer trainer{model, threads};
    auto const adapter = Adapter::create(model, {.rank = c.rank}).value();
    auto const data = random_batch(c);
    auto const step = [&] {
        (void)trainer.forward_backward(*adapter, data, Loss{}).value();
        (void)optim_step(*adapter, {}, &threads).value();
    };
    step();
    auto const total = static_cast<double>(c.batch * c.tokens);
    auto const ours = total / best_seconds(c.seconds, step);

    // Pieces of 256 tokens, as the trainer cuts them, on the threads as it uses them.
    auto const rows = std::max<std::size_t>(c.tokens, 256 / c.tokens * c.tokens);
    auto const pieces = std::max<std::size_t>(1, c.batch * c.tokens / rows);
    double alone = 0;
    if (pieces >= threads.count() && threads.count() > 1) {
        std::vector<std::unique_ptr<Products>> sets;
        for (unsigned i = 0; i < threads.count(); ++i) {
            sets.push_back(std::make_unique<Products>(*model, rows, c.rank));
        }
        alone = total / best_seconds(c.seconds, [&] {
                    threads.run(pieces, [&](std::size_t, unsigned slot) {
                        sets[slot]->run(true, nullptr);
                    });
                });
    } else {
        Products set{*model, rows, c.rank};
        alone = total / best_seconds(c.seconds, [&] {
                    for (std::size_t i = 0; i < pieces; ++i) set.run(true, &threads);
                });
    }
    return {{"tokens_per_second", ours}, {"products_per_second", alone}};
}

void draw_all(Sampler& sampler, Case const& c, std::shared_ptr<Adapter> const& adapter,
              std::uint32_t seed) {
    for (std::uint32_t i = 0; i < c.batch; ++i) {
        (void)sampler
            .submit({.adapter = adapter,
                     .prompt = random_tokens(c.prompt, c.config.vocab_size, seed + i),
                     .max_tokens = c.tokens,
                     .seed = i})
            .value();
    }
    while (sampler.step()) {
    }
}

Report measure_sample(Case const& c) {
    auto const model = random_model(c.config, c.type);
    Threads threads{c.threads};
    std::shared_ptr<Adapter> adapter;
    if (c.rank > 0) adapter = Adapter::create(model, {.rank = c.rank}).value();
    Sampler sampler{model, threads};
    std::uint32_t seed = 1;
    auto const drawn = static_cast<double>(c.batch * c.tokens);
    auto const ours =
        drawn / best_seconds(c.seconds, [&] { draw_all(sampler, c, adapter, seed += 1000); });
    Products set{*model, c.batch, c.rank};
    auto const alone = drawn / best_seconds(c.seconds, [&] {
                           for (std::size_t t = 0; t < c.tokens; ++t) set.run(false, &threads);
                       });
    return {{"tokens_per_second", ours}, {"products_per_second", alone}};
}

std::uint64_t volatile sink = 0;

Report measure_read(Case const& c) {
    auto const model = random_model(c.config, c.type);
    Threads threads{c.threads};
    auto const matrices = all_matrices(const_cast<Weights&>(model->weights()));
    auto const bytes = static_cast<double>(model->bytes());
    auto const read = [&] {
        for (auto const* matrix : matrices) {
            auto const* const words = static_cast<std::uint64_t const*>(matrix->panel(0));
            auto const count = matrix->bytes() / sizeof(std::uint64_t);
            constexpr std::size_t chunk = 1U << 17U;
            threads.run((count + chunk - 1) / chunk, [&](std::size_t index, unsigned) {
                std::uint64_t sums[8] = {};
                auto const end = std::min(count, (index + 1) * chunk) & ~std::size_t{7};
                for (auto i = index * chunk; i < end; i += 8) {
                    for (std::size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
                }
                for (auto const sum : sums) sink = sum;
            });
        }
    };
    read();
    auto const plain = bytes / best_seconds(c.seconds, read);
    Sampler sampler{model, threads};
    auto one = c;
    one.batch = 1;
    one.prompt = 16;
    // The prompt takes a step of its own, which reads the weights once too.
    auto const seconds = best_seconds(c.seconds, [&] { draw_all(sampler, one, nullptr, 1); });
    auto const drawn = bytes * static_cast<double>(one.tokens) / seconds;
    return {{"read_bytes_per_second", plain}, {"drawn_bytes_per_second", drawn}};
}

Report measure_prefill(Case const& c) {
    auto const model = random_model(c.config, c.type);
    Threads threads{c.threads};
    auto const time_of = [&](std::size_t samples) {
        Sampler sampler{model, threads};
        std::uint32_t seed = 1;
        return best_seconds(c.seconds, [&] {
            (void)sampler
                .submit({.prompt = random_tokens(c.prompt, c.config.vocab_size, ++seed),
                         .max_tokens = 1,
                         .num_samples = samples})
                .value();
            while (sampler.step()) {
            }
        });
    };
    (void)time_of(1);
    return {{"one_seconds", time_of(1)}, {"many_seconds", time_of(64)}};
}

Report measure_wait(Case const& c) {
    tinkxx::testing::ManualClock clock;
    Engine engine{clock, {.threads = c.threads}};
    bool ready = false;
    (void)engine.submit(LoadModel{.model = "base", .ready = random_model(c.config, c.type)},
                        [](auto const&) {});
    (void)engine.submit(CreateAdapter{.adapter = "a", .model = "base", .config = {.rank = c.rank}},
                        [&](auto const&) { ready = true; });
    while (!ready) (void)clock.turn(std::chrono::seconds{1});
    std::size_t batches = 0;
    std::size_t drawn = 0;
    double longest = 0;
    double training = 0;
    auto const data = random_batch(c);
    auto const begin = now();
    while (now() - begin < c.seconds) {
        bool trained = false;
        (void)engine.submit(ForwardBackward{.adapter = "a", .data = data}, [&](auto const&) {
            trained = true;
            ++batches;
        });
        auto const started = now();
        while (!trained) {
            bool told = false;
            auto const asked = now();
            (void)engine.submit(
                Sample{.model = "base",
                       .request = {.prompt = random_tokens(16, c.config.vocab_size, 1)}},
                [&](auto const&) { told = true; });
            while (!told) (void)clock.turn(std::chrono::seconds{1});
            ++drawn;
            // The last one may have found the batch already done.
            if (!trained) longest = std::max(longest, now() - asked);
            // Ask again while the next piece is under way, not always at its begin.
            auto const pause = now() + 1e-3 * static_cast<double>(drawn % 37);
            while (!trained && now() < pause) (void)clock.turn(std::chrono::milliseconds{1});
        }
        training += now() - started;
    }
    return {{"longest_ms", 1e3 * longest},
            {"samples", static_cast<double>(drawn)},
            {"training_tokens_per_second",
             static_cast<double>(batches * c.batch * c.tokens) / training}};
}

double status_bytes(std::string const& name) {
    std::ifstream status{"/proc/self/status"};
    std::string word;
    while (status >> word) {
        if (word != name) continue;
        double value = 0;
        status >> value;
        return value * 1024;
    }
    return 0;
}

Report measure_memory(Case const& c) {
    auto const before = status_bytes("VmRSS:");
    auto const model = random_model(c.config, c.type);
    std::ofstream{"/proc/self/clear_refs"} << "5\n";  // the peak begins anew
    auto const data = random_batch(c);
    LoraConfig const lora{.rank = c.rank};
    Threads threads{c.threads};
    auto const adapter = Adapter::create(model, lora).value();
    Trainer trainer{model, threads};
    (void)trainer.forward_backward(*adapter, data, Loss{}).value();
    (void)optim_step(*adapter, {}, &threads).value();
    auto const stated = model_bytes(c.config, c.type) + 4 * adapter_bytes(c.config, lora) +
                        training_bytes(c.config, lora, {}, threads.count(), c.batch, c.tokens);
    return {{"measured_bytes", status_bytes("VmHWM:") - before},
            {"stated_bytes", static_cast<double>(stated)},
            {"parameters", static_cast<double>(c.config.parameters())}};
}

Report measure(Case const& c) {
    if (c.name == "train") return measure_train(c);
    if (c.name == "sample") return measure_sample(c);
    if (c.name == "read") return measure_read(c);
    if (c.name == "prefill") return measure_prefill(c);
    if (c.name == "wait") return measure_wait(c);
    if (c.name == "memory") return measure_memory(c);
    throw std::runtime_error{"no measurement " + c.name};
}

}  // namespace

int main(int argc, char** argv) try {
    Case c{.name = argc > 1 ? argv[1] : "", .config = shape_named("3m")};
    for (int i = 2; i + 1 < argc; i += 2) {
        std::string const option = argv[i];
        std::string const value = argv[i + 1];
        if (option == "--shape") {
            c.config = shape_named(value);
        } else if (option == "--type") {
            c.type = value == "bfloat16" ? ElementType::bf16 : ElementType::f32;
        } else if (option == "--threads") {
            c.threads = static_cast<unsigned>(std::stoul(value));
        } else if (option == "--batch") {
            c.batch = std::stoul(value);
        } else if (option == "--prompt") {
            c.prompt = std::stoul(value);
        } else if (option == "--tokens") {
            c.tokens = std::stoul(value);
        } else if (option == "--rank") {
            c.rank = std::stoi(value);
        } else if (option == "--seconds") {
            c.seconds = std::stod(value);
        } else {
            throw std::runtime_error{"no option " + option};
        }
    }
    auto const report = measure(c);
    std::printf("{\"isa\": \"%s\"", isa_name().data());
    for (auto const& [name, value] : report) std::printf(", \"%s\": %.6g", name.c_str(), value);
    std::printf("}\n");
    return 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "bench_engine: %s\n", e.what());
    return 1;
}
