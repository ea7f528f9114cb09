#pragma once

#include "text/jinja/values/failure.hpp"

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

inline constexpr int deepest_compared = 400;

/// For each container that a comparison enters.
inline void check_depth(int depth) {
    look();
    if (depth > deepest_compared) fail_limit("values are nested too deeply to be compared");
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
