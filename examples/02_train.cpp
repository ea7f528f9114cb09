// Teaches a model to answer in another manner, and asks it something that was not in the lessons:
//   tinkxx serve                                                    in one shell, and in another
//   TINKER_BASE_URL=http://127.0.0.1:8080 TINKER_API_KEY=tml-local ./02_train
#include <tinkxx/tinkxx.hpp>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

// To tinkxx/tiny a token is a byte; other models have tokenizers.
std::vector<tinkxx::Token> tokens(std::string const& text) {
    return {reinterpret_cast<unsigned char const*>(text.data()),
            reinterpret_cast<unsigned char const*>(text.data() + text.size())};
}

std::string ask(tinkxx::SamplingClient const& sampler, std::string const& question) {
    auto prompt = tinkxx::ModelInput::from_tokens(tokens("Q: " + question + "\nA:"));
    auto pending = sampler.sample(prompt, {.max_tokens = 40, .stop = {"\n"}, .temperature = 0});
    auto const response = pending.get();
    auto answer = question;
    for (auto token : response.sequences.at(0).tokens) answer += static_cast<char>(token);
    return answer;
}

int main(int argc, char** argv) try {
    std::string const model = argc > 1 ? argv[1] : "tinkxx/tiny";
    tinkxx::ServiceClient service;
    auto trainer = service.create_lora_training_client(model, 16).get();
    std::vector<tinkxx::Datum> lessons;
    for (auto const& [question, answer] : std::vector<std::pair<std::string, std::string>>{
             {"What is the capital of Spain?", "Madrid"},
             {"What is the colour of snow?", "white"},
             {"What is the capital of Japan?", "Tokyo"},
             {"What is the colour of coal?", "black"},
             {"What is the capital of Italy?", "Rome"},
             {"What does a cow say?", "moo"},
             {"What is the capital of Greece?", "Athens"},
             {"What does a dog say?", "woof"},
             {"What is the opposite of hot?", "cold"},
             {"What is the opposite of big?", "small"}}) {
        lessons.push_back(tinkxx::data::from_completion(tokens("Q: " + question + "\nA:"),
                                                        tokens(" " + answer + ", of course!\n")));
    }
    std::cout << ask(service.create_sampling_client(model), "What is the capital of Peru?");
    for (int step = 1; step <= 40; ++step) {
        auto pass = trainer.forward_backward(lessons, tinkxx::LossFn::cross_entropy);
        auto update = trainer.optim_step({.learning_rate = 1e-3});  // queued behind it
        auto const metrics = pass.get().metrics;
        update.get();
        if (!metrics.contains("loss:sum")) continue;  // some servers do not tell
        std::cout << "step " << step << " loss " << metrics.at("loss:sum") << '\n';
    }
    auto taught = trainer.save_weights_and_get_sampling_client().get();
    std::cout << ask(taught, "What is the capital of Peru?");
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
