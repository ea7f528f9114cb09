#pragma once

// Losses as expressions of libtorch, which works out their gradients.
//
// The one header of tinkxx that names a type of another library, since that is what it is for. So
// it is not part of tinkxx.hpp, and not of the target tinkxx::tinkxx but of tinkxx::torch, which
// there is only where libtorch was found.

#include <tinkxx/error.hpp>
#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/training.hpp>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

/// A copy of a tensor for libtorch: float32 or int64, dense, in its shape.
[[nodiscard]] inline ::torch::Tensor to_torch(TensorData const& tensor) {
    if (tensor.sparse()) return to_torch(to_dense(tensor));
    return std::visit(
        [&tensor](auto const& numbers) {
            using Number = typename std::decay_t<decltype(numbers)>::value_type;
            auto const shape = tensor.shape.value_or(
                std::vector<std::int64_t>{static_cast<std::int64_t>(numbers.size())});
            auto made = ::torch::empty(
                shape, std::is_same_v<Number, float> ? ::torch::kFloat32 : ::torch::kInt64);
            if (made.numel() != static_cast<std::int64_t>(numbers.size())) {
                Error{{.kind = ErrorKind::validation,
                       .message = "to_torch: the shape has " + std::to_string(made.numel()) +
                                  " cells, but there are " + std::to_string(numbers.size()) +
                                  " numbers",
                       .category = ErrorCategory::user,
                       .field = "shape"}}
                    .raise();
            }
            std::ranges::copy(numbers, made.template data_ptr<Number>());
            return made;
        },
        tensor.data);
}
[[nodiscard]] inline ::torch::Tensor to_torch(TensorView const& view) {
    return to_torch(to_tensor_data(view));
}

/// What a loss of libtorch's tensors comes to.
struct TorchLossValue {
    /// One number, computed from the log-probabilities.
    ::torch::Tensor loss{};
    MetricValues metrics{};
};

/// Turns a function over libtorch's tensors into a custom loss.
///
///     auto loss = torch_loss([](std::span<Datum const> data, std::span<torch::Tensor const> p) {
///         auto total = torch::zeros({});
///         for (std::size_t i = 0; i < data.size(); ++i) {
///             total = total - (to_torch(data[i].loss_fn_inputs.at("weights")) * p[i]).sum();
///         }
///         return total;
///     });
///     trainer.forward_backward_custom(batch, loss);
///
/// `fn(data, logprobs)` gives a tensor or a `TorchLossValue`. For each datum it gets the
/// log-probabilities of its `target_tokens`, float32 on the CPU, in their shape, as a leaf whose
/// gradient is wanted. Data on which the loss does not depend have the gradient 0. The loss must
/// be one number that depends on some of them, else `ValidationError` is thrown; what libtorch
/// throws passes through.
template <class Fn>
    requires std::invocable<Fn const&, std::span<Datum const>, std::span<::torch::Tensor const>>
[[nodiscard]] CustomLoss torch_loss(Fn fn) {
    return [fn = std::move(fn)](std::span<Datum const> data,
                                std::span<TensorData const> logprobs) -> CustomLossValue {
        // Whatever this thread was told before.
        ::torch::AutoGradMode const with_gradients{true};
        std::vector<::torch::Tensor> leaves;
        leaves.reserve(logprobs.size());
        for (auto const& each : logprobs) leaves.push_back(to_torch(each).requires_grad_(true));
        std::span<::torch::Tensor const> const given{leaves};

        TorchLossValue value;
        if constexpr (std::convertible_to<decltype(fn(data, given)), ::torch::Tensor>) {
            value.loss = fn(data, given);
        } else {
            value = fn(data, given);
        }
        auto const refuse = [](std::string const& why) {
            Error{{.kind = ErrorKind::validation,
                   .message = "torch_loss: the loss " + why,
                   .category = ErrorCategory::user,
                   .field = "loss"}}
                .raise();
        };
        if (!value.loss.defined()) refuse("is an empty tensor; it must be one number");
        if (value.loss.numel() != 1) {
            refuse("has " + std::to_string(value.loss.numel()) +
                   " numbers; it must be one, such as their sum()");
        }
        if (!value.loss.requires_grad()) {
            refuse(
                "does not depend on the log-probabilities; compute it from them, without "
                "detach() or NoGradGuard");
        }
        auto const gradients =
            ::torch::autograd::grad({value.loss.reshape({})}, leaves, {}, {}, false, true);

        CustomLossValue made;
        made.loss = value.loss.template item<double>();
        made.metrics = std::move(value.metrics);
        made.gradient.reserve(leaves.size());
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            auto& numbers = made.gradient.emplace_back(static_cast<std::size_t>(leaves[i].numel()));
            if (!gradients[i].defined()) continue;
            auto const dense = gradients[i].to(::torch::kCPU, ::torch::kFloat32).contiguous();
            std::copy_n(dense.template data_ptr<float>(), numbers.size(), numbers.begin());
        }
        return made;
    };
}

}  // namespace tinkxx
