# tinkxx_join_sources(TARGET [FILE...]): with TINKXX_UNITY, its files are compiled eight at a time, those
# of one folder together; the files named are compiled alone, since they use names that another has.
# Half of what a file costs is what it shares with its neighbours; on the other hand a change then costs
# eight files, and nothing shows that each includes what it uses. So builds that are made once have it,
# those for work do not.
function(tinkxx_join_sources target)
    if(NOT TINKXX_UNITY)
        # Also if whoever includes us has it on: files elsewhere may use the same private names.
        set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
        return()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(files ${target} SOURCES)
    list(FILTER files INCLUDE REGEX "\\.cpp$")
    if(ARGN)
        list(REMOVE_ITEM files ${ARGN})
    endif()
    set(folder "")
    set(number 0)
    foreach(file IN LISTS files)
        get_filename_component(its_folder ${file} DIRECTORY)
        if(NOT its_folder STREQUAL folder)
            set(folder "${its_folder}")
            set(number 0)
        endif()
        math(EXPR batch "${number} / 8")
        math(EXPR number "${number} + 1")
        string(MAKE_C_IDENTIFIER "${folder}_${batch}" group)
        set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group})
    endforeach()
endfunction()
