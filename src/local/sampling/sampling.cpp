#include "local/sampling/sampling.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "wire/server/answers.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

namespace {

/// Answers that a sample was accepted, or why it was not.
auto accepted_reply(std::string id, std::int64_t count, std::shared_ptr<Answer> answer) {
    return [id = std::move(id), count, answer = std::move(answer)](Result<void> const& accepted) {
        if (!accepted) return send_refusal(*answer, not_written("asample", accepted.error()));
        send_json(*answer, json_object([&](JsonOut& json) {
            json.member("request_id", id);
            json.key("sample_sequence_ids");
            json.open_array();
            for (std::int64_t i = 0; i < count; ++i) json.value(id + ":" + std::to_string(i));
            json.close_array();
        }));
    };
}

}  // namespace

// Requests --------------------------------------------------------------------------------------

MaybeRefused Sampling::read(Ask& ask,
                            tinkxx::detail::UniqueFunction<MaybeRefused(Ask&, SampleRead)> then) {
    auto& services = uses_.services;
    return services.bodies.read(
        ask, services.bodies.most_bytes(ask),
        [operation = std::string{ask.operation}, positions = uses_.bases.most_positions(),
         cells = services.options.limits.result_cells,
         wall = services.scheduler.wall()](std::string body) -> Result<SampleRead> {
            auto request = ws::decode_sample(operation, body);
            if (!request) return request.error();
            auto read = understand(operation, positions, cells, *std::move(request));
            auto const& numbered = read.request;
            if (operation == "asample" && numbered.sampling_session_id && numbered.seq_id) {
                auto const& owner = *numbered.sampling_session_id;
                read.row = encode(RequestRow{.id = owner + ":" + std::to_string(*numbered.seq_id),
                                             .owner = owner,
                                             .form = "sample",
                                             .state = "pending",
                                             .at = wall,
                                             .body = std::move(body)});
            } else {
                read.body = std::move(body);
            }
            return read;
        },
        std::move(then));
}

Outcome<SampleSource> Sampling::source_of_sampler(std::string_view operation,
                                                  std::string const& sampler) {
    auto const* const row = uses_.samplers.find(sampler);
    if (row == nullptr) {
        return Refused{404, std::string{operation} + ": there is no sampler " +
                                sampler.substr(0, 200) + "; create a sampling session first"};
    }
    auto const owner = uses_.sessions.active(operation, row->session);
    if (!owner) return owner.refused();
    SampleSource source{.session = row->session};
    if (!row->folder.empty()) {
        source.weights = uses_.weights.add({.base = row->base_model,
                                            .folder = row->folder,
                                            .training = row->training,
                                            .files = row->files,
                                            .name = "of sampler " + row->id});
    } else if (row->model_path) {
        auto const saved = uses_.checkpoints.find(operation, *row->model_path);
        if (!saved) return saved.refused();
        source.weights = uses_.weights.add(**saved);
    }
    auto const base = uses_.bases.find(operation, row->base_model);
    if (!base) return base.refused();
    source.base = *base;
    return source;
}

Outcome<SampleSource> Sampling::source_of(std::string_view operation, ws::Sample const& request) {
    if (request.sampling_session_id) {
        return source_of_sampler(operation, *request.sampling_session_id);
    }
    SampleSource source;
    std::string base_name;
    if (request.model_path) {
        auto const saved = uses_.checkpoints.find(operation, *request.model_path);
        if (!saved) return saved.refused();
        base_name = (*saved)->base_model;
        source.weights = uses_.weights.add(**saved);
    } else if (request.base_model) {
        base_name = *request.base_model;
    } else {
        return Refused{
            400, std::string{operation} + ": give sampling_session_id, base_model or model_path"};
    }
    auto const base = uses_.bases.find(operation, base_name);
    if (!base) return base.refused();
    source.base = *base;
    return source;
}

Outcome<Sampling::Job> Sampling::prepare(std::string_view operation, SampleRead read) {
    if (!read.refusal.empty()) return Refused{400, read.refusal};
    auto const source = source_of(operation, read.request);
    if (!source) return source.refused();
    return prepare_sample(
        operation, std::move(read), *source, uses_.services.options.limits,
        [this] { return uses_.services.scheduler.entropy("local server sample"); });
}

