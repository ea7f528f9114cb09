#include "engine/memory.hpp"
#include "local/api/json.hpp"
#include "local/core/bodies.hpp"
#include "local/core/internals.hpp"
#include "local/training/data.hpp"
#include "wire/json_scan.hpp"
#include "wire/server_answers.hpp"

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <thread>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

StepName name_of_step(std::string_view body, bool protobuf) {
    StepName out;
    if (protobuf) {
        try {
            protozero::pbf_reader in{body.data(), body.size()};
            while (in.next()) {
                if (in.tag() == 1 && in.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
                    out.model_id = in.get_string();
                } else if (in.tag() == 2 && in.has_wire_type(protozero::pbf_wire_type::varint)) {
                    auto const number = in.get_int64();
                    if (number >= 0 && number <= std::numeric_limits<std::int32_t>::max()) {
                        out.seq_id = number;
                    }
                } else {
                    in.skip();
                }
            }
        } catch (protozero::exception const&) {
            // What came before counts.
        }
        return out;
    }
    wire::JsonScan scan{body};
    while (auto member = scan.next()) {
        auto const value = member->value;
        if (member->name == "model_id" && value.size() > 2) {
            out.model_id = value.substr(1, value.size() - 2);
        } else if (member->name == "seq_id") {
            std::int64_t number = 0;
            auto const read = std::from_chars(value.data(), value.data() + value.size(), number);
            if (read.ec == std::errc{}) out.seq_id = number;
        }
    }
    return out;
}

bool is_protobuf(Ask const& ask) {
    return ask.header("Content-Type").find("protobuf") != std::string_view::npos;
}

Core::Model& Core::model(std::string_view operation, std::string const& id) {
    auto const found = models_.find(id);
    if (found != models_.end() && !found->second.ending) return found->second;
    auto const run = runs_.find(id);
    auto const what = std::string{operation} + ": ";
    if (run == runs_.end()) {
        throw Refused{404, what + "there is no model " + id.substr(0, 200) + "; create it first"};
    }
    auto const owner = sessions_.find(run->second.session);
    bool const over = owner != sessions_.end() && owner->second.row.status != SessionStatus::active;
    throw Refused{
        404, what + "model " + id + " is not in memory any more: " +
                 (over ? "its session has ended" : "it was unloaded, or the server was restarted") +
                 "; create a model from one of its checkpoints"};
}

std::size_t Core::trained_bytes(Base const& base, Training const& training) const {
    auto const weights = engine::adapter_bytes(base.config, to_lora(training));
    // Weights, gradients and two moments; and gradients for each thread.
    auto threads = options_.compute == Compute::loop ? 1U : options_.threads;
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    return weights * 4 + (training.rank > 0 ? weights * threads : 0);
}

void Core::need_memory(std::string_view operation, std::size_t bytes) {
    if (make_room(bytes)) return;
    auto const mib = [](std::size_t count) { return std::to_string(count >> 20U) + " MiB"; };
    throw Refused{400, std::string{operation} + ": the adapter needs " + mib(bytes) +
                           ", and of the " + mib(options_.limits.adapter_bytes) + " for adapters " +
                           mib(model_bytes_ + weights_bytes_) +
                           " are in use; unload a model or finish its session, choose a smaller "
                           "rank, or give the server more"};
}

void Core::send_request_id(Ask& ask, std::string const& request_id, std::string const& model_id) {
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("request_id", request_id);
        json.member("model_id", model_id);
    }));
}

void Core::ended(std::string const& model_id, std::string const& request_id) {
    auto const found = models_.find(model_id);
    if (found != models_.end() && found->second.pending > 0) --found->second.pending;
    auto const bytes = step_bytes_.find(request_id);
    if (bytes == step_bytes_.end()) return;
    pending_bytes_ -= bytes->second;
    step_bytes_.erase(bytes);
}

void Core::kept(std::string const& model_id, std::string const& request_id, std::string payload,
                std::vector<Change> more) {
    ended(model_id, request_id);
    results_->complete(request_id, std::move(payload), std::move(more));
}

void Core::broken(std::string const& model_id, std::string const& request_id, std::string error,
                  ErrorCategory category) {
    ended(model_id, request_id);
    counters_.add("tinkxx_requests_failed_total", {});
    results_->fail(request_id, std::move(error), category);
}

void Core::broken(std::string const& model_id, std::string const& request_id, Error const& error) {
    broken(model_id, request_id, error.what(), error.category());
}

void Core::create_model(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_create_model(body); },
        [this](Ask& asked, ws::CreateModel request) { make_model(asked, std::move(request)); });
}

