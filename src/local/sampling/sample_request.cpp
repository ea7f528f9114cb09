#include "local/sampling/sample_request.hpp"

#include "local/training/data.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tinkxx::local {

namespace {

std::vector<TokenLogprob> to_cells(std::vector<engine::TokenLogprob> const& row) {
    std::vector<TokenLogprob> cells;
    cells.reserve(row.size());
    for (auto const& cell : row) cells.push_back({cell.token, cell.logprob});
    return cells;
}

Fingerprint print_of(wire::server::Sample const& request) {
    Fingerprint print;
    print.add(request.sampling_session_id).add(request.base_model).add(request.model_path);
    print.add(request.prompt);
    auto const& params = request.params;
    print.add(params.max_tokens).add(params.seed).add(params.temperature);
    print.add(params.top_k).add(params.top_p);
    print.add(std::uint64_t{params.stop.value().index()});
    if (auto const* text = std::get_if<std::string>(&params.stop.value())) print.add(*text);
    if (auto const* texts = std::get_if<std::vector<std::string>>(&params.stop.value())) {
        for (auto const& one : *texts) print.add(one);
    }
    if (auto const* ids = std::get_if<std::vector<Token>>(&params.stop.value())) {
        for (auto const one : *ids) print.add(std::int64_t{one});
    }
    auto const& options = request.options;
    print.add(options.num_samples).add(options.include_prompt_logprobs);
    print.add(options.topk_prompt_logprobs).add(options.topk_sample_logprobs);
    print.add(options.prompt_alt_tokens_k).add(options.prompt_logprobs_last_n);
    if (options.target_prompt_logprobs) print.add(view(*options.target_prompt_logprobs));
    return print;
}

}  // namespace

Result<Targets> read_targets(TensorData given, std::size_t prompt, std::size_t most) {
    auto const wrong = [](std::string const& why) {
        return Error{ErrorDetails{.kind = ErrorKind::validation,
                                  .message = "target_prompt_logprobs " + why,
                                  .category = ErrorCategory::user,
                                  .field = "target_prompt_logprobs"}};
    };
    Targets out{.asked = std::move(given), .rows = prompt - 1};
    auto const& asked = out.asked;
    auto const* const ids = std::get_if<std::vector<std::int64_t>>(&asked.data);
    if (ids == nullptr) return wrong("must be of int64");
    if (!asked.shape || asked.shape->size() != 2 ||
        static_cast<std::uint64_t>((*asked.shape)[0]) != prompt - 1) {
        return wrong("must have the shape [" + std::to_string(prompt - 1) +
                     ", K]: a row for each prompt token but the first");
    }
    auto const columns = static_cast<std::size_t>((*asked.shape)[1]);
    std::vector<std::size_t> row_of(ids->size());
    for (std::size_t row = 0; row < out.rows; ++row) {
        auto const from = asked.sparse()
                              ? static_cast<std::size_t>((*asked.sparse_crow_indices)[row])
                              : row * columns;
        auto const to = asked.sparse()
                            ? static_cast<std::size_t>((*asked.sparse_crow_indices)[row + 1])
                            : from + columns;
        for (auto i = from; i < to; ++i) row_of[i] = row;
    }
    std::vector<std::size_t> used(out.rows, 0);
    std::vector<std::size_t> slot(ids->size(), 0);
    for (std::size_t i = 0; i < ids->size(); ++i) {
        auto const id = (*ids)[i];
        if (id < -1 || id > std::numeric_limits<std::int32_t>::max()) {
            return wrong("names the token " + std::to_string(id) +
                         ", which is not in the vocabulary; -1 asks for nothing");
        }
        out.largest = std::max(out.largest, id);
        if (id >= 0) slot[i] = used[row_of[i]]++;
    }
    out.width = out.rows == 0 ? 0 : *std::ranges::max_element(used);
    if (out.width == 0) return wrong("asks for nothing; name at least one token");
    if (out.width > most / out.rows) {
        return wrong("asks for more than " + std::to_string(most) + " log-probabilities at once");
    }
    out.tokens.assign(out.rows * out.width, 0);
    out.cells.resize(ids->size());
    for (std::size_t i = 0; i < ids->size(); ++i) {
        if ((*ids)[i] < 0) continue;
        auto const at = row_of[i] * out.width + slot[i];
        out.cells[i] = at;
        out.tokens[at] = static_cast<std::int32_t>((*ids)[i]);
    }
    return out;
}

