// The answer to a submit and the result of a sample, as JSON from a server.
#include "wire/sampling/sample.hpp"
#include "wire/values/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string_view const body{reinterpret_cast<char const*>(data), size};
    if (auto const answer = wire::decode_submitted(body)) {
        // Either a pending result or a result, and the result lies in the body.
        if (!answer->result.empty() &&
            (answer->result.data() < body.data() ||
             answer->result.data() + answer->result.size() > body.data() + body.size())) {
            std::abort();
        }
    }
    auto response = wire::decode_sample_json(body);
    if (!response) {
        if (response.error().kind() != ErrorKind::validation) std::abort();
        return 0;
    }
    if (response->target_prompt_logprobs &&
        !wire::tensor_problem(*response->target_prompt_logprobs).empty()) {
        std::abort();
    }
    SampleOptions const options{
        .include_prompt_logprobs = true, .topk_sample_logprobs = 1, .prompt_logprobs_last_n = 1};
    (void)wire::complete_sample(*std::move(response), nullptr, 3, options, false);
    return 0;
}
