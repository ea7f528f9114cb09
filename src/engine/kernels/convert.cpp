#include "engine/kernels/convert.hpp"

#include "engine/kernels/kernel_table.hpp"

#include <cstring>

namespace tinkxx::engine {

float f16_to_float(std::uint16_t bits) noexcept {
    F16 half;
    std::memcpy(&half, &bits, 2);
    float value = 0;
    kernel_table(Isa::plain)->widen_f16(&value, &half, 1);
    return value;
}

std::uint16_t float_to_f16(float value) noexcept {
    F16 half;
    kernel_table(Isa::plain)->narrow_f16(&half, &value, 1);
    std::uint16_t bits = 0;
    std::memcpy(&bits, &half, 2);
    return bits;
}

void widen(float* to, ElementType type, void const* from, std::size_t count) {
    if (count == 0) return;
    switch (type) {
        case ElementType::f32:
            std::memcpy(to, from, count * 4);
            break;
        case ElementType::bf16:
            kernels().widen_bf16(to, static_cast<Bf16 const*>(from), count);
            break;
        case ElementType::f16:
            kernels().widen_f16(to, static_cast<F16 const*>(from), count);
            break;
    }
}

void narrow(void* to, ElementType type, float const* from, std::size_t count) {
    if (count == 0) return;
    switch (type) {
        case ElementType::f32:
            std::memcpy(to, from, count * 4);
            break;
        case ElementType::bf16:
            kernels().narrow_bf16(static_cast<Bf16*>(to), from, count);
            break;
        case ElementType::f16:
            kernels().narrow_f16(static_cast<F16*>(to), from, count);
            break;
    }
}

}  // namespace tinkxx::engine
