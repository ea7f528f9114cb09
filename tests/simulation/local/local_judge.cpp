#include "simulation/local/local_judge.hpp"

#include "simulation/common/messages.hpp"
#include "simulation/sampling/sampling_model.hpp"
#include "wire/sampling/sample.hpp"
#include "wire/server/requests.hpp"
#include "wire/training/training.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <utility>

namespace tinkxx::simulation {

namespace {

constexpr std::string_view root = "/api/v1/";

std::string session_of(std::string_view id) { return std::string{id.substr(0, id.find(':'))}; }

std::string owner_of(std::string const& request_id) {
    return request_id.substr(0, request_id.rfind(':'));
}

void replace_all(std::string& text, std::string const& from, std::string const& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

bool is_json(std::string_view type) { return type.find("json") != std::string_view::npos; }

boost::json::object object_of(std::string_view text) {
    auto value = boost::json::parse(text);
    return value.is_object() ? std::move(value.as_object()) : boost::json::object{};
}

std::string text_of(boost::json::object const& object, std::string_view name) {
    auto const* const found = object.if_contains(name);
    if (found == nullptr || !found->is_string()) return {};
    return {found->as_string().data(), found->as_string().size()};
}

bool saves(TrainKind kind) {
    return kind == TrainKind::save_state || kind == TrainKind::save_for_sampler ||
           kind == TrainKind::save_external;
}

std::string path_of(TrainRequest const& request) {
    std::string_view const kind = request.kind == TrainKind::save_state ? "weights"
                                  : request.kind == TrainKind::save_for_sampler
                                      ? "sampler_weights"
                                      : "external_weights";
    return "tinker://" + request.model_id + "/" + std::string{kind} + "/" + request.name;
}

Result<SampleResponse> sample_in(ServerReply const& answered) {
    auto response = is_json(answered.type) ? wire::decode_sample_json(answered.body)
                                           : wire::decode_sample_proto(answered.body);
    // What was in the cache depends on what came before.
    if (response) response->prompt_cache_hit_tokens = 0;
    return response;
}

}  // namespace

LocalJudge::~LocalJudge() = default;

int LocalJudge::life_of(std::string const& model_id) const {
    auto const found = models_.find(model_id);
    return found == models_.end() ? 0 : found->second.creation.served.life;
}

// What the server says ---------------------------------------------------------------------------

void LocalJudge::on_asked(Served const& served) {
    if (served.path.ends_with("/cancel_future")) {
        results_[std::string{json_member(served.body, "request_id")}].cancelled = true;
    }
    if (!served.path.ends_with("/retrieve_futures")) return;
    auto const asked = wire::server::decode_retrieve_futures(served.body);
    if (!asked) return;
    for (auto const& id : asked->retrieved_request_ids) results_[id].acknowledged = true;
}

void LocalJudge::on_served(Served const& served) {
    if (!served.path.starts_with(root)) return;
    auto const name = served.path.substr(root.size());
    ++tally_["answer: " + name.substr(0, name.find('/')) + ' ' + std::to_string(served.status)];
    if (served.path.ends_with("/finish") && served.status == 200) {
        finished_.insert(name.substr(name.find('/') + 1, 36));
    }
    if (name == "retrieve_future") return on_poll(served);
    if (name == "retrieve_futures") return on_completions(served);
    if (served.status != 200) return;
    if (name == "create_session") {
        sessions_.insert(std::string{json_member(served.answer, "session_id")});
    } else if (name == "asample") {
        on_sample(served);
    } else if (name == "create_sampling_session") {
        samplers_.emplace(json_member(served.answer, "sampling_session_id"), served);
    } else if (name == "copy_weights") {
        auto const path = text_of(object_of(served.answer), "tinker_path");
        auto const [at, fresh] = copies_.emplace(served.idempotency_key, path);
        if (at->second != path) problem("one copy was made twice: " + path);
        sources_[path] = text_of(object_of(served.body), "source_path");
    } else if (auto const read = read_train_request(served.path, served.body)) {
        on_step(served, *read);
    }
}

void LocalJudge::on_model(Served const& served, ReadRequest const& read) {
    auto const id = std::string{json_member(served.answer, "model_id")};
    auto const request_id = std::string{json_member(served.answer, "request_id")};
    auto const [at, fresh] = models_.try_emplace(id);
    auto& model = at->second;
    if (fresh) {
        model.id = id;
        model.creation = {.request = read.request, .served = served, .request_id = request_id};
        results_[request_id].step = true;
        results_[request_id].life = served.life;
        return;
    }
    ++tally_["server: repeat of a submit"];
    if (model.creation.request_id != request_id) problem("a model was promised twice: " + id);
    if (results_[request_id].finished) return;
    if (model.creation.served.life != served.life) {
        // Nothing of it was known any more, so it is made anew.
        model.creation.served = served;
        results_[request_id].life = served.life;
    }
}

void LocalJudge::on_step(Served const& served, ReadRequest const& read) {
    auto const& request = read.request;
    if (request.kind == TrainKind::create_model || request.kind == TrainKind::load_new) {
        return on_model(served, read);
    }
    auto const found = models_.find(request.model_id);
    if (found == models_.end()) {
        return problem("a request of a model that nobody made was accepted: " + request.model_id);
    }
    auto& model = found->second;
    if (model.unloaded && request.kind == TrainKind::unload) return;
    if (model.creation.served.life != served.life) {
        problem("a request of a model of an earlier life was accepted: " + request.model_id);
    }
    if (request.kind == TrainKind::unload) {
        model.unloaded = true;
        return;
    }
    auto const request_id = std::string{json_member(served.answer, "request_id")};
    auto const [at, fresh] = model.steps.try_emplace(request.seq_id);
    auto& step = at->second;
    if (!fresh) {
        ++tally_["server: repeat of a submit"];
        auto again = request;
        again.sampling_session_seq = step.request.sampling_session_seq;
        if (again != step.request) problem("one number stands for two requests: " + request_id);
        if (step.request_id != request_id) problem("one request got two ids: " + request_id);
        return;
    }
    step = {.request = request, .served = served, .request_id = request_id};
    if (at != std::prev(model.steps.end())) ++tally_["server: request after a later one"];
    auto& pending = results_[request_id];
    pending.step = true;
    pending.life = served.life;
    by_mark_[served.mark][request.seq_id] = request_id;
    ++tally_["step: " + std::string{to_string(request.kind)}];
    if (served.content_type.find("protobuf") != std::string::npos) ++tally_["step: protobuf"];
}

void LocalJudge::on_sample(Served const& served) {
    auto const id = std::string{json_member(served.answer, "request_id")};
    auto const [at, fresh] = samples_.try_emplace(id);
    if (!fresh) {
        ++tally_["server: repeat of a sample"];
        return;
    }
    auto const asked = wire::server::decode_sample("asample", served.body);
    at->second = {.served = served,
                  .sampler = asked ? asked->sampling_session_id.value_or("") : "",
                  .seeded = asked && asked->params.seed};
    auto& pending = results_[id];
    pending.life = served.life;
    pending.durable = true;
    auto& mine = by_mark_[served.mark];
    mine[static_cast<std::int64_t>(mine.size())] = id;
}

void LocalJudge::on_clean_stop(int life) {
    for (auto& [id, pending] : results_) {
        if (pending.step && pending.life == life) pending.durable = true;
    }
}

void LocalJudge::on_poll(Served const& served) {
    auto const id = std::string{json_member(served.body, "request_id")};
    auto& pending = results_[id];
    if (served.status == 404 || served.status == 410) {
        bool const over = pending.acknowledged || pending.cancelled ||
                          (pending.fetched && clock_.now() - *pending.fetched >= fetched_keep_);
        if ((pending.finished || pending.durable) && !over) {
            problem("a result is lost: " + id + ", " + served.answer);
        }
        ++tally_[pending.step ? "server: step lost" : "server: result lost"];
        return;
    }
    if (served.status != 200) return;
    auto& worked = worked_[id.substr(0, id.rfind(':'))];
    if (is_json(served.answer_type)) {
        auto const type = json_member(served.answer, "type");
        if (type == "try_again") {
            ++tally_["server: try_again"];
            bool const told = !json_member(served.answer, "queue_state_reason").empty();
            if (told) ++tally_["server: poll of a request that is held back"];
            // Just when it was held back no more, and its turn has not come yet.
            bool const busy = worked && clock_.now() - *worked < std::chrono::seconds{1};
            if (!told && !busy && !crowded())
                problem("a poll waited in vain and was not told why: " + id);
            if (pending.finished) problem("a result is there and is not told: " + id);
            return;
        }
        if (json_member(served.answer, "status") == "complete_metadata") {
            worked = clock_.now();
            ++tally_["server: metadata"];
            pending.finished = true;
            return;
        }
    }
    worked = clock_.now();
    on_result(id, pending, served);
}

void LocalJudge::on_result(std::string const& id, PendingResult& pending, Served const& served) {
    if (!pending.finished || pending.result.status == 0) {
        if (pending.life != served.life) ++tally_["server: result of an earlier life"];
    } else if (pending.result.type == served.answer_type && pending.result.body != served.answer) {
        problem("a result has changed: " + id);
    }
    pending.finished = true;
    pending.result = {.status = 200, .type = served.answer_type, .body = served.answer};
    pending.accept = served.accept;
    if (!pending.fetched) pending.fetched = clock_.now();
    if (!is_json(served.answer_type)) return;
    auto const object = object_of(served.answer);
    auto const path = text_of(object, "path");
    if (path.empty() || text_of(object, "type") == "load_weights") return;
    auto const seq = std::strtoll(id.c_str() + id.rfind(':') + 1, nullptr, 10);
    saved_[path] = std::max<std::int64_t>(saved_[path], seq);
}

void LocalJudge::on_completions(Served const& served) {
    if (served.status != 200) return;
    auto const answer = object_of(served.answer);
    for (auto const& each : answer.at("completions").as_array()) {
        auto const id = text_of(each.as_object(), "request_id");
        ++tally_["server: completion told"];
        results_[id].finished = true;
    }
}

// The replay ------------------------------------------------------------------------------------

std::string LocalJudge::to_quiet(std::string text) const {
    for (auto const& [old_id, new_id] : quiet_sessions_) replace_all(text, old_id, new_id);
    return text;
}

std::string LocalJudge::from_quiet(std::string text) const {
    for (auto const& [old_id, new_id] : quiet_sessions_) replace_all(text, new_id, old_id);
    return text;
}

ServerReply LocalJudge::post(std::string_view path, std::string body, Served const& like) {
    local::ServerRequest request{.method = "POST",
                                 .target = std::string{root} + std::string{path},
                                 .body = to_quiet(std::move(body))};
    if (!like.content_type.empty()) request.headers.add("Content-Type", like.content_type);
    if (!like.accept.empty()) request.headers.add("Accept", like.accept);
    return ask_server(*quiet_, *quiet_clock_, std::move(request));
}

ServerReply LocalJudge::repeat(Served const& served, std::string const& request_id) {
    auto accepted = post(served.path.substr(root.size()), served.body, served);
    if (accepted.status != 200) {
        problem("a quiet server refuses " + request_id + ": " + accepted.body);
        return accepted;
    }
    Served like;
    like.accept = results_[request_id].accept;
    auto result = post("retrieve_future", R"({"request_id":")" + request_id + R"("})", like);
    if (is_json(result.type)) result.body = from_quiet(std::move(result.body));
    return result;
}

void LocalJudge::create(Model& model) {
    if (std::exchange(model.created, true)) return;
    auto const& creation = model.creation;
    if (creation.request.kind == TrainKind::load_new) need(creation.request.name);
    compare(creation.request_id, repeat(creation.served, creation.request_id), false);
}

void LocalJudge::advance(Model& model, std::int64_t to) {
    create(model);
    for (auto& [seq, step] : model.steps) {
        if (seq <= model.replayed || seq > to) continue;
        model.replayed = seq;
        auto const& request = step.request;
        if (request.kind == TrainKind::load_state) need(request.name);
        compare(step.request_id, repeat(step.served, step.request_id), false);
        if (!saves(request.kind) || request.name.empty()) continue;
        auto const path = path_of(request);
        prints_[path][seq] = fingerprint(*quiet_, *quiet_clock_, to_quiet(path));
    }
}

/// Lets the model of a checkpoint come as far as the request that saves it.
void LocalJudge::need(std::string const& path) {
    for (auto& [id, model] : models_) {
        if (!path.starts_with("tinker://" + id + "/")) continue;
        for (auto const& [seq, step] : model.steps) {
            if (saves(step.request.kind) && path_of(step.request) == path) {
                return advance(model, seq);
            }
        }
    }
    problem("a checkpoint that nobody saved: " + path);
}

bool LocalJudge::need_sampler(std::string const& sampler) {
    if (auto const found = samplers_.find(sampler); found != samplers_.end()) {
        if (!quiet_samplers_.insert(sampler).second) return true;
        auto const path = text_of(object_of(found->second.body), "model_path");
        if (!path.empty()) need(path);
        auto const made = post("create_sampling_session", found->second.body, found->second);
        if (made.status != 200) problem("a quiet server refuses a sampler: " + made.body);
        return true;
    }
    for (auto& [id, model] : models_) {
        if (session_of(id) != session_of(sampler)) continue;
        for (auto const& [seq, step] : model.steps) {
            auto const& request = step.request;
            bool const unnamed =
                request.kind == TrainKind::save_for_sampler && request.name.empty();
            auto const its =
                session_of(id) + ":sample:" + std::to_string(request.sampling_session_seq);
            if (!unnamed || its != sampler) continue;
            advance(model, seq);
            return true;
        }
    }
    return false;
}

void LocalJudge::replay(local::Handler& quiet, testing::ManualClock& clock) {
    quiet_ = &quiet;
    quiet_clock_ = &clock;
    for (auto const& id : sessions_) {
        auto const made = post("create_session", "{}", {});
        quiet_sessions_[id] = std::string{json_member(made.body, "session_id")};
    }
    for (auto& [id, model] : models_) advance(model, std::numeric_limits<std::int64_t>::max());
    for (auto& [id, sample] : samples_) {
        if (!need_sampler(sample.sampler)) {
            problem("a sampler that nobody made: " + sample.sampler);
            continue;
        }
        if (results_[id].result.status == 0) continue;  // nobody fetched it
        compare(id, repeat(sample.served, id), true);
    }
}

void LocalJudge::compare(std::string const& id, ServerReply quiet, bool sample) {
    auto const& kept = quiet_results_[id] = std::move(quiet);
    auto const& pending = results_[id];
    auto const& given = pending.result;
    if (given.status == 0) return;  // nobody asked for it, or it was lost
    ++tally_[sample ? "compared: sample" : "compared: step"];
    if (is_json(given.type)) {
        auto const error = text_of(object_of(given.body), "error");
        auto const model = models_.find(owner_of(id));
        bool const unloaded = model != models_.end() &&
                              (model->second.unloaded || finished_.contains(session_of(id)));
        if (unloaded && error.find("unloaded before") != std::string::npos) return;
        if (sample && !error.empty() && (pending.cancelled || finished_.contains(session_of(id)))) {
            return;
        }
    }
    if (!sample) {
        if (given.type != kept.type || given.body != kept.body) {
            problem("the result of " + id + " is not that of a quiet server: " +
                    (is_json(given.type) ? given.body + " for " + kept.body : "other numbers"));
        }
        return;
    }
    auto const mine = sample_in(given);
    auto const theirs = sample_in(kept);
    if (!mine || !theirs) return problem("a sample cannot be read: " + id + ", " + given.body);
    if (mine->sequences.size() != theirs->sequences.size()) problem("too few samples: " + id);
    if (samples_.at(id).seeded && *mine != *theirs) {
        problem("a sample with a seed is not that of a quiet server: " + id);
    }
}

LocalJudge::Print LocalJudge::fingerprint(local::Handler& server, testing::ManualClock& clock,
                                          std::string const& path) {
    auto const ask = [&](std::string const& what, std::string body) {
        local::ServerRequest request{
            .method = "POST", .target = std::string{root} + what, .body = std::move(body)};
        return ask_server(server, clock, std::move(request));
    };
    auto const accepted = ask(
        "asample", R"({"model_path":")" + path +
                       R"(","prompt":{"chunks":[{"tokens":[3,5,7,2,11]}]},"num_samples":1,)" +
                       R"("prompt_logprobs":true,"sampling_params":{"max_tokens":1,"seed":3}})");
    auto const id = std::string{json_member(accepted.body, "request_id")};
    auto const drawn = ask("retrieve_future", R"({"request_id":")" + id + R"("})");
    auto const response = wire::decode_sample_json(drawn.body);
    if (!response || !response->prompt_logprobs) return {};
    return *response->prompt_logprobs;
}

