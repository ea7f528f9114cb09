target_sources(tinkxx PRIVATE
    service/deprecation_notes.cpp
    service/endpoint.cpp
    service/http_call.cpp
    service/http_context.cpp
    service/http_date.cpp
    service/http_error.cpp
    service/http_retry.cpp
    service/query.cpp
    service/redaction.cpp
    service/retry_after.cpp
    service/scrubber.cpp
    service/standard_headers.cpp
)
