#pragma once

#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine {

extern KernelTable const plain_kernels;
extern KernelTable const avx2_kernels;
extern KernelTable const avx512_kernels;

}  // namespace tinkxx::engine
