#include "simulation/training/training_model.hpp"

#include "simulation/common/messages.hpp"
#include "simulation/sampling/sampling_model.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;
using testing::Reply;
using testing::SentRequest;

/// Sorts behind everything that has a number.
constexpr std::int64_t without_number = std::int64_t{1} << 40U;

std::string member(SentRequest const& request, std::string_view name) {
    return std::string{json_member(request.body, name)};
}

/// Whether a pass is a part of a call, and not its beginning.
bool is_later_chunk(TrainRequest const& request) {
    return request.pass() && !request.data.empty() && request.data.front().place() > 0;
}

}  // namespace

TrainingNature TrainingService::draw_nature(service::Random& random) {
    auto const chance = [&](double probability) { return random.unit() < probability; };
    auto const below = [&](std::uint64_t bound) {
        return static_cast<std::int64_t>(random.next() % bound);
    };
    using Takes = TrainingNature::Takes;
    TrainingNature nature;
    auto const kind = random.unit();
    if (kind < 0.2) {  // as old as they come
        nature.takes = Takes::json;
        nature.has_config = chance(0.5);
        nature.knows_repeats = false;
        nature.knows_repeated_saves = false;
        nature.waits_for_numbers = false;
        nature.parallel = false;
        constexpr std::array refusals{500, 500, 422, 415, 400};
        nature.refusal = refusals[random.next() % refusals.size()];
        nature.failure_is_400 = chance(0.7);
        nature.lost_is_404 = true;
    } else if (kind < 0.35) {  // takes passes as protobuf alone, and no new members
        nature.takes = Takes::protobuf;
        nature.old_members = true;
        nature.parallel = chance(0.5);
    } else if (kind < 0.45) {  // takes both, and forgets saves
        nature.parallel = false;
        nature.knows_repeated_saves = false;
        nature.waits_for_numbers = false;
        nature.failure_is_400 = true;
        nature.lost_is_404 = true;
    } else {
        nature.parallel = chance(0.7);
        nature.zstd = chance(0.4);
        nature.via_load = chance(0.4);
        nature.knows_repeated_saves = chance(0.7);
        nature.waits_for_numbers = nature.knows_repeated_saves;
    }
    nature.steps_have_metrics = !chance(0.2);
    if (chance(0.7)) nature.chunk_items = 1 + below(4);
    if (chance(0.3)) nature.chunk_bytes = 40 + below(400);
    if (chance(0.4)) nature.bytes_in_flight = below(200);
    if (chance(0.5)) nature.download_bytes = below(200);
    if (chance(0.3)) nature.billing_limit = 20s;
    if (!nature.has_config) {  // nobody hears of these
        nature.chunk_items.reset();
        nature.chunk_bytes.reset();
        nature.bytes_in_flight.reset();
        nature.download_bytes.reset();
        nature.billing_limit = TrainingNature{}.billing_limit;
        nature.parallel = true;  // what clients believe
    }
    if (chance(0.08)) {
        nature.hold = 0ns;
        nature.longest_job = 700ms;
    } else if (chance(0.1)) {
        nature.hold = 90s;  // longer than clients wait
        nature.longest_job = 60s;
    }
    if (chance(0.4)) nature.inline_bytes = random.next() % 400;
    return nature;
}

TrainingService::TrainingService(std::string name, std::uint64_t seed, testing::ManualClock& clock,
                                 testing::FakeTransport& transport, Tally& tally)
    : MoodyService{std::move(name), seed, clock, tally, {.probability = 0.03, .most_pieces = 4}},
      transport_{transport},
      nature_{draw_nature(random_)} {
    storm_ = random_.unit();
}

void TrainingService::calm() {
    MoodyService::calm();
    nature_.longest_job = std::min<std::chrono::nanoseconds>(nature_.longest_job, 2s);
    nature_.hold = std::min<std::chrono::nanoseconds>(nature_.hold, 20s);
}

