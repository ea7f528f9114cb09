// Trains and samples within this process, on the model that was installed: every part of the local
// server has to be linked, and nothing needs a network.
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main() try {
    auto const service = tinkxx::local::service_client({.models = {tinkxx::local::tiny_model()}});
    auto const trainer = service.create_lora_training_client("tinkxx/tiny", 4).get();
    (void)trainer.optim_step({}).get();
    auto const sampler = trainer.save_weights_and_get_sampling_client().get();
    auto const answer =
        sampler.sample(tinkxx::ModelInput::from_tokens({'a', 'b'}), {.max_tokens = 4}).get();
    std::cout << answer.sequences.at(0).tokens.size() << " tokens\n";
    return answer.sequences.at(0).tokens.empty() ? 1 : 0;
} catch (tinkxx::Error const& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
