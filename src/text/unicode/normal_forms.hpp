#pragma once

#include "text/unicode/aligned_text.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinkxx::text {

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Whether a text is certainly in normal form C already.
[[nodiscard]] bool is_surely_nfc(std::string_view text);
/// The characters of the normal form, each with what it replaces.
[[nodiscard]] std::vector<Change> normalized(std::string_view text, NormalForm form);

}  // namespace tinkxx::text
