#pragma once

#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine {

extern KernelTable const plain_kernels;
extern KernelTable const avx2_kernels;
extern KernelTable const avx512_kernels;
/// What AMX does in its own way; the rest of its table is that of AVX-512.
void amx_forward(ForwardArgs const& args);
void amx_backward_input(BackwardInputArgs const& args);

}  // namespace tinkxx::engine
