#include "engine/memory.hpp"
#include "local/core/core.hpp"
#include "local/core/data.hpp"
#include "local/core/internals.hpp"
#include "local/core/json.hpp"
#include "local/core/sampled.hpp"
#include "wire/server_answers.hpp"

#include <algorithm>
#include <cmath>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

// Samplers --------------------------------------------------------------------------------------

void Core::create_sampling_session(Ask& ask) {
    auto const request = good(ws::decode_create_sampling_session(body_of(ask)), 422);
    auto& owner = session("create_sampling_session", request.session_id);
    auto const id = owner.row.id + ":sample:" + std::to_string(request.sampling_session_seq_id);
    SamplerRow row{.id = id, .session = owner.row.id, .created = scheduler_.wall()};
    if (request.model_path) {
        auto const& saved = checkpoint("create_sampling_session", *request.model_path);
        if (request.base_model && *request.base_model != saved.base_model) {
            throw Refused{400, "create_sampling_session: " + *request.model_path + " belongs to " +
                                   saved.base_model + ", not to " +
                                   request.base_model->substr(0, 200)};
        }
        row.base_model = saved.base_model;
        row.model_path = saved.path.text();
    } else if (request.base_model) {
        row.base_model = base("create_sampling_session", *request.base_model).source.name;
    } else {
        throw Refused{400, "create_sampling_session: give base_model or model_path"};
    }
    auto const reply = [id](Answer& answer) {
        send_json(answer, json_object([&](JsonOut& json) {
                      json.member("sampling_session_id", id);
                      json.member("type", "create_sampling_session");
                  }));
    };
    if (auto const known = samplers_.find(id); known != samplers_.end()) {
        if (known->second.base_model == row.base_model &&
            known->second.model_path == row.model_path && known->second.folder.empty()) {
            return reply(*ask.answer);
        }
        throw Refused{409, "create_sampling_session: there is a sampler " + id +
                               " already, of other weights"};
    }
    samplers_[id] = row;
    store_->write({{Table::sampler, id, encode(row)}},
                  [reply, answer = ask.answer](Result<void> const& written) {
                      if (written) return reply(*answer);
                      send_refusal(*answer, {500, std::string{"create_sampling_session: "} +
                                                      written.error().what()});
                  });
}

void Core::join_sampling_session(Ask& ask) {
    auto const id =
        good(ws::decode_text("join_sampling_session", body_of(ask), "sampling_session_id"), 422);
    auto const found = samplers_.find(id);
    if (found == samplers_.end()) {
        throw Refused{404, "join_sampling_session: there is no sampler " + id.substr(0, 200)};
    }
    touch_session(found->second.session);
    auto const counter = ++found->second.clones;
    store_->write({{Table::sampler, id, encode(found->second)}},
                  [counter, answer = ask.answer](Result<void> const& /*written*/) {
                      send_json(*answer, json_object([&](JsonOut& json) {
                          json.member("client_counter", counter);
                          json.member("type", "join_sampling_session");
                      }));
                  });
}

void Core::get_sampler(Ask& ask) {
    auto const& id = ask.names.at(0);
    auto const found = samplers_.find(id);
    if (found == samplers_.end()) {
        throw Refused{404, "samplers: there is no sampler " + id.substr(0, 200)};
    }
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("sampler_id", id);
        json.member("base_model", found->second.base_model);
        nullable(json, "model_path", found->second.model_path);
    }));
}

// Requests --------------------------------------------------------------------------------------

