// Trains and samples within this process: no server, no key, no network. ./04_embedded
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main() try {
    tinkxx::ByteTokenizer const text;
    std::string const question = "Q: Who are you?\nA:";
    auto service = tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}});
    auto trainer = service.create_lora_training_client("tinkxx/tiny", 8).get();

    std::vector const lesson{
        tinkxx::data::from_completion(text.encode(question), text.encode(" I am a tiny model.\n"))};
    for (int step = 0; step < 20; ++step) {
        auto pass = trainer.forward_backward(lesson, tinkxx::LossFn::cross_entropy);
        auto update = trainer.optim_step({.learning_rate = 5e-3});
        pass.get();
        update.get();
    }
    auto sampler = trainer.save_weights_and_get_sampling_client().get();
    auto pending = sampler.sample(tinkxx::ModelInput::from_text(question, text),
                                  {.max_tokens = 40, .stop = {"\n"}, .temperature = 0});
    auto const response = pending.get();
    std::cout << text.decode(response.sequences.at(0).tokens);
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
