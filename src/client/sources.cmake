target_sources(tinkxx PRIVATE
    client/admin_client.cpp
    client/default_options.cpp
    client/http_client.cpp
    client/make_core.cpp
    client/recovery.cpp
    client/recovery_calls.cpp
    client/resolved_options.cpp
    client/rest_calls.cpp
    client/rest_client.cpp
    client/sampling_client.cpp
    client/service_client.cpp
    client/training_client.cpp
)
