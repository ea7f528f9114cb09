#include "engine/train/optimizer.hpp"

#include "engine/common/failure.hpp"
#include "engine/kernels/optimizer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

namespace tinkxx::engine {

namespace {

/// Elements that one thread updates at once; each is updated by itself.
constexpr std::size_t chunk = 1U << 14U;

/// Well below the largest float, so that roundings on the way do not matter.
constexpr double safely_finite = 1e37;

std::string text_of(double value) {
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%g", value);
    return text.data();
}

/// The settings as the kernel computes with them, in float32.
Result<AdamWStep> kernel_step(AdamParams const& params, std::int64_t step) {
    AdamWStep kernel{.step = step};
    Result<AdamWStep> result{kernel};
    auto const take = [&](double& to, char const* name, double value, auto const& allowed,
                          char const* instead) {
        // Beyond the range of float the conversion would be undefined.
        bool const wide = std::abs(value) > double{std::numeric_limits<float>::max()};
        auto const narrow = wide || std::isnan(value) ? 0.0F : static_cast<float>(value);
        if (result && (wide || std::isnan(value) || !allowed(narrow))) {
            result = invalid(
                std::string("optim_step: ") + name + " is " + text_of(value) + "; use " + instead,
                name);
        }
        to = double{narrow};
    };
    auto const at_least_zero = [](float value) { return value >= 0.0F; };
    auto const fraction = [](float value) { return value >= 0.0F && value < 1.0F; };
    constexpr auto const* some_range = "a number from 0 to 3.4e38";
    constexpr auto const* fraction_range =
        "a number from 0 up to, but not including, 1 (as float32)";
    take(kernel.learning_rate, "learning_rate", params.learning_rate, at_least_zero, some_range);
    take(kernel.beta1, "beta1", params.beta1, fraction, fraction_range);
    take(kernel.beta2, "beta2", params.beta2, fraction, fraction_range);
    take(
        kernel.eps, "eps", params.eps, [](float value) { return value > 0.0F; },
        "a number above 0 and up to 3.4e38 (as float32)");
    take(kernel.weight_decay, "weight_decay", params.weight_decay, at_least_zero, some_range);
    double clip = 0;
    take(
        clip, "grad_clip_norm", params.grad_clip_norm, [](float) { return true; },
        "a number up to 3.4e38, or 0 to turn clipping off");
    if (!result) return result;
    return kernel;
}

void clear(std::vector<PackedMatrix*> const& matrices) {
    for (auto* const matrix : matrices) std::ranges::fill(matrix->values(), 0.0F);
}

/// Some numbers of one of the matrices.
struct Chunk {
    std::size_t matrix{0};
    std::size_t begin{0};
    std::size_t count{0};

