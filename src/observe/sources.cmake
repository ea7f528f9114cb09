target_sources(tinkxx PRIVATE
    observe/console_observer.cpp
    observe/metrics.cpp
)
