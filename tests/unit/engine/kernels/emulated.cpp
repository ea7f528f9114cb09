// The AVX-512 and AMX kernels with their instructions emulated. Needs AVX2, and its flags.

#define TINKXX_ISA emulated
#include "emulated_avx512.hpp"
//
#include "engine/kernels/isa/vector_avx512.hpp"
//
#include "emulated_tiles.hpp"
#include "engine/kernels/generic/table.hpp"
#include "engine/kernels/generic/tile_products.hpp"

namespace tinkxx::engine {

extern KernelTable const emulated_avx512_kernels;
KernelTable const emulated_avx512_kernels = emulated::table;

void emulated_amx_forward(ForwardArgs const& args);
void emulated_amx_forward(ForwardArgs const& args) {
    if (args.type != ElementType::bf16) return emulated::forward(args);
    emulated::forward_in_tiles(args);
}

void emulated_amx_backward_input(BackwardInputArgs const& args);
void emulated_amx_backward_input(BackwardInputArgs const& args) {
    if (args.type != ElementType::bf16) return emulated::backward_input(args);
    emulated::backward_input_in_tiles(args);
}

}  // namespace tinkxx::engine
