#pragma once

#include <cstdint>

namespace tinkxx::detail {

/// How many forks lie between this process and the one that first used the library: what was made
/// under another number belongs to threads that are not here. Any thread.
[[nodiscard]] std::uint32_t forks() noexcept;

/// Whether `main` is over, and the runtimes are being shut down for that. Any thread.
[[nodiscard]] bool process_ends() noexcept;

/// Throws the `UsageError` of who uses what was made before a fork.
[[noreturn]] void refuse_inherited();

}  // namespace tinkxx::detail
