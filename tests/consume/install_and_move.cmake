file(REMOVE_RECURSE ${PREFIX} ${PREFIX}.first)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}.first
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME ${PREFIX}.first ${PREFIX})

# Nothing installed may know where it was built, or where it was first installed. Libraries are
# left out: debug information names the sources.
file(GLOB_RECURSE texts ${PREFIX}/*.cmake ${PREFIX}/*.pc ${PREFIX}/*.hpp)
foreach(path IN LISTS texts)
    file(READ ${path} text)
    foreach(place ${BUILD} ${PREFIX})
        string(FIND "${text}" ${place} found)
        if(NOT found EQUAL -1)
            message(FATAL_ERROR "${path} names ${place}")
        endif()
    endforeach()
endforeach()
list(LENGTH texts count)
message("installed; ${count} files name no place of this machine")
