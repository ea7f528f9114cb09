// Makes calls with our own client whose numbers the official SDK has to get too (same_calls.py
// makes the same ones), and prints them: a name, then numbers. MODEL is the argument.
#include <tinkxx/tinkxx.hpp>

#include <iomanip>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

namespace {

template <class Numbers>
void print(std::string const& name, Numbers const& numbers) {
    std::cout << name;
    for (auto const number : numbers) std::cout << ' ' << number;
    std::cout << '\n';
}

void print(std::string const& name, tinkxx::ForwardBackwardOutput const& output) {
    print(name + ".loss", std::vector{output.metrics.at("loss:sum")});
    for (auto const& datum : output.loss_fn_outputs) {
        print(name + ".logprobs", std::get<std::vector<float>>(datum.at("logprobs").data));
    }
}

}  // namespace

int main(int /*argc*/, char** argv) try {
    std::cout << std::setprecision(9);
    tinkxx::ServiceClient service;
    auto pending = service.create_lora_training_client(
        argv[1], tinkxx::TrainingOptions{.lora = {.rank = 4, .seed = 3}});
    auto trainer = pending.get();
    tinkxx::ByteTokenizer const text;
    auto const prompt = text.encode("Q: What is 2 + 3?\nA:");
    std::vector const batch{
        tinkxx::data::from_completion(prompt, text.encode(" 5\n")),
        tinkxx::data::from_completion(text.encode("The dog"), text.encode(" runs in the garden."))};
    print("before", trainer.forward(batch, tinkxx::LossFn::cross_entropy).get());
    for (int step = 0; step < 3; ++step) {
        auto pass = trainer.forward_backward(batch, tinkxx::LossFn::cross_entropy);
        auto update =
            trainer.optim_step({.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8});
        print("pass", pass.get());
        update.get();
    }
    auto const sampler = trainer.save_weights_and_get_sampling_client().get();
    auto drawn =
        sampler.sample(tinkxx::ModelInput::from_tokens(prompt),
                       {.max_tokens = 12, .seed = 11, .stop = "\n", .temperature = 0.8},
                       tinkxx::SampleOptions{.num_samples = 3, .include_prompt_logprobs = true});
    auto const response = drawn.get();
    for (auto const& sequence : response.sequences) {
        print("tokens", sequence.tokens);
        print("sampled", sequence.logprobs.value());
    }
    std::vector<float> scored;
    for (auto const& one : response.prompt_logprobs.value()) scored.push_back(one.value_or(0));
    print("prompt", scored);
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
