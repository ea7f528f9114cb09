target_sources(tinkxx PRIVATE
    service/training/check.cpp
    service/training/chunking.cpp
    service/training/combining.cpp
    service/training/data.cpp
    service/training/encoding_choice.cpp
    service/training/loss_listener.cpp
    service/training/losses.cpp
    service/training/model.cpp
    service/training/pass.cpp
    service/training/regularized_loss.cpp
    service/training/regularizers.cpp
    service/training/submission.cpp
    service/training/turns.cpp
)
