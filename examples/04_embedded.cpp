// Trains and samples within this process: no server, no key, no network. ./04_embedded
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <iostream>
#include <string>
#include <vector>

// To tinkxx/tiny a token is a byte.
std::vector<tinkxx::Token> tokens(std::string const& text) {
    return {reinterpret_cast<unsigned char const*>(text.data()),
            reinterpret_cast<unsigned char const*>(text.data() + text.size())};
}

int main() try {
    auto service = tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}});
    auto trainer = service.create_lora_training_client("tinkxx/tiny", 8).get();

    std::vector const lesson{tinkxx::data::from_completion(tokens("Q: Who are you?\nA:"),
                                                           tokens(" I am a tiny model.\n"))};
    for (int step = 0; step < 20; ++step) {
        auto pass = trainer.forward_backward(lesson, tinkxx::LossFn::cross_entropy);
        auto update = trainer.optim_step({.learning_rate = 5e-3});
        pass.get();
        update.get();
    }
    auto sampler = trainer.save_weights_and_get_sampling_client().get();
    auto pending = sampler.sample(tinkxx::ModelInput::from_tokens(tokens("Q: Who are you?\nA:")),
                                  {.max_tokens = 40, .stop = {"\n"}, .temperature = 0});
    auto const response = pending.get();
    for (auto token : response.sequences.at(0).tokens) std::cout << static_cast<char>(token);
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
