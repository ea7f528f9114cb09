// What a server answers to the completion poll.
#include "wire/sampling/completions.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    auto const answer = wire::decode_completions({reinterpret_cast<char const*>(data), size});
    if (!answer) {
        if (answer.error().kind() != ErrorKind::validation) std::abort();
        return 0;
    }
    for (auto const& completion : answer->completions) {
        if (completion.payload_bytes < 0) std::abort();
    }
    return 0;
}
