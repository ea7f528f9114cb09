target_sources(tinkxx PRIVATE
    net/connecting_socket.cpp
    net/content_decoder.cpp
    net/dialer.cpp
    net/exchange.cpp
    net/header_block.cpp
    net/http1_connection.cpp
    net/http2_connection.cpp
    net/net_transport.cpp
    net/pool.cpp
    net/prefixed_stream.cpp
    net/proxy.cpp
    net/resolver.cpp
    net/socket_stream.cpp
    net/tls.cpp
    net/tls_errors.cpp
    net/url.cpp
)
