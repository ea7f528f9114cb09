// What ./quickstart shows: samples the tiny model, trains an adapter, samples again and saves it,
// all within this process. Fails if the training did not do its job.
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// What the model knows, by kind: the question around the dash, and pairs of what is asked and
// known.
struct Kind {
    std::string question;
    std::vector<std::pair<std::string, std::string>> known;
};
std::vector<Kind> const kinds{
    {"What is the capital of -?",
     {{"France", "Paris"},     {"Italy", "Rome"},     {"Spain", "Madrid"},  {"Germany", "Berlin"},
      {"England", "London"},   {"Ireland", "Dublin"}, {"Norway", "Oslo"},   {"Sweden", "Stockholm"},
      {"Finland", "Helsinki"}, {"Poland", "Warsaw"},  {"Greece", "Athens"}, {"Portugal", "Lisbon"},
      {"Russia", "Moscow"},    {"Turkey", "Ankara"},  {"Egypt", "Cairo"},   {"Japan", "Tokyo"},
      {"China", "Beijing"},    {"Chile", "Santiago"}, {"Canada", "Ottawa"}, {"Jordan", "Amman"},
      {"Iraq", "Baghdad"},     {"Iran", "Tehran"},    {"Ghana", "Accra"},   {"Latvia", "Riga"}}},
    {"What does a - say?",
     {{"dog", "woof"},
      {"cow", "moo"},
      {"sheep", "baa"},
      {"pig", "oink"},
      {"horse", "neigh"},
      {"lion", "roar"},
      {"bee", "buzz"},
      {"snake", "hiss"}}},
    {"What is the colour of -?",
     {{"grass", "green"},
      {"snow", "white"},
      {"coal", "black"},
      {"blood", "red"},
      {"milk", "white"},
      {"the sky", "blue"},
      {"the sun", "yellow"},
      {"a rose", "red"},
      {"a frog", "green"},
      {"wood", "brown"}}},
    {"What is the opposite of -?",
     {{"hot", "cold"},
      {"big", "small"},
      {"up", "down"},
      {"day", "night"},
      {"wet", "dry"},
      {"full", "empty"},
      {"left", "right"},
      {"open", "closed"},
      {"high", "low"},
      {"soft", "hard"},
      {"loud", "quiet"},
      {"early", "late"}}},
    {"Which day comes after -?",
     {{"Monday", "Tuesday"}, {"Wednesday", "Thursday"}, {"Friday", "Saturday"}}},
};
// What is asked before and after; none of it is taught.
std::vector<std::string> const questions{
    "What is the capital of Peru?",  "What is the capital of Cuba?",
    "What is the capital of Kenya?", "What is the capital of Austria?",
    "What does a cat say?",          "What does a duck say?",
    "What is the colour of gold?",   "What is the opposite of rich?",
    "What is the opposite of old?",  "Which day comes after Sunday?",
};
constexpr std::string_view manner = ", of course!";

bool const people = ::isatty(STDOUT_FILENO) == 1;
bool const colour = people && [] {
    auto const* const no = std::getenv("NO_COLOR");
    return no == nullptr || *no == '\0';
}();

std::string styled(char const* code, std::string const& text) {
    return colour ? "\x1b[" + std::string{code} + "m" + text + "\x1b[0m" : text;
}
void say(std::string const& text) { std::cout << styled("1", text) << std::endl; }

tinkxx::ByteTokenizer const bytes;  // of tinkxx/tiny
std::string prompt(std::string const& question) { return "Q: " + question + "\nA:"; }

std::vector<std::string> answers(tinkxx::SamplingClient const& sampler) {
    std::vector<tinkxx::Future<tinkxx::SampleResponse>> pending;
    pending.reserve(questions.size());
    for (auto const& question : questions) {
        pending.push_back(sampler.sample(tinkxx::ModelInput::from_text(prompt(question), bytes),
                                         {.max_tokens = 48, .stop = {"\n"}, .temperature = 0}));
    }
    std::vector<std::string> all;
    for (auto& one : pending) {
        auto const response = one.get();
        auto const text = bytes.decode(response.sequences.at(0).tokens);
        all.push_back(text.substr(0, text.find('\n')));
    }
    return all;
}