std::shared_ptr<Core::Sampled> Core::prepare(std::string_view operation,
                                             ws::Sample const& request) {
    auto const what = std::string{operation} + ": ";
    auto sample = std::make_shared<Sampled>();
    auto& ask = sample->ask;

    // Whose weights.
    std::string base_name;
    if (request.sampling_session_id) {
        auto const found = samplers_.find(*request.sampling_session_id);
        if (found == samplers_.end()) {
            throw Refused{404, what + "there is no sampler " +
                                   request.sampling_session_id->substr(0, 200) +
                                   "; create a sampling session first"};
        }
        auto const& row = found->second;
        session(operation, row.session);
        sample->session = row.session;
        base_name = row.base_model;
        if (!row.folder.empty()) {
            auto& drawn = drawn_[row.folder];
            drawn.base = row.base_model;
            drawn.folder = row.folder;
            drawn.training = row.training;
            sample->weights = row.folder;
        } else if (row.model_path) {
            auto const& saved = checkpoint(operation, *row.model_path);
            (void)drawn_of(saved);
            sample->weights = saved.folder;
        }
    } else if (request.model_path) {
        auto const& saved = checkpoint(operation, *request.model_path);
        base_name = saved.base_model;
        (void)drawn_of(saved);
        sample->weights = saved.folder;
    } else if (request.base_model) {
        base_name = *request.base_model;
    } else {
        throw Refused{400, what + "give sampling_session_id, base_model or model_path"};
    }
    auto const& base = this->base(operation, base_name);
    sample->base = base.source.name;
    auto const vocabulary = static_cast<std::int64_t>(base.config.vocab_size);
    auto const positions = static_cast<std::size_t>(base.config.max_positions);

    // The prompt.
    auto tokens = tokens_of(operation, request.prompt);
    if (!tokens) throw Refused{400, tokens.error().what()};
    ask.prompt = *std::move(tokens);
    if (ask.prompt.empty()) throw Refused{400, what + "the prompt has no tokens"};
    auto const strange =
        std::ranges::find_if(ask.prompt, [&](Token t) { return t < 0 || t >= vocabulary; });
    if (strange != ask.prompt.end()) {
        throw Refused{400, what + "the prompt has the token " + std::to_string(*strange) +
                               ", and the vocabulary of " + sample->base + " goes to " +
                               std::to_string(vocabulary - 1)};
    }
    auto const length = ask.prompt.size();
    auto const most = options_.limits.prompt_tokens;
    if (most != 0 && length > most) {
        throw Refused{400, what + "the prompt has " + std::to_string(length) +
                               " tokens, and the limit of this server is " + std::to_string(most)};
    }

    // How much.
    auto const& options = request.options;
    auto const& params = request.params;
    if (options.num_samples < 1 ||
        static_cast<std::size_t>(options.num_samples) > options_.limits.num_samples) {
        throw Refused{400, what + "num_samples is " + std::to_string(options.num_samples) +
                               "; it must be from 1 to " +
                               std::to_string(options_.limits.num_samples)};
    }
    ask.num_samples = static_cast<std::size_t>(options.num_samples);
    if (params.max_tokens && *params.max_tokens < 1) {
        throw Refused{400, what + "max_tokens is " + std::to_string(*params.max_tokens) +
                               "; it must be at least 1"};
    }
    // The last token is not fed back, unless it is scored again.
    auto const room = positions + (options.topk_sample_logprobs > 0 ? 0 : 1);
    if (length >= room ||
        (params.max_tokens && static_cast<std::uint64_t>(*params.max_tokens) > room - length)) {
        auto const wanted = params.max_tokens.value_or(1);
        throw Refused{400, what + "prompt length plus max_tokens exceeds the context window of " +
                               sample->base + ": " + std::to_string(length) + " prompt tokens + " +
                               std::to_string(wanted) + " max_tokens > " +
                               std::to_string(positions)};
    }
    ask.max_tokens =
        params.max_tokens ? static_cast<std::size_t>(*params.max_tokens) : room - length;

    // How.
    if (!(params.temperature >= 0) || !std::isfinite(params.temperature)) {
        throw Refused{400, what + "temperature must be a number of at least 0"};
    }
    if (!(params.top_p >= 0 && params.top_p <= 1)) {
        throw Refused{400, what + "top_p must be from 0 to 1"};
    }
    if (params.top_k < -1 || params.top_k == 0) {
        throw Refused{400, what + "top_k must be at least 1, or -1 for no limit"};
    }
    ask.filter = {.temperature = params.temperature, .top_k = params.top_k, .top_p = params.top_p};
    ask.seed = params.seed ? *params.seed : scheduler_.entropy("local server sample");

    // Where it ends.
    auto const& stop = params.stop.value();
    if (!std::holds_alternative<Stop::Nowhere>(stop)) {
        ask.stop_tokens.assign(base.config.eos_tokens.begin(), base.config.eos_tokens.end());
    }
    if (auto const* text = std::get_if<std::string>(&stop)) ask.stop_strings = {*text};
    if (auto const* texts = std::get_if<std::vector<std::string>>(&stop)) {
        ask.stop_strings = *texts;
    }
    if (auto const* ids = std::get_if<std::vector<Token>>(&stop)) {
        ask.stop_tokens.insert(ask.stop_tokens.end(), ids->begin(), ids->end());
    }
    if (!ask.stop_strings.empty() && !base.source.byte_level) {
        throw Refused{400, what + "stop texts need the tokenizer of " + sample->base +
                               ", which this server does not have; stop at token ids"};
    }
    if (std::ranges::any_of(ask.stop_strings, &std::string::empty)) {
        throw Refused{400, what + "a stop text is empty"};
    }

    // What beside it.
    auto const k_fits = [&](std::int64_t k, std::string_view name) {
        if (k >= 0 && k <= vocabulary) return;
        throw Refused{400, what + std::string{name} + " is " + std::to_string(k) +
                               "; it must be from 0 to the vocabulary's " +
                               std::to_string(vocabulary)};
    };
    k_fits(options.topk_prompt_logprobs, "topk_prompt_logprobs");
    k_fits(options.topk_sample_logprobs, "topk_sample_logprobs");
    if (options.prompt_alt_tokens_k != 0) {
        throw Refused{400, what +
                               "prompt_alt_tokens_k is not supported by a local server; leave "
                               "it 0"};
    }
    if (request.record_stability_info) {
        throw Refused{400, what +
                               "record_stability_info is not supported by a local server, "
                               "which does not know the loss stable_reinforce"};
    }
    if (options.prompt_logprobs_last_n) {
        auto const n = *options.prompt_logprobs_last_n;
        if (!options.include_prompt_logprobs || n < 1 ||
            static_cast<std::uint64_t>(n) > length - 1) {
            throw Refused{400, what + "prompt_logprobs_last_n is " + std::to_string(n) +
                                   "; it must be from 1 to " + std::to_string(length - 1) +
                                   ", and needs prompt_logprobs"};
        }
    }
    ask.prompt_logprobs = options.include_prompt_logprobs;
    ask.topk_prompt_logprobs = static_cast<std::size_t>(options.topk_prompt_logprobs);
    sample->options = options;
    if (options.target_prompt_logprobs) {
        auto targets = read_targets(*options.target_prompt_logprobs, length, vocabulary);
        if (!targets) throw Refused{400, what + targets.error().what()};
        sample->targets = *std::move(targets);
    }
    return sample;
}

