#define TINKXX_ISA avx2
#include "engine/kernels/isa/vector_avx2.hpp"
//
#include "engine/kernels/generic/table.hpp"
#include "engine/kernels/isa/isa_tables.hpp"

namespace tinkxx::engine {

KernelTable const avx2_kernels = avx2::table;

}  // namespace tinkxx::engine
