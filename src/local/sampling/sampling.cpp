#include "engine/memory.hpp"
#include "local/api/json.hpp"
#include "local/core/bodies.hpp"
#include "local/core/internals.hpp"
#include "local/sampling/sample_request.hpp"
#include "local/training/data.hpp"
#include "wire/server_answers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

namespace {

/// Of a poll that names results which were fetched.
constexpr std::size_t most_acknowledged = std::size_t{16} << 20U;

}  // namespace

// Samplers --------------------------------------------------------------------------------------

void Core::create_sampling_session(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_create_sampling_session(body); },
        [this](Ask& asked, ws::CreateSamplingSession const& request) {
            make_sampler(asked, request);
        });
}

void Core::make_sampler(Ask& ask, ws::CreateSamplingSession const& request) {
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
    auto const same = [&row](SamplerRow const& other) {
        return other.base_model == row.base_model && other.model_path == row.model_path &&
               other.folder.empty();
    };
    auto const known = samplers_.find(id);
    auto const coming = new_samplers_.find(id);
    if ((known != samplers_.end() && !same(known->second)) ||
        (coming != new_samplers_.end() && !same(coming->second))) {
        throw Refused{409, "create_sampling_session: there is a sampler " + id +
                               " already, of other weights"};
    }
    if (known != samplers_.end()) return reply(*ask.answer);
    count_samplers("create_sampling_session", owner.row.id);
    // A repeat that comes before the row is safe is written once more.
    new_samplers_[id] = row;
    store_->write({{Table::sampler, id, encode(row)}}, [this, row, reply, answer = ask.answer](
                                                           Result<void> const& written) {
        new_samplers_.erase(row.id);
        if (!written) {
            return send_refusal(*answer, not_written("create_sampling_session", written.error()));
        }
        samplers_.emplace(row.id, row);
        reply(*answer);
    });
}

