#include "engine/sample/sampler.hpp"

#include "engine/failure.hpp"
#include "engine/random.hpp"
#include "engine/sample/sampler_core.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace tinkxx::engine {

namespace {

std::size_t pages_covering(std::size_t positions) {
    return (positions + kv_block_positions - 1) / kv_block_positions;
}

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
    rope_ = model_->rope_tables(
        std::max(ask.prompt.size() + ask.max_tokens, rope_ == nullptr ? 0 : rope_->positions));
    request->ask = std::move(ask);
    waiting_.push_back(request);
    return request->id;
}

void Sampler::Core::cancel(RequestId id) {
    std::erase_if(waiting_, [&](RequestPtr const& request) {
        if (request->id != id) return false;
        return true;
    });
    for (auto const& request : active_) {
        if (request->id != id) continue;
        request->cancelled = true;
        release(*request);
    }
    for (auto const* events : {&events_, &dispatching_}) {
        for (auto const& event : *events) {
            if (event.request->id == id) event.request->cancelled = true;
        }
    }
}

std::size_t Sampler::Core::own_pages(Request const& request) noexcept {
    auto const prompt = request.ask.prompt.size();
    if (request.ask.max_tokens == 1) return 0;
    auto own = pages_for(prompt, request.ask.max_tokens) - prompt / kv_block_positions;
    bool const last = request.started + 1 == request.ask.num_samples;
    if (last && prompt % kv_block_positions != 0) --own;  // takes over the prompt's last page
    return own;
}

void Sampler::Core::admit() {
    // Samples of admitted requests that wait for memory come before new requests.
    bool const blocked = std::ranges::any_of(active_, [](RequestPtr const& request) {
        return request->prompt_done() && request->started < request->ask.num_samples;
    });
    while (!blocked && !waiting_.empty()) {
        auto const request = waiting_.front();
        auto const needed = pages_covering(request->ask.prompt.size()) + own_pages(*request);
        // With nothing else under way it fits, or `submit` would have refused it.
        if (committed_ + needed > pool_.capacity()) return;
        waiting_.pop_front();
        request->committed = needed;
        committed_ += needed;
        active_.push_back(request);
    }
}

void Sampler::Core::use_cache(Request& request) {
    // Whoever wants the logprobs of the prompt needs all of it computed.
    if (request.scores() || request.computed % kv_block_positions != 0) return;
    auto const& prompt = request.ask.prompt;
    // At least the last token has to be computed for its logits.
    while (request.computed + kv_block_positions < prompt.size()) {
        auto const hit =
            pool_.find(request.owner, request.node,
                       std::span{prompt}.subspan(request.computed, kv_block_positions));
        if (hit.node == 0) return;
        request.pages.push_back(hit.page);
        request.node = hit.node;
        request.computed += kv_block_positions;
        request.result.cached_tokens += kv_block_positions;
    }
}

void Sampler::Core::plan_decode() {
    for (auto const& sample : samples_) {
        if (sample->length == sample->pages.size() * kv_block_positions) {
            sample->pages.push_back(pool_.take());
        }
        work_.push_back({.request = sample->request.get(),
                         .sample = sample.get(),
                         .first = sample->length,
                         .count = 1});
    }
}

void Sampler::Core::plan_prefill() {
    std::vector<Request*> prompts;
    for (auto const& request : active_) {
        request->cut_off = false;
        if (!request->prompt_done()) prompts.push_back(request.get());
    }
    if (prompts.empty()) return;
    // Each gets a share of the step, so that a long prompt holds up nobody, and then goes behind
    // the others. One of which no more than a share is left comes first: it holds pages, and would
    // hold them until thousands of others had their turn.
    auto left = options_.prefill_tokens;
    auto const share = std::max(left / prompts.size(), kv_block_positions);
    std::ranges::stable_partition(prompts, [share](Request const* request) {
        return request->computed > 0 && request->ask.prompt.size() - request->computed <= share;
    });
    using Key = std::tuple<PagePool::Owner, PagePool::Node, std::vector<std::int32_t>>;
    std::set<Key> planned;
    for (auto* const request : prompts) {
        if (left == 0) break;
        use_cache(*request);
        auto const& prompt = request->ask.prompt;
        auto const first = request->computed;
        if (first % kv_block_positions == 0 && first + kv_block_positions < prompt.size() &&
            !request->scores()) {
            // The same page is being computed for somebody else: it is there in the next step.
            auto const begin = prompt.begin() + static_cast<std::ptrdiff_t>(first);
            Key key{request->owner, request->node,
                    std::vector<std::int32_t>(begin, begin + kv_block_positions)};
            if (!planned.insert(std::move(key)).second) continue;
        }
        auto const count = std::min({share, left, prompt.size() - first});
        left -= count;
        while (request->pages.size() * kv_block_positions < first + count) {
            request->pages.push_back(pool_.take());
        }
        work_.push_back({.request = request, .first = first, .count = count});
        request->cut_off = first + count < prompt.size();
    }
    std::ranges::stable_partition(active_,
                                  [](RequestPtr const& request) { return !request->cut_off; });
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
        if (work.sample != nullptr) {
            ++work.sample->length;
            page_filled(*work.sample);
            accept_token(*work.sample, work.token, work.logprob);
            continue;
        }
        auto const before = request.computed;
        request.computed += work.count;
        for (auto page = before / kv_block_positions;
             (page + 1) * kv_block_positions <= request.computed; ++page) {
            request.node = pool_.remember(request.owner, request.node,
                                          std::span{request.ask.prompt}.subspan(
                                              page * kv_block_positions, kv_block_positions),
                                          request.pages[page]);
        }
    }
    work_.clear();
    start_samples();
    std::erase_if(samples_, [](auto const& sample) { return sample->over; });
    std::erase_if(active_, [](RequestPtr const& request) { return request->over; });
}

