#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/model_input.hpp>

#include "wire/json/json.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace tinkxx::wire {

[[nodiscard]] std::string_view to_string(ImageFormat format) noexcept;

/// The number of tokens of a chunk or of a whole input, or the error that says why nobody knows.
[[nodiscard]] Result<std::int64_t> token_count(ModelInputChunk const& chunk);
[[nodiscard]] Result<std::int64_t> token_count(ModelInput const& input);
/// The number of tokens, if all chunks know theirs.
[[nodiscard]] std::optional<std::int64_t> known_length(ModelInput const& input);

/// The estimated size of an input in a request, with so many bytes for each token (R-SAMP-27,
/// R-TRAIN-22).
[[nodiscard]] std::int64_t estimate_bytes(ModelInput const& input, std::int64_t per_token) noexcept;
/// So many bytes a number is taken for in JSON.
inline constexpr std::int64_t json_bytes_per_number = 10;

/// `{"chunks":[…]}` (R-WIRE-02).
void write(JsonOut& json, std::span<ModelInputChunk const> chunks);
inline void write(JsonOut& json, ModelInput const& input) {
    write(json, std::span<ModelInputChunk const>{input.chunks});
}

}  // namespace tinkxx::wire
