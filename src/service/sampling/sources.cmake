target_sources(tinkxx PRIVATE
    service/sampling/pending_bound.cpp
    service/sampling/place_wait.cpp
    service/sampling/sample_operation.cpp
    service/sampling/sampler.cpp
    service/sampling/stall_reporter.cpp
    service/sampling/status_text.cpp
)
