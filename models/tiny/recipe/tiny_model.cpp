// Makes the tiny model, and shows what it can do.
//
//   tiny_model corpus [--seed N] [--count N]            prints texts that it learns from
//   tiny_model train --out FOLDER [--threads N]         makes the model, in three stretches
//                    [--from FOLDER --done N]           those after the first N, which wrote FOLDER
//   tiny_model check [--model FOLDER] [--threads N]     measures a folder; fails if it falls short

#include "engine/kernels/isa/isa.hpp"
#include "engine/model/model.hpp"

#include "lessons.hpp"

#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

namespace {

using namespace tinkxx::tiny;
namespace engine = tinkxx::engine;

using Options = std::map<std::string, std::string>;

std::size_t number(Options const& options, std::string const& name, std::size_t otherwise) {
    auto const found = options.find(name);
    return found == options.end() ? otherwise : std::stoul(found->second);
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

int print_corpus(Options const& options) {
    auto const count = number(options, "--count", 20);
    for (std::size_t i = 0; i < count; ++i) {
        std::printf("%s<|end|>\n", document(number(options, "--seed", training_seed), i).c_str());
    }
    return 0;
}

void train_stretch(std::shared_ptr<engine::Model const> const& from, Schedule const& schedule,
                   engine::Threads& threads, std::string const& out) {
    std::printf("%zu steps of %zu x %zu tokens\n", schedule.steps, schedule.batch, schedule.length);
    auto const begin = now();
    double mean = 0;
    auto const trained = pretrain(from, schedule, threads, [&](std::size_t step, double loss) {
        mean += loss / 50;
        if ((step + 1) % 50 != 0) return;
        auto const tokens = static_cast<double>((step + 1) * schedule.batch * schedule.length);
        std::printf("step %zu  loss %.4f  %.0f tokens/s\n", step + 1, mean,
                    tokens / (now() - begin));
        std::fflush(stdout);
        mean = 0;
    });
    write_folder(out, trained->weights()).value();
    std::printf("written after %.0f s\n", now() - begin);
}

int train(Options const& options) {
    if (!options.contains("--out")) throw std::runtime_error{"train needs --out FOLDER"};
    auto const& out = options.at("--out");
    engine::Threads threads{static_cast<unsigned>(number(options, "--threads", 0))};
    std::printf("%.2f million weights, %s, %u threads\n",
                static_cast<double>(shape().parameters()) * 1e-6,
                std::string(engine::isa_name()).c_str(), threads.count());
    auto const done = number(options, "--done", 0);
    if (options.contains("--from") != (done > 0)) {
        throw std::runtime_error{"--from FOLDER and --done N go together"};
    }
    for (auto i = done; i < stretches.size(); ++i) {
        auto const from = i == done && done > 0 ? options.at("--from") : out;
        auto const start = i == 0 ? random_start() : engine::Model::load(from, &threads).value();
        train_stretch(start, stretches[i], threads, out);
    }
    auto const last = engine::Model::load(done < stretches.size() ? out : options.at("--from"));
    write_folder(out, sharpened(**last)).value();
    return 0;
}

int check(Options const& options) {
    auto const found = options.find("--model");
    auto const folder = found == options.end() ? std::string("models/tiny") : found->second;
    engine::Threads threads{static_cast<unsigned>(number(options, "--threads", 0))};
    auto const model = engine::Model::load(folder, &threads).value();
    bool good = true;
    auto const judge = [&](bool met) {
        good = good && met;
        return met ? "" : "  MISSED";
    };
    std::printf("%s, %u threads\n", std::string(engine::isa_name()).c_str(), threads.count());
    std::printf("held-out loss           %.4f nats a token\n", held_out_loss(model, threads, 256));
    std::printf("facts, most likely      %.3f right\n",
                accuracy(model, nullptr, threads, fact_questions(), 0.0, 1, 1));
    std::printf("sums, most likely       %.3f right\n",
                accuracy(model, nullptr, threads, sum_questions(), 0.0, 1, 1));
    std::printf("sums, temperature 1     %.3f right\n",
                accuracy(model, nullptr, threads, sum_questions(), 1.0, 32, 1));
    for (auto const temperature : {0.8, 1.0}) {
        auto const whole = parsed(model, threads, 200, temperature);
        std::printf("texts, temperature %.1f  %zu of 200 parse%s\n", temperature, whole,
                    judge(whole >= 190));
    }
    auto begin = now();
    auto const style = teach_style(model, threads, 50);
    std::printf(
        "50 supervised steps     %zu of %zu held-out answers as asked, %zu before, %.1f s%s\n",
        style.after, style.asked, style.before, now() - begin,
        judge(style.after * 10 >= style.asked * 9 && style.before == 0));
    begin = now();
    auto const rewards = practise_sums(model, threads, 40, [](std::size_t, double) {});
    auto const seconds = now() - begin;
    std::printf("40 steps for reward     %.3f to %.3f of held-out sums right, %.1f s%s\n",
                rewards.before, rewards.after, seconds,
                judge(rewards.before < 0.45 && rewards.after >= 0.7 && seconds <= 60));
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string const command = argc > 1 ? argv[1] : "";
    Options options;
    for (int i = 2; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
    if (command == "corpus") return print_corpus(options);
    if (command == "train") return train(options);
    if (command == "check") return check(options);
    throw std::runtime_error{"what to do? corpus, train or check"};
} catch (std::exception const& e) {
    std::fprintf(stderr, "tiny_model: %s\n", e.what());
    return 1;
}
