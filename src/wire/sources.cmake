target_sources(tinkxx PRIVATE
    wire/base64.cpp
    wire/json.cpp
    wire/jwt.cpp
    wire/model_input.cpp
    wire/service_messages.cpp
    wire/telemetry.cpp
    wire/tensor.cpp
    wire/types.cpp
)
