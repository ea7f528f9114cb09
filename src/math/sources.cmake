target_sources(tinkxx PRIVATE
    math/check.cpp
    math/data.cpp
    math/loss_listener.cpp
    math/losses.cpp
    math/regularized_loss.cpp
    math/regularizers.cpp
)
