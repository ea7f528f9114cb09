#include "lessons.hpp"

#include "engine/common/random.hpp"
#include "engine/files/atomic_write.hpp"
#include "engine/sample/sampler.hpp"
#include "engine/train/optimizer.hpp"
#include "engine/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace tinkxx::tiny {

namespace {

using namespace engine;

/// Texts one after the other, each with its end, cut into stretches. Every second one begins with
/// the end of a text, as a sample from nothing does; the others begin with a text at once.
class Stretches {
public:
    Stretches(std::uint64_t seed, std::size_t length) : seed_{seed}, length_{length} {}

    /// The next stretch; each token counts `weight`.
    Datum next(float weight) {
        std::vector<std::int32_t> tokens;
        if (++made_ % 2 == 0) tokens.push_back(end_token);
        while (tokens.size() <= length_) {
            auto const text = tokens_of(document(seed_, index_++));
            tokens.insert(tokens.end(), text.begin(), text.end());
            tokens.push_back(end_token);
        }
        auto const end = static_cast<std::ptrdiff_t>(length_);
        return {.tokens = {tokens.begin(), tokens.begin() + end},
                .targets = {tokens.begin() + 1, tokens.begin() + end + 1},
                .weights = std::vector<float>(length_, weight)};
    }

private:
    std::uint64_t seed_;
    std::size_t length_;
    std::uint64_t made_{0};
    std::uint64_t index_{0};
};

/// A prompt, and what is to be learnt to follow it.
Datum taught(std::string const& prompt, std::string const& line, float weight) {
    auto const all = tokens_of(prompt + line);
    auto const count = all.size() - 1;
    Datum datum{.tokens = {all.begin(), all.end() - 1}, .targets = {all.begin() + 1, all.end()}};
    for (std::size_t i = 0; i < count; ++i) {
        datum.weights.push_back(i + 1 < prompt.size() ? 0.0F : weight);
    }
    return datum;
}

/// Draws all requests at once; the results in their order.
std::vector<SampleResult> draw(std::shared_ptr<Model const> const& model, Threads& threads,
                               std::vector<SampleRequest> requests) {
    Sampler sampler{model, threads, {.cache_bytes = std::size_t{256} << 20U}};
    std::vector<SampleResult> results(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].on_done = [&results, i](Result<SampleResult> result) {
            results[i] = std::move(result).value();
        };
        (void)sampler.submit(std::move(requests[i])).value();
    }
    while (sampler.step()) {
    }
    return results;
}

SampleRequest request_for(Question const& question, std::shared_ptr<Adapter const> const& adapter,
                          double temperature, std::size_t samples, std::uint64_t seed) {
    return {.adapter = adapter,
            .prompt = tokens_of(question.prompt()),
            .filter = {.temperature = temperature},
            .max_tokens = 40,
            .num_samples = samples,
            .seed = seed,
            .stop_tokens = {'\n', end_token}};
}

/// What was said in a line: without the space before it and the end of the line.
std::string said(SampledSequence const& sequence) {
    auto text = text_of(sequence.tokens);
    if (text.ends_with('\n')) text.pop_back();
    if (text.starts_with(' ')) text.erase(0, 1);
    return text;
}

/// The first `count` for measuring, the others for learning.
std::pair<std::vector<Question>, std::vector<Question>> divided(std::vector<Question> const& all,
                                                                std::size_t count) {
    auto const middle = all.begin() + static_cast<std::ptrdiff_t>(count);
    return {{all.begin(), middle}, {middle, all.end()}};
}

}  // namespace

ModelConfig shape() {
    return {.architecture = Architecture::qwen3,
            .vocab_size = vocabulary,
            .hidden_size = 256,
            .intermediate_size = 640,
            .layers = 4,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 64,
            .max_positions = 2048,
            .qk_norm = true,
            .tied_embeddings = true,
            .eos_tokens = {end_token}};
}

std::shared_ptr<Model const> random_start() {
    // Uniform numbers, so that no function of the system's library has a say in them. Matrices that
    // write to the residual stream begin smaller.
    auto const config = shape();
    Weights weights;
    std::uint64_t number = 0;
    for (auto const& slot : weight_slots(config, weights)) {
        ++number;
        *slot.matrix = PackedMatrix(slot.rows, slot.cols);
        auto const inputs = static_cast<double>(slot.cols);
        bool const last =
            slot.name.ends_with("o_proj.weight") || slot.name.ends_with("down_proj.weight");
        auto const bound = slot.name.ends_with("embed_tokens.weight") ? 0.05
                           : last                                     ? 0.5 / std::sqrt(inputs)
                                                                      : 1.5 / std::sqrt(inputs);
        std::vector<float> values(slot.rows * slot.cols, 1.0F);
        for (std::size_t i = 0; i < values.size() && !slot.vector; ++i) {
            values[i] = static_cast<float>(bound * (2 * uniform(training_seed, number, i) - 1));
        }
        slot.matrix->assign({.type = ElementType::f32,
                             .data = values.data(),
                             .rows = slot.rows,
                             .cols = slot.cols});
    }
    return std::make_shared<Model const>(config, std::move(weights));
}

