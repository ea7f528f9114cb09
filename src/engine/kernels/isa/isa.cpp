#include "engine/kernels/isa/isa.hpp"

#include "engine/kernels/isa/isa_choice.hpp"
#include "engine/kernels/isa/isa_tables.hpp"

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tinkxx::engine {

namespace {

#if defined(__x86_64__)

struct Cpuid {
    unsigned a{0};
    unsigned b{0};
    unsigned c{0};
    unsigned d{0};
};

Cpuid cpuid(unsigned leaf) {
    Cpuid r;
    // Returns zeros for a leaf that the CPU does not have.
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
    return r;
}

/// Which registers the operating system saves for a process.
std::uint64_t saved_state() {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

bool allow_amx() {
    constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

Isa detect() {
    auto const basic = cpuid(1);
    constexpr unsigned fma = 1U << 12;
    constexpr unsigned osxsave = 1U << 27;
    constexpr unsigned avx = 1U << 28;
    constexpr unsigned f16c = 1U << 29;
    constexpr unsigned all = fma | osxsave | avx | f16c;
    if ((basic.c & all) != all) return Isa::plain;
    auto const state = saved_state();
    if ((state & 0x6U) != 0x6U) return Isa::plain;
    auto const more = cpuid(7);
    if ((more.b & 1U << 5) == 0) return Isa::plain;
    // Foundation, DQ, BW, VL; mask and upper registers saved.
    constexpr unsigned avx512 = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;
    if ((more.b & avx512) != avx512 || (state & 0xe6U) != 0xe6U) return Isa::avx2;
    // Tiles and their bfloat16 product; tile configuration and data saved.
    constexpr unsigned amx = 1U << 24 | 1U << 22;
    if ((more.d & amx) != amx || (state & 0x60000U) != 0x60000U) return Isa::avx512;
    return Isa::amx;
}

#else

bool allow_amx() { return false; }
Isa detect() { return Isa::plain; }

#endif

/// What the machine has and the build too, not counting whether AMX is allowed.
Isa highest() {
    static Isa const isa = [] {
        auto found = detect();
        while (kernel_table(found) == nullptr)
            found = static_cast<Isa>(static_cast<int>(found) - 1);
        return found;
    }();
    return isa;
}

bool amx_allowed() {
    static bool const allowed = highest() == Isa::amx && allow_amx();
    return allowed;
}

}  // namespace

KernelTable const* kernel_table(Isa isa) noexcept {
    switch (isa) {
        case Isa::plain:
            return &plain_kernels;
#if defined(TINKXX_ENGINE_X86)
        case Isa::avx2:
            return &avx2_kernels;
        case Isa::avx512:
            return &avx512_kernels;
        case Isa::amx: {
            static KernelTable const table = [] {
                auto mixed = avx512_kernels;
                mixed.forward = &amx_forward;
                mixed.backward_input = &amx_backward_input;
                return mixed;
            }();
            return &table;
        }
#endif
        default:
            return nullptr;
    }
}

bool isa_supported(Isa isa) noexcept {
    if (isa == Isa::amx) return amx_allowed();
    return isa <= highest();
}

std::string_view isa_name(Isa isa) noexcept {
    switch (isa) {
        case Isa::plain:
            return "plain";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
        case Isa::amx:
            return "amx";
    }
    return "plain";
}

std::string_view isa_name() { return isa_name(chosen_isa().isa); }

IsaChoice choose_isa(std::string_view wanted, bool (*supported)(Isa) noexcept) {
    constexpr Isa falling[]{Isa::amx, Isa::avx512, Isa::avx2, Isa::plain};
    IsaChoice choice;
    if (!wanted.empty()) {
        for (auto const isa : falling) {
            if (wanted != isa_name(isa)) continue;
            if (supported(isa)) return {isa, {}};
            choice.warning = "this machine does not offer " + std::string{wanted};
        }
        if (choice.warning.empty()) {
            choice.warning = '"' + std::string{wanted} + "\" is not plain, avx2, avx512 or amx";
        }
    }
    for (auto const isa : falling) {
        if (!supported(isa)) continue;
        choice.isa = isa;
        break;
    }
    if (!choice.warning.empty()) {
        choice.warning =
            "TINKXX_ENGINE_ISA: " + choice.warning + "; using " + std::string{isa_name(choice.isa)};
    }
    return choice;
}

IsaChoice const& chosen_isa() {
    static IsaChoice const choice = [] {
        auto const* const wanted = std::getenv("TINKXX_ENGINE_ISA");
        return choose_isa(wanted == nullptr ? "" : wanted, &isa_supported);
    }();
    return choice;
}

KernelTable const& kernels() {
    static KernelTable const& table = *kernel_table(chosen_isa().isa);
    return table;
}

}  // namespace tinkxx::engine