// The audit --------------------------------------------------------------------------------------

void LocalJudge::audit(local::Handler& server, testing::ManualClock& clock) {
    auto const listed = ask_server(
        server, clock, {.method = "GET", .target = std::string{root} + "checkpoints?limit=10000"});
    if (listed.status != 200) return problem("checkpoints cannot be listed: " + listed.body);
    std::set<std::string> paths;
    auto const list = object_of(listed.body);
    for (auto const& each : list.at("checkpoints").as_array()) {
        paths.insert(text_of(each.as_object(), "tinker_path"));
    }
    auto wanted = saved_;
    for (auto const& [key, path] : copies_) wanted[path];
    for (auto const& [path, seq] : wanted) {
        bool const external = path.find("/external_weights/") != std::string::npos;
        if (!external && !paths.contains(path)) problem("a checkpoint is lost: " + path);
    }
    for (auto const& path : paths) {
        ++tally_["audited: checkpoint"];
        auto const holds = fingerprint(server, clock, path);
        if (holds.empty()) {
            problem("a checkpoint is listed and cannot be loaded: " + path);
            continue;
        }
        auto source = path;
        while (sources_.contains(source)) source = sources_.at(source);
        auto const known = prints_.find(source);
        if (known == prints_.end()) {
            // A copy whose maker was never told of it.
            if (saved_.contains(path)) problem("nothing is known of " + path);
            ++tally_["audited: copy that nobody knows"];
            continue;
        }
        // One that was overwritten may hold what came after the last that was acknowledged.
        auto const from =
            known->second.lower_bound(saved_.contains(source) ? saved_.at(source) : 0);
        if (std::ranges::none_of(from, known->second.end(),
                                 [&](auto const& each) { return each.second == holds; })) {
            problem("a checkpoint does not hold what was saved: " + path);
        }
    }
}