void Core::asample(Ask& ask) {
    auto body = body_of(ask);
    auto const request = good(ws::decode_sample("asample", body), 422);
    if (!accepting()) throw Refused{503, "asample: the server is stopping"};
    if (request.sampling_session_id && !request.seq_id) {
        throw Refused{400, "asample: seq_id is missing, by which a repeat is recognised"};
    }
    if (request.seq_id && *request.seq_id < 0) {
        throw Refused{400, "asample: seq_id is " + std::to_string(*request.seq_id) +
                               "; it must not be negative"};
    }
    bool const numbered = request.sampling_session_id && request.seq_id;
    auto const owner = numbered ? *request.sampling_session_id : std::string{"direct"};
    auto const id = owner + ":" + (numbered ? std::to_string(*request.seq_id) : fresh_id());
    auto const reply = [id, count = request.options.num_samples](Answer& answer) {
        send_json(answer, json_object([&](JsonOut& json) {
                      json.member("request_id", id);
                      json.key("sample_sequence_ids");
                      json.open_array();
                      for (std::int64_t i = 0; i < count; ++i)
                          json.value(id + ":" + std::to_string(i));
                      json.close_array();
                  }));
    };
    auto const print = print_of(request);
    if (futures_->contains(id)) {
        auto const known = sample_prints_.find(id);
        if (known == sample_prints_.end() || known->second == print) return reply(*ask.answer);
        throw Refused{409, "asample: the seq_id " + std::to_string(*request.seq_id) +
                               " of sampler " + owner + " was reused for another request"};
    }
    if (futures_->pending_samples() >= options_.limits.pending_samples) {
        throw Refused{429,
                      "asample: " + std::to_string(futures_->pending_samples()) +
                          " samples are pending, which is the limit; wait for some of them",
                      std::chrono::milliseconds{1000}};
    }
    auto sample = prepare("asample", request);
    sample->id = id;
    sample_prints_[id] = print;
    counters_.add("tinkxx_sample_requests_total", {});
    // What was acknowledged is computed even if the server has to be started anew.
    futures_->add_sample(
        id, owner, request.seq_id.value_or(0) / clone_stride, std::move(body),
        [reply, answer = ask.answer](Result<void> const& /*written*/) { reply(*answer); });
    drawings_[id] = {.owner = owner, .weights = sample->weights};
    draw(sample);
}

