// A config.json from somebody else.
#include "engine/files/model_config.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::engine;
    auto const config = parse_model_config({reinterpret_cast<char const*>(data), size});
    if (!config) {
        // A refusal says which member it is about.
        if (config.error().field().empty()) std::abort();
        return 0;
    }
    if (config->heads % config->kv_heads != 0 || config->head_dim % 2 != 0 ||
        config->vocab_size < 1 || config->parameters() == 0) {
        std::abort();
    }
    for (auto const frequency : rope_frequencies(*config)) {
        if (!std::isfinite(frequency)) std::abort();
    }
    // What is written is read again as the same.
    auto const again = parse_model_config(write_model_config(*config, "float32"));
    if (!again || again->hidden_size != config->hidden_size) std::abort();
    return 0;
}
