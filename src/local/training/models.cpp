#include "local/training/models.hpp"

#include "base/loop/loop_rule.hpp"
#include "engine/memory.hpp"
#include "local/api/json.hpp"
#include "local/weights/adapter_config.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <thread>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

void send_request_id(Ask& ask, std::string const& request_id, std::string const& model_id) {
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("request_id", request_id);
        json.member("model_id", model_id);
    }));
}

Outcome<Models::Model*> Models::find(std::string_view operation, std::string const& id) {
    auto const found = models_.find(id);
    if (found != models_.end() && !found->second.ending) return &found->second;
    auto const* const run = uses_.runs.find(id);
    auto const what = std::string{operation} + ": ";
    if (run == nullptr) {
        return Refused{404, what + "there is no model " + id.substr(0, 200) + "; create it first"};
    }
    auto const* const owner = uses_.sessions.find(run->session);
    bool const over = owner != nullptr && owner->status != SessionPhase::active;
    return Refused{
        404, what + "model " + id + " is not in memory any more: " +
                 (over ? "its session has ended" : "it was unloaded, or the server was restarted") +
                 "; create a model from one of its checkpoints"};
}

std::size_t Models::bytes_of_training(BaseModel const& base, Training const& training) const {
    auto const& options = uses_.services.options;
    auto const weights = engine::adapter_bytes(base.config, to_lora(training));
    // Weights, gradients and two moments; and gradients for each thread.
    auto threads = options.compute == Compute::loop ? 1U : options.threads;
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    return weights * 4 + (training.rank > 0 ? weights * threads : 0);
}

// New models ------------------------------------------------------------------------------------

Outcome<ModelPlace> Models::place(std::string_view operation, std::string const& session,
                                  std::int64_t model_seq_id, Fingerprint const& print) {
    auto const what = std::string{operation} + ": ";
    if (auto const no = uses_.services.check_accepting(operation)) return *no;
    auto const owner = uses_.sessions.active(operation, session);
    if (!owner) return owner.refused();
    ModelPlace place{.id = (*owner)->id + ":train:" + std::to_string(model_seq_id),
                     .session = (*owner)->id,
                     .print = print};
    if (auto const found = models_.find(place.id); found != models_.end()) {
        if (found->second.creation.fingerprint == print) {
            place.made_by = found->second.creation.request_id;
            return place;
        }
        return Refused{409, what + "there is a model " + place.id + " already, made otherwise"};
    }
    if (uses_.runs.find(place.id) != nullptr) {
        return Refused{410, what + "the model " + place.id +
                                " is gone: it was unloaded, or the server has started anew since; "
                                "use the next model_seq_id"};
    }
    return place;
}

Outcome<std::string> Models::add(std::string_view operation, ModelPlace const& place,
                                 BaseModel const& base, Training const& training, Texts metadata) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const bytes = bytes_of_training(base, training);
    if (auto const no = uses_.weights.reserve_for_model(operation, bytes)) return *no;
    auto const request_id = place.id + ":0";
    auto& model = models_[place.id];
    model.bytes = bytes;
    model.creation = {place.print, request_id};
    model.pending = 1;
    auto const now = uses_.services.scheduler.wall();
    uses_.runs.add({.id = place.id,
                    .session = place.session,
                    .base_model = base.source.name,
                    .training = training,
                    .user_metadata = std::move(metadata),
                    .created = now,
                    .last_request = now});
    uses_.services.results->add(request_id, Form::json, place.id);
    return request_id;
}

void Models::discard(std::string const& id, std::string const& request_id, Error const& why) {
    fail(id, request_id, why);
    if (auto const made = models_.find(id); made != models_.end()) made->second.order.hold(false);
    unload(id);
    uses_.runs.erase(id);
}

MaybeRefused Models::create_model(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_create_model(body); },
        [this](Ask& asked, ws::CreateModel request) {
            return make_model(asked, std::move(request));
        });
}

