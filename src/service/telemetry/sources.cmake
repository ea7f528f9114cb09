target_sources(tinkxx PRIVATE
    service/telemetry/error_stack.cpp
    service/telemetry/error_type.cpp
    service/telemetry/process_uuid.cpp
    service/telemetry/telemetry_queue.cpp
    service/telemetry/telemetry_reporter.cpp
)
