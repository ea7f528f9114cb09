target_sources(tinkxx PRIVATE
    service/http/deprecation_notes.cpp
    service/http/endpoint.cpp
    service/http/http_call.cpp
    service/http/http_context.cpp
    service/http/http_date.cpp
    service/http/http_error.cpp
    service/http/http_retry.cpp
    service/http/query.cpp
    service/http/redaction.cpp
    service/http/retry_after.cpp
    service/http/scrubber.cpp
    service/http/standard_headers.cpp
)