void Sampler::Core::page_filled(Sample& sample) {
    if (sample.length % kv_block_positions != 0) return;
    auto const& request = *sample.request;
    auto const& prompt = request.ask.prompt;
    auto const& drawn = request.result.sequences[sample.index].tokens;
    auto const first = sample.length - kv_block_positions;
    std::vector<std::int32_t> tokens;
    for (auto position = first; position < sample.length; ++position) {
        tokens.push_back(position < prompt.size() ? prompt[position]
                                                  : drawn[position - prompt.size()]);
    }
    sample.node = pool_.remember(request.owner, sample.node, tokens,
                                 sample.pages[first / kv_block_positions]);
}

void Sampler::Core::start_samples() {
    for (auto const& request : active_) {  // those that end stay in it for now
        while (!request->over && request->prompt_done() &&
               request->started < request->ask.num_samples) {
            auto const own = own_pages(*request);
            // The first sample uses what was reserved at admission.
            auto const reserved = request->committed - pages_covering(request->ask.prompt.size());
            auto const more = own > reserved ? own - reserved : 0;
            if (committed_ + more > pool_.capacity()) break;
            committed_ += more;
            request->committed += more - own;
            start_sample(request);
        }
    }
}

void Sampler::Core::start_sample(RequestPtr const& request) {
    auto const own = own_pages(*request);
    auto const& ask = request->ask;
    auto sample = std::make_unique<Sample>();
    sample->request = request;
    sample->index = request->started++;
    sample->committed = own;
    bool const last = request->started == ask.num_samples;
    auto& sequence = request->result.sequences[sample->index];
    sequence.tokens.reserve(std::min<std::size_t>(ask.max_tokens, 256));
    sequence.logprobs.reserve(std::min<std::size_t>(ask.max_tokens, 256));
    filters_.front().apply(request->last_logits, ask.filter);
    auto const token = filters_.front().draw(uniform(ask.seed, sample->index, 0));
    auto const logprob =
        request->last_logits[static_cast<std::size_t>(token)] - request->last_log_sum;
    accept_token(*sample, token, logprob);
    if (!sample->over) {
        sample->length = ask.prompt.size();
        sample->node = request->node;
        sample->pages = request->pages;
        bool const partial = sample->length % kv_block_positions != 0;
        for (std::size_t i = 0; i < sample->pages.size(); ++i) {
            if (partial && !last && i + 1 == sample->pages.size()) {
                sample->pages[i] = pool_.copy(sample->pages[i]);
            } else {
                pool_.hold(sample->pages[i]);
            }
        }
        samples_.push_back(std::move(sample));
    }
    if (last && !request->over) {
        for (auto const page : request->pages) pool_.release(page);
        request->pages.clear();
        request->last_logits = {};
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

void Sampler::Core::release(Sample& sample) {
    if (sample.over) return;
    sample.over = true;
    for (auto const page : sample.pages) pool_.release(page);
    sample.pages.clear();
    committed_ -= sample.committed;
    sample.committed = 0;
}

void Sampler::Core::release(Request& request) {
    if (request.over) return;
    request.over = true;
    for (auto const& sample : samples_) {
        if (sample->request.get() == &request) release(*sample);
    }
    for (auto const page : request.pages) pool_.release(page);
    request.pages.clear();
    committed_ -= request.committed;
    request.committed = 0;
}

void Sampler::Core::finish(Request& request, Result<SampleResult> result) {
    auto const keep = shared(request);
    release(request);
    if (!request.ask.on_done) return;
    events_.push_back(
        {.request = keep, .call = [&ask = request.ask, result = std::move(result)]() mutable {
             ask.on_done(std::move(result));
         }});
}

Sampler::Core::RequestPtr Sampler::Core::shared(Request const& request) const {
    auto const found = std::ranges::find_if(
        active_, [&](RequestPtr const& other) { return other.get() == &request; });
    return found == active_.end() ? RequestPtr{} : *found;
}

void Sampler::Core::dispatch() {
    dispatching_.swap(events_);
    for (auto& event : dispatching_) {
        if (!event.request->cancelled) event.call();
    }
    dispatching_.clear();
}

bool Sampler::Core::step() {
    // Those that were cancelled since the last step.
    std::erase_if(samples_, [](auto const& sample) { return sample->over; });
    std::erase_if(active_, [](RequestPtr const& request) { return request->over; });
    start_samples();
    std::erase_if(active_, [](RequestPtr const& request) { return request->over; });
    admit();
    plan_decode();
    plan_prefill();
    if (work_.empty()) {
        bool const done_something = !events_.empty();
        dispatch();
        return done_something;
    }
    compute();
    finish_work();
    dispatch();
    return true;
}

Sampler::Usage Sampler::Core::usage() const noexcept {
    return {.capacity = pool_.capacity(),
            .pinned = pool_.pinned(),
            .cached = pool_.cached(),
            .waiting = waiting_.size(),
            .running = static_cast<std::size_t>(
                std::ranges::count_if(samples_, [](auto const& sample) { return !sample->over; })),
            .computed = computed_};
}

}  // namespace tinkxx::engine
