#define TINKXX_ISA plain
#include "engine/kernels/isa/vector_plain.hpp"
//
#include "engine/kernels/generic/table.hpp"
#include "engine/kernels/isa/isa_tables.hpp"

namespace tinkxx::engine {

KernelTable const plain_kernels = plain::table;

}  // namespace tinkxx::engine