    [[nodiscard]] std::span<float> of(std::vector<PackedMatrix*> const& matrices) const {
        return matrices[matrix]->values().subspan(begin, count);
    }
};

/// All numbers in chunks. Those of small matrices, as a LoRA has many, keep threads busy too.
std::vector<Chunk> chunks_of(std::vector<PackedMatrix*> const& matrices) {
    std::vector<Chunk> chunks;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
        auto const count = matrices[i]->values().size();
        for (std::size_t begin = 0; begin < count; begin += chunk) {
            chunks.push_back(
                {.matrix = i, .begin = begin, .count = std::min(chunk, count - begin)});
        }
    }
    return chunks;
}

/// Calls `body(item, slot)` for each of the items.
template <class Items, class Body>
void share_out(Items& items, Threads* threads, Body const& body) {
    if (threads != nullptr) {
        threads->run(items.size(),
                     [&](std::size_t index, unsigned slot) { body(items[index], slot); });
    } else {
        for (auto& item : items) body(item, 0U);
    }
}

double norm_of(std::vector<PackedMatrix*> const& matrices, Threads* threads) {
    struct Part {
        PackedMatrix const* matrix;
        double squares;
    };
    std::vector<Part> parts;
    for (auto const* const matrix : matrices) parts.push_back({matrix, 0.0});
    share_out(parts, threads, [](Part& part, unsigned /*slot*/) {
        auto const values = part.matrix->values();
        part.squares = sum_of_squares(values.data(), values.size());
    });
    // In the order of the matrices, so that the sum is the same however the work was shared.
    double squares = 0.0;
    for (auto const& part : parts) squares += part.squares;
    return std::sqrt(squares);
}

/// The largest absolute value; NaN counts as more than infinity.
std::uint32_t largest_bits(std::span<float const> values) noexcept {
    // Floats without their sign are ordered as their bits are.
    std::int32_t most = 0;
    for (auto const value : values) {
        most = std::max(most, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
    }
    return static_cast<std::uint32_t>(most);
}

/// The largest absolute values.
struct Bounds {
    double weight{0};
    double moment1{0};
    double moment2{0};
};

Bounds bounds_of(OptimizerTensors const& tensors, std::vector<Chunk> const& chunks,
                 Threads* threads) {
    std::array<std::atomic<std::uint32_t>, 3> most{};
    auto const raise = [](std::atomic<std::uint32_t>& to, std::uint32_t value) {
        auto seen = to.load(std::memory_order_relaxed);
        while (seen < value && !to.compare_exchange_weak(seen, value)) {
        }
    };
    share_out(chunks, threads, [&](Chunk const& part, unsigned /*slot*/) {
        raise(most[0], largest_bits(part.of(tensors.weights)));
        raise(most[1], largest_bits(part.of(tensors.moment1)));
        raise(most[2], largest_bits(part.of(tensors.moment2)));
    });
    auto const value = [&](std::size_t i) { return double{std::bit_cast<float>(most[i].load())}; };
    return {.weight = value(0), .moment1 = value(1), .moment2 = value(2)};
}

bool all_finite(std::span<float const> values) noexcept {
    return largest_bits(values) < 0x7f800000U;
}

/// Whether bounds on all numbers show that nothing can become NaN or infinity. A learning rate that
/// trains anything passes, so the step is hardly ever tried on a copy first.
bool surely_finite(Bounds const& bounds, AdamWStep const& step, double norm) {
    // (std::max keeps a NaN that is its first argument.)
    auto const gradient = norm * step.gradient_factor;
    auto const m = std::max(bounds.moment1, gradient);
    auto const v = std::max(bounds.moment2, gradient * gradient);
    auto const ratio = m / step.eps;
    auto const step_size = step.learning_rate / (1.0 - step.beta1);
    auto const decay = std::abs(1.0 - step.learning_rate * step.weight_decay);
    // Each comparison is false for NaN.
    return norm < safely_finite && v < safely_finite && ratio < safely_finite &&
           step_size < safely_finite && bounds.weight * decay + step_size * ratio < safely_finite &&
           decay < safely_finite;
}

struct Trial {
    bool weights{true};
    bool moments{true};
};

/// Does the step on copies, some numbers at a time, and says what stays finite.
Trial try_step(OptimizerTensors const& tensors, AdamWStep const& step,
               std::vector<Chunk> const& chunks, Threads* threads) {
    std::vector<float> copies((threads == nullptr ? 1 : threads->count()) * 3 * chunk);
    std::atomic<bool> weights{true};
    std::atomic<bool> moments{true};
    share_out(chunks, threads, [&](Chunk const& part, unsigned slot) {
        auto const copy = [&](std::size_t place, std::vector<PackedMatrix*> const& matrices) {
            auto const to = std::span{copies}.subspan((3 * slot + place) * chunk, part.count);
            std::ranges::copy(part.of(matrices), to.begin());
            return to;
        };
        auto const p = copy(0, tensors.weights);
        auto const m = copy(1, tensors.moment1);
        auto const v = copy(2, tensors.moment2);
        adamw_step(step, p.data(), part.of(tensors.gradients).data(), m.data(), v.data(),
                   part.count);
        if (!all_finite(p)) weights = false;
        if (!all_finite(m) || !all_finite(v)) moments = false;
    });
    return {.weights = weights, .moments = moments};
}

}  // namespace

Result<StepResult> adamw(OptimizerTensors const& tensors, std::int64_t step,
                         AdamParams const& params, Threads* threads) {
    auto checked = kernel_step(params, step);
    if (!checked) return checked.error();
    auto& kernel = *checked;
    auto const& gradients = tensors.gradients;
    auto const norm = norm_of(gradients, threads);
    if (!std::isfinite(norm)) {
        clear(gradients);
        return invalid(
            "optim_step: the gradient holds NaN or infinity; the weights were kept and the "
            "gradient was dropped; look at the loss and the weights of the last batch",
            "gradient");
    }
    if (params.grad_clip_norm > 0.0) {
        // torch adds the same
        auto const factor = std::min(1.0, params.grad_clip_norm / (norm + 1e-6));
        kernel.gradient_factor = double{static_cast<float>(factor)};
    }
    auto const chunks = chunks_of(tensors.weights);
    if (!surely_finite(bounds_of(tensors, chunks, threads), kernel, norm)) {
        auto const tried = try_step(tensors, kernel, chunks, threads);
        if (!tried.weights || !tried.moments) {
            clear(gradients);
            auto const kept =
                "; the weights before it were kept and the gradient was dropped; use ";
            if (!tried.weights) {
                return invalid(
                    "optim_step: the step makes weights that are NaN or infinity "
                    "(learning_rate " +
                        text_of(params.learning_rate) + ")" + kept + "a smaller learning_rate",
                    "learning_rate");
            }
            return invalid(
                "optim_step: the step makes moments that are infinite (norm of the "
                "gradient " +
                    text_of(norm) + ")" + kept + "a smaller loss or grad_clip_norm",
                "gradient");
        }
    }
    share_out(chunks, threads, [&](Chunk const& part, unsigned /*slot*/) {
        auto const gradient = part.of(gradients);
        adamw_step(kernel, part.of(tensors.weights).data(), gradient.data(),
                   part.of(tensors.moment1).data(), part.of(tensors.moment2).data(), part.count);
        std::ranges::fill(gradient, 0.0F);
    });
    return StepResult{.grad_norm = norm, .step = step};
}

Result<StepResult> optim_step(Adapter& adapter, AdamParams const& params, Threads* threads) {
    auto result = adamw({.weights = all_matrices(adapter.parameters()),
                         .gradients = all_matrices(adapter.gradients()),
                         .moment1 = all_matrices(adapter.moment1()),
                         .moment2 = all_matrices(adapter.moment2())},
                        adapter.steps() + 1, params, threads);
    if (!result) return result;
    adapter.set_steps(result->step);
    adapter.touch();
    return result;
}

}  // namespace tinkxx::engine
