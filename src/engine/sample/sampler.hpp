#pragma once

#include <tinkxx/result.hpp>

#include "engine/common/threads.hpp"
#include "engine/model/adapter.hpp"
#include "engine/sample/filter.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine {

enum class StopCause : std::uint8_t { length, stop };

struct SampledSequence {
    std::vector<std::int32_t> tokens{};
    /// Of the model itself: at temperature 1, before any filter.
    std::vector<float> logprobs{};
    StopCause cause{StopCause::length};
};

struct TokenLogprob {
    std::int32_t token{0};
    float logprob{0};

    bool operator==(TokenLogprob const&) const = default;
};

struct SampleResult {
    std::vector<SampledSequence> sequences{};
    /// If asked for: one for each prompt token, the first without a value.
    std::vector<std::optional<float>> prompt_logprobs{};
    /// If asked for: the most likely tokens at each prompt position, the first row empty.
    std::vector<std::vector<TokenLogprob>> topk_prompt_logprobs{};
    /// Prompt tokens whose keys and values were known already.
    std::size_t cached_tokens{0};
};

struct SampleRequest {
    /// Null: the bare model. Must not change while the request runs.
    std::shared_ptr<Adapter const> adapter{};
    std::vector<std::int32_t> prompt{};
    FilterParams filter{};
    std::size_t max_tokens{1};
    std::size_t num_samples{1};
    /// Token `t` of sample `i` is a function of the weights, the prompt, the seed, `i` and `t`.
    std::uint64_t seed{0};
    /// A sample ends with the first of these; it is part of the result.
    std::vector<std::int32_t> stop_tokens{};
    /// A sample ends with the token that completes one of these in its text. Needs `token_bytes`.
    std::vector<std::string> stop_strings{};
    bool prompt_logprobs{false};
    std::size_t topk_prompt_logprobs{0};
    /// Who asks, e.g. a session. Requests of one party share what one party gets of memory and
    /// time; those without a name are a party too.
    std::string party{};

    /// Called for each token as it is sampled, if set.
    std::function<void(std::size_t sample, std::int32_t token, float logprob)> on_token{};
    /// Called once, unless the request is cancelled.
    std::function<void(Result<SampleResult>)> on_done{};
};

struct SamplerOptions {
    /// Memory for keys and values.
    std::size_t cache_bytes{std::size_t{1} << 30U};
    /// Tokens of prompts computed in one step; tokens of samples come off, down to a quarter.
    std::size_t prefill_tokens{256};
    /// Samples whose next token is computed in one step; if more are under way, they take turns.
    std::size_t decode_tokens{128};
    /// The bytes of a token, for stop strings.
    std::function<std::string_view(std::int32_t)> token_bytes{};
};

/// Draws samples for many requests and adapters of one model at once.
///
/// Each `step` computes a bounded number of tokens: the next ones of running samples, and parts of
/// prompts. Both are shared fairly among parties, and what a party gets among its requests; within
/// a party the shortest prompt and the oldest take turns. Pages of keys and values go first to the
/// party, and then the request, that has the fewest. If there are none left, the newest samples of
/// a party that has far more are suspended, and computed again later. A request too large for that
/// gets its pages after younger requests have overtaken it for 256 steps.
///
/// Which other requests run, how many threads there are, how prompts are cut and what is suspended
/// has no influence on any result, to the last bit.
///
/// One thread at a time. Callbacks run inside `step`, after its work; they may call `submit` and
/// `cancel`, not `step`.
class Sampler {
public:
    using RequestId = std::uint64_t;

    Sampler(std::shared_ptr<Model const> model, Threads& threads, SamplerOptions options);
    Sampler(std::shared_ptr<Model const> model, Threads& threads);
    ~Sampler();
    Sampler(Sampler const&) = delete;
    Sampler& operator=(Sampler const&) = delete;

    /// Queues a request. Fails with a validation error if it can never succeed: a token outside the
    /// vocabulary, more positions than the model has, more memory than the cache, ….
    Result<RequestId> submit(SampleRequest request);
    /// Ends a request and frees its pages at once. Its callbacks are not called any more.
    void cancel(RequestId id);
    /// Does one step; false if there is nothing to do.
    bool step();

    struct Usage {
        std::size_t capacity{0};    ///< pages that fit into memory
        std::size_t committed{0};   ///< that requests have or may still take
        std::size_t pinned{0};      ///< in use by requests
        std::size_t cached{0};      ///< kept for prompts to come; some may be in use too
        std::size_t waiting{0};     ///< requests that have no pages
        std::size_t running{0};     ///< samples under way
        std::size_t suspended{0};   ///< samples that gave up their pages for others
        std::uint64_t computed{0};  ///< tokens computed so far
    };
    [[nodiscard]] Usage usage() const noexcept;
    /// As in `usage()`, at no cost.
    [[nodiscard]] std::uint64_t computed() const noexcept;
    /// Pages that one sample of this length needs.
    [[nodiscard]] static std::size_t pages_for(std::size_t prompt, std::size_t max_tokens) noexcept;

private:
    class Core;
    std::unique_ptr<Core> core_;
};

}  // namespace tinkxx::engine
