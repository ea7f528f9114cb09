// The small answers of start-up, sessions and lookups.
#include "wire/rest/sessions.hpp"
#include "wire/session/service_messages.hpp"
#include "wire/session/telemetry.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire;
    std::string_view const json{reinterpret_cast<char const*>(data), size};
    // Flags go into sampler handles and come back as they were.
    if (auto const flags = decode_client_flags(json)) {
        if (decode_client_flags(encode_client_flags(*flags)).value() != *flags) std::abort();
    }
    if (auto const flags = decode_dynamic_flags(json)) {
        if (decode_dynamic_flags(encode_dynamic_flags(*flags)).value() != *flags) std::abort();
    }
    (void)decode_auth_token(json);
    (void)decode_session_created(json);
    (void)decode_sampling_session_created(json);
    (void)decode_sampling_session_joined(json);
    (void)decode_sampler_info(json);
    (void)decode_server_capabilities(json);
    (void)decode_healthz(json);
    (void)decode_telemetry_accepted(json);
    return 0;
}