void Core::make_model(Ask& ask, ws::CreateModel request) {
    if (!accepting()) throw Refused{503, "create_model: the server is stopping"};
    auto& owner = session("create_model", request.session_id);
    auto const id = owner.row.id + ":train:" + std::to_string(request.model_seq_id);
    Fingerprint print;
    print.add(request.base_model).add(request.user_metadata).add(request.optimizer);
    print.add(request.lora.rank).add(request.lora.seed).add(request.lora.train_attn);
    print.add(request.lora.train_mlp).add(request.lora.train_unembed);
    if (auto const found = models_.find(id); found != models_.end()) {
        if (found->second.creation.fingerprint == print) {
            return send_request_id(ask, found->second.creation.request_id, id);
        }
        throw Refused{409, "create_model: there is a model " + id + " already, made otherwise"};
    }
    if (runs_.contains(id)) {
        throw Refused{410, "create_model: the model " + id +
                               " is gone: it was unloaded, or the server has started anew since; "
                               "use the next model_seq_id"};
    }
    check_new_run("create_model", owner.row.id, request.user_metadata);
    auto const& base = this->base("create_model", request.base_model);
    if (request.optimizer != "adamw") {
        throw Refused{400, "create_model: the optimizer " + request.optimizer.substr(0, 64) +
                               " is not known here; use adamw"};
    }
    Training training{.rank = request.lora.rank,
                      .seed = request.lora.seed ? static_cast<std::uint64_t>(*request.lora.seed)
                                                : scheduler_.entropy("local server lora"),
                      .train_attn = request.lora.train_attn,
                      .train_mlp = request.lora.train_mlp,
                      .train_unembed = request.lora.train_unembed};
    if (training.rank < 0 || training.rank > 1024) {
        throw Refused{400, "create_model: the rank " + std::to_string(training.rank) +
                               " is not from 1 to 1024, nor 0 for all weights of the model"};
    }
    if (auto const fine = engine::check(to_lora(training)); !fine) {
        throw Refused{400, std::string{"create_model: "} + fine.error().what()};
    }
    auto const bytes = trained_bytes(base, training);
    need_memory("create_model", bytes);

    auto const request_id = id + ":0";
    auto& model = models_[id];
    model.id = id;
    model.bytes = bytes;
    model.creation = {print, request_id};
    model.pending = 1;
    model_bytes_ += bytes;
    RunRow run{.id = id,
               .session = owner.row.id,
               .base_model = base.source.name,
               .training = training,
               .user_metadata = std::move(request.user_metadata),
               .created = scheduler_.wall(),
               .last_request = scheduler_.wall()};
    runs_[id] = run;
    results_->add(request_id, Form::json, id);
    engine_->submit(
        engine::CreateAdapter{
            .adapter = id, .model = base.source.name, .config = to_lora(training)},
        [this, id, request_id, run](Result<engine::AdapterInfo> const& made) {
            if (!made) {
                broken(id, request_id, made.error());
                unload(id);
                runs_.erase(id);
                dirty_runs_.erase(id);
                return;
            }
            kept(id, request_id, json_object([&](JsonOut& json) {
                     json.member("model_id", id);
                     json.member("type", "create_model");
                 }),
                 {{Table::run, id, encode(run)}});
        });
    send_request_id(ask, request_id, id);
}

void Core::check_new_run(std::string_view operation, std::string const& session,
                         Texts const& metadata) {
    check_metadata(operation, bytes_of(metadata));
    auto const first = runs_.lower_bound(session + ":");
    std::size_t have = 0;
    for (auto at = first; at != runs_.end() && at->first.starts_with(session + ":"); ++at) ++have;
    count_part(operation, session, "models", have);
    keep(operation, bytes_of(metadata));
}

void Core::unload(std::string const& model_id) {
    auto const found = models_.find(model_id);
    if (found == models_.end()) return;
    if (found->second.held) {
        found->second.ending = true;
        return;
    }
    auto const early = std::move(found->second.early);
    auto const unordered = std::move(found->second.unordered);
    model_bytes_ -= found->second.bytes;
    auto const seen = std::move(found->second.seen);
    models_.erase(found);
    for (auto const& [request_id, step] : unordered) {
        broken(model_id, request_id,
               "the model was unloaded before this request could be carried out",
               ErrorCategory::user);
    }
    for (auto const& [seq, step] : early) {
        broken(model_id, seen.at(seq).request_id,
               "the model was unloaded before this request could be carried out",
               ErrorCategory::user);
    }
    // After what was asked of it before.
    engine_->submit(engine::DropAdapter{.adapter = model_id},
                    [this](Result<void> const& /*gone*/) { retry_starved(); });
}

