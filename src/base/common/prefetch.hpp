#pragma once

#include <cstddef>

namespace tinkxx::base {

/// Tells the processor that the object at `place` will be needed soon: of thousands that wait, the
/// one whose turn it is has long left the caches. By lines of 64 bytes; harmless for any address.
inline void prefetch(void const* place, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    auto const* const begin = static_cast<char const*>(place);
    for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(begin + at, 1);
}

}  // namespace tinkxx::base
