// What a server answers to somebody who waits for a promise.
#include "wire/json/json.hpp"
#include "wire/session/result_answer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire;
    std::string_view const body{reinterpret_cast<char const*>(data), size};
    auto const answer = classify_result_answer("application/json", body);
    if (auto const* json = std::get_if<result_answer::Json>(&answer)) {
        if (json->result.data() < body.data() ||
            json->result.data() + json->result.size() > body.data() + body.size()) {
            std::abort();
        }
    }
    // A document that the parser takes is never malformed, and one without the marks is a result.
    auto const document = parse_json("fuzz", body);
    if (document && document->is_object()) {
        if (std::holds_alternative<result_answer::Malformed>(answer)) std::abort();
        auto const& members = document->get_object();
        if (!members.contains("error") && !members.contains("type") &&
            !members.contains("status") && !std::holds_alternative<result_answer::Json>(answer)) {
            std::abort();
        }
        if (members.contains("error") && std::holds_alternative<result_answer::Json>(answer)) {
            std::abort();
        }
    }
    (void)decode_queue_report(body);
    return 0;
}