void Core::unload_model(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_text("unload_model", body, "model_id"); },
        [this](Ask& asked, std::string const& id) {
            auto const request_id = id + ":unload";
            if (!results_->contains(request_id)) {
                (void)model("unload_model", id);
                results_->add(request_id, Form::json, id);
                unload(id);
                results_->complete(request_id, json_object([&](JsonOut& json) {
                                       json.member("model_id", id);
                                       json.member("type", "unload_model");
                                   }),
                                   {});
            }
            send_request_id(asked, request_id, id);
        });
}

void Core::get_info(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_text("get_info", body, "model_id"); },
        [this](Ask& asked, std::string const& id) { send_info(asked, id); });
}

void Core::send_info(Ask& ask, std::string const& id) {
    (void)model("get_info", id);
    auto const& run = runs_.at(id);
    touch_session(run.session);
    auto const& base = this->base("get_info", run.base_model);
    constexpr std::array<std::string_view, 3> architectures{"llama", "qwen2", "qwen3"};
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("type", "get_info");
        json.member("model_id", id);
        json.member("is_lora", run.training.rank > 0);
        json.member("lora_rank", run.training.rank);
        json.member("model_name", run.base_model);
        json.key("model_data");
        json.open_object();
        json.member("arch", architectures.at(static_cast<std::size_t>(base.config.architecture)));
        json.member("model_name", run.base_model);
        json.member("tokenizer_id", run.base_model);
        json.close_object();
        json.key("optimizer_config");
        json.open_object();
        json.member("type", "adamw");
        json.close_object();
    }));
}

// Requests in the order of their numbers --------------------------------------------------------

void Core::accept_step(Ask& ask, std::string const& model_id, std::optional<std::int64_t> seq_id,
                       Fingerprint const& fingerprint, Form form, std::size_t bytes, Step step) {
    auto const what = std::string{ask.operation} + ": ";
    auto& model = this->model(ask.operation, model_id);
    auto& run = runs_.at(model_id);
    session(ask.operation, run.session);
    run.last_request = scheduler_.wall();
    dirty_runs_.insert(model_id);
    if (seq_id && (*seq_id < 1 || *seq_id > std::numeric_limits<std::int32_t>::max())) {
        throw Refused{400, what + "seq_id is " + std::to_string(*seq_id) +
                               "; the requests of a model are numbered from 1"};
    }
    if (seq_id) {
        if (auto const known = model.seen.find(*seq_id); known != model.seen.end()) {
            if (known->second.fingerprint == fingerprint) {
                return send_request_id(ask, known->second.request_id, model_id);
            }
            throw Refused{409, what + "the seq_id " + std::to_string(*seq_id) + " of model " +
                                   model_id + " was reused for another request"};
        }
        if (*seq_id < model.next && !model.refused.contains(*seq_id)) {
            throw Refused{409, what + "request " + std::to_string(*seq_id) + " of model " +
                                   model_id + " came too late; later ones were carried out"};
        }
    }
    if (!accepting()) throw Refused{503, what + "the server is stopping"};
    // The one that others wait for is always taken, or none of them could go on.
    bool const awaited = seq_id && *seq_id == model.next && !model.early.empty();
    if (!awaited && model.pending >= options_.limits.pending_steps) {
        throw Refused{429,
                      what + "model " + model_id + " has " + std::to_string(model.pending) +
                          " requests pending, which is the limit; wait for some of them",
                      std::chrono::milliseconds{500}};
    }
    if (!awaited && pending_bytes_ > 0 && pending_bytes_ + bytes > options_.limits.pending_bytes) {
        throw Refused{429,
                      what + "training data of " + std::to_string(pending_bytes_) +
                          " bytes are pending, and the limit is " +
                          std::to_string(options_.limits.pending_bytes) + "; wait for some of them",
                      std::chrono::milliseconds{500}};
    }
    auto const request_id =
        model_id + ":" +
        (seq_id ? std::to_string(*seq_id) : "n" + std::to_string(++model.unnumbered));
    results_->add(request_id, form, model_id);
    ++model.pending;
    pending_bytes_ += bytes;
    step_bytes_[request_id] = bytes;
    send_request_id(ask, request_id, model_id);
    if (!seq_id) return run_unordered(model, request_id, std::move(step));
    model.seen[*seq_id] = {fingerprint, request_id};
    if (*seq_id < model.next) {
        // Sent again in another form after it had been refused.
        model.refused.erase(*seq_id);
        return run_unordered(model, request_id, std::move(step));
    }
    model.refused.erase(*seq_id);
    model.early.emplace(*seq_id, std::move(step));
    run_steps(model);
}