void TrainingService::restart(bool loses) {
    count(loses ? "restart that loses work" : "restart that keeps work");
    for (auto at = jobs_.begin(); at != jobs_.end();) {
        auto const job = at->second;
        for (auto const& held : std::exchange(job->held, {})) {
            clock_.disarm(held->patience);
            transport_.fail(held->call, Failure{.kind = FailureKind::reset,
                                                .message = "the server restarts",
                                                .seen = Seen::maybe});
        }
        bool const gone = loses && !job->finished;
        if (gone) {
            count("job lost");
            clock_.disarm(job->work);
        }
        at = gone ? jobs_.erase(at) : std::next(at);
    }
    for (auto& [model, worker] : workers_) {
        clock_.disarm(worker.work);
        if (loses) {
            for (auto const& [place, job] : worker.queue) worker.taken.erase(place.first);
            worker.queue.clear();
        }
        look_for_work(model);
    }
}

void TrainingService::taken_for_old() { nature_.waits_for_numbers = false; }

void TrainingService::call_over(std::string const& mark, bool fell_over) {
    over_.insert(mark);
    if (fell_over) over_by_fall_.insert(mark);
    for (auto const& [model, worker] : workers_) look_for_work(model);
}

TrainingService::Answer TrainingService::serve(SentRequest const& request) {
    auto const path =
        request.path.starts_with(root) ? request.path.substr(root.size()) : std::string{};
    auto const copy =
        request.header("x-idempotency-key") + '/' + request.header("x-stainless-retry-count");
    if (spoilt_.contains(copy)) return reply(R"({"detail":"this came twice"})", 409);
    // A refusal of what it has taken before would be a lie that no client could see through.
    auto const read = read_train_request(request.path, request.body);
    auto spoilt = mood(request, path);
    if (spoilt && *spoilt && (*spoilt)->status == 400 && read &&
        workers_[read->request.model_id].came.contains(read->request.seq_id)) {
        spoilt.reset();
    }
    if (spoilt) {
        if (request.header("x-idempotency-key").size() > 0) spoilt_.insert(copy);
        note_spoilt(request, *spoilt);
        return *spoilt;
    }
    if (path == "retrieve_future") return poll(request);
    if (path == "asample") return sample(request);
    if (path == "client/config") return client_config();
    if (path == "client/dynamic_config") {
        return nature_.has_config ? reply("{}") : reply(R"({"detail":"Not Found"})", 404);
    }
    if (path == "create_session") return new_session();
    if (path == "create_sampling_session") return sampling_session(request);
    if (path == "weights_info") return weights_info(request);
    if (path == "get_info") {
        return reply(R"({"model_id":")" + member(request, "model_id") +
                     R"(","model_data":{"model_name":"org/tiny"}})");
    }
    if (path == "session_heartbeat" || path.ends_with("/finish")) return reply("{}");
    if (path == "telemetry") return reply(R"({"status":"accepted"})");
    return train(request, path);
}

std::optional<TrainingService::Answer> TrainingService::mood(SentRequest const& request,
                                                             std::string_view path) {
    bool const poll = path == "retrieve_future";
    if (outage_.on()) return outage_.reply(random_);
    if (blocked_ && path != "session_heartbeat") {
        count("402");
        return reply(R"({"detail":"the account is blocked"})", 402);
    }
    if (calm_ || !chance(0.3 * storm_)) return std::nullopt;
    auto const drawn = random_.unit();
    if (drawn < 0.04) {
        count("silence");
        return Answer{};
    }
    if (drawn < 0.25) {
        count("429");
        auto made = reply(R"({"detail":"too many"})", 429);
        if (chance(0.5)) made.headers.add("Retry-After-Ms", std::to_string(random_.next() % 9000));
        return made;
    }
    if (drawn < 0.50) {
        constexpr std::array statuses{500, 502, 503, 504, 529};
        auto const status = statuses[random_.next() % statuses.size()];
        count("5xx");
        auto made = reply(R"({"detail":"busy"})", status);
        if (status == 503 && chance(0.5)) {
            made.body = R"({"queue_state":"paused_capacity","queue_state_reason":"full"})";
        } else if (chance(0.1)) {
            count("plain 500");
            made.status = 500;
            made.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
            made.body = "Internal Server Error, " + request.header("x-api-key");
        }
        return made;
    }
    auto refused = common_refusal(drawn, {.timeout = 0.60, .locked = 0.70, .empty = 0.80}, poll);
    if (refused) return Answer{*std::move(refused)};
    if (drawn < 0.82) {
        count("400");
        return reply(R"({"detail":"no"})", 400);
    }
    return std::nullopt;
}

