# The listener by itself, as its tests use it; the server takes its objects in.
include_guard(GLOBAL)
add_library(tinkxx_listener OBJECT
    ${CMAKE_CURRENT_LIST_DIR}/listener.cpp
    ${CMAKE_CURRENT_LIST_DIR}/connection.cpp
    ${CMAKE_CURRENT_LIST_DIR}/parser.cpp)
target_include_directories(tinkxx_listener PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tinkxx_listener
    PUBLIC tinkxx::tinkxx
    PRIVATE $<BUILD_INTERFACE:tinkxx_own_flags> Boost::headers)
set_target_properties(tinkxx_listener PROPERTIES POSITION_INDEPENDENT_CODE ON)
if(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(tinkxx_listener PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
