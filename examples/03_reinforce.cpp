// Learns small sums from nothing but a reward for right answers: draws eight answers to each, and
// makes those more likely that were better than the others of their group. Run as 02_train.
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main(int argc, char** argv) try {
    tinkxx::ByteTokenizer const text;  // of tinkxx/tiny; other models have other tokenizers
    tinkxx::ServiceClient service;
    auto const* model = argc > 1 ? argv[1] : "tinkxx/tiny";
    auto trainer = service.create_lora_training_client(model, 16).get();
    for (int step = 0; step < 30; ++step) {
        auto sampler = trainer.save_weights_and_get_sampling_client().get();
        std::vector<std::string> prompts, right;
        std::vector<tinkxx::Future<tinkxx::SampleResponse>> pending;
        for (int n = 16 * step; n < 16 * step + 16; ++n) {
            int const a = 37 * n % 100 / 10, b = 37 * n % 10;  // a hundred sums, in turn
            prompts.push_back("Q: What is " + std::to_string(a) + " + " + std::to_string(b) +
                              "?\nA:");
            right.push_back(" " + std::to_string(a + b) + "\n");
            pending.push_back(sampler.sample(tinkxx::ModelInput::from_text(prompts.back(), text),
                                             {.max_tokens = 8, .stop = {"\n"}}, 8));
        }
        std::vector<tinkxx::Datum> batch;
        double total = 0;
        for (std::size_t i = 0; i < pending.size(); ++i) {
            auto const drawn = pending[i].get().sequences;
            std::vector<double> rewards(drawn.size());
            for (std::size_t k = 0; k < drawn.size(); ++k) {
                rewards[k] = text.decode(drawn[k].tokens) == right[i];
            }
            auto const advantages = tinkxx::data::group_relative_advantages(rewards, drawn.size());
            for (std::size_t k = 0; k < drawn.size(); ++k) {
                batch.push_back(
                    tinkxx::data::from_sample(text.encode(prompts[i]), drawn[k], advantages[k]));
                total += rewards[k];
            }
        }
        auto pass = trainer.forward_backward(batch, tinkxx::LossFn::importance_sampling);
        auto update = trainer.optim_step({.learning_rate = 1e-3});
        pass.get();
        update.get();
        std::cout << "step " << step + 1 << " mean reward "
                  << total / static_cast<double>(batch.size()) << std::endl;
    }
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
