#include <tinkxx/data.hpp>
#include <tinkxx/error.hpp>

#include "base/common/invalid.hpp"
#include "wire/values/model_input.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::data {

namespace {

void check_weights(std::string_view operation, std::size_t tokens, std::size_t weights) {
    if (tokens == weights) return;
    base::refuse(operation, "weights", std::to_string(weights),
                 "there are " + std::to_string(weights) + " weights for " + std::to_string(tokens) +
                     " tokens; give one for each");
}

void check_length(std::string_view operation, std::size_t tokens) {
    if (tokens >= 2) return;
    base::refuse(operation, "tokens", std::to_string(tokens),
                 "there are " + std::to_string(tokens) +
                     " tokens; two are needed, one to read and one to predict");
}

}  // namespace

Datum from_tokens(std::span<Token const> tokens, std::span<float const> weights,
                  std::optional<std::int64_t> max_length) {
    check_weights("from_tokens", tokens.size(), weights.size());
    if (max_length) {
        auto const most = static_cast<std::size_t>(std::max<std::int64_t>(*max_length, 0));
        tokens = tokens.first(std::min(tokens.size(), most));
        weights = weights.first(tokens.size());
    }
    check_length("from_tokens", tokens.size());
    auto const last = tokens.size() - 1;
    Datum out;
    out.model_input = ModelInput::from_tokens(
        {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(last)});
    out.loss_fn_inputs.set("target_tokens",
                           std::vector<std::int64_t>(tokens.begin() + 1, tokens.end()));
    out.loss_fn_inputs.set("weights", std::vector<float>(weights.begin() + 1, weights.end()));
    return out;
}

Datum from_completion(std::span<Token const> prompt, std::span<Token const> completion,
                      std::optional<std::int64_t> max_length) {
    std::vector<Token> tokens{prompt.begin(), prompt.end()};
    tokens.insert(tokens.end(), completion.begin(), completion.end());
    std::vector<float> weights(prompt.size(), 0.0F);
    weights.resize(tokens.size(), 1.0F);
    return from_tokens(tokens, weights, max_length);
}

Datum from_model_input(ModelInput const& input, std::span<float const> weights) {
    constexpr std::string_view operation = "from_model_input";
    std::vector<std::int64_t> targets;
    std::vector<float> counted;
    for (auto const& chunk : input.chunks) {
        if (auto const* text = std::get_if<EncodedTextChunk>(&chunk)) {
            targets.insert(targets.end(), text->tokens.begin(), text->tokens.end());
            counted.resize(targets.size(), 1.0F);
        } else {
            targets.resize(
                targets.size() + static_cast<std::size_t>(wire::token_count(chunk).value()), 0);
            counted.resize(targets.size(), 0.0F);
        }
    }
    check_weights(operation, targets.size(), weights.size());
    check_length(operation, targets.size());
    auto const* last = std::get_if<EncodedTextChunk>(&input.chunks.back());
    if (last == nullptr || last->tokens.empty()) {
        base::refuse(operation, "chunks/" + std::to_string(input.chunks.size() - 1), {},
                     "the input does not end in text, so there is no last token to predict");
    }
    Datum out;
    out.model_input = input;
    auto& tokens = std::get<EncodedTextChunk>(out.model_input.chunks.back()).tokens;
    tokens.pop_back();
    if (tokens.empty()) out.model_input.chunks.pop_back();
    targets.erase(targets.begin());
    std::vector<float> shifted(targets.size());
    for (std::size_t i = 0; i < shifted.size(); ++i) shifted[i] = weights[i + 1] * counted[i + 1];
    out.loss_fn_inputs.set("target_tokens", std::move(targets));
    out.loss_fn_inputs.set("weights", std::move(shifted));
    return out;
}