void Core::run_unordered(Model& model, std::string const& request_id, Step step) {
    if (!model.held) return step(request_id);
    model.unordered.emplace_back(request_id, std::move(step));
}

void Core::run_steps(Model& model) {
    auto const id = model.id;
    for (;;) {
        auto const found = models_.find(id);
        if (found == models_.end()) return;
        auto& here = found->second;
        if (here.held) return;
        if (!here.unordered.empty()) {
            auto [request_id, step] = std::move(here.unordered.front());
            here.unordered.erase(here.unordered.begin());
            step(request_id);
            continue;
        }
        auto const first = here.early.begin();
        if (first != here.early.end() && first->first == here.next) {
            auto step = std::move(first->second);
            here.early.erase(first);
            auto const request_id = here.seen.at(here.next).request_id;
            ++here.next;
            here.gap_since.reset();
            // Clients repeat a request for minutes, in which no model takes so many steps.
            constexpr std::int64_t remembered = 10'000;
            here.seen.erase(here.seen.begin(), here.seen.lower_bound(here.next - remembered));
            step(request_id);
        } else if (here.refused.contains(here.next)) {
            ++here.next;
        } else {
            if (here.early.empty()) {
                here.gap_since.reset();
            } else if (!here.gap_since) {
                here.gap_since = scheduler_.now();
            }
            return;
        }
    }
}

void Core::refuse_step(std::string const& model_id, std::optional<std::int64_t> seq_id) {
    auto const found = models_.find(model_id);
    if (found == models_.end() || !seq_id) return;
    auto& model = found->second;
    if (*seq_id < model.next || model.seen.contains(*seq_id)) return;
    // Nobody is so far ahead of himself.
    constexpr std::int64_t ahead = 100'000;
    if (*seq_id - model.next > ahead) return;
    model.refused.insert(*seq_id);
    run_steps(model);
}

// Steps -----------------------------------------------------------------------------------------

/// A forward or backward pass as it was read.
struct Core::Pass {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    std::string loss_fn{};
    bool forward_only{false};
    Fingerprint print{};
    /// Why not, if the engine cannot compute it.
    Result<Batch> batch{Batch{}};
    std::size_t bytes{0};
};

namespace {

/// What a batch holds in memory, and what its result will.
std::size_t held_bytes(Batch const& batch) {
    std::size_t bytes = 0;
    for (auto const& datum : batch.data) {
        bytes += sizeof datum + datum.tokens.size() * sizeof(datum.tokens[0]) +
                 datum.targets.size() * sizeof(datum.targets[0]);
        bytes += (datum.weights.size() + datum.logprobs.size() + datum.advantages.size()) *
                 sizeof(float);
        // Log-probabilities and losses of all targets.
        bytes += 2 * datum.targets.size() * sizeof(float);
    }
    return bytes;
}

Fingerprint print_of(ws::ForwardBackward const& request) {
    Fingerprint print;
    print.add("pass").add(request.forward_only).add(request.loss_fn);
    for (auto const& [name, value] : request.config) {
        print.add(name);
        std::visit([&](auto const& one) { print.add(one); }, value);
    }
    print.add(std::uint64_t{request.data.size()});
    for (auto const& datum : request.data) print.add(datum);
    return print;
}

}  // namespace

void Core::read_pass(Ask& ask, std::string_view operation, bool protobuf) {
    BatchLimits most{.cells = options_.limits.batch_cells};
    for (auto const& [name, base] : bases_) {
        most.tokens = std::max(most.tokens, engine::wide(base.config.max_positions));
        most.columns = std::max(most.columns, engine::wide(base.config.vocab_size));
    }
    if (options_.limits.prompt_tokens > 0) {
        most.tokens = std::min(most.tokens, options_.limits.prompt_tokens);
    }
    with_step(
        ask, most_bytes(ask),
        [operation = std::string{operation}, protobuf,
         most](std::string_view body) -> Result<Pass> {
            auto request = protobuf ? ws::decode_forward_backward_proto(body)
                                    : ws::decode_forward_backward(operation, body);
            if (!request) return request.error();
            Pass pass{.model_id = std::move(request->model_id),
                      .seq_id = request->seq_id,
                      .loss_fn = request->loss_fn,
                      .forward_only = request->forward_only,
                      .print = print_of(*request)};
            try {
                pass.batch = to_batch(*request, most);
            } catch (Error const& error) {
                pass.batch = error;
            }
            if (pass.batch) pass.bytes = held_bytes(*pass.batch);
            return pass;
        },
        [this](Ask& asked, Pass pass) { submit_pass(asked, std::move(pass)); });
}