MaybeRefused Sampling::admit(std::string_view operation, SampleJob const& sample) const {
    auto const what = std::string{operation} + ": ";
    auto const& limits = uses_.services.options.limits;
    auto const pending = std::max(uses_.services.results->pending_samples(), pending_.size());
    auto const share = shares_.find(sample.session);
    auto const mine = share == shares_.end() ? std::size_t{0} : share->second;
    // A session with many pending samples gets no more than half of what is free.
    constexpr std::size_t always = 64;
    auto const free = limits.pending_samples - std::min(pending, limits.pending_samples);
    if (free == 0 || (mine >= always && mine >= free)) {
        return Refused{429,
                       what + std::to_string(pending) + " samples are pending, " +
                           std::to_string(mine) + " of them of this session, and the limit is " +
                           std::to_string(limits.pending_samples) + "; wait for some of them",
                       std::chrono::milliseconds{1000}};
    }
    if (bytes_ > 0 && bytes_ + sample.bytes > limits.pending_sample_bytes) {
        return Refused{429,
                       what + "samples that are pending need " + std::to_string(bytes_) +
                           " bytes, this one " + std::to_string(sample.bytes) +
                           ", and the limit is " + std::to_string(limits.pending_sample_bytes) +
                           "; wait for some of them",
                       std::chrono::milliseconds{1000}};
    }
    return {};
}

MaybeRefused Sampling::asample(Ask& ask) {
    return read(ask,
                [this](Ask& asked, SampleRead read) { return submit(asked, std::move(read)); });
}

MaybeRefused Sampling::submit(Ask& ask, SampleRead read) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto& services = uses_.services;
    auto const& request = read.request;
    if (auto no = services.check_accepting("asample")) return no;
    if (request.sampling_session_id && !request.seq_id) {
        return Refused{400, "asample: seq_id is missing, by which a repeat is recognised"};
    }
    bool const numbered = request.sampling_session_id && request.seq_id;
    auto const owner = numbered ? *request.sampling_session_id : std::string{"direct"};
    auto const id =
        owner + ":" + (numbered ? std::to_string(*request.seq_id) : services.fresh_id());
    auto const reply = accepted_reply(id, request.options.num_samples, ask.answer);
    auto const print = read.print;
    if (services.results->contains(id)) {
        auto const known = prints_.find(id);
        if (known != prints_.end() && known->second != print) {
            return Refused{409, "asample: the seq_id " + std::to_string(*request.seq_id) +
                                    " of sampler " + owner + " was reused for another request"};
        }
        services.results->when_accepted(id, reply);
        return {};
    }
    auto const clone = request.seq_id.value_or(0) / clone_stride;
    auto row = std::move(read.row);
    if (!numbered) {
        row = encode(RequestRow{.id = id,
                                .owner = owner,
                                .form = "sample",
                                .state = "pending",
                                .at = services.scheduler.wall(),
                                .body = std::move(read.body)});
    }
    auto const sample = prepare("asample", std::move(read));
    if (!sample) return sample.refused();
    if (auto no = admit("asample", **sample)) return no;
    (*sample)->id = id;
    prints_[id] = print;
    services.counters.add("tinkxx_sample_requests_total", {});
    begin(**sample);
    // What was acknowledged is computed even if the server has to be started anew.
    services.results->add_sample(id, owner, clone, std::move(row),
                                 [this, id, reply](Result<void> const& written) {
                                     if (!written) cancel(id);
                                     reply(written);
                                 });
    compute(*sample);
    return {};
}

MaybeRefused Sampling::cancel_future(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_text("cancel_future", body, "request_id"); },
        [this](Ask& asked, std::string const& id) -> MaybeRefused {
            auto& results = *uses_.services.results;
            if (!pending_.contains(id)) {
                if (!results.contains(id) && !results.plausible(id)) {
                    return Refused{404, "cancel_future: there is no request " + id.substr(0, 200)};
                }
                if (!results.pending_sample(id)) {
                    send_json(*asked.answer, "{}");  // done already
                    return {};
                }
            }
            cancel(id);
            uses_.services.counters.add("tinkxx_samples_cancelled_total", {});
            results.fail(id, "the sample was cancelled by its client", ErrorCategory::user,
                         [answer = asked.answer](Result<void> const& written) {
                             if (written) return send_json(*answer, "{}");
                             send_refusal(*answer, not_written("cancel_future", written.error()));
                         });
            return {};
        });
}

