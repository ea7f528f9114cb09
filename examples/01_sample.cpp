// Asks a model for two short completions and prints their tokens: ./01_sample "Qwen/Qwen3-8B"
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main(int argc, char** argv) try {
    tinkxx::ServiceClient service;  // the key is in $TINKER_API_KEY
    auto sampler = service.create_sampling_client(argc > 1 ? argv[1] : "Qwen/Qwen3-8B");
    auto prompt = tinkxx::ModelInput::from_tokens({9707, 11, 1879});
    auto pending = sampler.sample(prompt, {.max_tokens = 16, .temperature = 0.7}, 2);
    for (auto const& sequence : pending.get().sequences) {
        for (auto token : sequence.tokens) std::cout << token << ' ';
        std::cout << '\n';
    }
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
