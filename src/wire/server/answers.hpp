#pragma once

#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/training.hpp>

#include <string>
#include <string_view>

// The answers of the API as a server writes them. What has two forms is written in either; the
// decoders of a client read what these write.

namespace tinkxx::wire::server {

[[nodiscard]] std::string encode_sample_proto(SampleResponse const& response);
/// Without what only protobuf has words for: top-k rows of samples, target logprobs, alternatives.
[[nodiscard]] std::string encode_sample_json(SampleResponse const& response);

[[nodiscard]] std::string encode_forward_backward_proto(ForwardBackwardOutput const& output);
[[nodiscard]] std::string encode_forward_backward_json(ForwardBackwardOutput const& output);

/// `{"detail": …}`.
[[nodiscard]] std::string encode_detail(std::string_view text);

}  // namespace tinkxx::wire::server
