#include "simulation/training/training_world.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::simulation::training_world {

using namespace std::chrono_literals;

namespace {

/// For so long a submit is repeated (R-RETRY-80).
constexpr auto submit_budget = 300s;

}  // namespace

void World::make() {
    make_clients();
    make_scripts();
    make_weather();
}

UserCall* World::call_of(RecordedExchange const& exchange) {
    auto const* mark = exchange.lines.find(mark_line);
    if (mark == nullptr) return nullptr;
    auto const found = marks_.find(*mark);
    if (found == marks_.end()) {
        problem("a mark that nobody made: " + *mark);
        return nullptr;
    }
    return found->second;
}

TrainJudge& World::judge_of(Endpoint& endpoint, std::string const& model) {
    auto& judge = endpoint.judges[model];
    if (!judge) {
        judge = std::make_unique<TrainJudge>(
            model, [this](std::string what) { problem(std::move(what)); });
    }
    return *judge;
}

// The world ---------------------------------------------------------------------------------------

Endpoint& World::make_endpoint(std::string const& url, std::uint64_t seed) {
    auto& endpoint = endpoints_[url];
    if (endpoint.service) return endpoint;
    endpoint.service =
        std::make_unique<TrainingService>(url.substr(7), seed, *clock_, *fake_, outcome_.occurred);
    auto const& nature = endpoint.service->nature();
    endpoint.network =
        std::make_shared<testing::FaultyTransport>(*clock_, fake_, faults_for(nature));
    endpoint.known_old = !nature.has_config;
    serve_at(url, *endpoint.service);
    return endpoint;
}

void World::make_clients() {
    auto const clients = chance(0.25) ? 2U : 1U;
    bool const same_url = chance(0.7);
    for (std::size_t i = 0; i < clients; ++i) {
        auto& client = clients_.emplace_back(*this, i);
        auto const url = "http://service-" + (same_url ? "0" : std::to_string(i));
        client.endpoint = &make_endpoint(url, seed_ * 2 + i);
        client.connect(*clock_, client.endpoint->network);
        auto& options = client.options;
        options = client_options(url, std::string{key_mark} + "0", client);
        options.telemetry = chance(0.3);
        options.max_retries = chance(0.2) ? 2 : 10;
        options.log_level = chance(0.3) ? LogLevel::debug : LogLevel::warning;
        options.otel_propagate = true;
        options.trace_propagator = [this] {
            Headers lines;
            lines.add(std::string{mark_line}, mark_);
            return lines;
        };
        if (chance(0.4)) options.chunks.items = 1 + below(4);
        if (chance(0.2)) options.chunks.bytes = 40 + below(400);
        if (chance(0.3)) options.chunks.bytes_in_flight = 1 + below(200);
        if (chance(0.1)) options.poll_backoff = ExponentialPollBackoff{};
        // Whoever does not repeat leaves gaps, for which some services wait.
        if (chance(0.1)) options.repeat_steps = chance(0.5) || client.nature().waits_for_numbers;
        if (chance(0.1)) {
            auto const takes = client.nature().takes;
            options.submit_encoding = takes == TrainingNature::Takes::json ||
                                              (takes == TrainingNature::Takes::both && chance(0.5))
                                          ? SubmitEncoding::json
                                          : SubmitEncoding::protobuf;
        }
        client.client.emplace(options);
    }
}

void World::make_scripts() {
    SeededWorld::make_scripts(clients_, scripts_, 2, 5, [this](Script& script) { step(script); });
    open_ += static_cast<int>(scripts_.size());
}

void World::make_weather() {
    plan_outage_and_calm();
    for (auto& [url, endpoint] : endpoints_) {
        auto& service = *endpoint.service;
        if (chance(0.35)) {
            at(span(storm_), [this, &service, loses = chance(0.6)] {
                note(loses ? "restart without what was not done" : "restart");
                service.restart(loses);
            });
        }
        if (chance(0.2)) {
            auto const from = span(storm_);
            at(from, [&service] { service.block_billing(true); });
            at(from + span(60s), [&service] { service.block_billing(false); });
        }
    }
    plan_disturbances({.looks = 6, .closes = 0.1, .drops = 0.08});
}

void World::calm_networks() {
    for (auto& [url, endpoint] : endpoints_) endpoint.network->set_options({.seed = seed_});
}

// How calls end -----------------------------------------------------------------------------------

void World::end(UserCall& call, std::optional<Error> const& error) {
    if (++call.ends > 1) return problem("call " + call.mark + " ended twice");
    --open_;
    call.over = now();
    call.succeeded = !error;
    bool const samples = call.what == What::save_sampler || call.what == What::ephemeral;
    if (call.deadline.count() > 0 && !samples && now() - *call.begun > call.deadline) {
        problem("call " + call.mark + " went on after its deadline");
    }
    if (call.breaker != nullptr) call.breaker->on_other();
    if (call.judge != nullptr) call.judge->on_over(call, now());
    if (error && call.judge != nullptr) expect_next(call);
    auto const status = error ? error->http_status().value_or(0) : 0;
    clients_[call.client].endpoint->service->call_over(call.mark, status == 500 || status == 409);
    if (!error) {
        note("done " + call.mark);
        ++outcome_.succeeded;
    } else {
        note("failed " + call.mark + ' ' + error->what());
        check_secrets(*error);
        if (!explained(call, *error)) {
            problem("call " + call.mark + " failed for no reason: " + error->what());
        }
    }
    auto& script = *call.script;
    if (script.waits_for.erase(call.id) > 0 && script.waits_for.empty()) {
        arm(script.next, span(2s));
    }
}

