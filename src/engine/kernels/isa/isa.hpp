#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::engine {

/// The instruction sets that the kernels are written for, each above the one before it.
///
/// `plain`, `avx2` and `avx512` give identical bits everywhere. `amx` differs from them in the
/// products with bfloat16 weights only, where its results are closer to the exact ones.
enum class Isa : std::uint8_t { plain, avx2, avx512, amx };

/// What this process computes with, and why not with what was asked for.
struct IsaChoice {
    Isa isa{Isa::plain};
    /// Empty, or a sentence for the log: TINKXX_ENGINE_ISA names nothing known or something that
    /// this machine lacks.
    std::string warning{};
};

/// Chooses once per process, at the first call or the first kernel: the highest set that the CPU
/// and the operating system have, or what TINKXX_ENGINE_ISA says. Asks the kernel for AMX if that
/// is to be used, so call it when an engine starts. Any thread.
IsaChoice const& chosen_isa();

/// True if the machine can run kernels of this set (for AMX: if the kernel allows the tiles).
[[nodiscard]] bool isa_supported(Isa isa) noexcept;

/// "plain", "avx2", "avx512" or "amx".
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;
/// The name of the chosen one.
[[nodiscard]] std::string_view isa_name();

}  // namespace tinkxx::engine
