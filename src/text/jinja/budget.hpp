#pragma once

#include "text/jinja/failure.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tinkxx::text::jinja {

/// What values may still cost that are compared or shown as a whole: one that holds another twice,
/// and that in turn another twice, is small in memory and endless to look at. A rendering sets its
/// own.
inline constinit thread_local std::int64_t looks_left = 1'000'000;

inline void look() {
    if (--looks_left < 0) fail_limit("a value is too large to be compared or shown");
}

/// The longest text that is made of a value; those of the options are checked afterwards.
inline constexpr std::size_t longest_text = std::size_t{1} << 28U;

inline void check_text_size(std::size_t size) {
    if (size > longest_text) {
        fail_limit("a text of " + std::to_string(size) + " bytes is longer than the " +
                   std::to_string(longest_text) + " that a value may have");
    }
}

}  // namespace tinkxx::text::jinja
