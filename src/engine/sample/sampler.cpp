#include "engine/sample/sampler.hpp"

#include "engine/common/failure.hpp"
#include "engine/common/random.hpp"
#include "engine/sample/sampler_core.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tinkxx::engine {

namespace {

KvLayout layout_of(ModelConfig const& config) {
    return {.layers = wide(config.layers),
            .kv_heads = wide(config.kv_heads),
            .head_dim = wide(config.head_dim)};
}

}  // namespace

Sampler::Sampler(std::shared_ptr<Model const> model, Threads& threads, SamplerOptions options)
    : core_{std::make_unique<Core>(std::move(model), threads, std::move(options))} {}
Sampler::Sampler(std::shared_ptr<Model const> model, Threads& threads)
    : Sampler{std::move(model), threads, SamplerOptions{}} {}
Sampler::~Sampler() = default;

Result<Sampler::RequestId> Sampler::submit(SampleRequest request) {
    return core_->submit(std::move(request));
}
void Sampler::cancel(RequestId id) { core_->cancel(id); }
bool Sampler::step() { return core_->step(); }
Sampler::Usage Sampler::usage() const noexcept { return core_->usage(); }
std::uint64_t Sampler::computed() const noexcept { return core_->computed(); }

std::size_t Sampler::pages_for(std::size_t prompt, std::size_t max_tokens) noexcept {
    // The last token is never fed back.
    return pages_covering(prompt + max_tokens - 1);
}

Sampler::Core::Core(std::shared_ptr<Model const> model, Threads& threads, SamplerOptions options)
    : model_{std::move(model)},
      threads_{threads},
      options_{std::move(options)},
      pool_{layout_of(model_->config()), options_.cache_bytes},
      filters_(threads.count()),
      logit_rows_(threads.count()) {
    auto const& layer = model_->weights().layers.front();
    large_ = std::max(layer[Module::gate].bytes(), layer[Module::q].bytes()) > std::size_t{4}
                                                                                   << 20U;
    // Multiplications for one position of one token, beside those with the weights. They take twice
    // as long, since each text has keys and values of its own.
    auto const& config = model_->config();
    attention_cost_ =
        2.0 * 2.0 * config.layers * config.q_size() / static_cast<double>(config.parameters());
}

Result<void> Sampler::Core::check(SampleRequest const& ask) const {
    auto const& config = model_->config();
    auto const fail = [](std::string const& why, std::string field) {
        return invalid("sample: " + why, std::move(field));
    };
    auto const known = [&](std::int32_t token) { return token >= 0 && token < config.vocab_size; };
    if (ask.prompt.empty()) return fail("the prompt has no tokens", "prompt");
    if (!std::ranges::all_of(ask.prompt, known)) {
        return fail(
            "the prompt has a token outside the vocabulary of " + std::to_string(config.vocab_size),
            "prompt");
    }
    if (ask.max_tokens < 1) return fail("max_tokens must be at least 1", "max_tokens");
    if (ask.num_samples < 1) return fail("num_samples must be at least 1", "num_samples");
    auto const limit = wide(config.max_positions);
    if (ask.max_tokens > limit || ask.prompt.size() > limit ||
        ask.prompt.size() + ask.max_tokens - 1 > limit) {
        return fail("prompt (" + std::to_string(ask.prompt.size()) + ") and max_tokens (" +
                        std::to_string(ask.max_tokens) + ") exceed the " + std::to_string(limit) +
                        " positions of the model",
                    "max_tokens");
    }
    auto const& filter = ask.filter;
    if (!(filter.temperature >= 0.0 && std::isfinite(filter.temperature))) {
        return fail("temperature must be at least 0", "temperature");
    }
    if (!(filter.top_p >= 0.0 && filter.top_p <= 1.0)) {
        return fail("top_p must be from 0 to 1", "top_p");
    }
    if (ask.topk_prompt_logprobs > wide(config.vocab_size)) {
        return fail("topk_prompt_logprobs exceeds the vocabulary", "topk_prompt_logprobs");
    }
    if (!ask.stop_strings.empty() && !options_.token_bytes) {
        return fail("stop strings need a tokenizer, which this model does not have; use token ids",
                    "stop");
    }
    if (std::ranges::any_of(ask.stop_strings, &std::string::empty)) {
        return fail("a stop string is empty", "stop");
    }
    if (ask.adapter != nullptr && &ask.adapter->model() != model_.get()) {
        return fail("the adapter belongs to another model", "model_path");
    }
    auto needed = pages_for(ask.prompt.size(), ask.max_tokens);
    // A sample writes behind the prompt; if others are to follow, into a copy of the prompt's last
    // page.
    bool const partial = ask.prompt.size() % kv_block_positions != 0;
    if (ask.num_samples > 1 && ask.max_tokens > 1 && partial) ++needed;
    if (needed > pool_.capacity()) {
        return fail("prompt and max_tokens need " +
                        std::to_string(needed * pool_.page_bytes() >> 20U) +
                        " MiB of cache; it has " +
                        std::to_string(pool_.capacity() * pool_.page_bytes() >> 20U) +
                        " and can never hold this request",
                    "max_tokens");
    }
    return {};
}

