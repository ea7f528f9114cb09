// The result of a forward or backward pass, in both forms that servers send.
#include "service/passes/combining.hpp"
#include "wire/training/training.hpp"
#include "wire/values/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string_view const body{reinterpret_cast<char const*>(data), size};
    for (auto const& answer : {wire::decode_forward_backward_proto("forward", body),
                               wire::decode_forward_backward_json("forward", body)}) {
        if (!answer) {
            if (answer.error().kind() != ErrorKind::validation) std::abort();
            continue;
        }
        // Users index by shapes, which are what they say.
        for (auto const& output : answer->loss_fn_outputs) {
            for (auto const& [name, tensor] : output) {
                if (!wire::tensor_problem(tensor).empty()) std::abort();
            }
        }
        auto const twice = service::combine({*answer, *answer});
        if (twice.output.loss_fn_outputs.size() != 2 * answer->loss_fn_outputs.size()) std::abort();
    }
    return 0;
}
