// What a request for samples must fulfil, and what becomes of its parameters.
#include "local/sampling/sample_request.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tinkxx::local {

namespace {

/// A request on its way through the checks.
struct SampleCheck {
    std::string what{};
    SampleRead& read;
    BaseModel const& base;
    Limits const& limits;
    SampleJob& job;

    [[nodiscard]] std::int64_t vocabulary() const {
        return static_cast<std::int64_t>(base.config.vocab_size);
    }
    [[nodiscard]] std::size_t positions() const {
        return static_cast<std::size_t>(base.config.max_positions);
    }
    [[nodiscard]] Refused refuse(std::string const& why) const { return {400, what + why}; }
};

MaybeRefused take_prompt(SampleCheck const& check) {
    auto& read = check.read;
    auto const most = check.limits.prompt_tokens;
    if (read.length == 0) return check.refuse("the prompt has no tokens");
    if (most != 0 && read.length > most) {
        return check.refuse("the prompt has " + std::to_string(read.length) +
                            " tokens, and the limit of this server is " + std::to_string(most));
    }
    if (!read.prompt.empty() && (read.least < 0 || read.most >= check.vocabulary())) {
        return check.refuse("the prompt has the token " +
                            std::to_string(read.least < 0 ? read.least : read.most) +
                            ", and the vocabulary of " + check.job.base + " goes to " +
                            std::to_string(check.vocabulary() - 1));
    }
    check.job.ask.prompt = std::move(read.prompt);
    return {};
}

MaybeRefused take_amount(SampleCheck const& check) {
    auto const length = check.read.length;
    auto const& options = check.read.request.options;
    auto const& params = check.read.request.params;
    auto& ask = check.job.ask;
    if (options.num_samples < 1 ||
        static_cast<std::size_t>(options.num_samples) > check.limits.num_samples) {
        return check.refuse("num_samples is " + std::to_string(options.num_samples) +
                            "; it must be from 1 to " + std::to_string(check.limits.num_samples));
    }
    ask.num_samples = static_cast<std::size_t>(options.num_samples);
    if (params.max_tokens && *params.max_tokens < 1) {
        return check.refuse("max_tokens is " + std::to_string(*params.max_tokens) +
                            "; it must be at least 1");
    }
    // The last token is not fed back, unless it is scored again.
    auto const room = check.positions() + (options.topk_sample_logprobs > 0 ? 0 : 1);
    if (length >= room ||
        (params.max_tokens && static_cast<std::uint64_t>(*params.max_tokens) > room - length)) {
        auto const wanted = params.max_tokens.value_or(1);
        return check.refuse("prompt length plus max_tokens exceeds the context window of " +
                            check.job.base + ": " + std::to_string(length) + " prompt tokens + " +
                            std::to_string(wanted) + " max_tokens > " +
                            std::to_string(check.positions()));
    }
    ask.max_tokens =
        params.max_tokens ? static_cast<std::size_t>(*params.max_tokens) : room - length;
    return {};
}

MaybeRefused take_filter(SampleCheck const& check, std::function<std::uint64_t()> const& seed) {
    auto const& params = check.read.request.params;
    if (!(params.temperature >= 0) || !std::isfinite(params.temperature)) {
        return check.refuse("temperature must be a number of at least 0");
    }
    if (!(params.top_p >= 0 && params.top_p <= 1)) {
        return check.refuse("top_p must be from 0 to 1");
    }
    if (params.top_k < -1 || params.top_k == 0) {
        return check.refuse("top_k must be at least 1, or -1 for no limit");
    }
    auto& ask = check.job.ask;
    ask.filter = {.temperature = params.temperature, .top_k = params.top_k, .top_p = params.top_p};
    ask.seed = params.seed ? *params.seed : seed();
    return {};
}

MaybeRefused take_stop(SampleCheck const& check) {
    auto& ask = check.job.ask;
    auto const& stop = check.read.request.params.stop.value();
    if (!std::holds_alternative<Stop::Nowhere>(stop)) {
        auto const& ends = check.base.config.eos_tokens;
        ask.stop_tokens.assign(ends.begin(), ends.end());
    }
    if (auto const* text = std::get_if<std::string>(&stop)) ask.stop_strings = {*text};
    if (auto const* texts = std::get_if<std::vector<std::string>>(&stop)) {
        ask.stop_strings = *texts;
    }
    if (auto const* ids = std::get_if<std::vector<Token>>(&stop)) {
        ask.stop_tokens.insert(ask.stop_tokens.end(), ids->begin(), ids->end());
    }
    if (!ask.stop_strings.empty() && !check.base.has_texts()) {
        return check.refuse("stop texts need the tokenizer of " + check.job.base +
                            (check.base.no_texts.empty()
                                 ? ", and its folder has no tokenizer.json; add that file, or stop "
                                   "at token ids"
                                 : ", which cannot be read: " + check.base.no_texts));
    }
    if (std::ranges::any_of(ask.stop_strings, &std::string::empty)) {
        return check.refuse("a stop text is empty");
    }
    // Each token that is sampled is compared with all of them.
    constexpr std::size_t most_stops = 1000;
    constexpr std::size_t most_stop_bytes = std::size_t{64} << 10U;
    std::size_t stop_bytes = 0;
    for (auto const& text : ask.stop_strings) stop_bytes += text.size();
    if (ask.stop_strings.size() > most_stops || ask.stop_tokens.size() > most_stops ||
        stop_bytes > most_stop_bytes) {
        return check.refuse("stop has " +
                            std::to_string(ask.stop_strings.size() + ask.stop_tokens.size()) +
                            " entries of " + std::to_string(stop_bytes) +
                            " bytes; at most 1000 entries of 65536 bytes are possible");
    }
    return {};
}

MaybeRefused check_top(SampleCheck const& check, std::int64_t k, std::string const& name) {
    if (k >= 0 && k <= check.vocabulary()) return {};
    return check.refuse(name + " is " + std::to_string(k) +
                        "; it must be from 0 to the vocabulary's " +
                        std::to_string(check.vocabulary()));
}

MaybeRefused take_logprobs(SampleCheck const& check) {
    auto const& request = check.read.request;
    auto const& options = request.options;
    auto const last = check.read.length - 1;
    if (auto no = check_top(check, options.topk_prompt_logprobs, "topk_prompt_logprobs")) return no;
    if (auto no = check_top(check, options.topk_sample_logprobs, "topk_sample_logprobs")) return no;
    if (options.prompt_alt_tokens_k != 0) {
        return check.refuse(
            "prompt_alt_tokens_k is not supported by a local server; leave "
            "it 0");
    }
    if (request.record_stability_info) {
        return check.refuse(
            "record_stability_info is not supported by a local server, "
            "which does not know the loss stable_reinforce");
    }
    if (options.prompt_logprobs_last_n) {
        auto const n = *options.prompt_logprobs_last_n;
        if (!options.include_prompt_logprobs || n < 1 || static_cast<std::uint64_t>(n) > last) {
            return check.refuse("prompt_logprobs_last_n is " + std::to_string(n) +
                                "; it must be from 1 to " + std::to_string(last) +
                                ", and needs prompt_logprobs");
        }
    }
    auto& job = check.job;
    job.ask.prompt_logprobs = options.include_prompt_logprobs;
    job.ask.topk_prompt_logprobs = static_cast<std::size_t>(options.topk_prompt_logprobs);
    job.options = options;
    auto& targets = check.read.targets;
    if (targets && targets->largest >= check.vocabulary()) {
        return check.refuse("target_prompt_logprobs names the token " +
                            std::to_string(targets->largest) +
                            ", which is not in the vocabulary; -1 asks for nothing");
    }
    job.targets = std::move(targets);
    return {};
}

/// What it may come to hold. No product overflows: each factor is at most 2^28.
MaybeRefused count_bytes(SampleCheck const& check) {
    auto& job = check.job;
    auto const length = check.read.length;
    auto const most = check.limits.result_cells;
    auto const sampled = job.ask.num_samples * job.ask.max_tokens;
    auto const cells = length * job.ask.topk_prompt_logprobs +
                       sampled * static_cast<std::size_t>(job.options.topk_sample_logprobs);
    if (cells > most) {
        return check.refuse("topk_prompt_logprobs and topk_sample_logprobs ask for " +
                            std::to_string(cells) + " log-probabilities, and the limit is " +
                            std::to_string(most) + "; ask for fewer at each position");
    }
    constexpr std::size_t of_token = sizeof(Token) + sizeof(float);
    job.bytes = 1024 + length * (2 * sizeof(Token) + sizeof(float)) + sampled * of_token +
                cells * sizeof(TokenLogprob);
    if (job.targets) job.bytes += job.targets->tokens.size() * 24;
    return {};
}

}  // namespace

Outcome<std::shared_ptr<SampleJob>> prepare_sample(std::string_view operation, SampleRead read,
                                                   SampleSource const& source, Limits const& limits,
                                                   std::function<std::uint64_t()> const& seed) {
    auto job = std::make_shared<SampleJob>(SampleJob{
        .session = source.session, .base = source.base->source.name, .weights = source.weights});
    SampleCheck const check{.what = std::string{operation} + ": ",
                            .read = read,
                            .base = *source.base,
                            .limits = limits,
                            .job = *job};
    if (auto const no = take_prompt(check)) return *no;
    if (auto const no = take_amount(check)) return *no;
    if (auto const no = take_filter(check, seed)) return *no;
    if (auto const no = take_stop(check)) return *no;
    if (auto const no = take_logprobs(check)) return *no;
    if (auto const no = count_bytes(check)) return *no;
    return job;
}

}  // namespace tinkxx::local