TrainingService::Answer TrainingService::client_config() {
    if (!nature_.has_config) {
        count("no configuration");
        return reply(R"({"detail":"Not Found"})", 404);
    }
    std::string flags = R"({"unknown_flag":1)";
    auto const add = [&](std::string_view name, std::string const& value) {
        (flags += ",\"").append(name).append("\":").append(value);
    };
    auto const told = [&](std::string_view name, std::optional<std::int64_t> value) {
        if (value) add(name, std::to_string(*value));
    };
    add("parallel_fwdbwd_chunks", nature_.parallel ? "true" : "false");
    add("proto_compress_fwdbwd", nature_.zstd ? "true" : "false");
    add("create_model_via_load_weights", nature_.via_load ? "true" : "false");
    told("billing_exception_max_pause_duration_sec", nature_.billing_limit.count());
    told("fwdbwd_max_chunk_len", nature_.chunk_items);
    told("fwdbwd_max_chunk_bytes_count", nature_.chunk_bytes);
    told("fwdbwd_dispatch_bytes_semaphore_size", nature_.bytes_in_flight);
    told("inflight_response_bytes_semaphore_size", nature_.download_bytes);
    return reply(flags + "}");
}

TrainingService::Answer TrainingService::weights_info(SentRequest const& request) {
    if (!checkpoints_.contains(member(request, "tinker_path"))) {
        complaints_.push_back("nobody saved " + member(request, "tinker_path"));
        return reply(R"({"detail":"no such checkpoint"})", 404);
    }
    return reply(R"({"base_model":"org/tiny","is_lora":true,"lora_rank":8})");
}

TrainingService::Answer TrainingService::sampling_session(SentRequest const& request) {
    auto const id =
        member(request, "session_id") + ":sample:" + member(request, "sampling_session_seq_id");
    auto const found = checkpoints_.find(member(request, "model_path"));
    if (found == checkpoints_.end()) {
        complaints_.emplace_back("nobody saved what a sampler is made of");
        return reply(R"({"detail":"no such checkpoint"})", 404);
    }
    sampler_weights_[id] = found->second.weights;
    return reply(R"({"sampling_session_id":")" + id + "\"}");
}

// Training ---------------------------------------------------------------------------------------

TrainingService::Answer TrainingService::train(SentRequest const& request, std::string_view path) {
    auto const declared = request.header("content-type");
    bool const protobuf = declared.find("protobuf") != std::string::npos;
    auto read = read_train_request(path, request.body);
    if (!read) {
        complaints_.push_back("nobody can read what was sent to " + request.path);
        return reply(R"({"detail":"Not Found"})", 404);
    }
    bool const zipped = request.header("content-encoding") == "zstd";
    if (read->protobuf != protobuf || read->zstd != zipped) {
        complaints_.push_back("the header lines do not fit the body for " + request.path);
    }
    if (read->zstd && !nature_.zstd) complaints_.emplace_back("compressed for no reason");
    if (auto refusal = refused_encoding(*read, path)) return refusal;
    if (read->request.pass()) {
        count(read->zstd ? "compressed pass" : read->protobuf ? "protobuf pass" : "JSON pass");
    }
    auto& asked = read->request;
    if (nature_.old_members && request.body.find("optimizer_config") != std::string::npos) {
        count("422");
        return reply(R"({"detail":[{"loc":["body","optimizer_config"],"msg":"extra"}]})", 422);
    }
    if (asked.kind == TrainKind::create_model || asked.kind == TrainKind::load_new) {
        return submit_new(request, asked);
    }
    if (!models_.contains(asked.model_id)) {
        complaints_.push_back("a request for no model: " + asked.model_id);
        return reply(R"({"detail":"no such model"})", 404);
    }
    return submit(request, std::move(asked));
}

