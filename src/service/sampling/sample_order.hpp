#pragma once

#include <tinkxx/call_options.hpp>

#include "service/core/pending_bound.hpp"
#include "service/core/place_wait.hpp"
#include "wire/sampling/sample.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::service {

/// How to sample. Shared by samples that want the same: there may be a million of them.
struct SampleSettings {
    SamplingParams params{};
    SampleOptions options{};

    bool operator==(SampleSettings const&) const = default;
};

/// What only some samples carry.
struct SampleExtras {
    CallOptions call{};
    /// Lines for every request of this call, such as a trace context.
    Headers headers{};
    /// How it waited for a place among the pending; null if it did not have to.
    std::shared_ptr<PlaceWait> waited{};
};

/// The chunks of a prompt. Most have one, which is kept here: memory that a caller took for each of
/// a million samples would come back all at once, where the loop ends them.
class SamplePrompt {
public:
    SamplePrompt() = default;
    explicit SamplePrompt(ModelInput input) {
        if (input.chunks.size() == 1) {
            chunks_ = std::move(input.chunks.front());
        } else {
            chunks_ = std::move(input.chunks);
        }
    }
    [[nodiscard]] std::span<ModelInputChunk const> chunks() const noexcept {
        if (auto const* const one = std::get_if<ModelInputChunk>(&chunks_)) return {one, 1};
        return std::get<std::vector<ModelInputChunk>>(chunks_);
    }

private:
    std::variant<std::vector<ModelInputChunk>, ModelInputChunk> chunks_{};
};

/// What a caller wants sampled. Checked already.
struct SampleOrder {
    /// Names the call in messages: `sample` or `compute_logprobs`. Points to text that stays.
    std::string_view operation{"sample"};
    SamplePrompt prompt{};
    std::shared_ptr<SampleSettings const> settings{};
    /// Null for none.
    std::unique_ptr<SampleExtras const> extras{};
    std::int64_t prompt_bytes{0};
    /// In tokens; negative if not every chunk tells.
    std::int64_t prompt_length{-1};
    /// Among the pending, given up when the sample is over.
    PendingBound::Place place{};
    /// Whether `sample_no_retries` of the server concerns it (R-SAMP-41).
    bool may_bypass_handler{true};

    [[nodiscard]] CallOptions const& call() const noexcept;
    [[nodiscard]] Headers const& headers() const noexcept;
};

}  // namespace tinkxx::service
