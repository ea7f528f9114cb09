target_sources(tinkxx PRIVATE
    service/recovery/recovery_event.cpp
    service/recovery/recovery_machine.cpp
    service/recovery/recovery_rules.cpp
)