TrainingService::Answer TrainingService::refused_encoding(ReadRequest const& read,
                                                          std::string_view path) {
    using Takes = TrainingNature::Takes;
    if (!read.request.pass()) return std::nullopt;
    if (read.protobuf && nature_.takes == Takes::json) {
        count("no protobuf");
        auto made = reply(R"({"detail":"what is this"})", nature_.refusal);
        if (nature_.refusal == 500) {
            made.headers = {{"Content-Type", "text/plain"}};
            made.body = "Internal Server Error";
        }
        return made;
    }
    if (!read.protobuf && nature_.takes == Takes::protobuf) {
        count("no JSON");
        return reply(R"({"detail":"protobuf only"})", path == "forward" ? 404 : 415);
    }
    return std::nullopt;
}

TrainingService::JobPtr TrainingService::make_job(SentRequest const& request, TrainRequest asked,
                                                  std::string id) {
    auto job = std::make_shared<Job>();
    job->id = std::move(id);
    job->mark = request.header(mark_line);
    job->request = std::move(asked);
    jobs_[job->id] = job;
    return job;
}

void TrainingService::begin_alone(JobPtr const& job, std::function<void(Job&)> work) {
    job->work.action = [this, weak = std::weak_ptr{job}, work = std::move(work)] {
        auto const found = weak.lock();
        if (!found) return;
        if (!calm_ && chance(0.02)) {
            count("failed request");
            found->failure = "it failed";
        } else {
            work(*found);
        }
        finish(*found);
    };
    clock_.arm(job->work, clock_.now() + span(nature_.longest_job), Precision::exact);
}

TrainingService::Answer TrainingService::known(Job const& job, TrainRequest const& asked) {
    if (job.request == asked) {
        count("repeat of a submit");
        return reply(R"({"request_id":")" + job.id + "\"}");
    }
    complaints_.push_back("a number was used again for another request: " + job.id);
    return reply(R"({"detail":"Training request sequence number was reused"})", 409);
}

TrainingService::Answer TrainingService::submit_new(SentRequest const& request,
                                                    TrainRequest const& asked) {
    auto const model = asked.session_id + ":train:" + std::to_string(asked.model_seq);
    auto const id = "create-" + model;
    if (auto const found = jobs_.find(id); found != jobs_.end()) {
        return known(*found->second, asked);
    }
    std::optional<ModelState> loaded;
    if (asked.kind == TrainKind::load_new) {
        count("model by load");
        if (!nature_.via_load) complaints_.emplace_back("a model by load, which is not offered");
        auto const found = checkpoints_.find(asked.name);
        if (found == checkpoints_.end()) {
            complaints_.push_back("nobody saved " + asked.name);
            return reply(R"({"detail":"no such checkpoint"})", 404);
        }
        loaded = found->second;
        if (!asked.optimizer) loaded->optimizer = 0;
        loaded->gradient = 0;
    }
    auto const job = make_job(request, asked, id);
    begin_alone(job, [this, model, loaded](Job& done) {
        auto const [place, fresh] = models_.try_emplace(model);
        if (fresh) place->second.born = place->second.state = loaded.value_or(fresh_state(model));
        done.json = R"({"model_id":")" + model + "\"}";
    });
    return reply(R"({"request_id":")" + id + "\"}");
}

