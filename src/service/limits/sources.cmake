target_sources(tinkxx PRIVATE
    service/limits/permits.cpp
)
