#include "wire/sampling/sample.hpp"

#include "base/common/invalid.hpp"
#include "wire/json/json.hpp"
#include "wire/json/json_scan.hpp"
#include "wire/sampling/sample_quick.hpp"
#include "wire/values/model_input.hpp"
#include "wire/values/tensor.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tinkxx::wire {

namespace {

void write(JsonOut& json, Stop const& stop) {
    struct Write {
        JsonOut& json;
        void operator()(std::monostate) const {}
        void operator()(Stop::Nowhere) const { json.list(std::span<Token const>{}); }
        void operator()(std::string const& text) const { json.value(text); }
        void operator()(std::vector<std::string> const& texts) const { json.list(texts); }
        void operator()(std::vector<Token> const& tokens) const { json.list(tokens); }
    };
    if (!stop.set()) return;
    json.key("stop");
    std::visit(Write{json}, stop.value());
}

void write(JsonOut& json, SamplingParams const& params) {
    json.open_object();
    json.member("max_tokens", params.max_tokens);
    json.member("seed", params.seed);
    write(json, params.stop);
    json.member("temperature", params.temperature);
    json.member("top_k", params.top_k);
    json.member("top_p", params.top_p);
    json.close_object();
}

// Large enough for most tails, so that they grow once.
std::size_t tail_bytes(std::span<ModelInputChunk const> prompt) {
    struct Size {
        std::size_t operator()(EncodedTextChunk const& chunk) const {
            // Digits of the largest one, and a comma.
            std::size_t each = 2;
            for (auto left = chunk.tokens.empty() ? 0 : std::ranges::max(chunk.tokens); left > 9;
                 left /= 10) {
                ++each;
            }
            return chunk.tokens.size() * each;
        }
        std::size_t operator()(ImageChunk const& chunk) const { return chunk.data.size() / 3 * 4; }
        std::size_t operator()(ImageAssetPointerChunk const& chunk) const {
            return chunk.location.size();
        }
        std::size_t operator()(DmelChunk const& chunk) const { return chunk.dmel.size() / 3 * 4; }
    };
    std::size_t bytes = 288;  // with the usual parameters
    for (auto const& chunk : prompt) bytes += 32 + std::visit(Size{}, chunk);
    return bytes;
}

ErrorDetails bad_argument(std::string field, std::string value, std::string_view way_out) {
    auto const why = field + " is " + value + "; " + std::string{way_out};
    return base::invalid("sample", std::move(field), std::move(value), why);
}

std::string shown(double number) {
    std::string out;
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    JsonOut{out}.value(number);
    return out;
}

bool is_empty(ModelInput const& prompt) {
    return std::ranges::all_of(prompt.chunks, [](ModelInputChunk const& chunk) {
        auto const* text = std::get_if<EncodedTextChunk>(&chunk);
        return text != nullptr && text->tokens.empty();
    });
}

std::optional<ErrorDetails> prompt_problem(ModelInput const& prompt) {
    if (is_empty(prompt)) return bad_argument("prompt", "empty", "give at least one token");
    for (std::size_t i = 0; i < prompt.chunks.size(); ++i) {
        auto const place = [&] { return "prompt.chunks[" + std::to_string(i) + "]"; };
        std::optional<std::int64_t> expected;
        if (auto const* image = std::get_if<ImageChunk>(&prompt.chunks[i])) {
            expected = image->expected_tokens;
        } else if (auto const* pointer = std::get_if<ImageAssetPointerChunk>(&prompt.chunks[i])) {
            expected = pointer->expected_tokens;
            if (!valid_utf8(pointer->location)) {
                return bad_argument(place() + ".location", "no UTF-8", "JSON carries UTF-8 only");
            }
        }
        if (expected && *expected < 0) {
            return bad_argument(place() + ".expected_tokens", std::to_string(*expected),
                                "give 0 or more, or none");
        }
    }
    return std::nullopt;
}

std::optional<ErrorDetails> params_problem(SamplingParams const& params) {
    if (params.max_tokens && *params.max_tokens < 0) {
        return bad_argument("max_tokens", std::to_string(*params.max_tokens),
                            "give 0 or more, or none for as many as fit");
    }
    if (!std::isfinite(params.temperature) || params.temperature < 0) {
        return bad_argument("temperature", shown(params.temperature),
                            "give 0 for the likeliest token, or a finite number above it");
    }
    if (params.top_k < -1) {
        return bad_argument("top_k", std::to_string(params.top_k),
                            "give -1 for all tokens, or how many of the likeliest");
    }
    if (!(params.top_p >= 0 && params.top_p <= 1)) {  // nor is NaN
        return bad_argument("top_p", shown(params.top_p), "give a probability, from 0 to 1");
    }
    auto const& stop = params.stop.value();
    auto const* text = std::get_if<std::string>(&stop);
    auto const* texts = std::get_if<std::vector<std::string>>(&stop);
    if ((text != nullptr && !valid_utf8(*text)) ||
        (texts != nullptr && !std::ranges::all_of(*texts, valid_utf8))) {
        return bad_argument("stop", "no UTF-8",
                            "JSON carries UTF-8 only; stop at token ids instead");
    }
    if (auto const* tokens = std::get_if<std::vector<Token>>(&stop)) {
        auto const bad = std::ranges::find_if(*tokens, [](Token token) { return token < 0; });
        if (bad != tokens->end()) {
            return bad_argument("stop", std::to_string(*bad),
                                "no token has a negative id; give those of the tokenizer");
        }
    }
    return std::nullopt;
}

std::optional<ErrorDetails> target_problem(TensorData const& target,
                                           std::optional<std::int64_t> prompt_length) {
    constexpr std::string_view wanted =
        "give the int64 token ids of each prompt position but the first, [prompt length - 1, K]";
    if (target.dtype() != DType::int64) {
        return bad_argument("target_prompt_logprobs", "of float32", wanted);
    }
    auto const dimensions = target.shape ? target.shape->size() : 1;
    if (dimensions != 2) {
        return bad_argument("target_prompt_logprobs",
                            "of " + std::to_string(dimensions) + " dimensions", wanted);
    }
    auto const rows = target.shape->front();
    if (prompt_length && rows != *prompt_length - 1) {
        return bad_argument("target_prompt_logprobs",
                            "of " + std::to_string(rows) + " rows for a prompt of " +
                                std::to_string(*prompt_length) + " tokens",
                            wanted);
    }
    return std::nullopt;
}

std::optional<ErrorDetails> options_problem(SampleOptions const& options,
                                            std::optional<std::int64_t> prompt_length) {
    if (options.num_samples < 1) {
        return bad_argument("num_samples", std::to_string(options.num_samples), "give 1 or more");
    }
    std::array<std::pair<std::string_view, std::int64_t>, 3> const counts{{
        {"topk_prompt_logprobs", options.topk_prompt_logprobs},
        {"topk_sample_logprobs", options.topk_sample_logprobs},
        {"prompt_alt_tokens_k", options.prompt_alt_tokens_k},
    }};
    for (auto const& [name, number] : counts) {
        if (number < 0) {
            return bad_argument(std::string{name}, std::to_string(number), "give 0 or more");
        }
    }
    if (auto const n = options.prompt_logprobs_last_n) {
        auto const value = std::to_string(*n);
        if (*n < 1) return bad_argument("prompt_logprobs_last_n", value, "give 1 or more");
        if (!options.include_prompt_logprobs) {
            return bad_argument("prompt_logprobs_last_n", value + " without prompt logprobs",
                                "set include_prompt_logprobs");
        }
        if (prompt_length && *n > *prompt_length - 1) {
            return bad_argument(
                "prompt_logprobs_last_n",
                value + " for a prompt of " + std::to_string(*prompt_length) + " tokens",
                "the first token is never scored: give at most the rest");
        }
    }
    if (options.target_prompt_logprobs) {
        return target_problem(*options.target_prompt_logprobs, prompt_length);
    }
    return std::nullopt;
}

ErrorDetails without_ids() {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.field = "record_stability_info";
    details.unsupported_feature = "record_stability_info";
    details.message =
        "sample: record_stability_info was asked for, but the server gave no sequence ids; it may "
        "predate this feature";
    return details;
}

/// Forgets scores that nobody asked for. Whether there were any.
bool drop_scores_before(std::vector<std::optional<float>>& scored, std::int64_t last_n) {
    auto const size = static_cast<std::int64_t>(scored.size());
    bool dropped = false;
    for (auto at = scored.begin(); at != scored.begin() + std::max<std::int64_t>(size - last_n, 0);
         ++at) {
        dropped = dropped || at->has_value();
        at->reset();
    }
    return dropped;
}

}  // namespace

