target_sources(tinkxx PRIVATE
    types/observer.cpp
    types/sampling.cpp
    types/status.cpp
    types/tokenizer.cpp
    types/training.cpp
)
