#define TINKXX_ISA amx
#include "engine/kernels/isa/tiles.hpp"
#include "engine/kernels/isa/vector_avx512.hpp"
//
#include "engine/kernels/generic/tile_products.hpp"
#include "engine/kernels/isa/isa_tables.hpp"

namespace tinkxx::engine {

void amx_forward(ForwardArgs const& args) {
    if (args.type != ElementType::bf16) return avx512_kernels.forward(args);
    amx::forward_in_tiles(args);
}

void amx_backward_input(BackwardInputArgs const& args) {
    if (args.type != ElementType::bf16) return avx512_kernels.backward_input(args);
    amx::backward_input_in_tiles(args);
}

}  // namespace tinkxx::engine