TrainingService::Answer TrainingService::submit(SentRequest const& request, TrainRequest asked) {
    auto& worker = workers_[asked.model_id];
    bool const saves = !asked.pass() && asked.kind != TrainKind::optim_step;
    bool const named =
        asked.kind == TrainKind::load_state ||
        ((asked.kind == TrainKind::save_state || asked.kind == TrainKind::save_for_sampler) &&
         !asked.name.empty());
    bool const recognised = saves ? nature_.knows_repeated_saves || !named : nature_.knows_repeats;
    auto const number = asked.seq_id > 0 ? asked.seq_id : without_number;
    auto id = asked.model_id + '/' + std::to_string(number);
    if (auto const found = jobs_.find(id); recognised && found != jobs_.end()) {
        return known(*found->second, asked);
    }
    if (asked.kind != TrainKind::unload && asked.seq_id < 1) {
        complaints_.push_back("a request without a number for " + asked.model_id);
    }
    if (saves && !recognised && worker.taken.contains(number)) {
        count("repeat of a save that is not recognised");
        if (asked.kind == TrainKind::load_state) {
            return reply(R"({"detail":"LoadWeights is not permitted now"})", 400);
        }
        return reply(R"({"detail":"the checkpoint exists"})", 409);
    }
    if (asked.kind == TrainKind::load_state && !checkpoints_.contains(asked.name)) {
        complaints_.push_back("nobody saved " + asked.name);
        return reply(R"({"detail":"no such checkpoint"})", 404);
    }
    auto const arrival = arrivals_++;
    if (!recognised) id += '/' + std::to_string(arrival);
    auto const model = asked.model_id;
    auto const job = make_job(request, std::move(asked), std::move(id));
    worker.queue.emplace(Place{number, arrival}, job);
    worker.taken.insert(number);
    worker.came.insert(number);
    if (!is_later_chunk(job->request)) worker.begun.emplace(job->mark, job->request.kind);
    watch(model, number);
    if (!calm_ && worker.queue.size() == 1 && may_work(worker) && chance(0.02)) {
        clock_.disarm(worker.work);
        work(model);
        if (job->finished && job->failure.empty()) {
            count("result at once");
            return reply(R"({"status":"completed","result":)" + job->json + "}");
        }
    }
    look_for_work(model);
    return reply(R"({"request_id":")" + job->id + "\"}");
}

bool TrainingService::may_work(Worker const& worker) {
    if (worker.queue.empty()) return false;
    auto const& [place, job] = *worker.queue.begin();
    if (nature_.waits_for_numbers) {
        if (!missing(worker, place.first)) return true;
        count("held back for a number");
        return false;
    }
    if (!is_later_chunk(job->request) || over_.contains(job->mark) ||
        worker.begun.contains({job->mark, job->request.kind})) {
        return true;
    }
    count("chunk held back");
    return false;
}

std::optional<std::int64_t> TrainingService::missing(Worker const& worker,
                                                     std::int64_t number) const {
    if (number == without_number) return std::nullopt;
    // Before an unload nothing more comes.
    bool const unloads =
        !worker.queue.empty() && worker.queue.rbegin()->first.first == without_number;
    if (unloads) return std::nullopt;
    for (std::int64_t each = 1; each < number; ++each) {
        if (worker.came.contains(each)) continue;
        auto const found = worker.fallen_over.find(each);
        if (found == worker.fallen_over.end()) return each;
        auto const& [mark, since] = found->second;
        if (!over_by_fall_.contains(mark) && clock_.now() - since < 290s) return each;
    }
    return std::nullopt;
}

/// What the service falls over nobody sends again, nor uses its number.
void TrainingService::note_spoilt(SentRequest const& request, Answer const& answer) {
    auto const read = read_train_request(request.path, request.body);
    if (!read || read->request.model_id.empty() || read->request.seq_id < 1) return;
    auto& fallen_over = workers_[read->request.model_id].fallen_over;
    if (!answer || (answer->status != 500 && answer->status != 409)) {
        fallen_over.erase(read->request.seq_id);
        return;
    }
    fallen_over.try_emplace(
        read->request.seq_id,
        Worker::FallenOver{.mark = request.header(mark_line), .since = clock_.now()});
}

