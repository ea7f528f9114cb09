# A project that takes tinkxx into its own build: configured, its own files and one of each layer of
# the library compiled there, linked as it asks for, and run. The other objects are those of the build
# that tests: compiling all of them once more would cost more than every other test together. A build
# of shared libraries, which is rarer, does so.
file(REMOVE_RECURSE ${OUTPUT})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${OUTPUT} -G Ninja
    -DCMAKE_CXX_COMPILER=${COMPILER} -DTINKXX_SOURCE=${TINKXX_SOURCE} -DBUILD_SHARED_LIBS=${SHARED}
    COMMAND_ERROR_IS_FATAL ANY)

function(ninja)
    execute_process(COMMAND ninja ${ARGN} WORKING_DIRECTORY ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(ask_ninja result)
    execute_process(COMMAND ninja -t ${ARGN} WORKING_DIRECTORY ${OUTPUT} OUTPUT_VARIABLE text
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

if(SHARED)
    ninja(consumer)
else()
    ask_ninja(targets targets all)
    set(objects)
    foreach(pattern "CMakeFiles/consumer\\.dir/[^\n:]*\\.o"
            "[^\n:]*/tinkxx\\.dir/base/common/error\\.cpp\\.o" "[^\n:]*/tinkxx\\.dir/wire/json/json\\.cpp\\.o"
            "[^\n:]*/tinkxx\\.dir/net/address/url\\.cpp\\.o"
            "[^\n:]*/tinkxx\\.dir/service/http/standard_headers\\.cpp\\.o"
            "[^\n:]*/tinkxx\\.dir/service/text/multipart\\.cpp\\.o")
        string(REGEX MATCHALL "(^|\n)${pattern}" found "${targets}")
        if(NOT found)
            message(FATAL_ERROR "no object of the build matches ${pattern}")
        endif()
        string(REPLACE "\n" "" found "${found}")
        list(APPEND objects ${found})
    endforeach()
    ninja(${objects})

    foreach(file ${LIBRARIES})
        cmake_path(GET file FILENAME name)
        if(NOT targets MATCHES "(^|\n)([^\n:]*/)${name}:")
            message(FATAL_ERROR "the build has no ${name}")
        endif()
        file(COPY ${file} DESTINATION ${OUTPUT}/${CMAKE_MATCH_2})
    endforeach()
    ask_ninja(commands commands consumer)
    string(REGEX REPLACE ".*\n" "" link "${commands}")
    execute_process(COMMAND sh -c "${link}" WORKING_DIRECTORY ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND ${OUTPUT}/consumer ${EXPECTED} COMMAND_ERROR_IS_FATAL ANY)
