// The result of a sample, as protobuf from a server.
#include "wire/sampling/sample.hpp"
#include "wire/values/tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    auto const response = wire::decode_sample_proto({reinterpret_cast<char const*>(data), size});
    if (!response) {
        if (response.error().kind() != ErrorKind::validation) std::abort();
        return 0;
    }
    // Users index by shapes and rows; both are what they say.
    auto const sound = [](TensorData const& tensor) {
        return wire::tensor_problem(tensor).empty();
    };
    auto const rows_are_filled = [](std::optional<TopkLogprobs> const& rows) {
        return !rows ||
               std::ranges::none_of(*rows, [](auto const& row) { return row && row->empty(); });
    };
    if (response->target_prompt_logprobs && !sound(*response->target_prompt_logprobs)) std::abort();
    if (response->prompt_alt_tokens && (!sound(response->prompt_alt_tokens->tokens) ||
                                        !sound(response->prompt_alt_tokens->logprobs))) {
        std::abort();
    }
    if (!rows_are_filled(response->topk_prompt_logprobs)) std::abort();
    for (auto const& sequence : response->sequences) {
        if (!rows_are_filled(sequence.topk_logprobs)) std::abort();
    }
    return 0;
}
