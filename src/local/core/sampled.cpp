#include "local/core/sampled.hpp"

#include <algorithm>
#include <limits>

namespace tinkxx::local {

Result<Targets> read_targets(TensorData const& asked, std::size_t prompt, std::int64_t vocabulary) {
    auto const wrong = [](std::string const& why) {
        return Error{ErrorDetails{.kind = ErrorKind::validation,
                                  .message = "target_prompt_logprobs " + why,
                                  .category = ErrorCategory::user,
                                  .field = "target_prompt_logprobs"}};
    };
    auto const* const ids = std::get_if<std::vector<std::int64_t>>(&asked.data);
    if (ids == nullptr) return wrong("must be of int64");
    if (!asked.shape || asked.shape->size() != 2 ||
        static_cast<std::uint64_t>((*asked.shape)[0]) != prompt - 1) {
        return wrong("must have the shape [" + std::to_string(prompt - 1) +
                     ", K]: a row for each prompt token but the first");
    }
    Targets out{.asked = asked, .rows = prompt - 1};
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
        if (id < -1 || id >= vocabulary) {
            return wrong("names the token " + std::to_string(id) +
                         ", which is not in the vocabulary; -1 asks for nothing");
        }
        if (id >= 0) slot[i] = used[row_of[i]]++;
    }
    out.width = out.rows == 0 ? 0 : *std::ranges::max_element(used);
    if (out.width == 0) return wrong("asks for nothing; name at least one token");
    constexpr std::size_t most = std::size_t{1} << 24U;
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

}  // namespace tinkxx::local
