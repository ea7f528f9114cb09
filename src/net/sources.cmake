target_sources(tinkxx PRIVATE
    net/content_decoder.cpp
    net/socket_stream.cpp
    net/url.cpp
)
