target_sources(tinkxx PRIVATE
    service/session/billing_pause.cpp
    service/session/service_call.cpp
    service/session/service_context.cpp
    service/session/submit_retry.cpp
)
