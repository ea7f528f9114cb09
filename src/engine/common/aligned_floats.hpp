#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tinkxx::engine {

/// What `AlignedFloats` are freed by.
struct FreeFloats {
    void operator()(float* memory) const noexcept {
        ::operator delete[](memory, std::align_val_t{64});
    }
};

/// Floats that begin at a cache line, as the kernels like them.
using AlignedFloats = std::unique_ptr<float[], FreeFloats>;

/// So many of them, which are not cleared.
[[nodiscard]] inline AlignedFloats aligned_floats(std::size_t count) {
    return AlignedFloats{
        static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64}))};
}

/// A block of floats that only grows. What was in it is lost when it does.
class GrowingBuffer {
public:
    float* reserve(std::size_t floats) {
        if (floats > size_) {
            memory_.reset();
            memory_ = aligned_floats(floats);
            size_ = floats;
        }
        return memory_.get();
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    AlignedFloats memory_{};
    std::size_t size_{0};
};

}  // namespace tinkxx::engine
