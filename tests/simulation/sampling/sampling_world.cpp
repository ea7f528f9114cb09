#include "simulation/sampling/sampling_world.hpp"

#include <array>

namespace tinkxx::simulation::sampling_world {

using namespace std::chrono_literals;

void World::make() {
    make_users();
    make_calls();
    make_weather();
}

void World::on_attempt_retry(AttemptRetryEvent const& event) {
    count("attempt made again");
    if (event.error && event.error->kind() == ErrorKind::circuit_open) ++refusals_;
    if (event.delay < 0s || event.delay > 10s) problem("a wait out of bounds");
}

void World::make_users() {
    auto const users = chance(0.3) ? 2U : 1U;
    bool const same_url = chance(0.7);
    bool const same_key = chance(0.6);
    for (std::size_t i = 0; i < users; ++i) {
        auto& user = clients_.emplace_back(*this, i);
        auto const number = std::to_string(i);
        user.url = "http://service-" + (same_url ? "0" : number);
        user.key = std::string{key_mark} + (same_key ? "0" : number);
        auto& service = services_[user.url];
        if (!service) {
            service = std::make_unique<ModelService>(user.url.substr(7), seed_ * 2 + i, *clock_,
                                                     outcome_.occurred);
        }
        user.service = service.get();
        serve_at(user.url, *service);
        user.gate = &gates_[user.url + ' ' + user.key];
        user.connect(*clock_, faulty_);
        auto options = client_options(user.url, user.key, user);
        options.telemetry = chance(0.5);
        options.max_retries = chance(0.2) ? 2 : 10;
        options.log_level = LogLevel::debug;
        if (chance(0.3)) user.limits.count = 1 + static_cast<std::int64_t>(random_.next() % 6);
        if (chance(0.3)) {
            user.limits.throttled = 1 + static_cast<std::int64_t>(random_.next() % 3);
        }
        if (chance(0.1)) {
            user.limits.bytes = 1 + static_cast<std::int64_t>(random_.next() % 300);
        }
        options.dispatch = user.limits;
        if (chance(0.1)) options.deadline = 200s;
        if (chance(0.1)) options.poll_backoff = ExponentialPollBackoff{};
        default_deadline_.push_back(options.deadline);
        user.client.emplace(std::move(options));
        make_samplers(user);
    }
}

void World::make_samplers(User& user) {
    auto const samplers = 1 + random_.next() % 4;
    for (std::size_t n = 0; n < samplers; ++n) {
        SamplerOptions options;
        (n % 2 == 0 ? options.base_model : options.model_path) =
            n % 2 == 0 ? "org/tiny" : "tinker://run/sampler_weights/a";
        options.retry = draw_retry(random_);
        auto* const breaker = pick_breaker(breakers_, random_, 0.5);
        if (breaker != nullptr) options.circuit_breaker = breaker->breaker();
        user.configs.push_back(options.retry);
        user.breakers.push_back(breaker);
        user.budgets.emplace_back();
        user.samplers.emplace_back(user.client->create_sampling_client(std::move(options)));
    }
}

void World::make_calls() {
    auto const count = 5 + random_.next() % 45;
    for (std::size_t i = 0; i < count; ++i) {
        auto& call = calls_.emplace_back();
        call.id = static_cast<int>(i);
        call.client = random_.next() % clients_.size();
        auto& user = clients_[call.client];
        call.sampler = random_.next() % user.samplers.size();
        call.tokens = 1 + static_cast<int>(random_.next() % 40);
        if (chance(0.02)) call.tokens = 14'000;  // written aside, and a longer backoff
        call.samples = 1 + static_cast<std::int64_t>(random_.next() % 3);
        call.logprobs = call.tokens < 100 && chance(0.1);
        if (chance(0.1)) call.deadline = 1s + std::chrono::milliseconds{random_.next() % 60'000};
        call.retry = draw_overrides(random_);
        call.config = call.retry.over(user.configs[call.sampler]);
        call.own_breaker = pick_breaker(breakers_, random_, 0.1);
        call.breaker = call.own_breaker ? call.own_breaker : user.breakers[call.sampler];
        call.begin.action = [this, &call] { begin(call); };
        // Some come together, as they do in a batch.
        arm(call.begin, chance(0.5) ? storm_ / 4 : span(storm_));
        if (chance(0.12)) {
            call.give_up.action = [this, &call] {
                if (call.ends > 0 || !call.watched.valid()) return;
                note("cancel " + std::to_string(call.id));
                call.cancelled = true;
                call.watched.cancel();
            };
            arm(call.give_up, span(storm_ + 30s));
        }
    }
    open_ = static_cast<int>(calls_.size());
}

void World::make_weather() {
    plan_outage_and_calm();
    for (auto& [url, service] : services_) {
        if (chance(0.3)) at(span(storm_), [&service = *service] { service.restart(); });
        if (chance(0.25)) {
            auto const from = span(storm_);
            at(from, [&service = *service] { service.block_billing(true); });
            at(from + span(60s), [&service = *service] { service.block_billing(false); });
        }
    }
    if (chance(0.2)) {
        at(span(storm_), [this] {
            count("fault: wall clock set");
            clock_->set_wall(clock_->wall() + (chance(0.5) ? 1 : -1) * span(3h));
        });
    }
    plan_disturbances({.looks = 4, .closes = 0.15, .drops = 0.1});
}

void World::begin(UserCall& call) {
    auto& user = clients_[call.client];
    auto const& sampler = user.samplers[call.sampler];
    if (!sampler) {  // it was dropped
        --open_;
        return;
    }
    note("begin " + std::to_string(call.id));
    call.begun = now();
    std::vector<Token> tokens(static_cast<std::size_t>(call.tokens), 7);
    tokens.front() = call.id;
    auto prompt = ModelInput::from_tokens(std::move(tokens));
    CallOptions options;
    options.retry = call.retry;
    options.deadline = call.deadline;
    if (call.own_breaker) options.circuit_breaker = call.own_breaker->breaker();
    expect_refusal(call);
    ++outcome_.calls;
    if (call.logprobs) {
        call.watched =
            sampler->compute_logprobs(std::move(prompt), 0, std::move(options))
                .then_result(
                    [this, &call](Result<std::vector<std::optional<float>>> const& result) {
                        if (result && result->size() != static_cast<std::size_t>(call.tokens)) {
                            problem("logprobs of another prompt");
                        }
                        end(call, result ? std::nullopt : std::optional{result.error()});
                    });
        return;
    }
    SampleOptions wanted;
    wanted.num_samples = call.samples;
    call.watched = sampler
                       ->sample(std::move(prompt), SamplingParams{.max_tokens = 4},
                                std::move(wanted), std::move(options))
                       .then_result([this, &call](Result<SampleResponse> const& result) {
                           if (result) check_answer(call, *result);
                           end(call, result ? std::nullopt : std::optional{result.error()});
                       });
}

/// A call that its breaker refuses ends at once, unless it is to be made again.
void World::expect_refusal(UserCall& call) {
    bool const waits =
        call.config.enable_retry_logic && listed(call.config, ErrorKind::circuit_open, 0);
    if (call.breaker == nullptr || !call.breaker->open() || waits) return;
    count("call while its breaker is open");
    at(1ns, [this, &call] {
        if (call.ends == 0) problem("call " + std::to_string(call.id) + " was not refused at once");
    });
}

void World::check_answer(UserCall const& call, SampleResponse const& answer) {
    bool fits = static_cast<std::int64_t>(answer.sequences.size()) == call.samples;
    for (std::size_t i = 0; fits && i < answer.sequences.size(); ++i) {
        auto const& tokens = answer.sequences[i].tokens;
        fits = tokens == std::vector<Token>{call.id, static_cast<Token>(i)};
    }
    if (!fits) problem("an answer went to the wrong call");
}

void World::end(UserCall& call, std::optional<Error> const& error) {
    if (++call.ends > 1) return problem("call " + std::to_string(call.id) + " ended twice");
    --open_;
    call.over = now();
    if (call.breaker != nullptr) call.breaker->on_other();
    auto const name = std::to_string(call.id);
    auto const limit = deadline_of(call);
    if (limit.count() > 0 && now() - *call.begun > limit) {
        problem("call " + name + " went on after its deadline");
    }
    if (!error) {
        note("done " + name);
        ++outcome_.succeeded;
        return;
    }
    note("failed " + name + ' ' + error->what());
    check_secrets(*error);
    if (!explained(call, *error)) {
        problem("call " + name + " failed for no reason: " + error->what());
    }
}

bool World::explained(UserCall& call, Error const& error) {
    auto const& user = clients_[call.client];
    std::string_view const text = error.what();
    if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::closed) {
        ++outcome_.cancelled;
        call.given_up = true;
        count("end: " + std::string{to_string(error.kind())});
        return call.cancelled || user.closed || ended_;
    }
    ++outcome_.failed;
    if (error.kind() == ErrorKind::timeout && text.find("its deadline") != text.npos) {
        call.given_up = true;
        count("end: deadline");
        return deadline_of(call).count() > 0;
    }
    if (text.find("appear stuck") != text.npos) {
        call.given_up = true;
        count("end: stuck");
        return call.config.progress_timeout < 2h && call.config.enable_stuck_detection &&
               user.service->nature().stuck_detection;
    }
    if (error.kind() == ErrorKind::circuit_open) {
        call.given_up = true;  // its number may have been taken
        count("end: circuit open");
        return call.breaker != nullptr && call.breaker->may_have_refused();
    }
    if (error.details().attempts == 0) {
        count("end: no sampler");
        return true;  // the start-up has its own limits
    }
    auto const status = error.http_status().value_or(0);
    bool const passing = error.kind() == ErrorKind::timeout ||
                         error.kind() == ErrorKind::connection ||
                         error.kind() == ErrorKind::promise_lost ||
                         (error.kind() == ErrorKind::status &&
                          (status == 408 || status == 409 || status == 429 || status >= 500));
    if (!passing) {
        count("end: " + std::string{to_string(error.kind())});
        return true;
    }
    count("end: retries spent");
    return gave_up_rightly(call, error);
}

/// Whether a failure that passes had to end a call.
bool World::gave_up_rightly(UserCall const& call, Error const& error) const {
    auto const& user = clients_[call.client];
    auto const& config = call.config;
    auto const& nature = user.service->nature();
    if (config.retry_budget) return true;  // it pays for polls too, which are not counted here
    // Then there is nothing to send again, and asking for the result has no limit but those above.
    if (user.promised(call)) return false;
    auto const status = error.http_status().value_or(0);
    bool const bypassed = nature.no_retries && !call.logprobs;
    if (!config.enable_retry_logic || bypassed || !listed(config, error.kind(), status))
        return true;
    if (!config.max_retries) return false;
    // Without its credential a request that counts is not sent.
    return nature.tokens || call.requests.requests() == *config.max_retries + 1;
}

void World::look_further(User& user) {
    auto const& sampler = user.samplers[random_.next() % user.samplers.size()];
    if (!sampler || user.closed) return;
    ++open_;
    (void)sampler->stats().then_result([this](Result<SamplerStats> const& stats) {
        --open_;
        if (stats && (stats->waiting < 0 || stats->in_progress < 0)) {
            problem("counters of a sampler below zero");
        }
    });
    if (!chance(0.3)) return;
    ++open_;
    (void)sampler->get_base_model().then_result([this](Result<std::string> const&) { --open_; });
}

void World::check_status(User& user, ServiceStatus const& status) {
    constexpr std::array timed{Stage::backing_off, Stage::billing_pause, Stage::waiting_to_submit,
                               Stage::waiting_to_poll, Stage::waiting_to_retry};
    std::map<Stage, std::int64_t> standing;
    for (auto const& each : status.pending) {
        ++standing[each.stage];
        check_pending(each, timed);
    }
    auto const queued = [&](Stage stage, LimitStatus const& limit, char const* name) {
        if (standing[stage] != limit.waiting) {
            problem(std::string{"the queue for "} + name + " does not fit those who wait");
        }
    };
    queued(Stage::waiting_for_count, status.count, "submits");
    queued(Stage::throttled, status.throttled, "throttled submits");
    queued(Stage::waiting_for_bytes, status.bytes, "bytes");
    queued(Stage::waiting_for_download, status.download, "downloads");
    if (status.count.free && *status.count.free < 0) problem("more submits than allowed");
    if (status.backoff.active && !user.gate->may.closed(now())) {
        problem("a backoff that nobody asked for");
    }
}

void World::check_rest(User& user) {
    auto const status = user.client->status().get();
    check_nothing_pending(status);
    if (!status.count.free) return;  // it never came to sampling
    check_back(status.count, user.limits.count.value_or(400), "submits");
    check_back(status.throttled, user.limits.throttled.value_or(10), "throttled submits");
    check_back(status.bytes, user.byte_budget(), "bytes");
    check_back(status.download, user.download_budget(), "download bytes");
    for (std::size_t i = 0; i < user.samplers.size(); ++i) check_sampler(user, i);
}

void World::check_sampler(User& user, std::size_t index) {
    auto const used = std::ranges::any_of(calls_, [&](UserCall const& call) {
        return call.client == user.index_ && call.sampler == index && call.begun;
    });
    if (!used) return;
    auto const id = user.samplers[index]->sampling_session_id().result();
    if (!id) return;  // its creation failed, again
    auto const stats = user.samplers[index]->stats().get();
    if (stats.waiting != 0 || stats.in_progress != 0) {
        problem("a sampler still counts calls that are over");
    }
    auto const found = user.numbers().find(*id);
    auto const sent = found == user.numbers().end()
                          ? std::int64_t{0}
                          : static_cast<std::int64_t>(found->second.size());
    if (found != user.numbers().end() && *found->second.begin() < 0) problem("a number below 0");
    std::int64_t given_up = 0;
    for (auto const& call : calls_) {
        if (call.client == user.index_ && call.sampler == index && call.begun) {
            given_up += call.given_up ? 1 : 0;
        }
    }
    given_up += refusals_;
    if (stats.next_sequence_id < sent || stats.next_sequence_id - sent > given_up) {
        problem("sequence ids of " + *id + ": " + std::to_string(stats.next_sequence_id) +
                " taken, " + std::to_string(sent) + " sent, " + std::to_string(given_up) +
                " given up");
    }
}

}  // namespace tinkxx::simulation::sampling_world
