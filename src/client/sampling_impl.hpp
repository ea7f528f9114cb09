#pragma once

#include <tinkxx/runtime.hpp>
#include <tinkxx/sampling_client.hpp>

#include "service/sampling/sampler.hpp"

#include <memory>
#include <utility>

namespace tinkxx {

/// What the copies of one `SamplingClient` share.
class SamplingClient::Impl {
public:
    Impl(Runtime its_runtime, std::shared_ptr<service::Sampler> its_sampler)
        : runtime{std::move(its_runtime)}, sampler{std::move(its_sampler)} {}

    Runtime const runtime;  // released last: as the last handle it ends the loop
    std::shared_ptr<service::Sampler> const sampler;
};

}  // namespace tinkxx
