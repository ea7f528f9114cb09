// The answers of a server to the requests of training that are small.
#include "wire/rest/training_runs.hpp"
#include "wire/training/training.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

template <class T>
void expect_value_or_validation(tinkxx::Result<T> const& answer) {
    if (!answer && answer.error().kind() != tinkxx::ErrorKind::validation) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire;
    std::string_view const json{reinterpret_cast<char const*>(data), size};
    expect_value_or_validation(decode_model_created(json));
    expect_value_or_validation(decode_model_unloaded(json));
    expect_value_or_validation(decode_optim_step(json));
    expect_value_or_validation(decode_weights_saved(json));
    expect_value_or_validation(decode_saved_for_sampler(json));
    expect_value_or_validation(decode_saved_external(json));
    expect_value_or_validation(decode_weights_loaded(json));
    expect_value_or_validation(decode_weights_copied(json));
    expect_value_or_validation(decode_model_info(json));
    expect_value_or_validation(decode_training_run(json));
    // What a server says about an optimizer can be said to it again.
    auto const info = decode_weights_info(json);
    expect_value_or_validation(info);
    if (!info) return 0;
    auto const request =
        encode_create_model({.optimizer_config = info->optimizer_config}, Members::newest);
    auto const again = decode_weights_info(R"({"base_model": "", "is_lora": true, )" +
                                           request.substr(request.find("\"optimizer_config\"")));
    if (!again || again->optimizer_config != info->optimizer_config) std::abort();
    return 0;
}
