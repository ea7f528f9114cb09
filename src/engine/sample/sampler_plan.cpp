#include "engine/sample/sampler_core.hpp"

#include <algorithm>
#include <tuple>

// What a step computes: at most so many tokens of samples and so many of prompts. Those far behind
// the beginning of a text cost more and count for more, so that nobody waits long for a step to
// end.

namespace tinkxx::engine {

namespace {

/// Tokens of prompts that a party gets before it is the turn of the next one.
constexpr std::size_t party_turn = kv_block_positions;
/// Tokens before this position cost the same: attention is a small part of what they take.
constexpr std::size_t near = 256;
/// What samples may cost, for each that a step may compute, and all of a step, for each token of a
/// prompt that it may compute.
constexpr double decode_cost = 2.0;
constexpr double step_cost = 1.5;

}  // namespace

Sampler::Core::Track& Sampler::Core::Fill::track() const noexcept {
    return sample != nullptr ? sample->track : request->track;
}

std::size_t Sampler::Core::Fill::left() const noexcept {
    return waits ? 0 : track().target - track().length - planned;
}

std::pair<Sampler::RequestId, std::size_t> Sampler::Core::Fill::age() const noexcept {
    return {request->id, sample != nullptr ? sample->index : 0};
}

double Sampler::Core::cost(std::size_t position) const noexcept {
    return 1.0 + attention_cost_ * static_cast<double>(std::max(position, near) - near);
}

void Sampler::Core::plan() {
    plan_decode();
    plan_prefill();
}

void Sampler::Core::plan_decode() {
    ready_.clear();
    double cost_of_all = 0;
    for (auto const& sample : samples_) {
        if (sample->life != Life::live || !sample->track.ready()) continue;
        ready_.push_back(sample.get());
        cost_of_all += cost(sample->track.length);
    }
    auto const rows = std::max<std::size_t>(options_.decode_tokens, 1);
    auto const most = decode_cost * static_cast<double>(rows);
    if (ready_.size() > rows || cost_of_all > most) choose_ready(rows);
    double spent = 0;
    std::size_t planned = 0;
    for (auto* const sample : ready_) {
        auto& track = sample->track;
        spent += cost(track.length);
        if (planned == rows || (planned > 0 && spent > most)) break;
        ++planned;
        if (track.length == track.pages.size() * kv_block_positions) {
            track.pages.push_back(pool_.take());
        }
        // (The number of the step would not do: of those with the same one, the first would be
        // chosen again and again.)
        ++turns_;
        sample->last_turn = turns_;
        sample->request->last_turn = turns_;
        sample->request->party->last_turn = turns_;
        work_.push_back({.kind = WorkKind::decode,
                         .request = sample->request.get(),
                         .sample = sample,
                         .first = track.length,
                         .count = 1});
    }
}

/// Orders samples so that the first ones are those whose turn it is: in turns by party, in turns by
/// the requests of a party, and of a request those that waited for the longest time.
void Sampler::Core::choose_ready(std::size_t rows) {
    std::ranges::sort(ready_, {}, [](Sample const* sample) {
        return std::tuple{sample->request->id, sample->last_turn, sample->index};
    });
    Request const* request = nullptr;
    std::size_t turn = 0;
    for (auto* const sample : ready_) {
        if (std::exchange(request, sample->request.get()) != sample->request.get()) turn = 0;
        sample->turn = turn++;
    }
    std::ranges::sort(ready_, {}, [](Sample const* sample) {
        auto const& of = *sample->request;
        return std::tuple{of.party, sample->turn, of.last_turn, of.id};
    });
    Party const* party = nullptr;
    for (auto* const sample : ready_) {
        if (std::exchange(party, sample->request->party) != sample->request->party) turn = 0;
        sample->turn = turn++;
    }
    auto const first = ready_.begin() + static_cast<std::ptrdiff_t>(std::min(rows, ready_.size()));
    std::ranges::partial_sort(ready_, first, {}, [](Sample const* sample) {
        return std::tuple{sample->turn, sample->request->party->last_turn, sample->request->id};
    });
}

void Sampler::Core::plan_prefill() {
    fills_.clear();
    for (auto const& [name, party] : parties_) {
        for (auto const& request : party->requests) {
            if (request->holds && !request->over && !request->track.ready()) {
                fills_.push_back({.request = request.get()});
            }
        }
    }
    for (auto const& sample : samples_) {
        if (sample->life == Life::live && !sample->track.ready()) {
            fills_.push_back({.request = sample->request.get(), .sample = sample.get()});
        }
    }
    if (fills_.empty()) return;
    // A party that had nothing to read may go first, but cannot save its turns up.
    for (auto const& fill : fills_) {
        auto& prefilled = fill.request->party->prefilled;
        prefilled = std::max(prefilled, prefill_clock_ - static_cast<double>(party_turn));
    }
    std::ranges::sort(fills_, {}, [](Fill const& fill) {
        auto const* const party = fill.request->party;
        return std::tuple{party->prefilled, party, fill.left(), fill.age()};
    });
    prefill_clock_ = std::max(prefill_clock_, fills_.front().request->party->prefilled);
    auto const most = std::max<std::size_t>(options_.prefill_tokens, 1);
    tokens_left_ = most - std::min(work_.size(), most - (most + 3) / 4);
    cost_left_ = step_cost * static_cast<double>(most);
    for (auto const& work : work_) cost_left_ -= cost(work.first);
    cost_left_ = std::max(cost_left_, 1.0);
    computing_.clear();
    plan_short();
    for (bool more = true; more && tokens_left_ > 0 && cost_left_ > 0;) {
        auto const before = tokens_left_;
        for (auto begin = fills_.begin(); begin != fills_.end();) {
            auto const* const party = begin->request->party;
            auto const end = std::find_if(begin, fills_.end(), [party](Fill const& fill) {
                return fill.request->party != party;
            });
            plan_party({begin, end}, party_turn);
            begin = end;
        }
        more = tokens_left_ < before;
    }
    for (auto const& fill : fills_) {
        if (fill.planned == 0) continue;
        auto& track = fill.track();
        while (track.pages.size() * kv_block_positions < track.length + fill.planned) {
            track.pages.push_back(pool_.take());
        }
        work_.push_back({.kind = fill.sample != nullptr ? WorkKind::refill : WorkKind::prompt,
                         .request = fill.request,
                         .sample = fill.sample,
                         .first = track.length,
                         .count = fill.planned});
    }
}

/// Of each party the prompt that is nearly done, if it is short: it costs next to nothing, and
/// would otherwise wait for several steps where samples far behind the beginning take all that a
/// step may cost.
void Sampler::Core::plan_short() {
    auto const costs = cost_left_;
    Party const* party = nullptr;
    for (auto& fill : fills_) {
        if (std::exchange(party, fill.request->party) == fill.request->party) continue;
        auto const left = fill.left();
        if (left > party_turn || left > tokens_left_ || fill.track().target > near) continue;
        plan_fill(fill, left);
        fill.request->party->prefilled += static_cast<double>(fill.planned);
    }
    cost_left_ = costs;
}

/// One turn of a party. What is nearly done and what is oldest take turns: a short prompt waits for
/// no long one, and a long one is read however many short ones come.
void Sampler::Core::plan_party(std::span<Fill> fills, std::size_t tokens) {
    auto& party = *fills.front().request->party;
    bool const by_age = party.turns++ % 2 == 1;
    while (tokens > 0 && tokens_left_ > 0 && cost_left_ > 0) {
        auto const open = [](Fill const& fill) { return fill.left() > 0; };
        auto next = std::ranges::find_if(fills, open);  // they are in order of what is left
        if (next == fills.end()) return;
        if (by_age) {
            for (auto fill = next; fill != fills.end(); ++fill) {
                if (open(*fill) && fill->age() < next->age()) next = fill;
            }
        }
        auto const before = next->planned;
        plan_fill(*next, tokens);
        auto const planned = next->planned - before;
        tokens -= planned;
        party.prefilled += static_cast<double>(planned);
    }
}

void Sampler::Core::plan_fill(Fill& fill, std::size_t tokens) {
    auto& track = fill.track();
    auto const& request = *fill.request;
    if (!std::exchange(fill.looked, true)) {
        use_cache(fill);
        if (track.length % kv_block_positions == 0 &&
            track.length + kv_block_positions < track.target && !request.scores()) {
            // The same page is being computed for somebody else: it is there in the next step.
            std::vector<std::int32_t> page;
            for (std::size_t i = 0; i < kv_block_positions; ++i) {
                page.push_back(token_at(request, fill.sample, track.length + i));
            }
            fill.waits = !computing_.emplace(request.owner, track.node, std::move(page)).second;
        }
    }
    auto const count = std::min({tokens, tokens_left_, fill.left()});
    fill.planned += count;
    tokens_left_ -= count;
    cost_left_ -= static_cast<double>(count) * cost(track.length + fill.planned);
}

void Sampler::Core::use_cache(Fill const& fill) {
    auto& request = *fill.request;
    auto& track = fill.track();
    if (track.length % kv_block_positions != 0) return;
    // The last token of a prompt has to be computed for its logits, and all of them if they are
    // scored; but not twice.
    auto end = track.target;
    if (fill.sample == nullptr && request.scores()) {
        end = request.scored;
    } else if (fill.sample == nullptr && !request.prompt_known()) {
        --end;
    }
    std::vector<std::int32_t> page(kv_block_positions);
    while (track.length + kv_block_positions <= end) {
        for (std::size_t i = 0; i < page.size(); ++i) {
            page[i] = token_at(request, fill.sample, track.length + i);
        }
        auto const hit = pool_.find(request.owner, track.node, page);
        if (hit.node == 0) return;
        moved_ = true;
        track.pages.push_back(hit.page);
        track.node = hit.node;
        if (fill.sample == nullptr && track.length >= request.reached) {
            request.result.cached_tokens += kv_block_positions;
        }
        track.length += kv_block_positions;
    }
}

}  // namespace tinkxx::engine