std::unique_ptr<Adapter> pretrain(std::shared_ptr<Model const> const& model,
                                  Schedule const& schedule, Threads& threads,
                                  std::function<void(std::size_t step, double loss)> const& tell) {
    auto adapter = Adapter::create(model, {.rank = 0}).value();
    Trainer trainer{model, threads};
    Stretches text{schedule.seed, schedule.length};
    auto const weight = 1.0F / static_cast<float>(schedule.batch * schedule.length);
    auto const warm = static_cast<double>(schedule.steps) / 30;
    for (std::size_t step = 0; step < schedule.steps; ++step) {
        std::vector<Datum> batch;
        for (std::size_t i = 0; i < schedule.batch; ++i) batch.push_back(text.next(weight));
        auto const result = trainer.forward_backward(*adapter, batch, Loss{}).value();
        auto const at = static_cast<double>(step) + 0.5;
        auto const left = (static_cast<double>(schedule.steps) - at) /
                          (static_cast<double>(schedule.steps) - warm);
        AdamParams const params{.learning_rate = schedule.learning_rate * std::min(at / warm, left),
                                .eps = 1e-8,
                                .weight_decay = 0.05,
                                .grad_clip_norm = 1.0};
        (void)optim_step(*adapter, params, &threads).value();
        tell(step, result.metrics.at("loss:sum"));
    }
    return adapter;
}

Weights sharpened(Model const& model) {
    auto weights = widen_weights(model.config(), model.weights());
    for (auto& value : weights.norm.values()) value *= 1.1F;
    return weights;
}

Result<void> write_folder(std::filesystem::path const& folder, Weights const& weights) {
    auto saved = save_model(folder, shape(), weights, ElementType::bf16);
    if (!saved) return saved;
    saved = write_file(folder / "tinkxx.json", "{\"tokens\": \"bytes\"}\n");
    if (!saved) return saved;
    saved = write_file(folder / "tokenizer_config.json",
                       R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", )"
                       R"("pad_token": "<|end|>", "clean_up_tokenization_spaces": false})"
                       "\n");
    if (!saved) return saved;
    // The same for others: byte-pair encoding without a pair. A byte that is not printable, or a
    // space, has a letter from beyond Latin-1 as its name, in the order of the bytes.
    std::string names;
    int unprintable = 0;
    for (int byte = 0; byte < 256; ++byte) {
        bool const plain = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        char name[16];
        std::snprintf(name, sizeof name, "\\u%04x", plain ? byte : 256 + unprintable++);
        names += std::string{byte == 0 ? "" : ", "} + '"' + name + "\": " + std::to_string(byte);
    }
    std::string const end = std::to_string(end_token);
    return write_file(
        folder / "tokenizer.json",
        R"({"version": "1.0", "added_tokens": [{"id": )" + end +
            R"(, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false, )"
            R"("normalized": false, "special": true}], "normalizer": null, )"
            R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, )"
            R"("trim_offsets": false, "use_regex": false}, "post_processor": null, )"
            R"("decoder": {"type": "ByteLevel", "add_prefix_space": false, )"
            R"("trim_offsets": false, "use_regex": false}, )"
            R"("model": {"type": "BPE", "dropout": null, "unk_token": null, "vocab": {)" +
            names + R"(}, "merges": []}})" + "\n");
}

double held_out_loss(std::shared_ptr<Model const> const& model, Threads& threads,
                     std::size_t sequences) {
    Trainer trainer{model, threads};
    Stretches text{held_out_seed, 256};
    std::vector<Datum> batch;
    for (std::size_t i = 0; i < sequences; ++i) batch.push_back(text.next(1.0F));
    auto const result = trainer.forward(nullptr, batch, Loss{}).value();
    return result.metrics.at("loss:sum") / static_cast<double>(256 * sequences);
}

std::size_t parsed(std::shared_ptr<Model const> const& model, Threads& threads, std::size_t count,
                   double temperature) {
    auto const results = draw(model, threads,
                              {{.prompt = {end_token},
                                .filter = {.temperature = temperature},
                                .max_tokens = 512,
                                .num_samples = count,
                                .seed = 1,
                                .stop_tokens = {end_token}}});
    return static_cast<std::size_t>(
        std::ranges::count_if(results.front().sequences, [](auto const& sequence) {
            return sequence.tokens.back() == end_token && parses(text_of(sequence.tokens));
        }));
}

std::vector<std::string> answers(std::shared_ptr<Model const> const& model,
                                 std::shared_ptr<Adapter const> const& adapter, Threads& threads,
                                 std::vector<Question> const& questions, double temperature,
                                 std::size_t samples, std::uint64_t seed) {
    std::vector<SampleRequest> requests;
    requests.reserve(questions.size());
    for (auto const& question : questions) {
        requests.push_back(
            request_for(question, adapter, temperature, samples, seed + requests.size()));
    }
    std::vector<std::string> lines;
    for (auto const& result : draw(model, threads, std::move(requests))) {
        for (auto const& sequence : result.sequences) lines.push_back(said(sequence));
    }
    return lines;
}