// What is pending -------------------------------------------------------------------------------

void Sampling::begin(SampleJob const& sample) {
    pending_[sample.id] = {
        .weights = sample.weights, .session = sample.session, .bytes = sample.bytes};
    bytes_ += sample.bytes;
    ++shares_[sample.session];
}

void Sampling::end(std::string const& id) {
    auto const at = pending_.find(id);
    if (at == pending_.end()) return;
    bytes_ -= at->second.bytes;
    auto const share = shares_.find(at->second.session);
    if (--share->second == 0) shares_.erase(share);
    pending_.erase(at);
}

void Sampling::cancel(std::string const& id) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const found = pending_.find(id);
    if (found == pending_.end()) return;
    auto const sample = found->second;
    end(id);
    if (!sample.job) return;  // whoever loads its weights sees that it is gone
    uses_.services.engine->cancel(*sample.job);
    // Its callback, which would have released the weights, is not called any more.
    uses_.weights.release(sample.weights);
}

std::optional<QueueNote> Sampling::why_waiting(std::string const& id) const {
    auto const found = pending_.find(id);
    if (found == pending_.end() || found->second.job) return std::nullopt;
    if (!uses_.weights.starved(found->second.weights)) return std::nullopt;
    return QueueNote{"paused_capacity",
                     "the memory for adapters is in use; waiting for other samples to end"};
}

void Sampling::resume(std::vector<RequestRow> rows) {
    unfinished_ = std::move(rows);
    resume_some();
}

void Sampling::resume_some() {
    // There may be thousands, and others have to be served meanwhile.
    constexpr std::size_t in_a_turn = 16;
    auto& services = uses_.services;
    for (std::size_t i = 0; i < in_a_turn && !unfinished_.empty(); ++i) {
        auto row = std::move(unfinished_.back());
        unfinished_.pop_back();
        if (row.body.size() <= Bodies::on_loop) {
            resume(row.id, ws::decode_sample("asample", row.body));
            continue;
        }
        auto const read = std::make_shared<std::optional<Result<ws::Sample>>>();
        auto const id = row.id;
        services.bodies.reader(row.body.size())
            .run([read, body = std::move(
                            row.body)] { read->emplace(ws::decode_sample("asample", body)); },
                 [this, read, id] { resume(id, *std::move(*read)); });
    }
    if (unfinished_.empty()) return;
    services.scheduler.post([this, alive = services.alive] {
        if (*alive) resume_some();
    });
}

void Sampling::resume(std::string const& id, Result<ws::Sample> decoded) {
    auto& results = *uses_.services.results;
    if (!results.pending_sample(id)) return;  // cancelled before its turn
    auto const no = decoded ? compute_again(id, *std::move(decoded))
                            : MaybeRefused{Refused{422, decoded.error().what()}};
    if (no) results.fail(id, no->detail, ErrorCategory::user);
}

MaybeRefused Sampling::compute_again(std::string const& id, ws::Sample request) {
    auto read = understand("asample", std::numeric_limits<std::size_t>::max(),
                           uses_.services.options.limits.result_cells, std::move(request));
    prints_[id] = read.print;
    auto const sample = prepare("asample", std::move(read));
    if (!sample) return sample.refused();
    (*sample)->id = id;
    begin(**sample);
    compute(*sample);
    return {};
}

// The steps of a sample -------------------------------------------------------------------------

void Sampling::compute(Job const& sample) {
    if (sample->weights.empty()) return submit_to_engine(sample);
    uses_.weights.load(sample->weights, [this, sample](Result<void> const& there) {
        if (!there) return fail(sample, there.error());
        uses_.weights.use(sample->weights);
        sample->holds = true;
        submit_to_engine(sample);
    });
}

void Sampling::submit_to_engine(Job const& sample) {
    auto const found = pending_.find(sample->id);
    if (found == pending_.end()) return release(sample);  // cancelled meanwhile
    auto request = sample->ask;
    request.party = sample->session.empty() ? "direct" : sample->session;
    if (sample->on_token) request.on_token = sample->on_token;
    engine::Sample job{.request = std::move(request)};
    sample->name_weights(job);
    found->second.job = uses_.services.engine->submit(
        std::move(job), [this, sample](Result<engine::SampleResult> result) {
            if (!result) return fail(sample, result.error());
            sampled(sample, *std::move(result));
        });
}

