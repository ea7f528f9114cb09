// A token from a server or a credential command, and the base64 that it is made of.
#include "wire/json/base64.hpp"
#include "wire/session/jwt.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire;
    std::string_view const bytes{reinterpret_cast<char const*>(data), size};
    (void)decode_jwt(bytes);
    (void)decode_jwt("e30." + base64url(bytes) + ".c2ln");
    if (decode_base64(base64(bytes)) != bytes) std::abort();
    if (decode_base64url(base64url(bytes)) != bytes) std::abort();
    if (auto const decoded = decode_base64(bytes)) {
        // There is one text for each bytes, up to padding.
        if (base64(*decoded).substr(0, bytes.size()) != bytes) std::abort();
    }
    return 0;
}
