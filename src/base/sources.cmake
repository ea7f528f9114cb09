target_sources(tinkxx PRIVATE
    base/asio.cpp
    base/entropy.cpp
    base/error.cpp
    base/event_loop.cpp
    base/log.cpp
    base/timer_queue.cpp
    base/transport.cpp
)
