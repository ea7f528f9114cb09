# Servers, proxies and a driver for tests and benchmarks that use real sockets.
include_guard(GLOBAL)
find_package(GTest REQUIRED)

add_library(tinkxx_test_servers STATIC EXCLUDE_FROM_ALL
    ${CMAKE_CURRENT_LIST_DIR}/servers/canned_tinker.cpp
    ${CMAKE_CURRENT_LIST_DIR}/servers/connect_proxy.cpp
    ${CMAKE_CURRENT_LIST_DIR}/servers/http1_script.cpp
    ${CMAKE_CURRENT_LIST_DIR}/servers/http2_script.cpp
    ${CMAKE_CURRENT_LIST_DIR}/servers/http_server.cpp
    ${CMAKE_CURRENT_LIST_DIR}/servers/script_server.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sockets/certificates.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sockets/http_driver.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sockets/processes.cpp
    ${CMAKE_CURRENT_LIST_DIR}/sockets/sockets.cpp)
target_include_directories(tinkxx_test_servers PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(tinkxx_test_servers
    PUBLIC tinkxx::tinkxx OpenSSL::SSL OpenSSL::Crypto PkgConfig::nghttp2 GTest::gtest
    PRIVATE tinkxx_own_flags ZLIB::ZLIB PkgConfig::zstd)
