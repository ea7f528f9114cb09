target_sources(tinkxx PRIVATE
    client/client_core.cpp
    client/close_call.cpp
    client/console_observer.cpp
    client/credentials.cpp
    client/default_options.cpp
    client/http_client.cpp
    client/http_order.cpp
    client/multipart.cpp
    client/pending_call.cpp
    client/resolved_options.cpp
    client/sampling_client.cpp
    client/send_operation.cpp
    client/service_client.cpp
    client/stream_call.cpp
    client/stream_operation.cpp
)
