#pragma once

#include "text/errors/refuse.hpp"

#include <cstddef>
#include <string>

namespace tinkxx::text {

/// How many bytes the steps of a tokenizer may make of a text. No real tokenizer comes near; a file
/// whose steps double a text again and again would need all memory there is.
[[nodiscard]] constexpr std::size_t longest_result(std::size_t size) noexcept {
    return (std::size_t{64} << 10U) + 64 * size;
}

/// `section` is that of the `tokenizer.json`.
[[noreturn]] inline void refuse_growth(std::string_view operation, std::string section,
                                       std::size_t limit) {
    auto why = section + " makes more than " + std::to_string(limit) +
               " bytes of this text; remove the steps that insert text from the tokenizer.json";
    refuse(operation, std::move(section), {}, why);
}

}  // namespace tinkxx::text