void Core::resume_sample(std::string const& id, std::string const& body) {
    try {
        auto const request = good(ws::decode_sample("asample", body), 422);
        auto sample = prepare("asample", request);
        sample->id = id;
        sample_prints_[id] = print_of(request);
        drawings_[id] = {.owner = request.sampling_session_id.value_or(std::string{"direct"}),
                         .weights = sample->weights};
        draw(sample);
    } catch (Refused const& refused) {
        futures_->fail(id, refused.detail, ErrorCategory::user);
    }
}

void Core::draw(std::shared_ptr<Sampled> const& sample) {
    auto const submit = [this, sample] {
        auto const found = drawings_.find(sample->id);
        if (found == drawings_.end()) return release_sample(sample);  // cancelled meanwhile
        auto request = sample->ask;
        if (sample->on_token) request.on_token = sample->on_token;
        engine::Sample job{.request = std::move(request)};
        (sample->weights.empty() ? job.model : job.adapter) =
            sample->weights.empty() ? sample->base : sample->weights;
        found->second.job =
            engine_->submit(std::move(job), [this, sample](Result<engine::SampleResult> result) {
                if (!result) return fail_sample(sample, result.error());
                drawn(sample, *std::move(result));
            });
    };
    if (sample->weights.empty()) return submit();
    with_weights(sample->weights, [this, sample, submit](Result<void> const& there) {
        if (!there) return fail_sample(sample, there.error());
        ++drawn_.at(sample->weights).active;
        sample->holds = true;
        submit();
    });
}

void Core::drawn(std::shared_ptr<Sampled> const& sample, engine::SampleResult result) {
    auto& response = sample->response;
    auto const first = sample->options.prompt_logprobs_last_n
                           ? sample->ask.prompt.size() -
                                 static_cast<std::size_t>(*sample->options.prompt_logprobs_last_n)
                           : std::size_t{1};
    for (auto& sequence : result.sequences) {
        sample->drawn_tokens += sequence.tokens.size();
        response.sequences.push_back({.stop_reason = sequence.cause == engine::StopCause::stop
                                                         ? StopReason::stop
                                                         : StopReason::length,
                                      .tokens = std::move(sequence.tokens),
                                      .logprobs = std::move(sequence.logprobs)});
    }
    if (sample->ask.prompt_logprobs) {
        auto& list = response.prompt_logprobs.emplace(std::move(result.prompt_logprobs));
        for (std::size_t i = 0; i < std::min(first, list.size()); ++i) list[i].reset();
    }
    if (sample->ask.topk_prompt_logprobs > 0) {
        auto& rows = response.topk_prompt_logprobs.emplace(result.topk_prompt_logprobs.size());
        for (std::size_t i = first; i < rows.size(); ++i) {
            rows[i] = to_cells(result.topk_prompt_logprobs[i]);
        }
    }
    response.prompt_cache_hit_tokens = static_cast<std::int64_t>(result.cached_tokens);
    sample->cached_tokens = result.cached_tokens;
    score_targets(sample);
}

void Core::score_targets(std::shared_ptr<Sampled> const& sample) {
    if (!sample->targets) return score_samples(sample, 0);
    auto const found = drawings_.find(sample->id);
    if (found == drawings_.end()) return release_sample(sample);
    auto& targets = *sample->targets;
    engine::Forward job{.data = {targets.datum(sample->ask.prompt)}};
    (sample->weights.empty() ? job.model : job.adapter) =
        sample->weights.empty() ? sample->base : sample->weights;
    found->second.job =
        engine_->submit(std::move(job), [this, sample](Result<engine::BatchResult> result) {
            if (!result) return fail_sample(sample, result.error());
            sample->response.target_prompt_logprobs =
                sample->targets->answer(result->outputs.at(0).logprobs);
            score_samples(sample, 0);
        });
}

