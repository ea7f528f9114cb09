#include "engine/engine_core.hpp"

#include "engine/common/failure.hpp"

#include <algorithm>
#include <exception>
#include <ranges>
#include <utility>
#include <variant>

namespace tinkxx::engine {

namespace {

template <class T>
using JobOf = std::remove_cvref_t<decltype(std::declval<T>().job)>;

template <class Job>
constexpr bool is_training = std::is_same_v<Job, Forward> || std::is_same_v<Job, ForwardBackward>;

/// The jobs of one adapter, or of one bare model, share a lane.
std::string lane_of(JobEntry const& entry) {
    return std::visit(
        [](auto const& ticket) {
            using Job = JobOf<decltype(ticket)>;
            if constexpr (std::is_same_v<Job, LoadModel>) {
                return "model " + ticket.job.model;
            } else if constexpr (std::is_same_v<Job, Forward> || std::is_same_v<Job, Sample>) {
                return ticket.job.adapter.empty() ? "model " + ticket.job.model
                                                  : "adapter " + ticket.job.adapter;
            } else {
                return "adapter " + ticket.job.adapter;
            }
        },
        entry.ticket);
}

bool samples(JobEntry const& entry) { return std::holds_alternative<Ticket<Sample>>(entry.ticket); }
bool steps(JobEntry const& entry) {
    return std::holds_alternative<Ticket<OptimStep>>(entry.ticket);
}

bool loads(JobPtr const& entry) { return std::holds_alternative<Ticket<LoadModel>>(entry->ticket); }

/// The base model that a new adapter names.
std::string_view model_needed(JobEntry const& entry) {
    if (auto const* create = std::get_if<Ticket<CreateAdapter>>(&entry.ticket)) {
        return create->job.model;
    }
    if (auto const* load = std::get_if<Ticket<LoadAdapter>>(&entry.ticket)) return load->job.model;
    return {};
}

/// Whether samples behind it must not overtake it: it changes the weights that they see.
bool changes_weights(JobEntry const& entry) {
    return std::visit(
        [](auto const& ticket) {
            using Job = JobOf<decltype(ticket)>;
            return std::is_same_v<Job, LoadModel> || std::is_same_v<Job, CreateAdapter> ||
                   std::is_same_v<Job, LoadAdapter> || std::is_same_v<Job, DropAdapter> ||
                   std::is_same_v<Job, OptimStep>;
        },
        entry.ticket);
}

Error unknown_adapter(std::string_view what, std::string const& name) {
    return invalid(
        std::string(what) + ": there is no adapter " + name + "; create or load it first",
        "model_id");
}

/// Exactly one of the names says whose weights are meant.
Result<void> check_names(std::string_view what, std::string const& adapter,
                         std::string const& model) {
    if (adapter.empty() != model.empty()) return {};
    return invalid(std::string(what) + ": name an adapter or a base model, not both", "model_id");
}

template <class Job>
Error failed(std::exception const& e) {
    return broken(std::string(Job::operation) + ": " + e.what() +
                      "; ask for less at once, or use a machine with more memory",
                  "memory");
}

AdapterInfo info_of(std::string model, Adapter const& adapter) {
    return {.model = std::move(model), .config = adapter.config(), .steps = adapter.steps()};
}

}  // namespace

EngineCore::EngineCore(CoreOptions options)
    : options_{std::move(options)}, threads_{options_.threads, options_.niceness} {
    options_.train.pause = [this] { pause(); };
}

EngineCore::~EngineCore() = default;

template <class Job>
void EngineCore::tell(JobPtr const& entry, Result<typename Job::Output> result) {
    if (entry->cancelled) return;
    options_.deliver([entry, result = std::move(result)]() mutable {
        // Moved out, so that what it holds ends here, not where the entry does.
        auto done = std::move(std::get<Ticket<Job>>(entry->ticket).done);
        if (!entry->cancelled && done) done(std::move(result));
    });
}

void EngineCore::accept(JobPtr entry) {
    auto lane = lane_of(*entry);
    lanes_[std::move(lane)].waiting.push_back(std::move(entry));
    changed_ = true;
}

void EngineCore::cancel(JobId id) {
    changed_ = true;
    if (auto const found = drawing_.find(id); found != drawing_.end()) {
        auto const& [lane, base, request] = found->second;
        base->sampler->cancel(request);
        --base->sampling;
        --lanes_.at(lane).sampling;
        forget_if_idle(lanes_.find(lane));
        drawing_.erase(found);
        return;
    }
    for (auto at = lanes_.begin(); at != lanes_.end(); ++at) {
        auto& lane = at->second;
        if (std::erase_if(lane.waiting, [&](auto const& e) { return e->id == id; }) > 0) {
            return forget_if_idle(at);
        }
    }
    // What is running sees the mark on its entry; this may be inside of it.
}

void EngineCore::forget_if_idle(Lanes::iterator at) {
    auto const& lane = at->second;
    if (lane.waiting.empty() && !lane.running && lane.sampling == 0 && lane.adapter == nullptr) {
        lanes_.erase(at);
    }
}

bool EngineCore::step() {
    options_.intake();
    start_samples();
    auto const training = next_training();
    auto const kind = share_.next(next_sampling() != nullptr, training != lanes_.end());
    if (!kind) return false;
    if (*kind == WorkKind::sampling) return sample_slice();
    train_slice(training);
    return true;
}

void EngineCore::start_samples() {
    if (!std::exchange(changed_, false)) return;
    for (auto at = lanes_.begin(); at != lanes_.end();) {
        auto const here = at++;
        auto& waiting = here->second.waiting;
        for (auto next = waiting.begin(); next != waiting.end() && !changes_weights(**next);) {
            if (!samples(**next)) {
                ++next;
                continue;
            }
            auto const entry = *next;
            next = waiting.erase(next);
            try {
                auto const started = start_sample(here->first, here->second, entry);
                if (!started) tell<Sample>(entry, started.error());
            } catch (std::exception const& e) {
                tell<Sample>(entry, failed<Sample>(e));
            }
        }
        forget_if_idle(here);
    }
}

Result<void> EngineCore::start_sample(std::string const& name, Lane& lane, JobPtr const& entry) {
    auto& job = std::get<Ticket<Sample>>(entry->ticket).job;
    if (auto named = check_names("sample", job.adapter, job.model); !named) return named;
    if (!job.adapter.empty() && lane.adapter == nullptr) {
        return unknown_adapter("sample", job.adapter);
    }
    auto* base = lane.base;
    if (job.adapter.empty()) {
        auto const found = base_named(job.model, "sample");
        if (!found) return found.error();
        base = *found;
    }
    auto request = std::move(job.request);
    request.adapter = lane.adapter;
    request.on_done = [this, id = entry->id, entry](Result<SampleResult> result) {
        sampled(id, entry, std::move(result));
    };
    if (request.on_token) {
        auto const told = std::make_shared<decltype(request.on_token)>(std::move(request.on_token));
        request.on_token = [this, entry, told](std::size_t sample, std::int32_t token,
                                               float logprob) {
            options_.deliver([entry, told, sample, token, logprob] {
                if (!entry->cancelled) (*told)(sample, token, logprob);
            });
        };
    }
    auto const id = base->sampler->submit(std::move(request));
    if (!id) return id.error();
    drawing_[entry->id] = {.lane = name, .base = base, .request = *id};
    ++base->sampling;
    ++lane.sampling;
    return {};
}

void EngineCore::sampled(JobId id, JobPtr const& entry, Result<SampleResult> result) {
    auto const found = drawing_.find(id);
    if (found == drawing_.end()) return;
    --found->second.base->sampling;
    --lanes_.at(found->second.lane).sampling;
    forget_if_idle(lanes_.find(found->second.lane));
    drawing_.erase(found);
    changed_ = true;
    tell<Sample>(entry, std::move(result));
}

EngineCore::Base* EngineCore::next_sampling() {
    Base* first = nullptr;
    for (auto const& [name, base] : bases_) {
        if (base->sampling == 0) continue;
        if (name > last_base_) return base.get();
        if (first == nullptr) first = base.get();
    }
    return first;
}

EngineCore::Lanes::iterator EngineCore::next_training() {
    auto const ready = [this](Lane const& lane) {
        if (lane.running) return true;
        if (lane.waiting.empty()) return false;
        auto const& head = *lane.waiting.front();
        // Its model may still have to be loaded.
        if (auto const name = model_needed(head); !name.empty()) {
            auto const loading = lanes_.find("model " + std::string(name));
            if (loading != lanes_.end() && std::ranges::any_of(loading->second.waiting, loads)) {
                return false;
            }
        }
        // A step changes weights that running samples still read.
        return lane.sampling == 0 || !steps(head);
    };
    for (auto at = lanes_.upper_bound(last_lane_); at != lanes_.end(); ++at) {
        if (ready(at->second)) return at;
    }
    return std::ranges::find_if(lanes_, [&](auto const& entry) { return ready(entry.second); });
}

bool EngineCore::sample_slice() {
    auto const begin = options_.clock();
    auto* const base = next_sampling();
    last_base_ = base->name;
    auto const before = base->sampler->computed();
    bool const worked = base->sampler->step();
    tokens_ += base->sampler->computed() - before;
    share_.ran(WorkKind::sampling, options_.clock() - begin);
    return worked;
}

void EngineCore::train_slice(Lanes::iterator at) {
    mark_ = options_.clock();
    last_lane_ = at->first;
    auto& lane = at->second;
    if (!lane.running) {
        auto const entry = lane.waiting.front();
        lane.waiting.pop_front();
        begin_job(lane, entry);
        changed_ = true;
    }
    if (lane.running) continue_run(lane);
    forget_if_idle(lanes_.find(last_lane_));
    share_.ran(WorkKind::training, options_.clock() - mark_);
}

void EngineCore::pause() {
    auto const now = options_.clock();
    share_.ran(WorkKind::training, now - mark_);
    options_.intake();
    start_samples();
    while (share_.next(next_sampling() != nullptr, true) == WorkKind::sampling) {
        if (!sample_slice()) break;
        options_.intake();
        start_samples();
    }
    mark_ = options_.clock();
}

void EngineCore::begin_job(Lane& lane, JobPtr const& entry) {
    std::visit(
        [&](auto& ticket) {
            using Job = JobOf<decltype(ticket)>;
            auto& job = ticket.job;
            try {
                if constexpr (is_training<Job>) {
                    auto* base = lane.base;
                    if constexpr (std::is_same_v<Job, Forward>) {
                        auto const named = check_names("forward", job.adapter, job.model);
                        if (!named) return tell<Job>(entry, named.error());
                        if (job.adapter.empty()) {
                            auto const found = base_named(job.model, "forward");
                            if (!found) return tell<Job>(entry, found.error());
                            base = *found;
                        }
                    }
                    constexpr bool backward = std::is_same_v<Job, ForwardBackward>;
                    if (lane.adapter == nullptr && (backward || !job.adapter.empty())) {
                        return tell<Job>(entry, unknown_adapter(Job::operation, job.adapter));
                    }
                    auto run = base->trainer->begin(lane.adapter.get(),
                                                    backward ? lane.adapter.get() : nullptr,
                                                    job.data, job.loss);
                    if (!run) return tell<Job>(entry, run.error());
                    lane.base = base;
                    lane.running.emplace(Running{entry, std::move(*run), backward});
                } else if constexpr (!std::is_same_v<Job, Sample>) {
                    tell<Job>(entry, run(lane, job));
                }
            } catch (std::exception const& e) {
                tell<Job>(entry, failed<Job>(e));
            }
        },
        entry->ticket);
}

void EngineCore::continue_run(Lane& lane) {
    auto& running = *lane.running;
    auto const entry = running.entry;
    bool const backward = running.backward;
    // Half of a batch's gradients cannot be taken back; a forward leaves nothing behind.
    if (entry->cancelled && !backward) return lane.running.reset();
    auto const before = running.run.tokens();
    running.run.advance(lane.base->slice);
    tokens_ += running.run.tokens() - before;
    if (!running.run.done()) return;
    auto result = running.run.take();
    lane.running.reset();
    if (backward) {
        tell<ForwardBackward>(entry, std::move(result));
    } else {
        tell<Forward>(entry, std::move(result));
    }
}

Result<EngineCore::Base*> EngineCore::base_named(std::string const& name, std::string_view what) {
    auto const found = bases_.find(name);
    if (found != bases_.end()) return found->second.get();
    std::string known;
    for (auto const& [other, base] : bases_) known += (known.empty() ? "" : ", ") + other;
    return invalid(std::string(what) + ": there is no base model " + name + "; loaded are " +
                       (known.empty() ? "none" : known),
                   "base_model");
}

Result<ModelInfo> EngineCore::run(Lane& /*lane*/, LoadModel& job) {
    if (bases_.contains(job.model)) {
        return invalid("load model: there is a base model " + job.model + " already", "base_model");
    }
    auto model = job.ready;
    if (model == nullptr) {
        auto loaded = Model::load(job.folder, &threads_);
        if (!loaded) return loaded.error();
        model = *std::move(loaded);
    }
    if (!job.token_bytes && !job.folder.empty()) {
        auto said = read_token_bytes(job.folder);
        if (!said) return said.error();
        job.token_bytes = *std::move(said);
    }
    auto base = std::make_unique<Base>();
    base->name = job.model;
    base->model = model;
    base->trainer = std::make_unique<Trainer>(model, threads_, options_.train);
    auto sampler = options_.sampler;
    bool const large = model->bytes() > (std::size_t{64} << 20U);
    if (!large) {
        // Its weights are read in no time, so that shorter steps cost little, and nobody waits long
        // for one to end.
        sampler.prefill_tokens = std::min<std::size_t>(sampler.prefill_tokens, 128);
        sampler.decode_tokens = std::min<std::size_t>(sampler.decode_tokens, 64);
    }
    sampler.token_bytes = job.token_bytes;
    base->sampler = std::make_unique<Sampler>(model, threads_, std::move(sampler));
    // One piece of a small model on each thread. A piece of a large one takes long: all threads
    // share it, and sampling gets its turns between its layers.
    base->slice = large ? 1 : threads_.count();
    ModelInfo info{.config = model->config(),
                   .bytes = model->bytes(),
                   .has_token_bytes = static_cast<bool>(job.token_bytes)};
    bases_[job.model] = std::move(base);
    return info;
}

Result<AdapterInfo> EngineCore::run(Lane& lane, CreateAdapter& job) {
    if (lane.adapter != nullptr) {
        return invalid("create adapter: there is an adapter " + job.adapter + " already",
                       "model_id");
    }
    auto const base = base_named(job.model, "create adapter");
    if (!base) return base.error();
    auto adapter = Adapter::create((*base)->model, job.config);
    if (!adapter) return adapter.error();
    lane.adapter = *std::move(adapter);
    lane.base = *base;
    return info_of(job.model, *lane.adapter);
}

Result<AdapterInfo> EngineCore::run(Lane& lane, LoadAdapter& job) {
    auto const base = base_named(job.model, "load adapter");
    if (!base) return base.error();
    auto adapter = load_adapter((*base)->model, job.folder, job.state);
    if (!adapter) return adapter.error();
    lane.adapter = *std::move(adapter);
    lane.base = *base;
    return info_of(job.model, *lane.adapter);
}

Result<AdapterInfo> EngineCore::run(Lane& lane, CopyAdapter& job) {
    if (lane.adapter == nullptr) return unknown_adapter("copy adapter", job.adapter);
    auto const name = "adapter " + job.to;
    auto const known = lanes_.find(name);
    if (known != lanes_.end() && known->second.adapter != nullptr) {
        return invalid("copy adapter: there is an adapter " + job.to + " already", "model_id");
    }
    auto& to = lanes_[name];
    to.adapter = lane.adapter->copy();
    to.base = lane.base;
    return info_of(lane.base->name, *to.adapter);
}

Result<void> EngineCore::run(Lane& lane, SaveAdapter& job) {
    if (lane.adapter == nullptr) return unknown_adapter("save adapter", job.adapter);
    return save_adapter(job.folder, *lane.adapter, lane.base->name, job.state);
}

Result<void> EngineCore::run(Lane& lane, DropAdapter& job) {
    if (lane.adapter == nullptr) return unknown_adapter("drop adapter", job.adapter);
    lane.adapter.reset();
    return {};
}

Result<StepResult> EngineCore::run(Lane& lane, OptimStep& job) {
    if (lane.adapter == nullptr) return unknown_adapter("optim_step", job.adapter);
    return optim_step(*lane.adapter, job.params, &threads_);
}

}  // namespace tinkxx::engine