std::string encode_sample_head(std::string_view sampling_session_id, std::int64_t seq_id) {
    std::string out;
    out.reserve(sampling_session_id.size() + 64);
    JsonOut json{out};
    json.open_object();
    json.member("sampling_session_id", sampling_session_id);
    json.member("seq_id", seq_id);
    return out;
}

std::string encode_sample_tail(std::span<ModelInputChunk const> prompt,
                               SamplingParams const& params, SampleOptions const& options,
                               bool record_stability_info, Members members) {
    std::string out;
    out.reserve(tail_bytes(prompt));
    out += ',';
    JsonOut json{out};
    json.member("num_samples", options.num_samples);
    json.key("prompt");
    write(json, prompt);
    json.key("sampling_params");
    write(json, params);
    json.member("prompt_logprobs", options.include_prompt_logprobs);
    json.member("topk_prompt_logprobs", options.topk_prompt_logprobs);
    if (members == Members::newest) {
        json.member("topk_sample_logprobs", options.topk_sample_logprobs);
        if (options.target_prompt_logprobs) {
            json.key("target_prompt_logprobs");
            write(json, *options.target_prompt_logprobs);
        }
        json.member("prompt_alt_tokens_k", options.prompt_alt_tokens_k);
        json.member("prompt_logprobs_last_n", options.prompt_logprobs_last_n);
        json.member("record_stability_info", record_stability_info);
    }
    json.member("type", "sample");
    json.close_object();
    return out;
}

