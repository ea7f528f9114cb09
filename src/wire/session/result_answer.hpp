#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/types/queue_state.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx::wire {

[[nodiscard]] std::string encode_retrieve_future(std::string_view request_id,
                                                 bool allow_metadata_only);
[[nodiscard]] std::string encode_cancel_future(std::string_view request_id);

/// A queue state with its reason, as a 408, 429, 503 or try-again body carries it.
struct QueueReport {
    QueueState state{QueueState::unknown};
    std::string reason{};
};
/// The report in a JSON body; none if the body is no JSON object or has no such member.
[[nodiscard]] std::optional<QueueReport> decode_queue_report(std::string_view json);
/// How long a body asks to wait: `retry_after_ms`. None if it has no such number.
[[nodiscard]] std::optional<std::chrono::milliseconds> decode_retry_after(std::string_view json);

/// What the answer to retrieve_future means (R-FUT-03). Views point into the body.
namespace result_answer {
struct Protobuf {};
struct TryAgain {
    std::optional<QueueReport> queue{};
    std::optional<std::chrono::milliseconds> retry_after{};
};
struct Pending {};
struct Metadata {
    std::int64_t payload_bytes{0};
};
struct Failed {
    std::string message{};
    ErrorCategory category{ErrorCategory::unknown};
};
/// The result as JSON; of a `completed` envelope, its `result`.
struct Json {
    std::string_view result{};
};
/// No JSON object at all.
struct Malformed {
    std::string why{};
};
}  // namespace result_answer
using ResultAnswer =
    std::variant<result_answer::Protobuf, result_answer::TryAgain, result_answer::Pending,
                 result_answer::Metadata, result_answer::Failed, result_answer::Json,
                 result_answer::Malformed>;

/// Reads the top-level members only; does not decode a result. The body outlives the answer.
[[nodiscard]] ResultAnswer classify_result_answer(std::string_view content_type,
                                                  std::string_view body);

}  // namespace tinkxx::wire