double accuracy(std::shared_ptr<Model const> const& model,
                std::shared_ptr<Adapter const> const& adapter, Threads& threads,
                std::vector<Question> const& questions, double temperature, std::size_t samples,
                std::uint64_t seed) {
    auto const lines = answers(model, adapter, threads, questions, temperature, samples, seed);
    std::size_t right = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i] == questions[i / samples].answer) ++right;
    }
    return static_cast<double>(right) / static_cast<double>(lines.size());
}

StyleResult teach_style(std::shared_ptr<Model const> const& model, Threads& threads,
                        std::size_t steps) {
    auto [held_out, known] = divided(fact_questions(), 20);
    auto const styled = [](std::vector<Question> questions) {
        for (auto& question : questions) question.answer += ", my friend!";
        return questions;
    };
    auto const asked = styled(held_out);
    auto const lessons = styled(known);
    std::shared_ptr<Adapter> const adapter = Adapter::create(model, {.rank = 16}).value();
    auto const as_asked = [&] {
        return static_cast<std::size_t>(
            std::lround(20 * accuracy(model, adapter, threads, asked, 0.0, 1, 1)));
    };
    StyleResult result{.asked = asked.size(), .before = as_asked()};
    Trainer trainer{model, threads};
    constexpr std::size_t batch = 16;
    for (std::size_t step = 0; step < steps; ++step) {
        std::vector<Datum> data;
        for (std::size_t i = 0; i < batch; ++i) {
            auto const& lesson = lessons[(step * batch + i) % lessons.size()];
            data.push_back(taught(lesson.prompt(), " " + lesson.answer + "\n", 1.0F / batch));
        }
        (void)trainer.forward_backward(*adapter, data, Loss{}).value();
        auto const left = static_cast<double>(steps - step) / static_cast<double>(steps);
        AdamParams const params{.learning_rate = 2e-3 * std::min(1.0, 2 * left)};
        (void)optim_step(*adapter, params, &threads).value();
    }
    result.after = as_asked();
    return result;
}

RewardResult practise_sums(std::shared_ptr<Model const> const& model, Threads& threads,
                           std::size_t steps,
                           std::function<void(std::size_t step, double reward)> const& tell) {
    auto const [held_out, practised] = divided(sum_questions(), 31);
    std::shared_ptr<Adapter> const adapter = Adapter::create(model, {.rank = 16}).value();
    auto const measured = [&] { return accuracy(model, adapter, threads, held_out, 1.0, 32, 7); };
    RewardResult outcome{.before = measured()};
    Trainer trainer{model, threads};
    constexpr std::size_t sums = 16;
    constexpr std::size_t samples = 8;
    for (std::size_t step = 0; step < steps; ++step) {
        std::vector<SampleRequest> requests;
        std::vector<Question const*> asked;
        for (std::size_t i = 0; i < sums; ++i) {
            asked.push_back(&practised[(step * sums + i) % practised.size()]);
            requests.push_back(request_for(*asked.back(), adapter, 1.0, samples, 1000 * step + i));
        }
        auto const results = draw(model, threads, std::move(requests));
        std::vector<Datum> data;
        double total = 0;
        for (std::size_t i = 0; i < sums; ++i) {
            std::vector<double> rewards;
            for (auto const& sequence : results[i].sequences) {
                rewards.push_back(said(sequence) == asked[i]->answer ? 1.0 : 0.0);
            }
            auto const sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
            total += sum;
            auto const prompt = tokens_of(asked[i]->prompt());
            for (std::size_t s = 0; s < samples; ++s) {
                // Better or worse than the others of the same sum.
                auto const advantage =
                    static_cast<float>((rewards[s] - sum / samples) / (sums * samples));
                auto const& drawn = results[i].sequences[s];
                auto all = prompt;
                all.insert(all.end(), drawn.tokens.begin(), drawn.tokens.end());
                Datum datum{.tokens = {all.begin(), all.end() - 1},
                            .targets = {all.begin() + 1, all.end()},
                            .logprobs = std::vector<float>(prompt.size() - 1, 0.0F),
                            .advantages = std::vector<float>(prompt.size() - 1, 0.0F)};
                datum.logprobs.insert(datum.logprobs.end(), drawn.logprobs.begin(),
                                      drawn.logprobs.end());
                datum.advantages.resize(datum.tokens.size(), advantage);
                data.push_back(std::move(datum));
            }
        }
        auto const loss = make_loss("importance_sampling", {}).value();
        (void)trainer.forward_backward(*adapter, data, loss).value();
        (void)optim_step(*adapter, {.learning_rate = 1e-3}, &threads).value();
        tell(step, total / (sums * samples));
    }
    outcome.after = measured();
    return outcome;
}

}  // namespace tinkxx::tiny
