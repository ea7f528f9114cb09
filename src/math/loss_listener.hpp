#pragma once

#include <tinkxx/observer.hpp>

#include <utility>

namespace tinkxx::math {

/// Is told of the regularizers of the loss that runs on its thread (R-EXT-30). A loss is a plain
/// function, which knows nothing of the client that calls it; the client leaves word here.
class LossListener {
public:
    LossListener(LossListener const&) = delete;
    LossListener& operator=(LossListener const&) = delete;

    virtual void on_regularizer(LossEvent event) = 0;

    /// Null if nobody listens on this thread.
    [[nodiscard]] static LossListener* here() noexcept;

protected:
    /// From now on, on this thread.
    LossListener() noexcept;
    ~LossListener();

private:
    LossListener* outer_;
};

}  // namespace tinkxx::math
