#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

/// The standard alphabet, padded.
[[nodiscard]] std::string base64(std::string_view bytes);
/// As `base64`, at the end of a string.
void append_base64(std::string& out, std::string_view bytes);
/// The alphabet of URLs and file names, without padding.
[[nodiscard]] std::string base64url(std::string_view bytes);

/// The bytes of a text in the standard alphabet; none if the text is not such. Padding may be left
/// out; white space and bits that no byte claims are refused.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);
/// As `decode_base64`, in the alphabet of URLs.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace tinkxx::wire
