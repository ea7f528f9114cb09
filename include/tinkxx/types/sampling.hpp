#pragma once

#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/tensor_data.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

class Tokenizer;

/// Where sampling ends before `SamplingParams::max_tokens`.
///
///     params.stop = "\n";             // at this text
///     params.stop = {"\n\n", "END"};  // at any of these
///     params.stop = {128001, 128009}; // at any of these tokens
///     params.stop = Stop::nowhere();  // not even at the end of the sequence
class Stop {
public:
    struct Nowhere {
        bool operator==(Nowhere const&) const = default;
    };
    using Value = std::variant<std::monostate, Nowhere, std::string, std::vector<std::string>,
                               std::vector<Token>>;

    /// Only at the model's end of sequence.
    Stop() = default;
    Stop(char const* text) : value_{std::string{text}} {}
    Stop(std::string text) : value_{std::move(text)} {}
    Stop(std::vector<std::string> texts);
    Stop(std::vector<Token> tokens);
    Stop(std::initializer_list<char const*> texts);
    Stop(std::initializer_list<Token> tokens);
    /// Nowhere: only `max_tokens` ends the sample. An empty list means the same.
    [[nodiscard]] static Stop nowhere();

    [[nodiscard]] Value const& value() const noexcept { return value_; }
    /// Whether something other than the default was chosen.
    [[nodiscard]] bool set() const noexcept { return value_.index() != 0; }

    bool operator==(Stop const&) const = default;

private:
    Value value_{};
};

/// How tokens are sampled.
struct SamplingParams {
    /// Empty: up to the model's context length. Some servers require a number.
    std::optional<std::int64_t> max_tokens{};
    /// The same seed gives the same samples. Empty: chosen by the server.
    std::optional<std::uint64_t> seed{};
    Stop stop{};
    /// 0 always takes the most likely token.
    double temperature{1};
    /// Sample from the k most likely tokens only; -1: from all.
    std::int64_t top_k{-1};
    /// Sample from the smallest set of most likely tokens whose probabilities add up to this; 1:
    /// from all.
    double top_p{1};

    bool operator==(SamplingParams const&) const = default;
};

/// How many samples to return, and what to report besides their tokens.
struct SampleOptions {
    std::int64_t num_samples{1};
    /// Report the log-probability of each prompt token.
    bool include_prompt_logprobs{false};
    /// Report the k most likely tokens at each prompt position.
    std::int64_t topk_prompt_logprobs{0};
    /// Report the k most likely tokens at each sampled position.
    std::int64_t topk_sample_logprobs{0};
    /// int64, [prompt length - 1, K], dense or CSR: cell [i, j] names a token whose
    /// log-probability at prompt position i + 1 is wanted; -1: none.
    std::optional<TensorData> target_prompt_logprobs{};
    /// Sample k alternative tokens at each prompt position except the first.
    std::int64_t prompt_alt_tokens_k{0};
    /// Score only the last n prompt tokens. Needs `include_prompt_logprobs`.
    std::optional<std::int64_t> prompt_logprobs_last_n{};

    bool operator==(SampleOptions const&) const = default;
};

/// Why a sample ended.
enum class StopReason : std::uint8_t {
    stop,    ///< at a stop text, a stop token or the end of the sequence
    length,  ///< at `max_tokens`
};

struct TokenLogprob {
    Token token{0};
    float logprob{0};

    bool operator==(TokenLogprob const&) const = default;
};

/// One row per position; a position that was not scored has no row.
using TopkLogprobs = std::vector<std::optional<std::vector<TokenLogprob>>>;

/// One completion.
struct SampledSequence {
    StopReason stop_reason{StopReason::stop};
    std::vector<Token> tokens{};
    /// One per token.
    std::optional<std::vector<float>> logprobs{};
    /// One row per token, if asked for.
    std::optional<TopkLogprobs> topk_logprobs{};
    /// The id by which training data can refer to this sequence. Empty if the server gives none.
    std::string sequence_id{};

    bool operator==(SampledSequence const&) const = default;
};

/// Tokens sampled at prompt positions, int64, and their log-probabilities, float32, both
/// [prompt length - 1, k]; row i is for position i + 1.
struct PromptAltTokens {
    TensorData tokens{};
    TensorData logprobs{};

    bool operator==(PromptAltTokens const&) const = default;
};

/// The answer to one `sample`.
struct SampleResponse {
    std::vector<SampledSequence> sequences{};
    /// One entry per prompt token; empty where nothing was scored, as for the first token.
    std::optional<std::vector<std::optional<float>>> prompt_logprobs{};
    std::optional<TopkLogprobs> topk_prompt_logprobs{};
    /// How many prompt tokens the server found in its cache.
    std::int64_t prompt_cache_hit_tokens{0};
    /// float32, in the layout of the request.
    std::optional<TensorData> target_prompt_logprobs{};
    std::optional<PromptAltTokens> prompt_alt_tokens{};
    /// The tokenizer that encoded the prompt, if it was given as text; `text` decodes with it.
    std::shared_ptr<Tokenizer const> tokenizer{};

    /// The text of a sequence, without special tokens at its end. Throws `UsageError` if the prompt
    /// was given as tokens, and `ValidationError` if there is no such sequence.
    [[nodiscard]] std::string text(std::size_t sequence = 0) const;

    bool operator==(SampleResponse const&) const = default;
};

/// One piece of a streamed sample.
struct SampleChunk {
    std::optional<std::string> token{};
    std::optional<Token> token_id{};
    std::optional<std::int64_t> index{};
    std::optional<double> logprob{};
    /// Set on the last piece.
    std::optional<std::string> finish_reason{};
    std::optional<std::int64_t> total_tokens{};
};

}  // namespace tinkxx
