target_sources(tinkxx PRIVATE
    service/breaker/breaker_machine.cpp
    service/breaker/circuit_breaker.cpp
)