void TrainingService::watch(std::string const& model, std::int64_t number) {
    auto const& worker = workers_[model];
    auto const& job = *worker.queue.lower_bound({number, 0})->second;
    if (!nature_.waits_for_numbers || is_later_chunk(job.request) || !missing(worker, number)) {
        return;
    }
    auto& alarm = watches_.emplace_back();
    alarm.action = [this, model, number] {
        if (auto const lacking = missing(workers_[model], number)) {
            complaints_.push_back("request " + std::to_string(number) + " of " + model +
                                  " has waited for a second for request " +
                                  std::to_string(*lacking) + ", which has not come");
        }
    };
    clock_.arm(alarm, clock_.now() + 1s, Precision::exact);
}

void TrainingService::look_for_work(std::string const& model) {
    auto& worker = workers_[model];
    if (worker.work.armed() || !may_work(worker)) return;
    worker.work.action = [this, model] {
        work(model);
        look_for_work(model);
    };
    clock_.arm(worker.work, clock_.now() + span(nature_.longest_job), Precision::exact);
}

void TrainingService::work(std::string const& model) {
    auto& worker = workers_[model];
    auto const first = worker.queue.begin();
    if (first == worker.queue.end()) return;
    auto const job = first->second;
    worker.done.insert(first->first.first);
    worker.queue.erase(first);
    if (!calm_ && chance(0.02)) {
        count("failed request");
        job->failure = "it failed";
    } else {
        apply(models_.at(model), *job);
    }
    finish(*job);
}

void TrainingService::apply(TrainedModel& model, Job& job) {
    auto const& asked = job.request;
    auto const path = [&asked](std::string_view kind) {
        return "tinker://" + asked.model_id + "/" + std::string{kind} + "/" + asked.name;
    };
    auto const saved = [](std::string const& where) { return R"({"path":")" + where + "\"}"; };
    switch (asked.kind) {
        case TrainKind::forward:
        case TrainKind::forward_backward: {
            auto const result = apply_pass(model.state, asked);
            job.json = pass_json(result);
            job.proto = pass_proto(result);
            if (chance(0.004)) {  // read aside
                job.json.pop_back();
                job.json += R"(,"note":")" + std::string(80'000, 'x') + "\"}";
            }
            break;
        }
        case TrainKind::optim_step: {
            auto const told =
                std::to_string(static_cast<std::uint64_t>(apply_step(model.state, asked)));
            job.json = nature_.steps_have_metrics ? R"({"metrics":{"state:unique":)" + told + "}}"
                                                  : R"({"metrics":null})";
            break;
        }
        case TrainKind::save_state:
            checkpoints_[path("weights")] = model.state;
            job.json = saved(path("weights"));
            break;
        case TrainKind::save_external:
            job.json = saved(path("external_weights"));
            break;
        case TrainKind::save_for_sampler:
            if (asked.name.empty()) {
                auto const id = asked.model_id.substr(0, asked.model_id.find(":train:")) +
                                ":sample:" + std::to_string(asked.sampling_session_seq);
                sampler_weights_[id] = model.state.weights;
                job.json = R"({"path":null,"sampling_session_id":")" + id + "\"}";
            } else {
                checkpoints_[path("sampler_weights")] = model.state;
                job.json = saved(path("sampler_weights"));
            }
            break;
        case TrainKind::load_state: {
            auto const& from = checkpoints_.at(asked.name);
            model.state = {.weights = from.weights,
                           .optimizer = asked.optimizer ? from.optimizer : 0};
            job.json = saved(asked.name);
            break;
        }
        default:
            job.json = R"({"model_id":")" + asked.model_id + "\"}";
    }
    model.log.push_back({.request = asked, .state = model.state});
}

// Results ----------------------------------------------------------------------------------------

void TrainingService::finish(Job& job) {
    job.finished = true;
    for (auto const& held : std::exchange(job.held, {})) {
        clock_.disarm(held->patience);
        transport_.release(held->call, result_of(job, held->protobuf, held->metadata));
    }
}

