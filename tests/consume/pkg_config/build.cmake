# A project of SOURCES without CMake: the compiler, pkg-config, and nothing else.
file(GLOB_RECURSE pc ${PREFIX}/tinkxx.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
set(static --static)
if(SHARED)
    set(static)
endif()

function(ask result)
    execute_process(COMMAND pkg-config ${ARGN} OUTPUT_VARIABLE text
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(words UNIX_COMMAND "${text}")
    set(${result} ${words} PARENT_SCOPE)
endfunction()

ask(version --modversion ${PACKAGE})
if(NOT version STREQUAL EXPECTED)
    message(FATAL_ERROR "${PACKAGE}.pc says ${version}, not ${EXPECTED}")
endif()
ask(flags --cflags ${PACKAGE})
ask(libraries --libs ${static} ${PACKAGE})

file(MAKE_DIRECTORY ${OUTPUT})
execute_process(COMMAND ${COMPILER} -std=c++20 ${flags} -o ${OUTPUT}/consumer
    ${SOURCES} ${libraries}
    COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} ${folder}/..)
execute_process(COMMAND ${OUTPUT}/consumer ${EXPECTED} COMMAND_ERROR_IS_FATAL ANY)
