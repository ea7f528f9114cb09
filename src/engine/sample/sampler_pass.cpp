#include "engine/common/random.hpp"
#include "engine/kernels/elementwise.hpp"
#include "engine/sample/sampler_core.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace tinkxx::engine {

namespace {

/// Rows whose logits are computed at once.
std::size_t logit_chunk(std::size_t rows, std::size_t vocab) {
    constexpr std::size_t floats = std::size_t{4} << 20U;
    return std::min(rows, std::clamp<std::size_t>(floats / vocab, 8, 256));
}

}  // namespace

void Sampler::Core::plan_parts() {
    // Rows of one adapter lie together, so that its products are done at once.
    // (std::stable_sort would take memory.)
    for (std::size_t i = 0; i < work_.size(); ++i) work_[i].order = i;
    std::ranges::sort(work_, {}, [](Work const& work) {
        return std::pair{work.request->owner, work.order};
    });
    std::size_t rows = 0;
    std::size_t most = 0;
    for (auto const& work : work_) {
        rows += work.count;
        most = std::max(most, work.count);
    }
    computed_ += rows;
    std::size_t count = std::min<std::size_t>(threads_.count(), work_.size());
    // Large weights should pass through the cache once, not once for each thread; and one long
    // prompt is better shared than left to one thread.
    if (large_ || (rows >= 64 && most * count > rows + rows / 2)) count = 1;
    while (parts_.size() < count) parts_.push_back(std::make_unique<Part>());
    part_count_ = count;
    std::size_t begin = 0;
    std::size_t done = 0;
    for (std::size_t i = 0; i < count; ++i) {
        auto end = begin;
        auto const goal = rows * (i + 1) / count;
        while (end < work_.size() && (done < goal || i + 1 == count)) done += work_[end++].count;
        parts_[i]->begin = begin;
        parts_[i]->end = end;
        begin = end;
    }
}

void Sampler::Core::compute() {
    plan_parts();
    if (part_count_ == 1) return run_part(*parts_.front(), 0, &threads_);
    threads_.run(part_count_, [this](std::size_t index, unsigned slot) {
        if (parts_[index]->begin < parts_[index]->end) run_part(*parts_[index], slot, nullptr);
    });
}

void Sampler::Core::fill_part(Part& part) {
    part.tokens.clear();
    part.positions.clear();
    part.segments.clear();
    part.groups.clear();
    part.pages.clear();
    for (auto i = part.begin; i < part.end; ++i) {
        auto const& work = work_[i];
        auto const& request = *work.request;
        auto const row = part.tokens.size();
        part.segments.push_back({.row = row, .tokens = work.count, .first_position = work.first});
        for (std::size_t t = 0; t < work.count; ++t) {
            part.tokens.push_back(token_at(request, work.sample, work.first + t));
            part.positions.push_back(static_cast<std::int32_t>(work.first + t));
        }
        auto const& track = work.sample != nullptr ? work.sample->track : request.track;
        for (auto const page : track.pages) part.pages.push_back(pool_.data(page));
        auto const& group = request.group;
        if (part.groups.empty() || part.groups.back().weights != group.weights ||
            part.groups.back().lora != group.lora) {
            part.groups.push_back(group);
            part.groups.back().row = row;
            part.groups.back().rows = 0;
        }
        part.groups.back().rows += work.count;
    }
    std::size_t page = 0;
    for (auto i = part.begin; i < part.end; ++i) {
        auto const& work = work_[i];
        part.segments[i - part.begin].pages = part.pages.data() + page;
        auto const& track = work.sample != nullptr ? work.sample->track : work.request->track;
        page += track.pages.size();
    }
}

void Sampler::Core::run_part(Part& part, unsigned slot, Threads* threads) {
    fill_part(part);
    auto const& config = model_->config();
    auto const rows = part.tokens.size();
    std::size_t rank = 0;
    for (auto i = part.begin; i < part.end; ++i) {
        auto const& adapter = work_[i].request->ask.adapter;
        if (adapter != nullptr) rank = std::max(rank, wide(adapter->config().rank));
    }
    auto const chunk = logit_chunk(rows, wide(config.vocab_size));
    LayerBuffers buffers;
    PassScratch scratch;
    auto const carve = [&](float* base) {
        Carver carver{base};
        buffers = carve_layer(carver, config, rows, rank, Keep::nothing);
        scratch = carve_scratch(carver, config, rows);
        part.normed = carver.take(chunk * wide(config.hidden_size));
        part.logits = carver.take(chunk * wide(config.vocab_size));
        part.lora = carver.take(chunk * rank);
        return carver.used();
    };
    carve(part.memory.reserve(carve(nullptr)));

    Batch const batch{.tokens = part.tokens,
                      .positions = part.positions,
                      .segments = part.segments,
                      .groups = part.groups,
                      .kv = pool_.layout(),
                      .rope = rope_.get()};
    embed(config, batch, buffers.x, threads);
    for (std::size_t layer = 0; layer < wide(config.layers); ++layer) {
        layer_forward(config, batch, layer, layer, buffers, scratch, buffers.x, threads);
    }
    part_logits(part, buffers.x, slot, threads);
}

