# Saves the time of whoever works on tinkxx itself. Nothing here is needed, and nothing here
# reaches a project that merely uses tinkxx: the file is read only if we are the top level.

# Two jobs on two cores; fewer where memory is short, since some files want 1 GB and more each.
cmake_host_system_information(RESULT tinkxx_cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT tinkxx_megabytes QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR tinkxx_jobs "${tinkxx_megabytes} / 1500")
if(tinkxx_jobs GREATER tinkxx_cores)
    set(tinkxx_jobs ${tinkxx_cores})
elseif(tinkxx_jobs LESS 1)
    set(tinkxx_jobs 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS compile=${tinkxx_jobs} link=2)
if(NOT DEFINED CMAKE_JOB_POOL_COMPILE)
    set(CMAKE_JOB_POOL_COMPILE compile)
endif()
if(NOT DEFINED CMAKE_JOB_POOL_LINK)
    set(CMAKE_JOB_POOL_LINK link)
endif()

find_program(TINKXX_CCACHE ccache)
if(TINKXX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Precompiled headers are cached only if told that nothing depends on __DATE__ and the like.
    set(tinkxx_ccache_options
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
    if(TINKXX_SANITIZE_IGNORE)
        # It does not know that this is a part of what is compiled.
        list(APPEND tinkxx_ccache_options CCACHE_EXTRAFILES=${TINKXX_SANITIZE_IGNORE})
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${tinkxx_ccache_options} ${TINKXX_CCACHE})
endif()

find_program(TINKXX_MOLD mold)
if(TINKXX_MOLD)
    include(CheckLinkerFlag)
    check_linker_flag(CXX -fuse-ld=mold TINKXX_CAN_USE_MOLD)
    if(TINKXX_CAN_USE_MOLD)
        add_link_options(-fuse-ld=mold)
    endif()
endif()