Result<Sampler::RequestId> Sampler::Core::submit(SampleRequest ask) {
    if (auto const good = check(ask); !good) return good.error();
    auto request = std::make_shared<Request>();
    request->id = ++last_id_;
    if (ask.adapter != nullptr) request->owner = {ask.adapter->id(), ask.adapter->version()};
    request->group = row_group(*model_, ask.adapter.get());
    request->result.sequences.resize(ask.num_samples);
    if (ask.prompt_logprobs) request->result.prompt_logprobs.resize(ask.prompt.size());
    if (ask.topk_prompt_logprobs > 0) {
        request->result.topk_prompt_logprobs.resize(ask.prompt.size());
    }
    request->track.target = ask.prompt.size();
    rope_ = model_->rope_tables(
        std::max(ask.prompt.size() + ask.max_tokens, rope_ == nullptr ? 0 : rope_->positions));
    auto& party = parties_[ask.party];
    if (party == nullptr) party = std::make_unique<Party>();
    request->party = party.get();
    request->ask = std::move(ask);
    party->requests.push_back(request);
    return request->id;
}

void Sampler::Core::cancel(RequestId id) {
    for (auto const& [name, party] : parties_) {
        auto const found = std::ranges::find(party->requests, id, &Request::id);
        if (found == party->requests.end()) continue;
        (*found)->cancelled = true;
        release(**found);
    }
    for (auto const* events : {&events_, &dispatching_}) {
        for (auto const& event : *events) {
            if (event.request->id == id) event.request->cancelled = true;
        }
    }
}

std::int32_t Sampler::Core::token_at(Request const& request, Sample const* sample,
                                     std::size_t position) noexcept {
    auto const& prompt = request.ask.prompt;
    if (position < prompt.size()) return prompt[position];
    return request.result.sequences[sample->index].tokens[position - prompt.size()];
}

void Sampler::Core::finish_work() {
    for (auto& work : work_) {
        auto& request = *work.request;
        if (request.over) continue;
        if (!work.finite) {
            finish(request, invalid("sample: the logits are not finite; the weights have been "
                                    "trained into NaN or infinity",
                                    "model_path"));
            continue;
        }
        advance(request, work.sample, work.count);
        if (work.kind == WorkKind::decode) accept_token(*work.sample, work.token, work.logprob);
    }
    work_.clear();
}

void Sampler::Core::advance(Request& request, Sample* sample, std::size_t count) {
    auto& track = sample != nullptr ? sample->track : request.track;
    auto page = track.length / kv_block_positions;
    track.length += count;
    for (; (page + 1) * kv_block_positions <= track.length; ++page) {
        std::vector<std::int32_t> tokens;
        tokens.reserve(kv_block_positions);
        for (auto position = page * kv_block_positions; tokens.size() < kv_block_positions;) {
            tokens.push_back(token_at(request, sample, position++));
        }
        track.node = pool_.remember(request.owner, track.node, tokens, track.pages[page]);
    }
    if (sample != nullptr) return;
    known_ = known_ || track.ready();
    request.reached = std::max(request.reached, track.length);
    if (request.scores()) request.scored = std::max(request.scored, track.length);
}

void Sampler::Core::start_sample(Request& request) {
    auto const& ask = request.ask;
    auto owned = std::make_unique<Sample>();
    auto& sample = *owned;
    sample.request = request.shared_from_this();
    sample.index = request.started;
    sample.serial = ++last_serial_;
    sample.committed = own_pages(request);
    sample.shares = true;
    ++request.started;
    ++request.live;
    ++request.sharing;
    bool const last = request.all_started();
    auto& sequence = request.result.sequences[sample.index];
    sequence.tokens.reserve(std::min<std::size_t>(ask.max_tokens, 256));
    sequence.logprobs.reserve(std::min<std::size_t>(ask.max_tokens, 256));
    filters_.front().apply(request.last_logits, ask.filter);
    auto const token = filters_.front().pick(uniform(ask.seed, sample.index, 0));
    auto const logprob =
        request.last_logits[static_cast<std::size_t>(token)] - request.last_log_sum;
    accept_token(sample, token, logprob);
    if (sample.life == Life::live) {
        auto& track = sample.track;
        track = {.length = ask.prompt.size(),
                 .target = ask.prompt.size(),
                 .pages = request.track.pages,
                 .node = request.track.node};
        bool const partial = track.length % kv_block_positions != 0;
        for (std::size_t i = 0; i < track.pages.size(); ++i) {
            if (partial && !last && i + 1 == track.pages.size()) {
                track.pages[i] = pool_.copy(track.pages[i]);
            } else {
                pool_.hold(track.pages[i]);
            }
        }
        samples_.push_back(std::move(owned));
    }
    if (last && !request.over) {
        drop_pages(request.track);
        request.holds = false;
        request.last_logits = {};
        take_back(request, std::exchange(request.reserved, 0));
        settle(request);
    }
}

