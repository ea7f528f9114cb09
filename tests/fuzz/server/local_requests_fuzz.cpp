// The bodies of all requests, as a server reads them.
#include "wire/server/requests.hpp"
#include "wire/values/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

template <class T>
void expect_value_or_refusal(tinkxx::Result<T> const& read) {
    if (read) return;
    if (read.error().kind() != tinkxx::ErrorKind::validation) std::abort();
    if (read.error().category() != tinkxx::ErrorCategory::user) std::abort();
}

void expect_sound(tinkxx::Result<tinkxx::wire::server::ForwardBackward> const& read) {
    expect_value_or_refusal(read);
    if (!read) return;
    for (auto const& datum : read->data) {
        for (auto const& [name, input] : datum.loss_fn_inputs) {
            if (!tinkxx::wire::tensor_problem(input.view()).empty()) std::abort();
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire::server;
    if (size == 0) return 0;
    std::string_view const body{reinterpret_cast<char const*>(data) + 1, size - 1};
    // The first byte says whether it is JSON, so that neither kind drowns the other.
    if (data[0] % 4 == 1) {
        expect_sound(decode_forward_backward_proto(body));
        return 0;
    }
    if (data[0] % 4 == 2) {
        constexpr std::size_t most = 1 << 16;
        auto const plain = decode_body("fuzz", std::string{body}, "zstd", most);
        expect_value_or_refusal(plain);
        if (plain && plain->size() > most) std::abort();
        return 0;
    }
    expect_sound(decode_forward_backward("forward_backward", body));
    expect_sound(decode_forward_backward("forward", body));
    expect_value_or_refusal(decode_create_session(body));
    expect_value_or_refusal(decode_text("fuzz", body, "session_id"));
    expect_value_or_refusal(decode_finish(body));
    expect_value_or_refusal(decode_create_sampling_session(body));
    expect_value_or_refusal(decode_sample("asample", body));
    expect_value_or_refusal(decode_retrieve_future(body));
    expect_value_or_refusal(decode_retrieve_futures(body));
    expect_value_or_refusal(decode_create_model(body));
    expect_value_or_refusal(decode_optim_step(body));
    expect_value_or_refusal(decode_save("save_weights", body));
    expect_value_or_refusal(decode_load_weights(body));
    expect_value_or_refusal(decode_copy_weights(body));
    expect_value_or_refusal(decode_ttl(body));
    expect_value_or_refusal(decode_search_sessions(body));
    expect_value_or_refusal(decode_telemetry(body));
    return 0;
}