namespace {

Fingerprint print_of(ws::CreateModel const& request) {
    Fingerprint print;
    print.add(request.base_model).add(request.user_metadata).add(request.optimizer);
    print.add(request.lora.rank).add(request.lora.seed).add(request.lora.train_attn);
    print.add(request.lora.train_mlp).add(request.lora.train_unembed);
    return print;
}

MaybeRefused check_training(Training const& training) {
    if (training.rank < 0 || training.rank > 1024) {
        return Refused{400, "create_model: the rank " + std::to_string(training.rank) +
                                " is not from 1 to 1024, nor 0 for all weights of the model"};
    }
    if (auto const fine = engine::check(to_lora(training)); !fine) {
        return Refused{400, std::string{"create_model: "} + fine.error().what()};
    }
    return {};
}

}  // namespace

MaybeRefused Models::make_model(Ask& ask, ws::CreateModel request) {
    auto const place =
        this->place("create_model", request.session_id, request.model_seq_id, print_of(request));
    if (!place) return place.refused();
    auto const& id = place->id;
    if (!place->made_by.empty()) {
        send_request_id(ask, place->made_by, id);
        return {};
    }
    if (auto no = uses_.runs.check_new("create_model", place->session, request.user_metadata)) {
        return no;
    }
    auto const base = uses_.bases.find("create_model", request.base_model);
    if (!base) return base.refused();
    if (request.optimizer != "adamw") {
        return Refused{400, "create_model: the optimizer " + request.optimizer.substr(0, 64) +
                                " is not known here; use adamw"};
    }
    auto const& lora = request.lora;
    Training const training{.rank = lora.rank,
                            .seed = lora.seed
                                        ? static_cast<std::uint64_t>(*lora.seed)
                                        : uses_.services.scheduler.entropy("local server lora"),
                            .train_attn = lora.train_attn,
                            .train_mlp = lora.train_mlp,
                            .train_unembed = lora.train_unembed};
    if (auto no = check_training(training)) return no;
    auto const request_id =
        add("create_model", *place, **base, training, std::move(request.user_metadata));
    if (!request_id) return request_id.refused();
    uses_.services.engine->submit(
        engine::CreateAdapter{
            .adapter = id, .model = (*base)->source.name, .config = to_lora(training)},
        [this, id, request_id = *request_id,
         run = *uses_.runs.find(id)](Result<engine::AdapterInfo> const& made) {
            if (!made) return discard(id, request_id, made.error());
            complete(id, request_id, json_object([&](JsonOut& json) {
                         json.member("model_id", id);
                         json.member("type", "create_model");
                     }),
                     {{Table::run, id, encode(run)}});
        });
    send_request_id(ask, *request_id, id);
    return {};
}

void Models::load(std::string const& id, CheckpointRow const& row, engine::OptimizerState state,
                  engine::Done<engine::AdapterInfo> done) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    // What is asked of it meanwhile comes after.
    models_.at(id).order.hold(true);
    uses_.folders.load(
        {.adapter = id,
         .model = uses_.runs.find(id)->base_model,
         .folder = uses_.folders.place(row.folder),
         .state = state},
        row.path.text(), row.files,
        [this, id] {
            auto const found = models_.find(id);
            if (found == models_.end()) return;
            found->second.order.hold(false);
            run_steps(id);
            auto const still = models_.find(id);
            if (still != models_.end() && still->second.ending) unload(id);
        },
        std::move(done));
}

// The end of models -----------------------------------------------------------------------------

void Models::unload(std::string const& id) {
    auto const found = models_.find(id);
    if (found == models_.end()) return;
    if (found->second.order.held()) {
        found->second.ending = true;
        return;
    }
    auto const waiting = found->second.order.waiting();
    uses_.weights.give_back(found->second.bytes);
    models_.erase(found);
    for (auto const& request_id : waiting) {
        fail(id, request_id, "the model was unloaded before this request could be carried out",
             ErrorCategory::user);
    }
    // After what was asked of it before.
    uses_.services.engine->submit(
        engine::DropAdapter{.adapter = id},
        [this](Result<void> const& /*gone*/) { uses_.weights.retry_starved(); });
}

MaybeRefused Models::unload_model(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_text("unload_model", body, "model_id"); },
        [this](Ask& asked, std::string const& id) -> MaybeRefused {
            auto const request_id = id + ":unload";
            auto& results = *uses_.services.results;
            if (!results.contains(request_id)) {
                auto const model = find("unload_model", id);
                if (!model) return model.refused();
                results.add(request_id, Form::json, id);
                unload(id);
                results.complete(request_id, json_object([&](JsonOut& json) {
                                     json.member("model_id", id);
                                     json.member("type", "unload_model");
                                 }),
                                 {});
            }
            send_request_id(asked, request_id, id);
            return {};
        });
}

