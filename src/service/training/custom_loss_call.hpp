#pragma once

#include <tinkxx/observer.hpp>
#include <tinkxx/types/training.hpp>

#include "service/training/training_call.hpp"
#include "service/training/training_pass.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::service {

/// Data for a custom loss: what the function sees, and what is sent of it.
struct CustomLossData {
    /// As the caller gave them; owned.
    std::vector<Datum> given{};
    /// `target_tokens` and `weights` alone, the latter zero where there are none (R-TRAIN-70).
    /// Shows tensors of `given`.
    std::vector<Datum> sent{};

    explicit CustomLossData(std::span<Datum const> data);
    CustomLossData(CustomLossData const&) = delete;
    CustomLossData& operator=(CustomLossData const&) = delete;
};

/// The log-probabilities of each datum, in the shape of its targets.
[[nodiscard]] Result<std::vector<TensorData>> logprobs_of(ForwardBackwardOutput& output,
                                                          std::vector<Datum> const& data);
/// The result of the backward pass with what the function said (R-TRAIN-70).
[[nodiscard]] ForwardBackwardOutput with_custom_metrics(ForwardBackwardOutput output,
                                                        CustomLossValue value);

/// A forward pass, the caller's function, and a backward pass with weights that give its gradient
/// (R-TRAIN-70..72). Has the turns of both passes from the beginning, so that later calls stay
/// behind it.
class CustomLossCall final : public PromiseCall<ForwardBackwardOutput, TrainingCall> {
public:
    CustomLossCall(Promise<ForwardBackwardOutput> promise, std::shared_ptr<TrainingModel> model,
                   CallOptions call, Headers headers, std::shared_ptr<CustomLossData> data,
                   CustomLoss loss, Cut cut, PassPlan forward, Ticket backward);

    static constexpr std::string_view operation = "forward_backward_custom";

private:
    void go() override;
    void on_pass(std::vector<RetrievedResult> results) override;
    void drop() noexcept override;
    QueueStateReporter& reporter() override { return model_->reporter(); }
    std::string const& owner() const override { return model_->id(); }

    /// `blank` is what observers are told of regularizers, but for these themselves.
    [[nodiscard]] Result<CustomLossValue> compute(std::vector<RetrievedResult> const& results,
                                                  LossEvent const& blank) const;
    void computed(Result<CustomLossValue> value, Result<PassPlan> plan);
    [[nodiscard]] LossEvent event(LossEvent::Kind kind) const;

    std::shared_ptr<TrainingModel> const model_;
    Headers const headers_;
    std::shared_ptr<CustomLossData> const data_;
    CustomLoss const loss_;
    Cut const cut_;
    PassPlan forward_;
    Ticket backward_;
    /// When the function was asked.
    TimePoint asked_{};
    /// Once the function has said it.
    std::optional<CustomLossValue> value_{};
};

}  // namespace tinkxx::service
