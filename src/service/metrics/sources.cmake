target_sources(tinkxx PRIVATE
    service/metrics/metrics.cpp
)
