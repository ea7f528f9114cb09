target_sources(tinkxx PRIVATE
    service/auth/command_credential.cpp
    service/auth/credential_choice.cpp
    service/auth/credential_store.cpp
    service/auth/identity.cpp
    service/auth/process_runner.cpp
    service/auth/token_clock.cpp
    service/auth/token_exchange.cpp
)
