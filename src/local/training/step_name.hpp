#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// The model and the number of a training request.
struct StepName {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
};
/// Finds them in a body, whatever the rest of it is like.
[[nodiscard]] StepName name_of_step(std::string_view body, bool protobuf);

}  // namespace tinkxx::local
