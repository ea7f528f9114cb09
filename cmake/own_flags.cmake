# Flags for our own code only; they never reach a consumer.
add_library(tinkxx_own_flags INTERFACE)
# (-Wshadow not for files that are compiled together: what one calls `now`, another calls otherwise.)
target_compile_options(tinkxx_own_flags INTERFACE
    -Wall -Wextra -Wpedantic $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow> -Wconversion
    -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wformat=2
    -Wimplicit-fallthrough)
if(TINKXX_WERROR)
    target_compile_options(tinkxx_own_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12, where it optimises: does not see that a guard on the stack takes its address back in
    # its destructor, takes text + std::string for an overlapping copy (its bug 105651), and reads the
    # alternative of a variant that is not there.
    target_compile_options(tinkxx_own_flags INTERFACE
        -Wno-dangling-pointer -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(TINKXX_SANITIZE)
    target_compile_options(tinkxx_own_flags INTERFACE
        -fsanitize=${TINKXX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(tinkxx_own_flags INTERFACE -fsanitize=${TINKXX_SANITIZE})
    if(TINKXX_SANITIZE_IGNORE)
        target_compile_options(tinkxx_own_flags INTERFACE
            -fsanitize-ignorelist=${TINKXX_SANITIZE_IGNORE})
    endif()
endif()
if(TINKXX_BUILD_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "TINKXX_BUILD_FUZZ needs clang, which brings libFuzzer")
    endif()
    # Lets the fuzzer see which branches of the library an input reaches; `main` is the program's.
    # Other tests need none of that.
    target_compile_options(tinkxx_own_flags INTERFACE
        $<$<NOT:$<BOOL:$<TARGET_PROPERTY:TINKXX_UNSEEN_BY_FUZZER>>>:-fsanitize=fuzzer-no-link>)
endif()