bool Models::in_use(std::string const& session) const { return has_of_session(models_, session); }

bool Models::must_stay(std::string const& session) const {
    // One of them may still have something to do.
    return has_of_session(models_, session);
}

void Models::end_session(std::string const& session) {
    std::vector<std::string> mine;
    for_session(models_, session, [&](std::string const& id, auto&) { mine.push_back(id); });
    for (auto const& id : mine) unload(id);
}

// What they are ---------------------------------------------------------------------------------

MaybeRefused Models::get_info(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_text("get_info", body, "model_id"); },
        [this](Ask& asked, std::string const& id) { return send_info(asked, id); });
}

MaybeRefused Models::send_info(Ask& ask, std::string const& id) {
    auto const model = find("get_info", id);
    if (!model) return model.refused();
    auto const& run = *uses_.runs.find(id);
    uses_.sessions.touch(run.session);
    auto const base = uses_.bases.find("get_info", run.base_model);
    if (!base) return base.refused();
    constexpr std::array<std::string_view, 3> architectures{"llama", "qwen2", "qwen3"};
    auto const architecture = static_cast<std::size_t>((*base)->config.architecture);
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("type", "get_info");
        json.member("model_id", id);
        json.member("is_lora", run.training.rank > 0);
        json.member("lora_rank", run.training.rank);
        json.member("model_name", run.base_model);
        json.key("model_data");
        json.open_object();
        json.member("arch", architectures.at(architecture));
        json.member("model_name", run.base_model);
        json.member("tokenizer_id", run.base_model);
        json.close_object();
        json.key("optimizer_config");
        json.open_object();
        json.member("type", "adamw");
        json.close_object();
    }));
    return {};
}

std::optional<QueueNote> Models::why_waiting(std::string const& request_id) const {
    auto const colon = request_id.rfind(':');
    auto const model = models_.find(request_id.substr(0, colon));
    if (model == models_.end()) return std::nullopt;
    auto const seq = std::strtoll(request_id.c_str() + colon + 1, nullptr, 10);
    auto const missing = model->second.order.waits_for(seq);
    if (!missing) return std::nullopt;
    return QueueNote{"active", "waiting for request " + std::to_string(*missing) +
                                   " of this model, which has not arrived yet"};
}

std::size_t Models::pending() const {
    // Those of models that are unloaded already count too.
    auto steps = step_bytes_.size();
    for (auto const& [id, model] : models_) steps += model.pending;
    return steps;
}

// Requests in the order of their numbers --------------------------------------------------------

bool Models::seen(std::string const& model_id, std::optional<std::int64_t> seq_id) const {
    auto const found = models_.find(model_id);
    return found != models_.end() && seq_id && found->second.order.seen(*seq_id) != nullptr;
}

MaybeRefused Models::check_number(std::string const& what, Model const& model,
                                  StepRequest const& request) const {
    if (!request.seq_id) return {};
    auto const seq = *request.seq_id;
    if (seq < 1 || seq > std::numeric_limits<std::int32_t>::max()) {
        return Refused{400, what + "seq_id is " + std::to_string(seq) +
                                "; the requests of a model are numbered from 1"};
    }
    if (auto const* const known = model.order.seen(seq)) {
        if (known->fingerprint == request.print) return {};
        return Refused{409, what + "the seq_id " + std::to_string(seq) + " of model " +
                                request.model_id + " was reused for another request"};
    }
    if (model.order.too_late(seq)) {
        return Refused{409, what + "request " + std::to_string(seq) + " of model " +
                                request.model_id + " came too late; later ones were carried out"};
    }
    return {};
}