void World::expect_next(UserCall const& over) {
    auto const* const next = over.judge->next_to_submit();
    auto const& client = clients_[over.client];
    // Only passes wait for bytes.
    if (next == nullptr || next->pass() || client.closed || ended_) return;
    at(1s, [this, &client, &judge = *over.judge, next] {
        if (client.closed || !client.client || ended_ || judge.next_to_submit() != next) return;
        problem("call " + std::to_string(next->id) +
                " is not submitted a second after those before it came to nothing");
    });
}

bool World::explained(UserCall const& call, Error const& error) {
    auto const& client = clients_[call.client];
    auto const kind = error.kind();
    std::string_view const text = error.what();
    if (kind == ErrorKind::cancelled || kind == ErrorKind::closed) {
        ++outcome_.cancelled;
        count("end: " + std::string{to_string(kind)});
        return call.cancelled || client.closed || ended_;
    }
    ++outcome_.failed;
    if (kind == ErrorKind::timeout && text.find("its deadline") != text.npos) {
        count("end: deadline");
        return call.deadline.count() > 0;
    }
    if (kind == ErrorKind::circuit_open) {
        count("end: circuit open");
        return call.breaker != nullptr && call.breaker->may_have_refused();
    }
    if (call.what == What::create || call.what == What::info) {  // these have no mark
        count(call.what == What::create ? "end: no model" : "end: no information");
        return true;
    }
    if (text.starts_with("sample: ")) {  // another world is about these
        count("end: no sample");
        return true;
    }
    auto const status = error.http_status().value_or(0);
    if (text.find("could not be sent again") != text.npos) {  // a request of an earlier call
        count("end: an earlier request is not settled");
        if (kind == ErrorKind::billing) count("end: billing");
        return kind == ErrorKind::billing || now() - *call.begun >= submit_budget;
    }
    bool const seen = status == 0 || call.statuses.contains(status);
    if (error.stopped() == RetryEnd::not_repeatable &&
        text.find("may have been applied") != text.npos) {
        count("end: may have been applied");
        bool const old = client.endpoint->known_old || client.endpoint->json_sent;
        return seen && !client.options.repeat_steps.value_or(!old);
    }
    count("end: " + std::string{to_string(kind)});
    switch (kind) {
        case ErrorKind::callback:
            return call.throws && text.find("not today") != text.npos;
        case ErrorKind::request_failed:
            return call.told_failure;
        case ErrorKind::promise_lost:
            return call.statuses.contains(410);
        case ErrorKind::billing:
            return seen;
        case ErrorKind::status: {
            bool const passing = status == 408 || status == 409 || status == 429 || status >= 500;
            // While it is polled for, nothing that passes ends it (C-54).
            if (passing && call.only_polls()) return false;
            // A 500 may mean that the encoding is not known, and then it ends the trial.
            return seen && !call.wrong_encoding &&
                   (!passing || status == 500 || now() - *call.begun >= submit_budget);
        }
        case ErrorKind::connection:
        case ErrorKind::timeout:
            return !call.only_polls() && now() - *call.begun >= submit_budget;
        default:
            return false;
    }
}

// What clients say about themselves ---------------------------------------------------------------

void World::check_status(Client& client, ServiceStatus const& status) {
    constexpr std::array timed{Stage::billing_pause, Stage::waiting_to_submit,
                               Stage::waiting_to_poll};
    std::int64_t waiting_for_bytes = 0;
    for (auto const& each : status.pending) {
        if (each.stage == Stage::waiting_for_bytes) ++waiting_for_bytes;
        auto const text = check_pending(each, timed);
        if (each.why.empty()) problem("pending without a reason: " + text);
    }
    // Chunks of one call can wait together.
    if (waiting_for_bytes > status.training_bytes.waiting + status.bytes.waiting) {
        problem("the queue for bytes does not fit those who wait");
    }
    if (client.closed) return;
    std::vector<UserCall const*> open;
    for (auto const& call : calls_) {
        if (call.client == client.index_ && call.ends == 0 && !call.cancelled) {
            open.push_back(&call);
        }
    }
    auto const listed = status.pending.size();
    // What ends at this moment may be off the list already.
    at(1ns, [this, open = std::move(open), listed] {
        auto const left = std::ranges::count_if(
            open, [](UserCall const* call) { return call->ends == 0 && !call->cancelled; });
        if (static_cast<std::size_t>(left) > listed) {
            problem(std::to_string(left) + " calls are open and " + std::to_string(listed) +
                    " are told of");
        }
    });
}

void World::check_rest(Client& client) {
    auto const status = client.client->status().get();
    check_nothing_pending(status);
    if (!status.training_bytes.free) return;  // it never came to training
    check_back(status.training_bytes, client.byte_budget(), "bytes of passes");
    check_back(status.download, client.download_budget(), "download bytes");
    check_back(status.count, 400, "samples");
}

void World::judge() {
    for (auto& [url, endpoint] : endpoints_) judge(endpoint);
}

void World::judge(Endpoint& endpoint) {
    auto const& models = endpoint.service->models();
    for (auto& [id, judge] : endpoint.judges) {
        auto const found = models.find(id);
        if (found == models.end()) {
            problem("nobody made the model " + id);
            continue;
        }
        judge->verify(found->second, endpoint.service->nature().steps_have_metrics);
        judge->verify_numbers();
    }
    count_faults(endpoint.network->counts());
}

}  // namespace tinkxx::simulation::training_world