bool Sampler::Core::ends_text(Sample& sample, std::int32_t token) const {
    auto const& ask = sample.request->ask;
    if (std::ranges::find(ask.stop_tokens, token) != ask.stop_tokens.end()) return true;
    if (ask.stop_strings.empty()) return false;
    sample.tail += options_.token_bytes(token);
    std::size_t longest = 0;
    for (auto const& stop : ask.stop_strings) {
        if (sample.tail.find(stop) != std::string::npos) return true;
        longest = std::max(longest, stop.size());
    }
    if (sample.tail.size() >= longest) sample.tail.erase(0, sample.tail.size() - longest + 1);
    return false;
}

void Sampler::Core::accept_token(Sample& sample, std::int32_t token, float logprob) {
    auto& request = *sample.request;
    auto& sequence = request.result.sequences[sample.index];
    sequence.tokens.push_back(token);
    sequence.logprobs.push_back(logprob);
    sample.track.target = request.ask.prompt.size() + sequence.tokens.size() - 1;
    if (request.guard > 0) --request.guard;
    if (request.ask.on_token) {
        events_.push_back({.request = sample.request,
                           .call = [&ask = request.ask, index = sample.index, token, logprob] {
                               ask.on_token(index, token, logprob);
                           }});
    }
    if (ends_text(sample, token)) {
        end_sample(sample, StopCause::stop);
    } else if (sequence.tokens.size() == request.ask.max_tokens) {
        end_sample(sample, StopCause::length);
    }
}

void Sampler::Core::end_sample(Sample& sample, StopCause cause) {
    auto& request = *sample.request;
    request.result.sequences[sample.index].cause = cause;
    release(sample);
    if (++request.finished == request.ask.num_samples) {
        finish(request, std::move(request.result));
    }
}

void Sampler::Core::finish(Request& request, Result<SampleResult> result) {
    release(request);
    if (!request.ask.on_done) return;
    events_.push_back({.request = request.shared_from_this(),
                       .call = [&ask = request.ask, result = std::move(result)]() mutable {
                           ask.on_done(std::move(result));
                       }});
}

void Sampler::Core::dispatch() {
    dispatching_.swap(events_);
    for (auto& event : dispatching_) {
        if (!event.request->cancelled) event.call();
    }
    dispatching_.clear();
}

void Sampler::Core::forget_ended() {
    if (!std::exchange(ended_, false)) return;
    std::erase_if(samples_, [](auto const& sample) { return sample->life == Life::over; });
    for (auto const& [name, party] : parties_) {
        std::erase_if(party->requests, [](RequestPtr const& request) { return request->over; });
    }
    std::erase_if(parties_, [](auto const& entry) { return entry.second->requests.empty(); });
}

bool Sampler::Core::step() {
    ++steps_;
    moved_ = false;
    forget_ended();
    share_pages();
    plan();
    // Everybody waits for pages that others hold without using them now.
    if (work_.empty() && !moved_ && unblock()) plan();
    if (!work_.empty()) {
        compute();
        finish_work();
        // Samples begin in the step that knows the end of their prompt.
        if (std::exchange(known_, false)) share_pages();
        moved_ = true;
    }
    bool const worked = moved_ || !events_.empty();
    dispatch();
    return worked;
}

Sampler::Usage Sampler::Core::usage() const noexcept {
    Usage usage{.capacity = pool_.capacity(),
                .committed = committed_,
                .pinned = pool_.pinned(),
                .cached = pool_.cached(),
                .computed = computed_};
    for (auto const& [name, party] : parties_) {
        for (auto const& request : party->requests) {
            if (request->over) continue;
            usage.waiting += request->used == 0 ? 1U : 0U;
            usage.running += request->live;
            usage.suspended += request->suspended;
        }
    }
    return usage;
}

}  // namespace tinkxx::engine
