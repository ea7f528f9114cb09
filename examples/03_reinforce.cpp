// Learns small sums from nothing but a reward for right answers: draws eight answers to each, and
// makes those more likely that were better than the others of their group. Run as 02_train.
#include <tinkxx/tinkxx.hpp>

#include <iostream>
#include <string>
#include <vector>

std::vector<tinkxx::Token> tokens(std::string const& text) {
    return {reinterpret_cast<unsigned char const*>(text.data()),
            reinterpret_cast<unsigned char const*>(text.data() + text.size())};
}

int main(int argc, char** argv) try {
    std::string const model = argc > 1 ? argv[1] : "tinkxx/tiny";
    constexpr int group = 8;
    tinkxx::ServiceClient service;
    auto trainer = service.create_lora_training_client(model, 16).get();
    for (int step = 0; step < 30; ++step) {
        auto sampler = trainer.save_weights_and_get_sampling_client().get();
        std::vector<std::vector<tinkxx::Token>> prompts;
        std::vector<std::string> right;
        std::vector<tinkxx::Future<tinkxx::SampleResponse>> pending;
        for (int i = 0; i < 16; ++i) {
            int const a = (7 * (16 * step + i) + i) % 10, b = (3 * (16 * step + i) + step) % 10;
            prompts.push_back(
                tokens("Q: What is " + std::to_string(a) + " + " + std::to_string(b) + "?\nA:"));
            right.push_back(" " + std::to_string(a + b) + "\n");
            pending.push_back(sampler.sample(tinkxx::ModelInput::from_tokens(prompts.back()),
                                             {.max_tokens = 8, .stop = {"\n"}}, group));
        }
        std::vector<tinkxx::SampledSequence> drawn;
        std::vector<double> rewards;
        for (std::size_t i = 0; i < pending.size(); ++i) {
            for (auto& sequence : pending[i].get().sequences) {
                rewards.push_back(sequence.tokens == tokens(right[i]) ? 1 : 0);
                drawn.push_back(std::move(sequence));
            }
        }
        auto const advantages = tinkxx::data::group_relative_advantages(rewards, group);
        std::vector<tinkxx::Datum> batch;
        double mean = 0;
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            mean += rewards[i] / static_cast<double>(rewards.size());
            batch.push_back(tinkxx::data::from_sample(prompts[i / group], drawn[i], advantages[i]));
        }
        auto pass = trainer.forward_backward(batch, tinkxx::LossFn::importance_sampling);
        auto update = trainer.optim_step({.learning_rate = 1e-3});
        pass.get();
        update.get();
        std::cout << "step " << step + 1 << " mean reward " << mean << std::endl;
    }
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
