target_sources(tinkxx PRIVATE
    types/checkpoint.cpp
    types/listed.cpp
    types/observer.cpp
    types/sampling.cpp
    types/status.cpp
    types/timestamp.cpp
    types/tokenizer.cpp
    types/training.cpp
)