void Core::join_sampling_session(Ask& ask) {
    with_json(
        ask,
        [](std::string body) {
            return ws::decode_text("join_sampling_session", body, "sampling_session_id");
        },
        [this](Ask& asked, std::string id) {
            in_turn(asked, [this, id = std::move(id)](Ask& mine, std::shared_ptr<Turn> turn) {
                auto const found = samplers_.find(id);
                if (found == samplers_.end()) {
                    throw Refused{
                        404, "join_sampling_session: there is no sampler " + id.substr(0, 200)};
                }
                touch_session(found->second.session);
                auto row = found->second;
                ++row.clones;
                std::vector<Change> changes{{Table::sampler, id, encode(row)}};
                commit(
                    mine.answer, "join_sampling_session", std::move(changes),
                    [this, id, counter = row.clones, turn = std::move(turn), answer = mine.answer] {
                        auto const still = samplers_.find(id);
                        if (still != samplers_.end()) still->second.clones = counter;
                        send_json(*answer, json_object([&](JsonOut& json) {
                            json.member("client_counter", counter);
                            json.member("type", "join_sampling_session");
                        }));
                    });
            });
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

Core::SampleRead Core::understand(std::string_view operation, std::size_t most_tokens,
                                  std::size_t most_cells, ws::Sample request) {
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

void Core::read_sample(Ask& ask, tinkxx::detail::UniqueFunction<void(Ask&, SampleRead)> then) {
    std::size_t positions = 0;
    for (auto const& [name, base] : bases_) {
        positions = std::max(positions, engine::wide(base.config.max_positions));
    }
    with_body(
        ask, most_bytes(ask),
        [operation = std::string{ask.operation}, positions, cells = options_.limits.result_cells,
         wall = scheduler_.wall()](std::string body) -> Result<SampleRead> {
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

std::shared_ptr<Core::SampleJob> Core::prepare(std::string_view operation, SampleRead read) {
    auto const what = std::string{operation} + ": ";
    if (!read.refusal.empty()) throw Refused{400, read.refusal};
    auto const& request = read.request;
    auto sample = std::make_shared<SampleJob>();
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
            auto& weights = weights_[row.folder];
            weights.base = row.base_model;
            weights.folder = row.folder;
            weights.training = row.training;
            weights.files = row.files;
            weights.name = "of sampler " + row.id;
            sample->weights = row.folder;
        } else if (row.model_path) {
            auto const& saved = checkpoint(operation, *row.model_path);
            (void)weights_of(saved);
            sample->weights = saved.folder;
        }
    } else if (request.model_path) {
        auto const& saved = checkpoint(operation, *request.model_path);
        base_name = saved.base_model;
        (void)weights_of(saved);
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
    auto const length = read.length;
    auto const most = options_.limits.prompt_tokens;
    if (length == 0) throw Refused{400, what + "the prompt has no tokens"};
    if (most != 0 && length > most) {
        throw Refused{400, what + "the prompt has " + std::to_string(length) +
                               " tokens, and the limit of this server is " + std::to_string(most)};
    }
    if (!read.prompt.empty() && (read.least < 0 || read.most >= vocabulary)) {
        throw Refused{400, what + "the prompt has the token " +
                               std::to_string(read.least < 0 ? read.least : read.most) +
                               ", and the vocabulary of " + sample->base + " goes to " +
                               std::to_string(vocabulary - 1)};
    }
    ask.prompt = std::move(read.prompt);

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
    // Each token that is sampled is compared with all of them.
    constexpr std::size_t most_stops = 1000;
    constexpr std::size_t most_stop_bytes = std::size_t{64} << 10U;
    std::size_t stop_bytes = 0;
    for (auto const& text : ask.stop_strings) stop_bytes += text.size();
    if (ask.stop_strings.size() > most_stops || ask.stop_tokens.size() > most_stops ||
        stop_bytes > most_stop_bytes) {
        throw Refused{400, what + "stop has " +
                               std::to_string(ask.stop_strings.size() + ask.stop_tokens.size()) +
                               " entries of " + std::to_string(stop_bytes) +
                               " bytes; at most 1000 entries of 65536 bytes are possible"};
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
    if (read.targets) {
        if (read.targets->largest >= vocabulary) {
            throw Refused{400, what + "target_prompt_logprobs names the token " +
                                   std::to_string(read.targets->largest) +
                                   ", which is not in the vocabulary; -1 asks for nothing"};
        }
        sample->targets = std::move(read.targets);
    }
    // What it may come to hold. No product overflows: each factor is at most 2^28.
    auto const sampled = ask.num_samples * ask.max_tokens;
    auto const cells = length * ask.topk_prompt_logprobs +
                       sampled * static_cast<std::size_t>(options.topk_sample_logprobs);
    if (cells > options_.limits.result_cells) {
        throw Refused{400, what + "topk_prompt_logprobs and topk_sample_logprobs ask for " +
                               std::to_string(cells) + " log-probabilities, and the limit is " +
                               std::to_string(options_.limits.result_cells) +
                               "; ask for fewer at each position"};
    }
    constexpr std::size_t of_token = sizeof(Token) + sizeof(float);
    sample->bytes = 1024 + length * (2 * sizeof(Token) + sizeof(float)) + sampled * of_token +
                    cells * sizeof(TokenLogprob);
    if (sample->targets) sample->bytes += sample->targets->tokens.size() * 24;
    return sample;
}

void Core::admit_sample(std::string_view operation, SampleJob const& sample) const {
    auto const what = std::string{operation} + ": ";
    auto const& limits = options_.limits;
    auto const pending = std::max(results_->pending_samples(), pending_samples_.size());
    auto const share = shares_.find(sample.session);
    auto const mine = share == shares_.end() ? std::size_t{0} : share->second.samples;
    // A session with many pending samples gets no more than half of what is free.
    constexpr std::size_t always = 64;
    auto const free = limits.pending_samples - std::min(pending, limits.pending_samples);
    if (free == 0 || (mine >= always && mine >= free)) {
        throw Refused{429,
                      what + std::to_string(pending) + " samples are pending, " +
                          std::to_string(mine) + " of them of this session, and the limit is " +
                          std::to_string(limits.pending_samples) + "; wait for some of them",
                      std::chrono::milliseconds{1000}};
    }
    if (sample_bytes_ > 0 && sample_bytes_ + sample.bytes > limits.pending_sample_bytes) {
        throw Refused{429,
                      what + "samples that are pending need " + std::to_string(sample_bytes_) +
                          " bytes, this one " + std::to_string(sample.bytes) +
                          ", and the limit is " + std::to_string(limits.pending_sample_bytes) +
                          "; wait for some of them",
                      std::chrono::milliseconds{1000}};
    }
}

void Core::begin_sample(SampleJob const& sample, std::string const& owner) {
    pending_samples_[sample.id] = {.owner = owner,
                                   .weights = sample.weights,
                                   .session = sample.session,
                                   .bytes = sample.bytes};
    sample_bytes_ += sample.bytes;
    ++shares_[sample.session].samples;
}

void Core::end_sample(std::map<std::string, PendingSample>::iterator at) {
    if (at == pending_samples_.end()) return;
    sample_bytes_ -= at->second.bytes;
    auto const share = shares_.find(at->second.session);
    if (--share->second.samples == 0) shares_.erase(share);
    pending_samples_.erase(at);
}

void Core::asample(Ask& ask) {
    read_sample(ask,
                [this](Ask& asked, SampleRead read) { submit_sample(asked, std::move(read)); });
}

void Core::submit_sample(Ask& ask, SampleRead read) {
    auto const& request = read.request;
    if (!accepting()) throw Refused{503, "asample: the server is stopping"};
    if (request.sampling_session_id && !request.seq_id) {
        throw Refused{400, "asample: seq_id is missing, by which a repeat is recognised"};
    }
    bool const numbered = request.sampling_session_id && request.seq_id;
    auto const owner = numbered ? *request.sampling_session_id : std::string{"direct"};
    auto const id = owner + ":" + (numbered ? std::to_string(*request.seq_id) : fresh_id());
    auto const reply = [id, count = request.options.num_samples,
                        answer = ask.answer](Result<void> const& accepted) {
        if (!accepted) return send_refusal(*answer, not_written("asample", accepted.error()));
        send_json(*answer, json_object([&](JsonOut& json) {
            json.member("request_id", id);
            json.key("sample_sequence_ids");
            json.open_array();
            for (std::int64_t i = 0; i < count; ++i) json.value(id + ":" + std::to_string(i));
            json.close_array();
        }));
    };
    auto const print = read.print;
    if (results_->contains(id)) {
        auto const known = sample_prints_.find(id);
        if (known == sample_prints_.end() || known->second == print) {
            return results_->when_accepted(id, reply);
        }
        throw Refused{409, "asample: the seq_id " + std::to_string(*request.seq_id) +
                               " of sampler " + owner + " was reused for another request"};
    }
    auto const clone = request.seq_id.value_or(0) / clone_stride;
    auto row = std::move(read.row);
    if (!numbered) {
        row = encode(RequestRow{.id = id,
                                .owner = owner,
                                .form = "sample",
                                .state = "pending",
                                .at = scheduler_.wall(),
                                .body = std::move(read.body)});
    }
    auto sample = prepare("asample", std::move(read));
    admit_sample("asample", *sample);
    sample->id = id;
    sample_prints_[id] = print;
    counters_.add("tinkxx_sample_requests_total", {});
    begin_sample(*sample, owner);
    // What was acknowledged is computed even if the server has to be started anew.
    results_->add_sample(id, owner, clone, std::move(row),
                         [this, id, reply](Result<void> const& written) {
                             if (!written) cancel_sample(id);
                             reply(written);
                         });
    compute(sample);
}

void Core::resume_samples() {
    // There may be thousands, and others have to be served meanwhile.
    constexpr std::size_t in_a_turn = 16;
    for (std::size_t i = 0; i < in_a_turn && !unfinished_.empty(); ++i) {
        auto row = std::move(unfinished_.back());
        unfinished_.pop_back();
        if (row.body.size() <= loop_body_bytes) {
            resume_sample(row.id, row.body);
            continue;
        }
        auto const read = std::make_shared<std::optional<Result<ws::Sample>>>();
        auto const id = row.id;
        reader(row.body.size())
            .run([read, body = std::move(
                            row.body)] { read->emplace(ws::decode_sample("asample", body)); },
                 [this, read, id] { resume_sample(id, *std::move(*read)); });
    }
    if (unfinished_.empty()) return;
    scheduler_.post([this, alive = alive_] {
        if (*alive) resume_samples();
    });
}

void Core::resume_sample(std::string const& id, std::string const& body) {
    resume_sample(id, ws::decode_sample("asample", body));
}

void Core::resume_sample(std::string const& id, Result<ws::Sample> decoded) {
    if (!results_->pending_sample(id)) return;  // cancelled before its turn
    try {
        auto request = good(std::move(decoded), 422);
        auto const owner = request.sampling_session_id.value_or(std::string{"direct"});
        auto read = understand("asample", std::numeric_limits<std::size_t>::max(),
                               options_.limits.result_cells, std::move(request));
        sample_prints_[id] = read.print;
        auto sample = prepare("asample", std::move(read));
        sample->id = id;
        begin_sample(*sample, owner);
        compute(sample);
    } catch (Refused const& refused) {
        results_->fail(id, refused.detail, ErrorCategory::user);
    }
}

void Core::compute(std::shared_ptr<SampleJob> const& sample) {
    auto const submit = [this, sample] {
        auto const found = pending_samples_.find(sample->id);
        if (found == pending_samples_.end()) return release_sample(sample);  // cancelled meanwhile
        auto request = sample->ask;
        request.party = sample->session.empty() ? "direct" : sample->session;
        if (sample->on_token) request.on_token = sample->on_token;
        engine::Sample job{.request = std::move(request)};
        (sample->weights.empty() ? job.model : job.adapter) =
            sample->weights.empty() ? sample->base : sample->weights;
        found->second.job =
            engine_->submit(std::move(job), [this, sample](Result<engine::SampleResult> result) {
                if (!result) return fail_sample(sample, result.error());
                sampled(sample, *std::move(result));
            });
    };
    if (sample->weights.empty()) return submit();
    with_weights(sample->weights, [this, sample, submit](Result<void> const& there) {
        if (!there) return fail_sample(sample, there.error());
        ++weights_.at(sample->weights).active;
        sample->holds = true;
        submit();
    });
}

void Core::sampled(std::shared_ptr<SampleJob> const& sample, engine::SampleResult result) {
    for (auto const& sequence : result.sequences) sample->sampled_tokens += sequence.tokens.size();
    sample->cached_tokens = result.cached_tokens;
    sample->result = std::move(result);
    score_targets(sample);
}

void Core::score_targets(std::shared_ptr<SampleJob> const& sample) {
    if (!sample->targets) return score_samples(sample, 0);
    auto const found = pending_samples_.find(sample->id);
    if (found == pending_samples_.end()) return release_sample(sample);
    auto& targets = *sample->targets;
    engine::Forward job{.data = {targets.datum(sample->ask.prompt)}};
    (sample->weights.empty() ? job.model : job.adapter) =
        sample->weights.empty() ? sample->base : sample->weights;
    found->second.job =
        engine_->submit(std::move(job), [this, sample](Result<engine::BatchResult> result) {
            if (!result) return fail_sample(sample, result.error());
            sample->target_logprobs = std::move(result->outputs.at(0).logprobs);
            score_samples(sample, 0);
        });
}

// The likeliest tokens beside those that were sampled: the sample is read once more as a prompt,
// whose log-probabilities are those of sampling it, to the last bit.
void Core::score_samples(std::shared_ptr<SampleJob> const& sample, std::size_t index) {
    auto const k = sample->options.topk_sample_logprobs;
    auto const& sequences = sample->result.sequences;
    if (k == 0 || index >= sequences.size()) return finish_sample(sample);
    auto const found = pending_samples_.find(sample->id);
    if (found == pending_samples_.end()) return release_sample(sample);
    engine::Sample job;
    auto& request = job.request;
    request.prompt = sample->ask.prompt;
    auto const& sampled = sequences[index].tokens;
    request.prompt.insert(request.prompt.end(), sampled.begin(), sampled.end());
    request.topk_prompt_logprobs = static_cast<std::size_t>(k);
    (sample->weights.empty() ? job.model : job.adapter) =
        sample->weights.empty() ? sample->base : sample->weights;
    found->second.job =
        engine_->submit(std::move(job), [this, sample, index](Result<engine::SampleResult> result) {
            if (!result) return fail_sample(sample, result.error());
            sample->topk.push_back(std::move(result->topk_prompt_logprobs));
            score_samples(sample, index + 1);
        });
}

void Core::finish_sample(std::shared_ptr<SampleJob> const& sample) {
    if (sample->on_done) return keep_sample(sample, {});
    if (sample->bytes <= loop_result_bytes) {
        return keep_sample(sample, ws::encode_sample_proto(sample->response()));
    }
    auto const found = pending_samples_.find(sample->id);
    if (found == pending_samples_.end()) return release_sample(sample);
    // If it is cancelled now, the callback below releases its weights.
    found->second.job.reset();
    auto const payload = std::make_shared<std::string>();
    result_worker_->run(
        [sample, payload] { *payload = ws::encode_sample_proto(sample->response()); },
        [this, sample, payload] {
            if (!pending_samples_.contains(sample->id)) return release_sample(sample);
            keep_sample(sample, std::move(*payload));
        });
}

void Core::keep_sample(std::shared_ptr<SampleJob> const& sample, std::string payload) {
    std::vector<Change> changes;
    auto const prompt = sample->ask.prompt.size();
    auto const& owner = sample->session;
    count_tokens(changes, owner, sample->base, "sampling_prefill", false,
                 prompt - sample->cached_tokens);
    count_tokens(changes, owner, sample->base, "sampling_prefill", true, sample->cached_tokens);
    count_tokens(changes, owner, sample->base, "sampling_sample", false, sample->sampled_tokens);
    counters_.add("tinkxx_prompt_tokens_total", {}, prompt);
    counters_.add("tinkxx_sampled_tokens_total", {}, sample->sampled_tokens);
    end_sample(pending_samples_.find(sample->id));
    release_sample(sample);
    if (sample->on_done) {
        store_->write(std::move(changes));
        return sample->on_done({});
    }
    results_->complete(sample->id, std::move(payload), std::move(changes));
}

void Core::fail_sample(std::shared_ptr<SampleJob> const& sample, Error const& error) {
    end_sample(pending_samples_.find(sample->id));
    release_sample(sample);
    counters_.add("tinkxx_requests_failed_total", {});
    if (sample->on_done) return sample->on_done(error);
    results_->fail(sample->id, error.what(), error.category());
}

void Core::release_sample(std::shared_ptr<SampleJob> const& sample) {
    if (std::exchange(sample->holds, false)) release(sample->weights);
}

void Core::retrieve_future(Ask& ask) {
    bool const protobuf =
        ask.header("Accept").find("application/x-protobuf") != std::string_view::npos;
    with_json(
        ask, [](std::string body) { return ws::decode_retrieve_future(body); },
        [this, protobuf](Ask& asked, ws::RetrieveFuture const& request) {
            auto const owner = request.request_id.substr(0, request.request_id.rfind(':'));
            if (auto const run = runs_.find(owner); run != runs_.end()) {
                touch_session(run->second.session);
            } else if (auto const sampler = samplers_.find(owner); sampler != samplers_.end()) {
                touch_session(sampler->second.session);
            }
            results_->retrieve(request, protobuf, asked.answer);
        });
}

void Core::retrieve_futures(Ask& ask) {
    with_body(
        ask, most_acknowledged, [](std::string body) { return ws::decode_retrieve_futures(body); },
        [this](Ask& asked, ws::RetrieveFutures request) {
            auto const found = samplers_.find(request.sampling_session_id);
            if (found == samplers_.end()) {
                throw Refused{404, "retrieve_futures: there is no sampler " +
                                       request.sampling_session_id.substr(0, 200)};
            }
            // Those beyond go by themselves some time after they were fetched.
            constexpr std::size_t at_once = 4096;
            if (request.retrieved_request_ids.size() > at_once) {
                request.retrieved_request_ids.resize(at_once);
            }
            touch_session(found->second.session);
            results_->completions(request, asked.answer);
        });
}

void Core::cancel_future(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_text("cancel_future", body, "request_id"); },
        [this](Ask& asked, std::string const& id) {
            if (!pending_samples_.contains(id)) {
                if (!results_->contains(id) && !results_->plausible(id)) {
                    throw Refused{404, "cancel_future: there is no request " + id.substr(0, 200)};
                }
                if (!results_->pending_sample(id)) {
                    return send_json(*asked.answer, "{}");  // done already
                }
            }
            cancel_sample(id);
            counters_.add("tinkxx_samples_cancelled_total", {});
            results_->fail(id, "the sample was cancelled by its client", ErrorCategory::user,
                           [answer = asked.answer](Result<void> const& written) {
                               if (written) return send_json(*answer, "{}");
                               send_refusal(*answer, not_written("cancel_future", written.error()));
                           });
        });
}

void Core::cancel_sample(std::string const& id) {
    auto const found = pending_samples_.find(id);
    if (found == pending_samples_.end()) return;
    auto const pending = found->second;
    end_sample(found);
    if (!pending.job) return;  // whoever loads its weights sees that it is gone
    engine_->cancel(*pending.job);
    // Its callback, which would have released the weights, is not called any more.
    release(pending.weights);
}

// Weights in memory -----------------------------------------------------------------------------

Core::LoadedWeights& Core::weights_of(CheckpointRow const& row) {
    auto& weights = weights_[row.folder];
    weights.base = row.base_model;
    weights.folder = row.folder;
    weights.training = row.training;
    weights.files = row.files;
    weights.name = row.path.text();
    return weights;
}

void Core::with_weights(std::string const& key,
                        tinkxx::detail::UniqueFunction<void(Result<void>)> done) {
    auto& weights = weights_.at(key);
    weights.used = ++uses_;
    if (weights.state == LoadedWeights::State::ready) return done({});
    weights.waiting.push_back(std::move(done));
    if (weights.state == LoadedWeights::State::absent) load_for_sampling(key);
}

bool Core::make_room(std::size_t bytes) {
    auto const limit = options_.limits.adapter_bytes;
    while (model_bytes_ + weights_bytes_ + bytes > limit) {
        // The one that was used longest ago goes; it can be read again.
        auto oldest = weights_.end();
        for (auto at = weights_.begin(); at != weights_.end(); ++at) {
            if (at->second.state != LoadedWeights::State::ready || at->second.active > 0) continue;
            if (oldest == weights_.end() || at->second.used < oldest->second.used) oldest = at;
        }
        if (oldest == weights_.end()) return false;
        drop_weights(std::string{oldest->first});
    }
    return true;
}

void Core::load_for_sampling(std::string const& key) {
    auto& weights = weights_.at(key);
    auto const& base = bases_.at(weights.base);
    weights.bytes = engine::adapter_bytes(base.config, to_lora(weights.training));
    if (!make_room(weights.bytes)) {
        bool const could = model_bytes_ + weights.bytes <= options_.limits.adapter_bytes;
        if (could) {
            if (std::ranges::find(starved_, key) == starved_.end()) starved_.push_back(key);
            return;
        }
        Error const full{ErrorDetails{
            .kind = ErrorKind::request_failed,
            .message = "sample: there is no memory for these weights: they need " +
                       std::to_string(weights.bytes >> 20U) + " MiB, and models in training use " +
                       std::to_string(model_bytes_ >> 20U) + " of " +
                       std::to_string(options_.limits.adapter_bytes >> 20U) +
                       " MiB; unload a model, or give the server more",
            .category = ErrorCategory::server}};
        for (auto& one : std::exchange(weights.waiting, {})) one(full);
        return;
    }
    weights.state = LoadedWeights::State::loading;
    weights_bytes_ += weights.bytes;
    load_adapter(
        {.adapter = key, .model = weights.base, .folder = home_->place(weights.folder)},
        weights.name, weights.files, [] {},
        [this, key](Result<engine::AdapterInfo> const& loaded) {
            auto& here = weights_.at(key);
            auto waiting = std::exchange(here.waiting, {});
            if (loaded) {
                here.state = LoadedWeights::State::ready;
                // None of them may drop it before all of them have it.
                ++here.active;
                for (auto& one : waiting) one({});
                return release(key);
            }
            here.state = LoadedWeights::State::absent;
            weights_bytes_ -= here.bytes;
            for (auto& one : waiting) one(loaded.error());
            retry_starved();
        });
}

void Core::release(std::string const& key) {
    auto const found = weights_.find(key);
    if (found == weights_.end()) return;
    auto& weights = found->second;
    if (weights.active > 0) --weights.active;
    if (weights.active > 0) return;
    if (weights.doomed) drop_weights(std::string{key});
    retry_starved();
}

void Core::drop_weights(std::string const& key) {
    auto const found = weights_.find(key);
    if (found == weights_.end()) return;
    auto& weights = found->second;
    if (weights.state == LoadedWeights::State::ready) {
        weights.state = LoadedWeights::State::absent;
        weights_bytes_ -= weights.bytes;
        engine_->submit(engine::DropAdapter{.adapter = key}, [](Result<void> const& /*gone*/) {});
    }
    if (weights.doomed && weights.state == LoadedWeights::State::absent &&
        weights.waiting.empty()) {
        remove_folder(weights.folder);
        weights_.erase(found);
    }
}

void Core::retry_starved() {
    for (auto& key : std::exchange(starved_, {})) {
        auto const found = weights_.find(key);
        if (found == weights_.end() || found->second.state != LoadedWeights::State::absent)
            continue;
        if (!found->second.waiting.empty()) load_for_sampling(key);
    }
}

}  // namespace tinkxx::local