void Core::forward_backward(Ask& ask) { read_pass(ask, "forward_backward", is_protobuf(ask)); }

void Core::forward(Ask& ask) {
    if (is_protobuf(ask)) {
        throw Refused{415,
                      "forward: send JSON, or protobuf with forward_only to "
                      "forward_backward"};
    }
    read_pass(ask, "forward", false);
}

void Core::submit_pass(Ask& ask, Pass pass) {
    auto const model_id = pass.model_id;
    auto const bytes = pass.bytes;
    accept_step(
        ask, model_id, pass.seq_id, pass.print, Form::forward_backward, bytes,
        [this, model_id, bytes, forward_only = pass.forward_only, loss = pass.loss_fn,
         batch = std::move(pass.batch)](std::string const& request_id) mutable {
            if (!batch) return broken(model_id, request_id, batch.error());
            auto done = [this, model_id, request_id, bytes, tokens = batch->tokens, loss,
                         columns = std::move(batch->columns)](
                            Result<engine::BatchResult> result) mutable {
                if (!result) return broken(model_id, request_id, result.error());
                passed(model_id, request_id, tokens, bytes,
                       [loss, columns = std::move(columns), result = *std::move(result)]() mutable {
                           return ws::encode_forward_backward_proto(
                               to_output(loss, columns, std::move(result)));
                       });
            };
            if (forward_only) {
                engine_->submit(
                    engine::Forward{
                        .adapter = model_id, .data = std::move(batch->data), .loss = batch->loss},
                    std::move(done));
            } else {
                engine_->submit(
                    engine::ForwardBackward{
                        .adapter = model_id, .data = std::move(batch->data), .loss = batch->loss},
                    std::move(done));
            }
        });
}

void Core::passed(std::string const& model_id, std::string const& request_id, std::size_t tokens,
                  std::size_t bytes, tinkxx::detail::UniqueFunction<std::string()> encode) {
    auto keep = [this, model_id, request_id, tokens](std::string payload) {
        std::vector<Change> changes;
        if (auto const run = runs_.find(model_id); run != runs_.end()) {
            count_tokens(changes, run->second.session, run->second.base_model, "training", false,
                         tokens);
        }
        counters_.add("tinkxx_trained_tokens_total", {}, tokens);
        kept(model_id, request_id, std::move(payload), std::move(changes));
    };
    if (bytes <= loop_result_bytes) return keep(encode());
    auto const payload = std::make_shared<std::string>();
    result_worker_->run([payload, encode = std::move(encode)]() mutable { *payload = encode(); },
                        [payload, keep = std::move(keep)]() mutable { keep(std::move(*payload)); });
}

void Core::optim_step(Ask& ask) {
    with_step(
        ask, small_json, [](std::string_view body) { return ws::decode_optim_step(body); },
        [this](Ask& asked, ws::OptimStep request) { submit_step(asked, std::move(request)); });
}

void Core::submit_step(Ask& ask, ws::OptimStep request) {
    auto const& adam = request.adam;
    Fingerprint print;
    print.add("optim_step").add(request.optimizer).add(adam.learning_rate).add(adam.beta1);
    print.add(adam.beta2).add(adam.eps).add(adam.weight_decay).add(adam.grad_clip_norm);
    accept_step(ask, request.model_id, request.seq_id, print, Form::json, 0,
                [this, request](std::string const& request_id) {
                    auto const& model_id = request.model_id;
                    if (request.optimizer != "adamw") {
                        return broken(model_id, request_id,
                                      "optim_step: the model was created for adamw, and the "
                                      "parameters are those of " +
                                          request.optimizer.substr(0, 64),
                                      ErrorCategory::user);
                    }
                    auto const& params = request.adam;
                    engine_->submit(
                        engine::OptimStep{.adapter = model_id,
                                          .params = {.learning_rate = params.learning_rate,
                                                     .beta1 = params.beta1,
                                                     .beta2 = params.beta2,
                                                     .eps = params.eps,
                                                     .weight_decay = params.weight_decay,
                                                     .grad_clip_norm = params.grad_clip_norm}},
                        [this, model_id, request_id](Result<engine::StepResult> result) {
                            if (!result) return broken(model_id, request_id, result.error());
                            counters_.add("tinkxx_steps_total", {});
                            kept(model_id, request_id, json_object([&](JsonOut& json) {
                                     json.key("metrics");
                                     json.open_object();
                                     json.member("unclipped_grad_l2:mean", result->grad_norm);
                                     json.close_object();
                                     json.member("type", "optim_step");
                                 }),
                                 {});
                        });
                });
}

}  // namespace tinkxx::local