Datum from_sample(std::span<Token const> prompt, SampledSequence const& sequence,
                  double advantage) {
    constexpr std::string_view operation = "from_sample";
    auto const& drawn = sequence.tokens;
    if (drawn.empty()) base::refuse(operation, "tokens", "[]", "the sequence has no tokens");
    if (prompt.empty()) base::refuse(operation, "prompt", "[]", "the prompt has no tokens");
    if (!sequence.logprobs || sequence.logprobs->size() != drawn.size()) {
        auto const have = sequence.logprobs ? sequence.logprobs->size() : 0;
        base::refuse(operation, "logprobs", std::to_string(have),
                     "the sequence has " + std::to_string(have) + " logprobs for " +
                         std::to_string(drawn.size()) + " tokens; there must be one for each");
    }
    std::vector<Token> read{prompt.begin(), prompt.end()};
    read.insert(read.end(), drawn.begin(), drawn.end() - 1);
    std::vector<std::int64_t> targets{prompt.begin() + 1, prompt.end()};
    targets.insert(targets.end(), drawn.begin(), drawn.end());
    std::vector<float> logprobs(prompt.size() - 1, 0.0F);
    logprobs.insert(logprobs.end(), sequence.logprobs->begin(), sequence.logprobs->end());
    std::vector<float> advantages(prompt.size() - 1, 0.0F);
    advantages.resize(targets.size(), static_cast<float>(advantage));
    Datum out;
    out.model_input = ModelInput::from_tokens(std::move(read));
    out.loss_fn_inputs.set("target_tokens", std::move(targets));
    out.loss_fn_inputs.set("logprobs", std::move(logprobs));
    out.loss_fn_inputs.set("advantages", std::move(advantages));
    if (sequence.sequence_id.empty()) return out;
    auto const span = [&sequence](ProvenanceSpan::Kind kind, std::size_t offset,
                                  std::size_t length) {
        return ProvenanceSpan{.kind = kind,
                              .sequence_id = sequence.sequence_id,
                              .offset = static_cast<std::int64_t>(offset),
                              .length = static_cast<std::int64_t>(length)};
    };
    using Kind = ProvenanceSpan::Kind;
    auto& input_spans = out.model_input_spans;
    auto& target_spans = out.loss_fn_input_spans;
    input_spans.push_back(span(Kind::prompt, 0, prompt.size()));
    if (drawn.size() > 1) input_spans.push_back(span(Kind::sampled, 0, drawn.size() - 1));
    if (prompt.size() > 1) target_spans.push_back(span(Kind::prompt, 1, prompt.size() - 1));
    target_spans.push_back(span(Kind::sampled, 0, drawn.size()));
    return out;
}

std::int64_t token_count(Datum const& datum) {
    std::int64_t total = 0;
    for (auto const& chunk : datum.model_input.chunks) {
        if (auto const tokens = wire::token_count(chunk)) total += *tokens;
    }
    return total;
}

std::vector<std::span<Datum const>> batches(std::span<Datum const> data, std::int64_t max_tokens,
                                            std::int64_t max_items) {
    std::vector<std::span<Datum const>> out;
    std::size_t first = 0;
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const more = token_count(data[i]);
        auto const items = static_cast<std::int64_t>(i - first);
        if (i > first && (more > max_tokens - tokens || (max_items > 0 && items >= max_items))) {
            out.push_back(data.subspan(first, i - first));
            first = i;
            tokens = 0;
        }
        tokens += more;
    }
    if (first < data.size()) out.push_back(data.subspan(first));
    return out;
}

std::vector<double> group_relative_advantages(std::span<double const> rewards,
                                              std::size_t group_size, AdvantageOptions options) {
    constexpr std::string_view operation = "group_relative_advantages";
    if (group_size == 0 || rewards.size() % group_size != 0) {
        base::refuse(operation, "group_size", std::to_string(group_size),
                     std::to_string(rewards.size()) + " rewards are no whole number of groups of " +
                         std::to_string(group_size));
    }
    for (std::size_t i = 0; i < rewards.size(); ++i) {
        if (std::isfinite(rewards[i])) continue;
        base::refuse(operation, "rewards/" + std::to_string(i), std::to_string(rewards[i]),
                     "reward " + std::to_string(i) + " is " + std::to_string(rewards[i]) +
                         "; all must be finite");
    }
    std::vector<double> out;
    out.reserve(rewards.size());
    auto const count = static_cast<double>(group_size);
    for (std::size_t first = 0; first < rewards.size(); first += group_size) {
        auto const group = rewards.subspan(first, group_size);
        double mean = 0;
        for (auto const reward : group) mean += reward / count;
        double variance = 0;
        for (auto const reward : group) variance += (reward - mean) * (reward - mean) / count;
        auto const by = options.divide_by_deviation ? std::sqrt(variance) + options.epsilon : 1.0;
        for (auto const reward : group) out.push_back((reward - mean) / by);
    }
    return out;
}

double LearningRateSchedule::at(std::int64_t step) const {
    step = std::max<std::int64_t>(step, 0);
    if (step < warmup_steps) {
        return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
    }
    if (shape == Shape::constant) return peak;
    auto const span = std::max<std::int64_t>(total_steps - warmup_steps, 1);
    auto const done =
        static_cast<double>(std::min(step - warmup_steps, span)) / static_cast<double>(span);
    auto const left =
        shape == Shape::linear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
    return peak * (final_fraction + (1 - final_fraction) * left);
}

}  // namespace tinkxx::data
