target_sources(tinkxx PRIVATE
    service/retry/retry_budget.cpp
    service/retry/retry_config.cpp
    service/retry/retry_handler.cpp
    service/retry/user_error.cpp
)
