#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace tinkxx::engine {

/// The bytes that a token stands for; none for a token that is no text. Valid for ever.
using TokenBytes = std::function<std::string_view(std::int32_t)>;

/// Tokens 0 … 255 are the bytes, the others no text.
std::string_view bytes_of_byte_token(std::int32_t token);

/// How a model folder says that its tokens are made: `{"tokens": "bytes"}` in `tinkxx.json` means
/// `bytes_of_byte_token`. Empty if there is no such file. Fails if it says anything else.
Result<TokenBytes> read_token_bytes(std::filesystem::path const& folder);

}  // namespace tinkxx::engine
