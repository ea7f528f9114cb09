#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/training_client.hpp>

#include "client/sampling_impl.hpp"
#include "service/training/model.hpp"
#include "service/training/training_pass.hpp"
#include "wire/training/training.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

/// What a `TrainingClient` stands for.
class TrainingClient::Impl {
public:
    Impl(Runtime its_runtime, std::shared_ptr<service::TrainingModel> its_model,
         CallOptions its_call)
        : runtime{std::move(its_runtime)}, model{std::move(its_model)}, call{std::move(its_call)} {}

    /// Why no call can be made, or nothing.
    [[nodiscard]] static std::optional<ErrorDetails> problem(
        std::shared_ptr<Impl const> const& impl, std::string_view operation);

    /// One submit with a JSON result.
    template <class T>
    [[nodiscard]] Future<T> submit(std::string_view name, service::Ticket ticket,
                                   service::SubmitOrder order,
                                   std::function<Result<T>(std::string_view)> decode) const;
    [[nodiscard]] Future<wire::SavedForSampler> save_for_sampler(
        std::string_view operation, wire::SaveWeightsForSampler request) const;
    [[nodiscard]] static Future<LoadResult> load(std::shared_ptr<Impl const> const& impl,
                                                 std::string_view operation,
                                                 std::string_view replacement, std::string path,
                                                 bool optimizer, std::string token);
    [[nodiscard]] SamplingClient sampler(service::SamplerPlan plan) const {
        return SamplingClient{std::make_shared<SamplingClient::Impl>(
            runtime, service::Sampler::make(model->core_handle(), std::move(plan)))};
    }

    Runtime const runtime;  // released last: as the last handle it ends the loop
    std::shared_ptr<service::TrainingModel> const model;
    CallOptions const call;
};

}  // namespace tinkxx
