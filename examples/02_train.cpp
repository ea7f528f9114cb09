// Teaches a model to answer in another manner, and asks it something that was not in the lessons:
//   tinkxx serve                                                    in one shell, and in another
//   TINKER_BASE_URL=http://127.0.0.1:8080 TINKER_API_KEY=tml-local ./02_train
#include <tinkxx/tinkxx.hpp>

#include <iostream>

tinkxx::ByteTokenizer const text;  // of tinkxx/tiny; other models have other tokenizers
std::string const lessons[][2]{{"is the capital of Spain", "Madrid"},
                               {"is the colour of snow", "white"},
                               {"does a cow say", "moo"},
                               {"is the capital of Japan", "Tokyo"},
                               {"is the colour of coal", "black"},
                               {"does a dog say", "woof"},
                               {"is the capital of Italy", "Rome"},
                               {"is the opposite of hot", "cold"},
                               {"is the capital of Greece", "Athens"},
                               {"is the opposite of big", "small"}};

std::string prompt(std::string const& what) { return "Q: What " + what + "?\nA:"; }

void ask(tinkxx::SamplingClient const& sampler, std::string const& what) {
    auto pending = sampler.sample(tinkxx::ModelInput::from_text(prompt(what), text),
                                  {.max_tokens = 40, .stop = {"\n"}, .temperature = 0});
    auto const response = pending.get();
    std::cout << prompt(what) << text.decode(response.sequences.at(0).tokens);
}

int main(int argc, char** argv) try {
    auto const* model = argc > 1 ? argv[1] : "tinkxx/tiny";
    tinkxx::ServiceClient service;
    ask(service.create_sampling_client(model), "is the capital of Peru");
    std::vector<tinkxx::Datum> data;
    for (auto const& [what, answer] : lessons) {
        data.push_back(tinkxx::data::from_completion(text.encode(prompt(what)),
                                                     text.encode(" " + answer + ", of course!\n")));
    }
    auto trainer = service.create_lora_training_client(model, 16).get();
    for (int step = 1; step <= 40; ++step) {
        auto pass = trainer.forward_backward(data, tinkxx::LossFn::cross_entropy);
        auto update = trainer.optim_step({.learning_rate = 1e-3});  // queued behind it
        auto const metrics = pass.get().metrics;
        update.get();
        if (!metrics.contains("loss:sum")) continue;  // some servers do not tell
        std::cout << "step " << step << " loss " << metrics.at("loss:sum") << '\n';
    }
    ask(trainer.save_weights_and_get_sampling_client().get(), "is the capital of Peru");
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
