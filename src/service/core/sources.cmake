target_sources(tinkxx PRIVATE
    service/core/client_core.cpp
)
