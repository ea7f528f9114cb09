target_sources(tinkxx PRIVATE
    base/blocks.cpp
    base/callback_queue.cpp
    base/entropy.cpp
    base/error.cpp
    base/event_loop.cpp
    base/fork.cpp
    base/future.cpp
    base/log.cpp
    base/runtime.cpp
    base/runtime_core.cpp
    base/socket_events.cpp
    base/timer_queue.cpp
    base/transport.cpp
)
