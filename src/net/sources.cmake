target_sources(tinkxx PRIVATE
    net/content_decoder.cpp
    net/exchange.cpp
    net/header_block.cpp
    net/http1_connection.cpp
    net/http2_connection.cpp
    net/net_transport.cpp
    net/pool.cpp
    net/socket_stream.cpp
    net/url.cpp
)