Reply TrainingService::result_of(Job const& job, bool protobuf, bool metadata) {
    if (!job.failure.empty()) {
        if (nature_.failure_is_400) return reply(R"({"detail":")" + job.failure + "\"}", 400);
        return reply(R"({"error":")" + job.failure + R"(","category":"server"})");
    }
    bool const proto =
        protobuf && !job.proto.empty() && nature_.takes != TrainingNature::Takes::json;
    auto const& body = proto ? job.proto : job.json;
    if (metadata && body.size() > nature_.inline_bytes) {
        count("metadata");
        return reply(R"({"status":"complete_metadata","request_id":")" + job.id +
                     R"(","response_payload_size":)" + std::to_string(body.size()) + "}");
    }
    count(proto ? "protobuf result" : "JSON result");
    auto made = reply(body);
    if (proto) made.headers = {{"Content-Type", "application/x-protobuf"}};
    return made;
}

Reply TrainingService::not_yet(Job const& job) {
    auto const drawn = random_.unit();
    if (drawn < 0.5) {
        count("try_again");
        return reply(R"({"type":"try_again","request_id":")" + job.id +
                     R"(","queue_state":"active"})");
    }
    if (drawn < 0.9) {
        count("408 with a queue state");
        return reply(R"({"queue_state":"paused_capacity","queue_state_reason":"busy"})", 408);
    }
    count("pending");
    return reply(R"({"status":"pending"})");
}

Reply TrainingService::lost(std::string const& id) {
    count(nature_.lost_is_404 ? "lost result, 404" : "lost result, 410");
    return reply(R"({"detail":"no request )" + id + "\"}", nature_.lost_is_404 ? 404 : 410);
}

TrainingService::Answer TrainingService::poll(SentRequest const& request) {
    auto const id = member(request, "request_id");
    auto const found = jobs_.find(id);
    if (found == jobs_.end()) return lost(id);
    auto const job = found->second;
    if (!calm_ && job->finished && chance(0.01 * storm_)) {
        count("result forgotten");
        return lost(id);
    }
    auto const held = std::make_shared<Held>();
    held->call = request.call;
    held->protobuf = request.header("accept").find("protobuf") != std::string::npos;
    held->metadata = json_member(request.body, "allow_metadata_only") == "true";
    if (job->finished) return result_of(*job, held->protobuf, held->metadata);
    if (nature_.hold <= 0ns) return not_yet(*job);
    held->patience.action = [this, weak = std::weak_ptr{job}, waiting = held.get()] {
        auto const of = weak.lock();
        if (!of) return;
        auto const at = std::ranges::find(of->held, waiting, &std::shared_ptr<Held>::get);
        if (at == of->held.end()) return;
        auto const keep = *at;
        of->held.erase(at);
        transport_.release(keep->call, not_yet(*of));
    };
    clock_.arm(held->patience, clock_.now() + nature_.hold, Precision::exact);
    job->held.push_back(held);
    return std::nullopt;
}

TrainingService::Answer TrainingService::sample(SentRequest const& request) {
    auto const session = member(request, "sampling_session_id");
    auto const weights = sampler_weights_.find(session);
    if (weights == sampler_weights_.end()) {
        complaints_.push_back("a sample of nothing: " + session);
        return reply(R"({"detail":"no such sampling session"})", 404);
    }
    auto const id = "sample-" + session + ':' + member(request, "seq_id");
    if (!jobs_.contains(id)) {
        auto const job = make_job(request, {}, id);
        begin_alone(job, [tokens = drawn_tokens(weights->second)](Job& done) {
            done.json = R"({"sequences":[{"stop_reason":"stop","tokens":[)" +
                        std::to_string(tokens[0]) + ',' + std::to_string(tokens[1]) +
                        R"(],"logprobs":[-0.5,-0.25]}],"type":"sample"})";
        });
    }
    return reply(R"({"request_id":")" + id + R"(","sample_sequence_ids":[")" + id + "/0\"]}");
}

}  // namespace tinkxx::simulation