engine::Datum Targets::datum(std::vector<Token> const& prompt) const {
    return {.tokens = {prompt.begin(), prompt.end() - 1},
            .targets = tokens,
            .targets_per_token = width,
            .weights = std::vector<float>(tokens.size(), 0.0F)};
}

TensorData Targets::answer(std::vector<float> const& logprobs) const {
    TensorData out{.shape = asked.shape,
                   .sparse_crow_indices = asked.sparse_crow_indices,
                   .sparse_col_indices = asked.sparse_col_indices};
    std::vector<float> values(cells.size(), 0.0F);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i]) values[i] = logprobs.at(*cells[i]);
    }
    out.data = std::move(values);
    return out;
}

SampleRead understand(std::string_view operation, std::size_t most_tokens, std::size_t most_cells,
                      wire::server::Sample request) {
    SampleRead read;
    auto const what = std::string{operation} + ": ";
    read.print = print_of(request);
    read.length = token_count(request.prompt);
    if (read.length <= most_tokens) {
        auto tokens = tokens_of(operation, request.prompt);
        if (tokens) {
            read.prompt = *std::move(tokens);
        } else {
            read.refusal = tokens.error().what();
        }
    }
    if (!read.prompt.empty()) {
        auto const [least, most] = std::ranges::minmax(read.prompt);
        read.least = least;
        read.most = most;
    }
    auto& targets = request.options.target_prompt_logprobs;
    if (targets && read.refusal.empty() && read.length > 0 && read.length <= most_tokens) {
        auto packed = read_targets(*std::move(targets), read.length, most_cells);
        if (packed) {
            read.targets = *std::move(packed);
        } else {
            read.refusal = what + packed.error().what();
        }
    }
    targets.reset();
    request.prompt = {};
    read.request = std::move(request);
    return read;
}

SampleResponse SampleJob::response() {
    SampleResponse response;
    auto const first =
        options.prompt_logprobs_last_n
            ? ask.prompt.size() - static_cast<std::size_t>(*options.prompt_logprobs_last_n)
            : std::size_t{1};
    for (auto& sequence : result.sequences) {
        response.sequences.push_back({.stop_reason = sequence.cause == engine::StopCause::stop
                                                         ? StopReason::stop
                                                         : StopReason::length,
                                      .tokens = std::move(sequence.tokens),
                                      .logprobs = std::move(sequence.logprobs)});
    }
    if (ask.prompt_logprobs) {
        auto& list = response.prompt_logprobs.emplace(std::move(result.prompt_logprobs));
        for (std::size_t i = 0; i < std::min(first, list.size()); ++i) list[i].reset();
    }
    if (ask.topk_prompt_logprobs > 0) {
        auto& rows = response.topk_prompt_logprobs.emplace(result.topk_prompt_logprobs.size());
        for (std::size_t i = first; i < rows.size(); ++i) {
            rows[i] = to_cells(result.topk_prompt_logprobs[i]);
        }
    }
    for (std::size_t i = 0; i < topk.size(); ++i) {
        auto& list = response.sequences[i].topk_logprobs.emplace();
        for (auto j = ask.prompt.size(); j < topk[i].size(); ++j) {
            list.emplace_back(to_cells(topk[i][j]));
        }
    }
    if (targets) response.target_prompt_logprobs = targets->answer(target_logprobs);
    response.prompt_cache_hit_tokens = static_cast<std::int64_t>(cached_tokens);
    return response;
}

}  // namespace tinkxx::local
