# The numeric floor: it needs the standard library only, so its tests and benchmarks need no more.
add_library(tinkxx_engine_kernels STATIC
    kernels/attention.cpp
    kernels/convert.cpp
    kernels/elementwise.cpp
    kernels/isa.cpp
    kernels/isa_plain.cpp
    kernels/optimizer.cpp
    kernels/packed_matrix.cpp
    kernels/products.cpp
    threads.cpp
)
target_compile_features(tinkxx_engine_kernels PUBLIC cxx_std_20)
target_include_directories(tinkxx_engine_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tinkxx_engine_kernels
    PUBLIC Threads::Threads
    PRIVATE $<BUILD_INTERFACE:tinkxx_own_flags>)
set_target_properties(tinkxx_engine_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tinkxx_engine PUBLIC tinkxx_engine_kernels)

# Files of one instruction set have its flags, share no inline function with others (a linker could
# keep the copy that an older CPU cannot run), and stand alone. The compiler must not fuse products
# and sums by itself: every fused multiply-add is written as one, so that all sets agree. They are
# optimised in every build; without it they are fifty times slower. Sanitizers want less: what they
# insert is multiplied by every unrolled loop.
set(tinkxx_kernel_options -ffp-contract=off -fno-math-errno -fno-tree-vectorize)
set(tinkxx_kernel_speed -O3)
if(TINKXX_SANITIZE)
    set(tinkxx_kernel_speed -O1 -DTINKXX_SMALL_KERNELS)
endif()
set_source_files_properties(kernels/elementwise.cpp kernels/optimizer.cpp PROPERTIES
    COMPILE_OPTIONS "${tinkxx_kernel_options}")
# g++ 12 crashes when it vectorises the plain rounding to bfloat16.
set_source_files_properties(kernels/isa_plain.cpp PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON
    COMPILE_OPTIONS "${tinkxx_kernel_options};${tinkxx_kernel_speed}")
set_source_files_properties(kernels/packed_matrix.cpp PROPERTIES COMPILE_OPTIONS -O2)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    target_compile_definitions(tinkxx_engine_kernels PRIVATE TINKXX_ENGINE_X86)
    set(tinkxx_avx2 -mavx2 -mfma -mf16c)
    set(tinkxx_avx512 ${tinkxx_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl)
    # g++ 12 takes the undefined vectors inside its own intrinsics for a mistake of ours.
    set(tinkxx_quiet $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>
        $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    # Its tile instructions are asm, so the flags are those of AVX-512.
    set(tinkxx_amx ${tinkxx_avx512})
    foreach(set avx2 avx512 amx)
        target_sources(tinkxx_engine_kernels PRIVATE kernels/isa_${set}.cpp)
        set_source_files_properties(kernels/isa_${set}.cpp PROPERTIES
            SKIP_UNITY_BUILD_INCLUSION ON
            COMPILE_OPTIONS "${tinkxx_kernel_options};${tinkxx_kernel_speed};${tinkxx_${set}};${tinkxx_quiet}")
    endforeach()
endif()