void Sampler::Core::part_logits(Part& part, float const* x, unsigned slot, Threads* threads) {
    auto const& config = model_->config();
    auto const hidden = wide(config.hidden_size);
    auto const vocab = wide(config.vocab_size);
    auto const part_rows = part.tokens.size();
    auto& rows = logit_rows_[slot];
    auto const chunk = logit_chunk(part_rows, vocab);
    std::size_t index = part.begin;
    for (auto const& group : part.groups) {
        rows.clear();
        auto const group_end = group.row + group.rows;
        for (; index < part.end && part.segments[index - part.begin].row < group_end; ++index) {
            auto& work = work_[index];
            auto const& segment = part.segments[index - part.begin];
            if (work.kind == WorkKind::refill) continue;
            auto const& request = *work.request;
            bool const scored = work.kind == WorkKind::prompt && request.scores();
            auto const end = work.first + work.count;
            bool const last = work.kind == WorkKind::decode ||
                              (end == request.track.target && !request.prompt_known());
            for (std::size_t t = 0; t < work.count; ++t) {
                auto const position = work.first + t;
                bool const wanted = last && t + 1 == work.count;
                if (!wanted && !(scored && position >= request.scored)) continue;
                rows.push_back({.work = &work, .row = segment.row + t, .position = position});
            }
        }
        for (std::size_t begin = 0; begin < rows.size(); begin += chunk) {
            auto const count = std::min(chunk, rows.size() - begin);
            float* const normed = part.normed;
            float* const logits = part.logits;
            for (std::size_t i = 0; i < count; ++i) {
                std::memcpy(normed + i * hidden, x + rows[begin + i].row * hidden,
                            hidden * sizeof(float));
            }
            MatrixView const view{normed, count, hidden};
            rms_norm(view, nullptr, view, group.weights->norm.values().data(), config.rms_norm_eps);
            unembed(group, view, {logits, count, vocab}, part.lora, threads);
            auto const one = [&](std::size_t i, unsigned thread) {
                take_logits(rows[begin + i], {logits + i * vocab, vocab}, filters_[thread]);
            };
            if (threads != nullptr && count > 1 && count * vocab > (std::size_t{1} << 15U)) {
                threads->run(count, one);
            } else {
                for (std::size_t i = 0; i < count; ++i) one(i, slot);
            }
        }
    }
}

void Sampler::Core::take_logits(LogitRow const& row, std::span<float const> logits,
                                TokenFilter& filter) const {
    auto& work = *row.work;
    auto& request = *work.request;
    auto const& ask = request.ask;
    SoftmaxState state;
    softmax_update(state, logits.data(), logits.size());
    auto const log_sum = state.log_sum_exp();
    // A NaN anywhere makes the sum one; an infinite logit makes the sum infinite or NaN.
    if (!std::isfinite(log_sum)) {
        work.finite = false;
        return;
    }
    if (work.kind == WorkKind::decode) {
        auto const before = request.result.sequences[work.sample->index].tokens.size();
        filter.apply(logits, ask.filter);
        work.token = filter.pick(uniform(ask.seed, work.sample->index, before));
        work.logprob = logits[static_cast<std::size_t>(work.token)] - log_sum;
        return;
    }
    auto const next = row.position + 1;
    if (next == ask.prompt.size()) {
        request.last_logits.assign(logits.begin(), logits.end());
        request.last_log_sum = log_sum;
        return;
    }
    if (ask.prompt_logprobs) {
        auto const token = static_cast<std::size_t>(ask.prompt[next]);
        request.result.prompt_logprobs[next] = logits[token] - log_sum;
    }
    if (ask.topk_prompt_logprobs > 0) {
        std::vector<std::int32_t> order(logits.size());
        std::iota(order.begin(), order.end(), 0);
        auto const middle = order.begin() + static_cast<std::ptrdiff_t>(ask.topk_prompt_logprobs);
        std::partial_sort(order.begin(), middle, order.end(), [&](std::int32_t a, std::int32_t b) {
            auto const left = logits[static_cast<std::size_t>(a)];
            auto const right = logits[static_cast<std::size_t>(b)];
            return left != right ? left > right : a < b;
        });
        auto& best = request.result.topk_prompt_logprobs[next];
        for (auto token = order.begin(); token != middle; ++token) {
            best.push_back(
                {.token = *token, .logprob = logits[static_cast<std::size_t>(*token)] - log_sum});
        }
    }
}

}  // namespace tinkxx::engine