void Sampling::sampled(Job const& sample, engine::SampleResult result) {
    for (auto const& sequence : result.sequences) sample->sampled_tokens += sequence.tokens.size();
    sample->cached_tokens = result.cached_tokens;
    sample->result = std::move(result);
    score_targets(sample);
}

void Sampling::score_targets(Job const& sample) {
    if (!sample->targets) return score_samples(sample, 0);
    auto const found = pending_.find(sample->id);
    if (found == pending_.end()) return release(sample);
    engine::Forward job{.data = {sample->targets->datum(sample->ask.prompt)}};
    sample->name_weights(job);
    found->second.job = uses_.services.engine->submit(
        std::move(job), [this, sample](Result<engine::BatchResult> result) {
            if (!result) return fail(sample, result.error());
            sample->target_logprobs = std::move(result->outputs.at(0).logprobs);
            score_samples(sample, 0);
        });
}

// The likeliest tokens beside those that were sampled: the sample is read once more as a prompt,
// whose log-probabilities are those of sampling it, to the last bit.
void Sampling::score_samples(Job const& sample, std::size_t index) {
    auto const k = sample->options.topk_sample_logprobs;
    auto const& sequences = sample->result.sequences;
    if (k == 0 || index >= sequences.size()) return finish(sample);
    auto const found = pending_.find(sample->id);
    if (found == pending_.end()) return release(sample);
    engine::Sample job;
    auto& request = job.request;
    request.prompt = sample->ask.prompt;
    auto const& tokens = sequences[index].tokens;
    request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
    request.topk_prompt_logprobs = static_cast<std::size_t>(k);
    sample->name_weights(job);
    found->second.job = uses_.services.engine->submit(
        std::move(job), [this, sample, index](Result<engine::SampleResult> result) {
            if (!result) return fail(sample, result.error());
            sample->topk.push_back(std::move(result->topk_prompt_logprobs));
            score_samples(sample, index + 1);
        });
}

void Sampling::finish(Job const& sample) {
    if (sample->on_done) return keep(sample, {});
    if (sample->bytes <= Results::on_loop) {
        return keep(sample, ws::encode_sample_proto(sample->response()));
    }
    auto const found = pending_.find(sample->id);
    if (found == pending_.end()) return release(sample);
    // If it is cancelled now, the callback below releases its weights.
    found->second.job.reset();
    auto const payload = std::make_shared<std::string>();
    uses_.services.result_worker->run(
        [sample, payload] { *payload = ws::encode_sample_proto(sample->response()); },
        [this, sample, payload] {
            if (!pending_.contains(sample->id)) return release(sample);
            keep(sample, std::move(*payload));
        });
}

void Sampling::keep(Job const& sample, std::string payload) {
    auto& services = uses_.services;
    std::vector<Change> changes;
    auto const prompt = sample->ask.prompt.size();
    auto const count = [&](std::string_view type, bool cached, std::size_t tokens) {
        uses_.usage.count_tokens(changes,
                                 {.session = sample->session,
                                  .base_model = sample->base,
                                  .type = type,
                                  .cached = cached},
                                 tokens);
    };
    count("sampling_prefill", false, prompt - sample->cached_tokens);
    count("sampling_prefill", true, sample->cached_tokens);
    count("sampling_sample", false, sample->sampled_tokens);
    services.counters.add("tinkxx_prompt_tokens_total", {}, prompt);
    services.counters.add("tinkxx_sampled_tokens_total", {}, sample->sampled_tokens);
    end(sample->id);
    release(sample);
    if (sample->on_done) {
        services.store->write(std::move(changes));
        return sample->on_done({});
    }
    services.results->complete(sample->id, std::move(payload), std::move(changes));
}

void Sampling::fail(Job const& sample, Error const& error) {
    end(sample->id);
    release(sample);
    uses_.services.counters.add("tinkxx_requests_failed_total", {});
    if (sample->on_done) return sample->on_done(error);
    uses_.services.results->fail(sample->id, error.what(), error.category());
}

void Sampling::release(Job const& sample) {
    if (std::exchange(sample->holds, false)) uses_.weights.release(sample->weights);
}

}  // namespace tinkxx::local
