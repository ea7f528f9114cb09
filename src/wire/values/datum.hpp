#pragma once

#include <tinkxx/types/datum.hpp>

#include <optional>
#include <string>

namespace tinkxx::wire {

/// What is wrong with the spans of a datum (R-TRAIN-38).
struct SpansProblem {
    /// Such as `model_input_spans/0/length`.
    std::string field{};
    std::string value{};
    std::string why{};
};
[[nodiscard]] std::optional<SpansProblem> spans_problem(Datum const& datum);

}  // namespace tinkxx::wire