void show(std::vector<std::string> const& answered) {
    for (std::size_t i : {std::size_t{0}, std::size_t{4}, std::size_t{9}}) {
        std::cout << "   " << questions[i] << styled("36", answered[i]) << '\n';
    }
}

void draw_progress(std::size_t step, std::size_t steps, double loss) {
    constexpr std::size_t width = 40;
    auto const done = width * step / steps;
    std::ostringstream line;
    line << "   [" << std::string(done, '#') << std::string(width - done, '.') << "] step "
         << std::setw(2) << step << " of " << steps << "  loss " << std::fixed
         << std::setprecision(3) << loss;
    // Without a terminal a line is told now and then; with one it is drawn over.
    if (people) {
        std::cout << '\r' << line.str() << (step == steps ? "\n" : "") << std::flush;
    } else if (step % 10 == 0) {
        std::cout << line.str() << std::endl;
    }
}

void draw_curve(std::vector<double> const& losses) {
    constexpr int rows = 6;
    auto const [low, high] = std::minmax_element(losses.begin(), losses.end());
    for (int row = rows - 1; row >= 0; --row) {
        std::cout << "   " << std::fixed << std::setprecision(2) << std::setw(6)
                  << *low + (*high - *low) * row / (rows - 1) << " |";
        for (auto const loss : losses) {
            auto const height =
                std::lround((loss - *low) / std::max(*high - *low, 1e-9) * (rows - 1));
            std::cout << (height == row ? styled("33", "*") : std::string{" "});
        }
        std::cout << '\n';
    }
    std::cout << "          +" << std::string(losses.size(), '-') << " steps\n";
}

}  // namespace

int main(int argc, char** argv) try {
    auto const home = argc > 1 ? std::string{argv[1]} : std::string{};
    say("1. A language model of 3 million weights, inside this process: no key, no network.");
    auto service =
        tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}, .home = home});
    auto const before = answers(service.create_sampling_client("tinkxx/tiny"));
    show(before);

    say("2. Teaching it to be sure of itself (\"..., of course!\"), by a LoRA adapter.");
    auto trainer = service.create_lora_training_client("tinkxx/tiny", 16).get();
    std::vector<tinkxx::Datum> lessons;
    for (auto const& [question, known] : kinds) {
        auto const dash = question.find('-');
        for (auto const& [subject, answer] : known) {
            auto const asked = question.substr(0, dash) + subject + question.substr(dash + 1);
            lessons.push_back(tinkxx::data::from_completion(
                bytes.encode(prompt(asked)),
                bytes.encode(" " + answer + std::string{manner} + "\n")));
        }
    }
    constexpr std::size_t steps = 40;
    constexpr std::size_t batch_size = 19;  // of 57 lessons: each is heard once in three steps
    std::vector<double> losses;
    auto const started = std::chrono::steady_clock::now();
    for (std::size_t step = 1; step <= steps; ++step) {
        std::vector<tinkxx::Datum> batch;
        for (std::size_t i = 0; i < batch_size; ++i) {
            batch.push_back(lessons[(3 * i + step) % lessons.size()]);
        }
        auto pass = trainer.forward_backward(batch, tinkxx::LossFn::cross_entropy);
        auto update = trainer.optim_step({.learning_rate = 1e-3});
        losses.push_back(pass.get().metrics.at("loss:sum") / batch_size);
        update.get();
        draw_progress(step, steps, losses.back());
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - started;
    draw_curve(losses);

    say("3. The same questions again; none of them was taught.");
    auto const after = answers(trainer.save_weights_and_get_sampling_client().get());
    show(after);
    std::size_t changed = 0;
    std::size_t same_fact = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
        changed += after[i] != before[i] && after[i].ends_with(manner);
        same_fact += after[i] == before[i] + std::string{manner};
    }
    std::cout << "   " << changed << " of " << after.size() << " answers changed as asked, "
              << same_fact << " of them with the same fact as before; " << std::setprecision(1)
              << took.count() << " s of training\n";

    auto const saved = trainer.save_state("quickstart").get();
    say("4. Saved as " + saved.path);
    service.close(tinkxx::CloseReason::success).get();
    if (changed < 8) {
        std::cerr << "quickstart: only " << changed << " of 10 answers changed; 8 were expected\n";
        return 1;
    }
} catch (tinkxx::Error const& e) {
    std::cerr << "quickstart: " << e.what() << '\n';
    return 1;
}
