// Asks a model to go on with a text, in two ways: ./01_sample "Qwen/Qwen3-8B"
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main(int argc, char** argv) try {
    tinkxx::ServiceClient service;  // the key is in $TINKER_API_KEY
    auto sampler = service.create_sampling_client(argc > 1 ? argv[1] : "Qwen/Qwen3-8B");
    auto pending = sampler.sample("The capital of France is", {.max_tokens = 16}, 2);
    auto const response = pending.get();
    for (std::size_t i = 0; i < response.sequences.size(); ++i) {
        std::cout << response.text(i) << '\n';
    }
    service.close(tinkxx::CloseReason::success).get();
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
