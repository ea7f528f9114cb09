target_sources(tinkxx_text PRIVATE
    files/checksum.cpp
    files/environment.cpp
    files/find.cpp
    files/hub.cpp
    files/hub_address.cpp
    files/hub_cache.cpp
    files/hub_requests.cpp
    files/load.cpp
    files/partial_file.cpp
    files/render_tokenizer.cpp
    files/text_file.cpp
    files/tiktoken_kinds.cpp
    files/tokenizer_config.cpp
    files/tokenizer_files.cpp
)
target_link_libraries(tinkxx_text PRIVATE Boost::json OpenSSL::Crypto)
target_sources(tinkxx_text PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include
    FILES
        ${PROJECT_SOURCE_DIR}/include/tinkxx/text/hub.hpp
        ${PROJECT_SOURCE_DIR}/include/tinkxx/text/hub_http.hpp
        ${PROJECT_SOURCE_DIR}/include/tinkxx/text/load.hpp
        ${PROJECT_SOURCE_DIR}/include/tinkxx/text/render_tokenizer.hpp)
