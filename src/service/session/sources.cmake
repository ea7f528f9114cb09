target_sources(tinkxx PRIVATE
    service/session/billing_pause.cpp
    service/session/heartbeat.cpp
    service/session/session.cpp
    service/session/session_telemetry.cpp
    service/session/sampler_handle.cpp
    service/session/service_call.cpp
    service/session/service_context.cpp
    service/session/shadow.cpp
    service/session/start_up.cpp
    service/session/submit_retry.cpp
)