// What callers got -------------------------------------------------------------------------------

std::optional<std::vector<ForwardBackwardOutput>> LocalJudge::passes_of(
    std::string const& mark) const {
    auto const found = by_mark_.find(mark);
    if (found == by_mark_.end()) return std::nullopt;
    std::vector<ForwardBackwardOutput> all;
    for (auto const& [seq, id] : found->second) {
        auto const result = quiet_results_.find(id);
        if (result == quiet_results_.end()) return std::nullopt;
        auto const& [status, type, body] = result->second;
        auto output = is_json(type) ? wire::decode_forward_backward_json("replay", body)
                                    : wire::decode_forward_backward_proto("replay", body);
        if (!output) return std::nullopt;
        all.push_back(*std::move(output));
    }
    return all;
}

std::optional<OptimStepResult> LocalJudge::step_of(std::string const& mark) const {
    auto const found = by_mark_.find(mark);
    if (found == by_mark_.end() || found->second.size() != 1) return std::nullopt;
    auto const result = quiet_results_.find(found->second.begin()->second);
    if (result == quiet_results_.end()) return std::nullopt;
    auto step = wire::decode_optim_step(result->second.body);
    return step ? std::optional{*std::move(step)} : std::nullopt;
}

std::optional<SampleResponse> LocalJudge::sample_of(std::string const& mark) const {
    auto const found = by_mark_.find(mark);
    if (found == by_mark_.end()) return std::nullopt;
    for (auto const& [seq, id] : found->second) {
        auto const result = quiet_results_.find(id);
        if (!samples_.contains(id) || result == quiet_results_.end()) continue;
        if (auto response = sample_in(result->second)) return *std::move(response);
    }
    return std::nullopt;
}

}  // namespace tinkxx::simulation
