// A whole safetensors file from somebody else.
#include "engine/files/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::engine;
    auto const file = std::as_bytes(std::span{data, size});
    auto const tensors = parse_safetensors(file);
    (void)parse_index({reinterpret_cast<char const*>(data), size});
    if (!tensors) return 0;
    std::size_t total = 0;
    for (auto const& [name, tensor] : *tensors) {
        // Views stay inside the file, do not share bytes, and are as large as their shape says.
        if (!tensor.bytes.empty() &&
            (tensor.bytes.data() < file.data() ||
             tensor.bytes.data() + tensor.bytes.size() > file.data() + file.size())) {
            std::abort();
        }
        std::uint64_t count = 1;
        for (auto const dimension : tensor.shape) count *= dimension;
        if (count * size_of(tensor.dtype) != tensor.bytes.size()) std::abort();
        total += tensor.bytes.size();
        (void)widen_tensor(tensor, name);
    }
    if (total > size) std::abort();
    return 0;
}
