target_sources(tinkxx PRIVATE
    wire/base64.cpp
    wire/completions.cpp
    wire/event_stream.cpp
    wire/future.cpp
    wire/json.cpp
    wire/json_scan.cpp
    wire/jwt.cpp
    wire/model_input.cpp
    wire/sample.cpp
    wire/sample_proto.cpp
    wire/sample_quick.cpp
    wire/service_messages.cpp
    wire/telemetry.cpp
    wire/tensor.cpp
    wire/types.cpp
)
