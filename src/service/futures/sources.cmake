target_sources(tinkxx PRIVATE
    service/futures/cancel_queue.cpp
    service/futures/completion_machine.cpp
    service/futures/completion_poll.cpp
    service/futures/future_poll.cpp
    service/futures/poll_backoff.cpp
    service/futures/poll_machine.cpp
    service/futures/queue_state_reporter.cpp
    service/futures/standing.cpp
)