MaybeRefused Models::check_room(std::string const& what, Model const& model,
                                StepRequest const& request) const {
    // The one that others wait for is always taken, or none of them could go on.
    if (model.order.awaited(request.seq_id)) return {};
    auto const& limits = uses_.services.options.limits;
    if (model.pending >= limits.pending_steps) {
        return Refused{429,
                       what + "model " + request.model_id + " has " +
                           std::to_string(model.pending) +
                           " requests pending, which is the limit; wait for some of them",
                       std::chrono::milliseconds{500}};
    }
    if (pending_bytes_ > 0 && pending_bytes_ + request.bytes > limits.pending_bytes) {
        return Refused{429,
                       what + "training data of " + std::to_string(pending_bytes_) +
                           " bytes are pending, and the limit is " +
                           std::to_string(limits.pending_bytes) + "; wait for some of them",
                       std::chrono::milliseconds{500}};
    }
    return {};
}

MaybeRefused Models::accept(Ask& ask, StepRequest const& request, Step step) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const what = std::string{ask.operation} + ": ";
    auto const& [model_id, seq_id, print, form, bytes] = request;
    auto const found = find(ask.operation, model_id);
    if (!found) return found.refused();
    auto& model = **found;
    auto const owner = uses_.sessions.active(ask.operation, uses_.runs.find(model_id)->session);
    if (!owner) return owner.refused();
    uses_.runs.touch(model_id);
    if (auto no = check_number(what, model, request)) return no;
    auto const* const known = seq_id ? model.order.seen(*seq_id) : nullptr;
    if (known != nullptr) {
        send_request_id(ask, known->request_id, model_id);
        return {};
    }
    if (auto no = uses_.services.check_accepting(ask.operation)) return no;
    if (auto no = check_room(what, model, request)) return no;
    auto const request_id =
        model_id + ":" +
        (seq_id ? std::to_string(*seq_id) : "n" + std::to_string(++model.unnumbered));
    uses_.services.results->add(request_id, form, model_id);
    ++model.pending;
    pending_bytes_ += bytes;
    step_bytes_[request_id] = bytes;
    send_request_id(ask, request_id, model_id);
    model.order.add(seq_id, {print, request_id}, std::move(step));
    run_steps(model_id);
    return {};
}

void Models::run_steps(std::string const& id) {
    for (;;) {
        // A step may unload the model.
        auto const found = models_.find(id);
        if (found == models_.end()) return;
        auto due = found->second.order.next(uses_.services.scheduler.now());
        if (!due) return;
        due->step(due->request_id);
    }
}

void Models::refuse_step(StepName const& name) {
    auto const found = models_.find(name.model_id);
    if (found == models_.end() || !name.seq_id) return;
    found->second.order.refuse(*name.seq_id);
    run_steps(name.model_id);
}

void Models::skip_gaps() {
    auto const now = uses_.services.scheduler.now();
    auto const timeout = uses_.services.options.gap_timeout;
    std::vector<std::string> stuck;
    for (auto const& [id, model] : models_) {
        auto const since = model.order.gap_since();
        if (since && now - *since >= timeout) stuck.push_back(id);
    }
    for (auto const& id : stuck) {
        auto const found = models_.find(id);
        if (found == models_.end()) continue;
        // Whoever should have sent them has given up: clients send in order.
        auto const gap = found->second.order.skip_gap();
        uses_.services.log(LogLevel::warning, "local server: requests " +
                                                  std::to_string(gap.first) + " to " +
                                                  std::to_string(gap.last) + " of " + id +
                                                  " never came; going on without them");
        run_steps(id);
    }
}

void Models::end_step(std::string const& model_id, std::string const& request_id) {
    auto const found = models_.find(model_id);
    if (found != models_.end() && found->second.pending > 0) --found->second.pending;
    auto const bytes = step_bytes_.find(request_id);
    if (bytes == step_bytes_.end()) return;
    pending_bytes_ -= bytes->second;
    step_bytes_.erase(bytes);
}

void Models::complete(std::string const& model_id, std::string const& request_id,
                      std::string payload, std::vector<Change> more) {
    end_step(model_id, request_id);
    uses_.services.results->complete(request_id, std::move(payload), std::move(more));
}

void Models::fail(std::string const& model_id, std::string const& request_id, std::string error,
                  ErrorCategory category) {
    end_step(model_id, request_id);
    uses_.services.counters.add("tinkxx_requests_failed_total", {});
    uses_.services.results->fail(request_id, std::move(error), category);
}

void Models::fail(std::string const& model_id, std::string const& request_id, Error const& error) {
    fail(model_id, request_id, error.what(), error.category());
}

}  // namespace tinkxx::local