// The likeliest tokens beside those that were drawn: the sample is read once more as a prompt,
// whose log-probabilities are those of drawing it, to the last bit.
void Core::score_samples(std::shared_ptr<Sampled> const& sample, std::size_t index) {
    auto const k = sample->options.topk_sample_logprobs;
    auto& sequences = sample->response.sequences;
    if (k == 0 || index >= sequences.size()) return finish_sample(sample);
    auto const found = drawings_.find(sample->id);
    if (found == drawings_.end()) return release_sample(sample);
    engine::Sample job;
    auto& request = job.request;
    request.prompt = sample->ask.prompt;
    auto const& drawn = sequences[index].tokens;
    request.prompt.insert(request.prompt.end(), drawn.begin(), drawn.end());
    request.topk_prompt_logprobs = static_cast<std::size_t>(k);
    (sample->weights.empty() ? job.model : job.adapter) =
        sample->weights.empty() ? sample->base : sample->weights;
    found->second.job =
        engine_->submit(std::move(job), [this, sample, index](Result<engine::SampleResult> result) {
            if (!result) return fail_sample(sample, result.error());
            auto const& rows = result->topk_prompt_logprobs;
            auto& list = sample->response.sequences[index].topk_logprobs.emplace();
            for (auto i = sample->ask.prompt.size(); i < rows.size(); ++i) {
                list.emplace_back(to_cells(rows[i]));
            }
            score_samples(sample, index + 1);
        });
}

void Core::finish_sample(std::shared_ptr<Sampled> const& sample) {
    std::vector<Change> changes;
    auto const prompt = sample->ask.prompt.size();
    auto const& owner = sample->session;
    count_tokens(changes, owner, sample->base, "sampling_prefill", false,
                 prompt - sample->cached_tokens);
    count_tokens(changes, owner, sample->base, "sampling_prefill", true, sample->cached_tokens);
    count_tokens(changes, owner, sample->base, "sampling_sample", false, sample->drawn_tokens);
    counters_.add("tinkxx_prompt_tokens_total", {}, prompt);
    counters_.add("tinkxx_sampled_tokens_total", {}, sample->drawn_tokens);
    drawings_.erase(sample->id);
    release_sample(sample);
    if (sample->on_done) {
        store_->write(std::move(changes));
        return sample->on_done({});
    }
    futures_->complete(sample->id, ws::encode_sample_proto(sample->response), std::move(changes));
}

void Core::fail_sample(std::shared_ptr<Sampled> const& sample, Error const& error) {
    drawings_.erase(sample->id);
    release_sample(sample);
    counters_.add("tinkxx_requests_failed_total", {});
    if (sample->on_done) return sample->on_done(error);
    futures_->fail(sample->id, error.what(), error.category());
}

void Core::release_sample(std::shared_ptr<Sampled> const& sample) {
    if (std::exchange(sample->holds, false)) release(sample->weights);
}

void Core::retrieve_future(Ask& ask) {
    auto const request = good(ws::decode_retrieve_future(body_of(ask)), 422);
    auto const owner = request.request_id.substr(0, request.request_id.rfind(':'));
    if (auto const run = runs_.find(owner); run != runs_.end()) {
        touch_session(run->second.session);
    } else if (auto const sampler = samplers_.find(owner); sampler != samplers_.end()) {
        touch_session(sampler->second.session);
    }
    bool const protobuf =
        ask.header("Accept").find("application/x-protobuf") != std::string_view::npos;
    futures_->retrieve(request, protobuf, ask.answer);
}

void Core::retrieve_futures(Ask& ask) {
    auto const request = good(ws::decode_retrieve_futures(body_of(ask)), 422);
    auto const found = samplers_.find(request.sampling_session_id);
    if (found == samplers_.end()) {
        throw Refused{404, "retrieve_futures: there is no sampler " +
                               request.sampling_session_id.substr(0, 200)};
    }
    touch_session(found->second.session);
    futures_->completions(request, ask.answer);
}

void Core::cancel_future(Ask& ask) {
    auto const id = good(ws::decode_text("cancel_future", body_of(ask), "request_id"), 422);
    auto const found = drawings_.find(id);
    if (found == drawings_.end()) {
        if (!futures_->contains(id) && !futures_->plausible(id)) {
            throw Refused{404, "cancel_future: there is no request " + id.substr(0, 200)};
        }
        return send_json(*ask.answer, "{}");  // done already
    }
    cancel_drawing(id);
    futures_->fail(id, "the sample was cancelled by its client", ErrorCategory::user);
    counters_.add("tinkxx_samples_cancelled_total", {});
    send_json(*ask.answer, "{}");
}

void Core::cancel_drawing(std::string const& id) {
    auto const found = drawings_.find(id);
    if (found == drawings_.end()) return;
    auto const drawing = found->second;
    drawings_.erase(found);
    if (!drawing.job) return;  // whoever loads its weights sees that it is gone
    engine_->cancel(*drawing.job);
    // Its callback, which would have released the weights, is not called any more.
    release(drawing.weights);
}

