#include "engine/sample/filter.hpp"

#include "engine/kernels/elementwise.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tinkxx::engine {

void TokenFilter::apply(std::span<float const> logits, FilterParams const& params) {
    tokens_.clear();
    weights_.clear();
    auto const best = std::ranges::max_element(logits);
    if (params.temperature == 0.0) {
        tokens_.push_back(static_cast<std::int32_t>(best - logits.begin()));
        weights_.push_back(1.0F);
        total_ = 1.0;
        return;
    }
    auto const count = logits.size();
    auto const inverse = static_cast<float>(1.0 / params.temperature);
    if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < count) {
        scratch_.assign(logits.begin(), logits.end());
        auto const last = scratch_.begin() + (params.top_k - 1);
        std::ranges::nth_element(scratch_, last, std::greater{});
        auto const limit = *last;
        for (std::size_t i = 0; i < count; ++i) {
            if (logits[i] < limit) continue;
            tokens_.push_back(static_cast<std::int32_t>(i));
            weights_.push_back((logits[i] - *best) * inverse);
        }
    } else {
        tokens_.resize(count);
        std::iota(tokens_.begin(), tokens_.end(), 0);
        weights_.resize(count);
        for (std::size_t i = 0; i < count; ++i) weights_[i] = (logits[i] - *best) * inverse;
    }
    exp(weights_.data(), weights_.data(), weights_.size());
    total_ = 0.0;
    for (auto const weight : weights_) total_ += static_cast<double>(weight);
    if (params.top_p < 1.0) keep_top_p(params.top_p);
}

void TokenFilter::keep_top_p(double top_p) {
    order_.resize(tokens_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    auto const before = [&](std::uint32_t a, std::uint32_t b) {
        return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b;
    };
    auto const wanted = top_p * total_;
    // Most of the mass is in a few tokens; sorting the whole vocabulary is the last resort.
    for (std::size_t head = 64;; head *= 16) {
        head = std::min(head, order_.size());
        auto const end = order_.begin() + static_cast<std::ptrdiff_t>(head);
        if (head < order_.size()) std::nth_element(order_.begin(), end, order_.end(), before);
        std::sort(order_.begin(), end, before);
        double sum = 0.0;
        std::size_t kept = 0;
        while (kept < head && (kept == 0 || sum < wanted)) {
            sum += static_cast<double>(weights_[order_[kept]]);
            ++kept;
        }
        if (kept == head && sum < wanted && head < order_.size()) continue;
        order_.resize(kept);
        total_ = sum;
        break;
    }
    // The kept ones move to the front, most likely first.
    scratch_.clear();
    for (auto const index : order_) scratch_.push_back(weights_[index]);
    for (auto& index : order_) index = static_cast<std::uint32_t>(tokens_[index]);
    tokens_.assign(order_.begin(), order_.end());
    weights_.swap(scratch_);
}

std::int32_t TokenFilter::pick(double u) const {
    auto const goal = u * total_;
    double sum = 0.0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i] == 0.0F) continue;
        sum += static_cast<double>(weights_[i]);
        last = i;
        if (goal < sum) break;
    }
    return tokens_[last];
}

std::vector<double> TokenFilter::probabilities(std::size_t vocabulary) const {
    std::vector<double> result(vocabulary, 0.0);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        result[static_cast<std::size_t>(tokens_[i])] = static_cast<double>(weights_[i]) / total_;
    }
    return result;
}

}  // namespace tinkxx::engine
