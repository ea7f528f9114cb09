# What the library itself needs. All of it is private: no header that a user includes names it.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
# Headers alone, without a package file.
find_path(TINKXX_PROTOZERO protozero/pbf_reader.hpp)
mark_as_advanced(TINKXX_PROTOZERO)
if(NOT TINKXX_PROTOZERO)
    message(FATAL_ERROR "tinkxx needs the headers of protozero (Debian: libprotozero-dev)")
endif()