// Weights in memory -----------------------------------------------------------------------------

Core::Drawn& Core::drawn_of(CheckpointRow const& row) {
    auto& drawn = drawn_[row.folder];
    drawn.base = row.base_model;
    drawn.folder = row.folder;
    drawn.training = row.training;
    return drawn;
}

void Core::with_weights(std::string const& key,
                        tinkxx::detail::UniqueFunction<void(Result<void>)> done) {
    auto& drawn = drawn_.at(key);
    drawn.used = ++uses_;
    if (drawn.state == Drawn::State::ready) return done({});
    drawn.waiting.push_back(std::move(done));
    if (drawn.state == Drawn::State::absent) load_drawn(key);
}

bool Core::make_room(std::size_t bytes) {
    auto const limit = options_.limits.adapter_bytes;
    while (model_bytes_ + drawn_bytes_ + bytes > limit) {
        // The one that was used longest ago goes; it can be read again.
        auto oldest = drawn_.end();
        for (auto at = drawn_.begin(); at != drawn_.end(); ++at) {
            if (at->second.state != Drawn::State::ready || at->second.active > 0) continue;
            if (oldest == drawn_.end() || at->second.used < oldest->second.used) oldest = at;
        }
        if (oldest == drawn_.end()) return false;
        drop_drawn(std::string{oldest->first});
    }
    return true;
}

void Core::load_drawn(std::string const& key) {
    auto& drawn = drawn_.at(key);
    auto const& base = bases_.at(drawn.base);
    drawn.bytes = engine::adapter_bytes(base.config, to_lora(drawn.training));
    if (!make_room(drawn.bytes)) {
        bool const could = model_bytes_ + drawn.bytes <= options_.limits.adapter_bytes;
        if (could) {
            if (std::ranges::find(starved_, key) == starved_.end()) starved_.push_back(key);
            return;
        }
        Error const full{ErrorDetails{
            .kind = ErrorKind::request_failed,
            .message = "sample: there is no memory for these weights: they need " +
                       std::to_string(drawn.bytes >> 20U) + " MiB, and models in training use " +
                       std::to_string(model_bytes_ >> 20U) + " of " +
                       std::to_string(options_.limits.adapter_bytes >> 20U) +
                       " MiB; unload a model, or give the server more",
            .category = ErrorCategory::server}};
        for (auto& one : std::exchange(drawn.waiting, {})) one(full);
        return;
    }
    drawn.state = Drawn::State::loading;
    drawn_bytes_ += drawn.bytes;
    engine_->submit(
        engine::LoadAdapter{
            .adapter = key, .model = drawn.base, .folder = home_->place(drawn.folder)},
        [this, key](Result<engine::AdapterInfo> const& loaded) {
            auto& here = drawn_.at(key);
            auto waiting = std::exchange(here.waiting, {});
            if (loaded) {
                here.state = Drawn::State::ready;
                // None of them may drop it before all of them have it.
                ++here.active;
                for (auto& one : waiting) one({});
                return release(key);
            }
            here.state = Drawn::State::absent;
            drawn_bytes_ -= here.bytes;
            for (auto& one : waiting) one(loaded.error());
            retry_starved();
        });
}

void Core::release(std::string const& key) {
    auto const found = drawn_.find(key);
    if (found == drawn_.end()) return;
    auto& drawn = found->second;
    if (drawn.active > 0) --drawn.active;
    if (drawn.active > 0) return;
    if (drawn.doomed) drop_drawn(std::string{key});
    retry_starved();
}

void Core::drop_drawn(std::string const& key) {
    auto const found = drawn_.find(key);
    if (found == drawn_.end()) return;
    auto& drawn = found->second;
    if (drawn.state == Drawn::State::ready) {
        drawn.state = Drawn::State::absent;
        drawn_bytes_ -= drawn.bytes;
        engine_->submit(engine::DropAdapter{.adapter = key}, [](Result<void> const& /*gone*/) {});
    }
    if (drawn.doomed && drawn.state == Drawn::State::absent && drawn.waiting.empty()) {
        remove_folder(drawn.folder);
        drawn_.erase(found);
    }
}

void Core::retry_starved() {
    for (auto& key : std::exchange(starved_, {})) {
        auto const found = drawn_.find(key);
        if (found == drawn_.end() || found->second.state != Drawn::State::absent) continue;
        if (!found->second.waiting.empty()) load_drawn(key);
    }
}

}  // namespace tinkxx::local
