#pragma once

#include <tinkxx/types/sampling.hpp>

#include <optional>
#include <string_view>

namespace tinkxx::wire {

/// Reads the JSON of a sample as servers usually write it: tokens, log-probabilities and little
/// else, without a document in between. Nothing for any other text, be it right or wrong: whoever
/// asks reads that in the thorough way, which also says what is wrong with it.
[[nodiscard]] std::optional<SampleResponse> quick_sample(std::string_view json);

}  // namespace tinkxx::wire
