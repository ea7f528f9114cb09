#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {

/// One completion poll: which samples of a sampler are done (R-FUT-60).
struct CompletionRequest {
    std::string_view sampling_session_id{};
    std::int64_t cloned_sampler_id{0};
    std::int64_t prev_cursor{0};
    /// Sorted.
    std::span<std::string const> retrieved_request_ids{};
};
[[nodiscard]] std::string encode_completion_poll(CompletionRequest const& poll);

struct Completion {
    std::string request_id{};
    bool failed{false};
    /// Of the result; 0 if not told.
    std::int64_t payload_bytes{0};
};
struct Completions {
    std::vector<Completion> completions{};
    std::int64_t cursor{0};
};
[[nodiscard]] Result<Completions> decode_completions(std::string_view json);

}  // namespace tinkxx::wire
