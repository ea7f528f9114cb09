#define TINKXX_ISA avx512
#include "engine/kernels/isa/vector_avx512.hpp"
//
#include "engine/kernels/generic/table.hpp"
#include "engine/kernels/isa/isa_tables.hpp"

namespace tinkxx::engine {

KernelTable const avx512_kernels = avx512::table;

}  // namespace tinkxx::engine
