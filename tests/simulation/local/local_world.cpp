#include "simulation/local/local_world.hpp"

#include "local/core/core.hpp"

#include <algorithm>
#include <string_view>

namespace tinkxx::simulation::local_world {

using namespace std::chrono_literals;

namespace {

/// See the header.
constexpr auto settling = 15min;
/// For so long a submit is repeated (R-RETRY-80).
constexpr auto submit_budget = 300s;

}  // namespace

WorldOutcome World::run() {
    storm_ = 10s + span(chance(0.1) ? nanoseconds{10min} : nanoseconds{120s});
    host_->on_down = [this] {
        away_ = true;
        at(chance(0.8) ? span(10s) : span(90s), [this] { up(); });
    };
    up();
    make_clients();
    make_scripts();
    make_weather();
    if (hostile_) visitors_.begin(storm_);
    auto const start = now();
    while (open_ > 0 || visitors_.busy()) {
        runtime_->poll(1h);
        if (now() - start > storm_ + settling) {
            report_hanging();
            break;
        }
    }
    wind_up();
    for (auto const& call : calls_) {
        if (call.ends != 1) {
            problem("call " + call.mark + " ended " + std::to_string(call.ends) + " times");
        }
    }
    if (outcome_.problems.empty()) judge();
    for (auto const& client : clients_) count_faults(client.network->counts());
    host_->power_off();
    return std::move(outcome_);
}

local::ServerOptions World::server_options() {
    auto options = local_server_options(folder_.path() / "home");
    // Some answers are large to this server, which then says so first.
    if (seed_ % 4 == 0) options.inline_result_bytes = 100;
    if (hostile_) HostileClients::tighten(options);
    return options;
}

// The world ---------------------------------------------------------------------------------------

void World::on_served(Served const& served) {
    if (HostileClients::sent(served)) return visitors_.on_served(served);
    visitors_.overhear(served);
    judge_.on_served(served);
    // What is under way just after an answer is most easily lost.
    bool const save = served.path.find("save_weights") != std::string::npos;
    if (may_die() && chance(save ? 0.1 : 0.003)) host_->crash_after(1 + below(12));
}

void World::make_clients() {
    auto const clients = chance(0.3) ? 2U : 1U;
    for (std::size_t i = 0; i < clients; ++i) {
        auto& client = clients_.emplace_back(*this, i);
        client.network = std::make_shared<testing::FaultyTransport>(*clock_, host_, draw_faults());
        auto& options = client.options;
        client.connect(*clock_);
        options.base_url = "http://localhost";
        options.api_key = "tml-simulation";
        options.project_id = "simulation";
        options.runtime = *runtime_;
        options.telemetry = chance(0.2);
        options.observers = {as_observer()};
        options.log = silent_log();
        options.otel_propagate = true;
        options.trace_propagator = [this] {
            Headers lines;
            lines.add(std::string{mark_line}, mark_);
            return lines;
        };
        if (chance(0.5)) options.chunks.items = 1 + below(3);
        if (chance(0.3)) options.submit_encoding = SubmitEncoding::json;
        if (chance(0.5)) options.completion_poll = chance(0.5);
        client.client.emplace(options);
    }
}

void World::make_scripts() {
    SeededWorld::make_scripts(clients_, scripts_, 3, 6, [this](Script& script) { step(script); });
    open_ += static_cast<int>(scripts_.size());
}

void World::up() {
    if (judging_ || host_->running()) return;
    host_->start_server();
    away_ = false;
    last_up_ = now();
    if (!may_die() || chance(0.3)) return;
    // From the first steps of its life to far into it.
    auto const events = std::int64_t{1} << below(11);
    host_->crash_after(events + below(static_cast<std::uint64_t>(events)));
}

void World::make_weather() {
    at(storm_, [this] {
        note("calm");
        calm_ = true;
        host_->stop_crashing();
        for (auto& client : clients_) client.network->set_options({.seed = seed_});
    });
    if (chance(0.4)) {
        at(span(storm_), [this] {
            away_ = true;
            host_->stop(chance(0.7) ? 60s : span(2s));
        });
    }
    if (chance(0.3)) {
        at(span(storm_), [this] { host_->crash(); });
    }
    for (auto& client : clients_) {
        for (int i = 0; i < 6; ++i) at(span(storm_ + 20s), [this, &client] { look(client); });
        if (chance(0.08)) at(span(storm_), [this, &client] { close(client); });
        if (chance(0.05)) at(span(storm_), [this, &client] { drop(client); });
    }
}

// How calls end -----------------------------------------------------------------------------------

void World::end(UserCall& call, std::optional<Error> const& error) {
    if (++call.ends > 1) return problem("call " + call.mark + " ended twice");
    --open_;
    call.succeeded = !error;
    if (!error) {
        note("done " + call.mark);
        ++outcome_.succeeded;
    } else {
        note("failed " + call.mark + ' ' + error->what());
        if (!explained(call, *error)) {
            problem("call " + call.mark + " failed for no reason: " + error->what());
        }
    }
    auto& script = *call.script;
    if (script.waits_for.erase(call.id) > 0 && script.waits_for.empty()) {
        arm(script.next, span(2s));
    }
}

bool World::explained(UserCall const& call, Error const& error) {
    auto const kind = error.kind();
    std::string_view const text = error.what();
    if (kind == ErrorKind::cancelled || kind == ErrorKind::closed) {
        ++outcome_.cancelled;
        count("end: " + std::string{to_string(kind)});
        return call.cancelled || clients_[call.client].closed;
    }
    ++outcome_.failed;
    if (kind == ErrorKind::timeout && text.find("its deadline") != text.npos) {
        count("end: deadline");
        return call.deadline.count() > 0;
    }
    auto const status = error.http_status().value_or(0);
    // A model that is gone.
    bool const gone = status == 404 || status == 410 || kind == ErrorKind::promise_lost;
    if (gone && !call.model.empty() && judge_.life_of(call.model) != host_->life()) {
        count("end: model lost");
        lose(call);
        return true;
    }
    if (call.what == What::create && host_->life() != call.life && gone) {
        count("end: model lost before it was made");
        return true;
    }
    if ((was_unloaded(call) || clients_[call.client].closed) &&
        (gone || kind == ErrorKind::request_failed)) {
        count("end: unloaded");
        return true;
    }
    // A network that was too bad for too long.
    bool const submitted = !call.model.empty() && call.what != What::info &&
                           call.what != What::copy && !text.starts_with("sample: ");
    bool const passing = kind == ErrorKind::connection || kind == ErrorKind::timeout ||
                         status == 429 || status >= 500 || (status == 409 && !submitted);
    bool const disturbed = call.begun - start_ < storm_ || away_ || last_up_ > call.begun;
    if (passing && !submitted && disturbed) {
        count("end: bad network");
        return true;
    }
    if (passing && now() - call.begun >= submit_budget) {
        count("end: bad network for long");
        return true;
    }
    return false;
}

void World::lose(UserCall const& call) {
    for (auto& model : clients_[call.client].models) {
        if (model.id == call.model) model.unloaded = true;
    }
}

bool World::was_unloaded(UserCall const& call) const {
    return std::ranges::any_of(calls_, [&](UserCall const& other) {
        return other.what == What::unload && other.model == call.model && other.id != call.id &&
               !call.model.empty();
    });
}

// What clients say about themselves ---------------------------------------------------------------

void World::look(Client& client) {
    if (!client.client || judging_) return;
    ++open_;
    (void)client.client->status().then_result([this](Result<ServiceStatus> const& status) {
        --open_;
        if (!status) return problem("no status: " + std::string{status.error().what()});
        for (auto const& each : status->pending) {
            count("status: " + std::string{to_string(each.stage)});
            auto const text = to_string(each);
            if (each.why.empty()) problem("pending without a reason: " + text);
            if (each.ends_in && *each.ends_in < 0s) problem("a wait that is over: " + text);
            bool const waits = each.stage == Stage::billing_pause ||
                               each.stage == Stage::waiting_to_submit ||
                               each.stage == Stage::waiting_to_poll;
            if (waits && !each.ends_in) problem("a wait without an end: " + text);
        }
    });
}

void World::close(Client& client) {
    if (!client.client || client.closed || judging_) return;
    note("close " + std::to_string(client.index_));
    count("closed");
    client.closed = true;
    (void)(chance(0.5) ? client.client->close(CloseReason::success) : client.client->close());
}

void World::drop(Client& client) {
    if (judging_) return;
    note("drop " + std::to_string(client.index_));
    count("dropped");
    client.models.clear();
    client.samplers.clear();
    client.client.reset();
}

void World::report_hanging() {
    problem(std::to_string(open_) + " calls were still open long after the last fault");
    for (auto& client : clients_) {
        if (client.client) note_pending(*client.client);
    }
}

void World::wind_up() {
    calm_ = true;
    host_->stop_crashing();
    visitors_.end();
    for (auto& client : clients_) {
        if (client.client && !client.closed && outcome_.problems.empty()) check_rest(client);
    }
    for (auto& client : clients_) {
        if (client.client) close(client);
        client.models.clear();
        client.samplers.clear();
        client.client.reset();
    }
    auto const start = now();
    while (now() - start < 8min) runtime_->poll(1min);
    judging_ = true;
    for (auto& client : clients_) {
        if (client.recorder->open() > 0) problem("requests were left open");
    }
    if (host_->open() > 0) problem("requests were left open at the server");
}

void World::check_rest(Client& client) {
    auto const status = client.client->status().get();
    check_nothing_pending(status);
    // What clients have that are told nothing else, as by this server.
    if (status.training_bytes.free) {  // else it never came to training
        check_back(status.training_bytes, 50'000'000, "bytes of passes");
    }
    if (!status.count.free) return;  // it never came to sampling
    check_back(status.count, 400, "submits");
    check_back(status.throttled, 10, "throttled submits");
    check_back(status.bytes, 5 << 20, "bytes");
    check_back(status.download, 50 << 20, "download bytes");
}

// Judgement ---------------------------------------------------------------------------------------

void World::judge() {
    auto const clock = make_clock(~seed_);  // other ids than those of the world
    auto options = local_server_options(folder_.path() / "quiet");
    // Requests come one by one, so that whatever is missing will not come.
    options.gap_timeout = 0s;
    options.session_timeout = 24h;
    auto made = local::Core::create(std::move(options), *clock);
    auto const quiet = std::move(made).value();
    quiet->start();
    judge_.replay(*quiet, *clock);
    for (auto const& call : calls_) {
        if (call.succeeded) check_result(call);
    }
    // One more crash, and all that was acknowledged is there.
    host_->on_down = {};
    host_->crash();
    host_->start_server();
    judge_.audit(host_->handler(), *clock_);
}

void World::check_result(UserCall const& call) {
    bool const plain = call.what == What::forward || call.what == What::forward_backward;
    if (call.output && plain) {
        auto const passes = judge_.passes_of(call.mark);
        if (!passes) return problem("call " + call.mark + " has a result and was not made");
        decltype(call.output->loss_fn_outputs) all;
        for (auto const& pass : *passes) {
            all.insert(all.end(), pass.loss_fn_outputs.begin(), pass.loss_fn_outputs.end());
        }
        if (all != call.output->loss_fn_outputs) {
            problem("call " + call.mark + " did not get the numbers of its pass");
        }
    }
    if (call.step && judge_.step_of(call.mark) != call.step) {
        problem("call " + call.mark + " did not get the numbers of its step");
    }
    if (call.sample && call.seeded) {
        auto const drawn = judge_.sample_of(call.mark);
        if (!drawn || drawn->sequences.size() != call.sample->sequences.size()) {
            return problem("call " + call.mark + " has a sample and was not made");
        }
        for (std::size_t i = 0; i < drawn->sequences.size(); ++i) {
            auto const& mine = call.sample->sequences[i];
            auto const& theirs = drawn->sequences[i];
            if (mine.tokens != theirs.tokens || mine.logprobs != theirs.logprobs) {
                problem("call " + call.mark + " did not get the tokens of its sample");
            }
        }
    }
}

// What goes over the wire ------------------------------------------------------------------------

void Client::on_request(RecordedExchange const& exchange) {
    bool const text = exchange.body.starts_with('{');
    world_.note(
        std::to_string(index_) + " > " + exchange.path + ' ' +
        (text ? exchange.body.substr(0, 110) : std::to_string(exchange.body.size()) + " bytes"));
}

void Client::on_answer(RecordedExchange const& exchange) {
    bool const text = exchange.answer.empty() || exchange.answer.front() == '{';
    world_.note(std::to_string(index_) + " < " + exchange.path + ' ' +
                std::to_string(exchange.status) + ' ' +
                (text ? exchange.answer.substr(0, 110)
                      : std::to_string(exchange.answer.size()) + " bytes"));
}

void Client::on_withdrawn(RecordedExchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
}

}  // namespace tinkxx::simulation::local_world