std::optional<ErrorDetails> sample_problem(ModelInput const& prompt, SamplingParams const& params,
                                           SampleOptions const& options) {
    if (auto problem = prompt_problem(prompt)) return problem;
    if (auto problem = params_problem(params)) return problem;
    return options_problem(options, known_length(prompt));
}

static void read(JsonIn const& in, Submitted& out) {
    out.request_id = in.required<std::string>("request_id");
    out.model_id = in.optional<std::string>("model_id");
    out.sample_sequence_ids = in.optional<std::vector<std::string>>("sample_sequence_ids");
}

/// The text of a JSON string that needs no decoding.
static std::optional<std::string_view> plain_text(std::string_view value) {
    if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
    auto const text = value.substr(1, value.size() - 2);
    bool const plain = std::ranges::all_of(
        text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
    return plain ? std::optional{text} : std::nullopt;
}

/// The texts of an array of such strings, without blanks.
static std::optional<std::vector<std::string>> plain_texts(std::string_view value) {
    if (!value.starts_with("[\"") || !value.ends_with("\"]")) return std::nullopt;
    value.remove_prefix(1);
    value.remove_suffix(1);
    std::vector<std::string> texts;
    while (true) {
        auto const end = value.find('"', 1);
        if (end == std::string_view::npos) return std::nullopt;
        auto const text = plain_text(value.substr(0, end + 1));
        if (!text) return std::nullopt;
        texts.emplace_back(*text);
        value.remove_prefix(end + 1);
        if (value.empty()) return texts;
        if (!value.starts_with(",\"")) return std::nullopt;
        value.remove_prefix(1);
    }
}

/// A pending result as servers usually write it: nothing but its id and the like. Any other text,
/// be it right or wrong, is read in the thorough way.
static std::optional<Submitted> quick_submitted(std::string_view json) {
    Submitted submitted;
    JsonScan scan{json};
    while (auto const member = scan.next()) {
        if (member->name == "sample_sequence_ids") {
            submitted.sample_sequence_ids = plain_texts(member->value);
            if (!submitted.sample_sequence_ids) return std::nullopt;
            continue;
        }
        auto const text = plain_text(member->value);
        if (!text) return std::nullopt;
        if (member->name == "request_id") {
            submitted.request_id = *text;
        } else if (member->name == "model_id") {
            submitted.model_id = *text;
        } else if (member->name != "type") {
            return std::nullopt;
        }
    }
    if (!scan.complete() || submitted.request_id.empty()) return std::nullopt;
    return submitted;
}

Result<Submitted> decode_submitted(std::string_view json, std::string_view operation) {
    if (auto submitted = quick_submitted(json)) return *std::move(submitted);
    // A server that is done already may answer with the result itself.
    JsonScan scan{json};
    bool pending = false;
    bool completed = false;
    std::string_view result;
    while (auto const member = scan.next()) {
        if (member->name == "request_id") pending = true;
        if (member->name == "status" && member->value == R"("completed")") completed = true;
        if (member->name == "result") result = member->value;
        if (member->name == "sequences" && result.empty()) {
            completed = true;
            result = json;
        }
    }
    if (scan.complete() && !pending && completed && !result.empty()) {
        return Submitted{.result = result};
    }
    std::array<unsigned char, 2048> buffer;
    boost::json::monotonic_resource memory{buffer.data(), buffer.size()};
    return decode_json<Submitted>(operation, json, Doubles::exact, &memory);
}

static void read(JsonIn const& in, StopReason& out) {
    auto const* text = in.value().if_string();
    if (text != nullptr && *text == "stop") {
        out = StopReason::stop;
    } else if (text != nullptr && *text == "length") {
        out = StopReason::length;
    } else {
        in.fail(R"("stop" or "length")");
    }
}

static void read(JsonIn const& in, TokenLogprob& out) {
    auto const* pair = in.value().if_array();
    if (pair == nullptr || pair->size() != 2) return in.fail("a token id and its log-probability");
    bool first = true;
    in.each([&](JsonIn const& part) {
        if (std::exchange(first, false)) {
            out.token = part.as<Token>();
        } else {
            out.logprob = part.as<float>();
        }
    });
}

static void read(JsonIn const& in, SampledSequence& out) {
    out.stop_reason = in.required<StopReason>("stop_reason");
    out.tokens = in.required<std::vector<Token>>("tokens");
    out.logprobs = in.optional<std::vector<float>>("logprobs");
    out.topk_logprobs = in.optional<TopkLogprobs>("topk_logprobs");
    out.sequence_id = in.optional<std::string>("sequence_id").value_or("");
}

static void read(JsonIn const& in, PromptAltTokens& out) {
    out.tokens = in.required<TensorData>("tokens");
    out.logprobs = in.required<TensorData>("logprobs");
}

static void read(JsonIn const& in, SampleResponse& out) {
    in.tag("type", "sample");
    out.sequences = in.required<std::vector<SampledSequence>>("sequences");
    out.prompt_logprobs = in.optional<std::vector<std::optional<float>>>("prompt_logprobs");
    out.topk_prompt_logprobs = in.optional<TopkLogprobs>("topk_prompt_logprobs");
    out.prompt_cache_hit_tokens = in.member_or<std::int64_t>("prompt_cache_hit_tokens", 0);
    out.target_prompt_logprobs = in.optional<TensorData>("target_prompt_logprobs");
    out.prompt_alt_tokens = in.optional<PromptAltTokens>("prompt_alt_tokens");
}

Result<SampleResponse> decode_sample_json(std::string_view json) {
    if (auto usual = quick_sample(json)) return *std::move(usual);
    std::array<unsigned char, 16384> buffer;
    boost::json::monotonic_resource memory{buffer.data(), buffer.size()};
    return decode_json<SampleResponse>("sample", json, Doubles::fast, &memory);
}

Result<CompletedSample> complete_sample(SampleResponse response,
                                        std::vector<std::string> const* sequence_ids,
                                        std::optional<std::int64_t> prompt_length,
                                        SampleOptions const& options, bool record_stability_info) {
    if (sequence_ids != nullptr) {
        if (sequence_ids->size() != response.sequences.size()) {
            ErrorDetails details;
            details.kind = ErrorKind::validation;
            details.field = "sample_sequence_ids";
            details.value = std::to_string(sequence_ids->size());
            details.message = "sample: the server announced " +
                              std::to_string(sequence_ids->size()) + " sequences and gave " +
                              std::to_string(response.sequences.size()) +
                              "; which is which cannot be told";
            return details;
        }
        for (std::size_t i = 0; i < sequence_ids->size(); ++i) {
            response.sequences[i].sequence_id = (*sequence_ids)[i];
        }
    } else if (record_stability_info) {
        return without_ids();
    }

    if (auto& scored = response.prompt_logprobs; scored && prompt_length) {
        if (static_cast<std::int64_t>(scored->size()) == *prompt_length - 1 &&
            (scored->empty() || scored->front())) {
            scored->insert(scored->begin(), std::nullopt);
        }
    }

    // What was sampled is paid for: an option that was not answered costs no more than itself.
    std::string unanswered;
    auto const note = [&unanswered](bool lacking, std::string_view option) {
        if (!lacking) return;
        if (!unanswered.empty()) unanswered += ", ";
        unanswered += option;
    };
    auto& scored = response.prompt_logprobs;
    auto const last_n = options.prompt_logprobs_last_n;
    note(options.include_prompt_logprobs && !scored, "include_prompt_logprobs");
    note(last_n && scored && drop_scores_before(*scored, *last_n), "prompt_logprobs_last_n");
    note(options.topk_prompt_logprobs > 0 && !response.topk_prompt_logprobs,
         "topk_prompt_logprobs");
    note(options.prompt_alt_tokens_k > 0 && !response.prompt_alt_tokens, "prompt_alt_tokens_k");
    note(options.target_prompt_logprobs && !response.target_prompt_logprobs,
         "target_prompt_logprobs");
    note(options.topk_sample_logprobs > 0 &&
             std::ranges::any_of(response.sequences,
                                 [](SampledSequence const& sequence) {
                                     return !sequence.tokens.empty() && !sequence.topk_logprobs;
                                 }),
         "topk_sample_logprobs");
    return CompletedSample{std::move(response), std::move(unanswered)};
}

std::int64_t estimate_prompt_bytes(ModelInput const& prompt) {
    return estimate_bytes(prompt, json_bytes_per_number);
}

}  // namespace tinkxx::wire
