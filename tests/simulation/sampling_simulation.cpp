#include "simulation/sampling_simulation.hpp"

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/random.hpp"
#include "simulation/sampling_model.hpp"
#include "simulation/sampling_recorder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;
using service::Random;
using std::chrono::nanoseconds;

/// Within this time all that is outstanding ends once the faults have: an unanswered request takes
/// a minute, and so does the longest wait that a server may ask for; a few of them can follow each
/// other, and calls that wait for a slot come one after the other.
constexpr auto settling = 10min;

constexpr std::string_view key_mark = "tml-secret-";
constexpr std::string_view token_mark = "tokenhead.";

bool tells_a_secret(std::string_view text) {
    return text.find(key_mark) != std::string_view::npos ||
           text.find(token_mark) != std::string_view::npos;
}

struct Alarm final : Timer {
    void on_time() override { action(); }
    std::function<void()> action{};
};

struct UserCall {
    int id{0};
    std::size_t client{0};
    std::size_t sampler{0};
    int tokens{1};
    std::int64_t samples{1};
    bool logprobs{false};
    std::chrono::milliseconds deadline{0};
    RetryOverrides retry{};
    RetryConfig config{};  ///< with the overrides
    Alarm begin{};
    Alarm give_up{};
    Future<void> watched{};
    std::optional<TimePoint> begun{};
    std::optional<TimePoint> over{};
    bool cancelled{false};
    bool given_up{false};  ///< its last attempt may never have been sent
    int ends{0};
    std::string attempt{};  ///< the newest one that was sent

    [[nodiscard]] std::int64_t bytes() const { return std::int64_t{10} * tokens; }
};

/// What the answers say about the gate of one endpoint and key (R-SAMP-30..36).
struct GateModel {
    void close(TimePoint now, nanoseconds duration) {
        set = now;
        until = std::max(until.value_or(now + duration), now + duration);
        remembered = std::max(remembered.value_or(*until), *until);
    }
    void accepted(TimePoint sent) {
        if (until && sent > set) until.reset();
    }
    [[nodiscard]] bool closed(TimePoint now) const { return until && now < *until; }
    [[nodiscard]] bool recent(TimePoint now) const { return remembered && now < *remembered + 10s; }

    TimePoint set{};
    std::optional<TimePoint> until{};
    std::optional<TimePoint> remembered{};
};

/// The gate as the service sees it, by when requests were sent, and as the client may see it: for
/// it the repeats of the submit loop were sent when the loop began.
struct Gates {
    void close(TimePoint now, nanoseconds duration) {
        must.close(now, duration);
        may.close(now, duration);
    }

    GateModel must{};
    GateModel may{};
};

struct Attempt {
    int call{0};
    std::string body{};
    std::optional<int> last{};  ///< status of the last answer; 0: none came
    TimePoint loop_began{};     ///< the submit loop that made the last submit
    bool open{false};
    bool throttled{false};
    bool accepted{false};
    bool lost{false};
};

struct Polls {
    bool open{false};
    bool answered{false};  ///< with a result or a failure that is final
    bool sized{false};     ///< the last answer told the size, so the next may follow at once
    std::optional<TimePoint> last{};
};

struct CompletionPolls {
    bool open{false};
    bool moved{false};
    std::int64_t cursor{0};
    std::optional<TimePoint> last{};
};

std::optional<double> number(std::string_view text) {
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

/// R-SAMP-31.
nanoseconds backoff_of(std::int64_t bytes, Exchange const* answer) {
    nanoseconds const usual = bytes <= 131'072 ? 1s : 5s;
    if (answer == nullptr) return usual;
    auto const usable = [](std::optional<double> ms) -> std::optional<nanoseconds> {
        if (!ms || !(*ms > 0) || !(*ms <= 60'000)) return std::nullopt;
        return nanoseconds{static_cast<std::int64_t>(*ms * 1e6)};
    };
    if (auto const* text = answer->headers.find("retry-after-ms")) {
        if (auto const hint = usable(number(*text))) return *hint;
    }
    if (auto const hint = usable(number(json_member(answer->answer, "retry_after_ms")))) {
        return *hint;
    }
    if (auto const* text = answer->headers.find("retry-after")) {
        auto const seconds = number(*text);
        if (auto const hint = usable(seconds ? std::optional{*seconds * 1000} : std::nullopt)) {
            return *hint;
        }
    }
    return usual;
}

class World;

/// A service client, what it was told, and what it made of that.
class User final : private Traffic {
public:
    User(World& world, std::size_t index) : world_{world}, index_{index} {}

    World& world_;
    std::size_t const index_;
    std::string url{};
    std::string key{};
    ModelService* service{nullptr};
    Gates* gate{nullptr};
    DispatchLimits limits{};
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    std::vector<std::optional<SamplingClient>> samplers{};
    std::vector<RetryConfig> configs{};
    bool closed{false};     ///< `close` was called
    bool closing{false};    ///< and has begun: nothing more but what is drained
    bool finishing{false};  ///< it begins when the finish is answered
    bool dropped{false};
    std::optional<TimePoint> last_request{};

    void connect(Scheduler& scheduler, std::shared_ptr<Transport> transport) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, std::move(transport), traffic);
    }
    [[nodiscard]] std::int64_t byte_budget() const {
        if (limits.bytes) return *limits.bytes;
        auto const& nature = service->nature();
        return nature.has_config ? nature.dispatch_bytes.value_or(5 << 20) : 5 << 20;
    }
    [[nodiscard]] std::int64_t download_budget() const {
        auto const& nature = service->nature();
        return nature.has_config ? nature.download_bytes.value_or(50 << 20) : 50 << 20;
    }
    [[nodiscard]] std::map<std::string, std::set<std::int64_t>> const& numbers() const {
        return numbers_;
    }

private:
    void on_request(Exchange const& exchange) override;
    void on_answer(Exchange const& exchange) override;
    void on_withdrawn(Exchange const& exchange) override;

    void submits(Exchange const& exchange);
    void submit_over(Exchange const& exchange, std::optional<int> status);
    void polls(Exchange const& exchange);
    void asks_completions(Exchange const& exchange);
    void cancels(Exchange const& exchange);
    static std::string attempt_of(Exchange const& exchange) {
        return std::string{json_member(exchange.body, "sampling_session_id")} + ':' +
               std::string{json_member(exchange.body, "seq_id")};
    }
    static std::string request_of(Exchange const& exchange) {
        return std::string{json_member(exchange.body, "request_id")};
    }
    /// A credential came at this moment: what waited for it had passed the gate before.
    [[nodiscard]] bool token_came_now() const;
    /// When a poll that is sent now began, if that can be seen: not if it waited for a credential.
    [[nodiscard]] std::optional<TimePoint> poll_began() const;

    std::map<std::string, Attempt> attempts_{};
    std::map<std::string, Polls> polls_{};
    std::map<std::string, CompletionPolls> completions_{};
    std::map<std::string, std::set<std::int64_t>> numbers_{};
    std::multiset<std::int64_t> open_bytes_{};
    std::int64_t open_throttled_{0};
    std::optional<TimePoint> token_came_{};
};

class World final : public Observer {
public:
    explicit World(std::uint64_t seed) : seed_{seed}, random_{seed}, clock_{make_clock(seed)} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
        faulty_ = std::make_shared<testing::FaultyTransport>(*clock_, fake_, draw_faults());
    }

    Outcome run() {
        storm_ = chance(0.1) ? 15min : 10s + span(170s);
        make_users();
        make_calls();
        make_weather();
        auto const start = clock_->now();
        while (open_ > 0 && !ended_) {
            runtime_->poll(1h);
            if (std::exchange(shut_down_, false)) shut_down();
            if (clock_->now() - start > storm_ + settling) {
                report_hanging();
                break;
            }
        }
        if (!ended_) wind_up();
        for (auto const& call : calls_) {
            if (call.ends != (call.begun ? 1 : 0)) {
                problem("call " + std::to_string(call.id) + " ended " + std::to_string(call.ends) +
                        " times");
            }
        }
        collect_complaints();
        count_faults();
        return std::move(outcome_);
    }

    void on_stage(StageEvent const& event) override {
        count("stage: " + std::string{to_string(event.stage)});
    }
    [[nodiscard]] bool wants_stages() const noexcept override { return true; }
    void on_attempt_retry(AttemptRetryEvent const& event) override {
        count("attempt made again");
        if (event.delay < 0s || event.delay > 10s) problem("a wait out of bounds");
    }

    [[nodiscard]] TimePoint now() const { return clock_->now(); }
    [[nodiscard]] UserCall& call(int id) { return calls_[static_cast<std::size_t>(id)]; }
    /// Its own, or that of its client; zero for none.
    [[nodiscard]] std::chrono::milliseconds deadline_of(UserCall const& call) const {
        return call.deadline.count() > 0 ? call.deadline : default_deadline_[call.client];
    }
    [[nodiscard]] bool knows_call(int id) const {
        return id >= 0 && static_cast<std::size_t>(id) < calls_.size();
    }
    void note(std::string const& what) {
        outcome_.trace +=
            std::to_string(now().time_since_epoch().count() / 1000) + ' ' + what + '\n';
    }
    void problem(std::string what) {
        note("PROBLEM " + what);
        outcome_.problems.push_back(std::move(what));
    }
    void count(std::string const& what) { ++outcome_.occurred[what]; }

private:
    static std::shared_ptr<testing::ManualClock> make_clock(std::uint64_t seed) {
        return std::make_shared<testing::ManualClock>(
            testing::ManualClockOptions{.seed = seed, .auto_advance = true});
    }

    testing::FaultOptions draw_faults() {
        auto const storm = random_.unit();
        return {.seed = seed_,
                .drop_before = 0.1 * storm * random_.unit(),
                .status = 0.1 * storm * random_.unit(),
                .drop_after = 0.1 * storm * random_.unit(),
                .duplicate = 0.2 * random_.unit(),
                .reset_body = 0.1 * storm * random_.unit(),
                .trickle = 0.2 * random_.unit(),
                .delay = 0.3 * random_.unit()};
    }

    RetryConfig draw_retry() {
        RetryConfig retry;
        if (chance(0.2)) retry.max_connections = 1 + static_cast<std::int64_t>(random_.next() % 5);
        if (chance(0.15)) retry.max_retries = static_cast<std::int64_t>(random_.next() % 4);
        if (chance(0.1)) retry.enable_retry_logic = false;
        if (chance(0.1)) retry.progress_timeout = 20s;
        return retry;
    }

    void make_users() {
        auto const users = chance(0.3) ? 2U : 1U;
        bool const same_url = chance(0.7);
        bool const same_key = chance(0.6);
        for (std::size_t i = 0; i < users; ++i) {
            auto& user = users_.emplace_back(*this, i);
            auto const number = std::to_string(i);
            user.url = "http://service-" + (same_url ? "0" : number);
            user.key = std::string{key_mark} + (same_key ? "0" : number);
            auto& service = services_[user.url];
            if (!service) {
                service = std::make_unique<ModelService>(user.url.substr(7), seed_ * 2 + i, *clock_,
                                                         outcome_.occurred);
            }
            user.service = service.get();
            user.gate = &gates_[user.url + ' ' + user.key];
            user.connect(*clock_, faulty_);
            ClientOptions options;
            options.base_url = user.url;
            options.api_key = user.key;
            options.transport = user.recorder;
            options.runtime = *runtime_;
            options.telemetry = chance(0.5);
            options.max_retries = chance(0.2) ? 2 : 10;
            options.observers = {std::shared_ptr<Observer>{this, [](Observer*) {}}};
            options.log_level = LogLevel::debug;
            options.log = [this](LogLevel, std::string_view line) {
                if (tells_a_secret(line))
                    problem("a log line tells a secret: " + std::string{line});
            };
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
            auto const samplers = 1 + random_.next() % 4;
            for (std::size_t n = 0; n < samplers; ++n) {
                user.configs.push_back(draw_retry());
                auto const model = n % 2 == 0 ? "org/tiny" : "tinker://run/sampler_weights/a";
                user.samplers.emplace_back(
                    user.client->create_sampling_client(model, user.configs.back()));
            }
        }
    }

    void make_calls() {
        auto const count = 5 + random_.next() % 45;
        for (std::size_t i = 0; i < count; ++i) {
            auto& call = calls_.emplace_back();
            call.id = static_cast<int>(i);
            call.client = random_.next() % users_.size();
            auto& user = users_[call.client];
            call.sampler = random_.next() % user.samplers.size();
            call.tokens = 1 + static_cast<int>(random_.next() % 40);
            if (chance(0.02)) call.tokens = 14'000;  // written aside, and a longer backoff
            call.samples = 1 + static_cast<std::int64_t>(random_.next() % 3);
            call.logprobs = call.tokens < 100 && chance(0.1);
            if (chance(0.1))
                call.deadline = 1s + std::chrono::milliseconds{random_.next() % 60'000};
            if (chance(0.1)) call.retry.max_retries = static_cast<std::int64_t>(random_.next() % 3);
            if (chance(0.05)) call.retry.enable_retry_logic = chance(0.5);
            call.config = call.retry.over(user.configs[call.sampler]);
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

    void make_weather() {
        at(storm_, [this] {
            note("calm");
            faulty_->set_options({.seed = seed_});
            for (auto& [url, service] : services_) service->calm();
        });
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
        for (auto& user : users_) {
            for (int i = 0; i < 4; ++i) at(span(storm_ + 20s), [this, &user] { look(user); });
            if (chance(0.15))
                at(span(storm_), [this, &user] {
                    if (!judging_) close(user);
                });
            if (chance(0.1))
                at(span(storm_), [this, &user] {
                    if (!judging_) drop(user);
                });
        }
        if (chance(0.05)) at(span(storm_), [this] { shut_down_ = true; });
    }

    void begin(UserCall& call) {
        auto& user = users_[call.client];
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

    void check_answer(UserCall const& call, SampleResponse const& answer) {
        bool fits = static_cast<std::int64_t>(answer.sequences.size()) == call.samples;
        for (std::size_t i = 0; fits && i < answer.sequences.size(); ++i) {
            auto const& tokens = answer.sequences[i].tokens;
            fits = tokens == std::vector<Token>{call.id, static_cast<Token>(i)};
        }
        if (!fits) problem("an answer went to the wrong call");
    }

    void end(UserCall& call, std::optional<Error> const& error) {
        if (++call.ends > 1) return problem("call " + std::to_string(call.id) + " ended twice");
        --open_;
        call.over = now();
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
        if (tells_a_secret(error->what()) || tells_a_secret(error->body())) {
            problem("an error tells a secret");
        }
        for (auto const* lines : {&error->details().headers, &error->details().request_headers}) {
            for (auto const& [line, value] : *lines) {
                if (tells_a_secret(value)) problem("an error tells a secret in " + line);
            }
        }
        if (!explained(call, *error)) {
            problem("call " + name + " failed for no reason: " + error->what());
        }
    }

    bool explained(UserCall& call, Error const& error) {
        auto const& user = users_[call.client];
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
        bool const bypassed = user.service->nature().no_retries && !call.logprobs;
        return call.config.max_retries || !call.config.enable_retry_logic || bypassed;
    }

    /// Asks a client what it is doing, and looks whether the answer can be true.
    void look(User& user) {
        if (!user.client || ended_ || judging_) return;
        count("looked");
        ++open_;
        (void)user.client->status().then_result([this, &user](Result<ServiceStatus> const& status) {
            --open_;
            if (!status) return problem("no status: " + std::string{status.error().what()});
            check_status(user, *status);
        });
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
        (void)sampler->get_base_model().then_result(
            [this](Result<std::string> const&) { --open_; });
    }

    void check_status(User const& user, ServiceStatus const& status) {
        std::map<Stage, std::int64_t> standing;
        for (auto const& each : status.pending) {
            ++standing[each.stage];
            count("status: " + std::string{to_string(each.stage)});
            auto const text = to_string(each);
            if (to_string(each.stage) == "unknown") problem("a stage that has no name: " + text);
            if (each.in_stage < 0s || each.age < each.in_stage) problem("odd times: " + text);
            if (each.ends_in && *each.ends_in < 0s) problem("a wait that is over: " + text);
            constexpr std::array timed{Stage::backing_off, Stage::billing_pause,
                                       Stage::waiting_to_submit, Stage::waiting_to_poll,
                                       Stage::waiting_to_retry};
            bool const waits = std::ranges::find(timed, each.stage) != timed.end();
            if (waits && !each.ends_in) problem("a wait without an end: " + text);
            if (waits && each.why.empty()) problem("a wait without a reason: " + text);
            if (tells_a_secret(text)) problem("a status tells a secret: " + text);
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

    void close(User& user) {
        if (!user.client || user.closed || ended_) return;
        note("close " + std::to_string(user.index_));
        count("closed");
        user.closed = true;
        bool const finish = chance(0.4);
        user.finishing = finish;
        // Just before the close begins, which is put into the same queue.
        clock_->post([&user] { user.closing = !user.finishing; });
        (void)(finish ? user.client->close(CloseReason::success) : user.client->close());
    }

    void drop(User& user) {
        if (ended_) return;
        note("drop " + std::to_string(user.index_));
        count("dropped");
        user.dropped = true;
        user.samplers.assign(user.samplers.size(), std::nullopt);
        user.client.reset();
    }

    void shut_down() {
        note("shutdown");
        count("shut down");
        ended_ = true;
        runtime_->shutdown();
        for (auto& call : calls_) {
            if (!call.begun || call.ends > 0) continue;
            auto const ended = call.watched.wait_for(0ms);
            if (!ended) problem("call " + std::to_string(call.id) + " survived the shutdown");
            if (ended && call.ends == 0) {
                ++call.ends;  // its continuation was dropped with the loop
                ++outcome_.cancelled;
            }
        }
        for (auto& user : users_) {
            if (user.recorder->open() > 0) problem("a request survived the shutdown");
        }
    }

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up() {
        judging_ = true;
        for (auto& user : users_) {
            if (user.client && !user.closed && outcome_.problems.empty()) check_rest(user);
        }
        for (auto& user : users_) {
            if (user.client) close(user);
            user.samplers.clear();
            user.client.reset();
        }
        auto const start = now();
        while (now() - start < 8min && runtime_->poll(1min)) {
        }
        for (auto& user : users_) {
            if (user.recorder->open() > 0) problem("requests were left open");
            if (user.last_request && *user.last_request > start + 6min) {
                problem("a client that is gone still makes requests");
            }
        }
    }

    void check_rest(User& user) {
        auto const status = user.client->status().get();
        if (!status.pending.empty()) problem("pending: " + to_string(status.pending.front()));
        if (!status.count.free) return;  // it never came to sampling
        auto const back = [&](LimitStatus const& limit, std::int64_t all, char const* name) {
            if (limit.free != all || limit.waiting != 0) {
                problem(std::string{name} + ": " + std::to_string(limit.free.value_or(-1)) +
                        " came back of " + std::to_string(all));
            }
        };
        back(status.count, user.limits.count.value_or(400), "submits");
        back(status.throttled, user.limits.throttled.value_or(10), "throttled submits");
        back(status.bytes, user.byte_budget(), "bytes");
        back(status.download, user.download_budget(), "download bytes");
        for (std::size_t i = 0; i < user.samplers.size(); ++i) check_sampler(user, i);
    }

    void check_sampler(User& user, std::size_t index) {
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
        if (found != user.numbers().end() && *found->second.begin() < 0)
            problem("a number below 0");
        std::int64_t given_up = 0;
        for (auto const& call : calls_) {
            if (call.client == user.index_ && call.sampler == index && call.begun) {
                given_up += call.given_up ? 1 : 0;
            }
        }
        if (stats.next_sequence_id < sent || stats.next_sequence_id - sent > given_up) {
            problem("sequence ids of " + *id + ": " + std::to_string(stats.next_sequence_id) +
                    " taken, " + std::to_string(sent) + " sent, " + std::to_string(given_up) +
                    " given up");
        }
    }

    void report_hanging() {
        problem(std::to_string(open_) + " calls were still open " +
                std::to_string(std::chrono::duration_cast<std::chrono::minutes>(settling).count()) +
                " minutes after the last fault");
        for (auto& user : users_) {
            if (!user.client) continue;
            for (auto const& each : user.client->status().get().pending) note(to_string(each));
        }
    }

    std::optional<testing::Reply> serve(testing::SentRequest const& sent) {
        auto const slash = sent.url.find('/', 7);
        auto const found = services_.find(sent.url.substr(0, slash));
        if (found == services_.end()) return testing::Reply{.status = 404};
        return found->second->serve(sent);
    }

    void collect_complaints() {
        for (auto& [url, service] : services_) {
            for (auto& complaint : service->take_complaints()) problem(std::move(complaint));
        }
    }

    void count_faults() {
        auto const& c = faulty_->counts();
        for (auto const& [name, times] : {std::pair{"drop_before", c.drop_before},
                                          {"status", c.status},
                                          {"drop_after", c.drop_after},
                                          {"duplicate", c.duplicate},
                                          {"reset_body", c.reset_body},
                                          {"trickle", c.trickle},
                                          {"delay", c.delay}}) {
            outcome_.occurred[std::string{"fault: "} + name] += times;
            outcome_.faults += times;
        }
    }

    bool chance(double probability) { return random_.unit() < probability; }
    nanoseconds span(nanoseconds most) {
        return nanoseconds{
            static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(most.count()))};
    }
    void arm(Timer& timer, nanoseconds after) {
        clock_->arm(timer, clock_->now() + after, Precision::exact);
    }
    void at(nanoseconds after, std::function<void()> action) {
        auto& alarm = alarms_.emplace_back();
        alarm.action = std::move(action);
        arm(alarm, after);
    }

    std::uint64_t const seed_;
    Random random_;
    Outcome outcome_{};
    std::shared_ptr<testing::ManualClock> clock_;
    std::map<std::string, std::unique_ptr<ModelService>> services_{};
    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::shared_ptr<testing::FaultyTransport> faulty_{};
    std::map<std::string, Gates> gates_{};
    std::deque<UserCall> calls_{};
    std::deque<User> users_{};
    std::deque<Alarm> alarms_{};
    std::vector<std::chrono::milliseconds> default_deadline_{};
    // Ends before what its clients use.
    std::optional<Runtime> runtime_{
        Runtime{RuntimeOptions{.threads = 0, .scheduler = clock_, .log = silent_log()}}};
    nanoseconds storm_{0};
    int open_{0};
    bool shut_down_{false};
    bool ended_{false};
    /// All calls are over; what users had still planned would only disturb.
    bool judging_{false};
};

bool User::token_came_now() const { return token_came_ && *token_came_ == world_.now(); }

std::optional<TimePoint> User::poll_began() const {
    if (token_came_now()) return std::nullopt;
    return world_.now();
}

void User::on_request(Exchange const& exchange) {
    auto const now = world_.now();
    last_request = now;
    world_.note(std::to_string(index_) + " > " + exchange.path + ' ' + exchange.body.substr(0, 90));
    bool const drained = exchange.path == "/api/v1/telemetry" ||
                         exchange.path == "/api/v1/cancel_future" ||
                         exchange.path.ends_with("/finish");
    if (closing && !drained) world_.problem("a request after the close: " + exchange.path);
    if (exchange.path == "/api/v1/asample") submits(exchange);
    if (exchange.path == "/api/v1/retrieve_future") polls(exchange);
    if (exchange.path == "/api/v1/retrieve_futures") asks_completions(exchange);
    if (exchange.path == "/api/v1/cancel_future") cancels(exchange);
}

void User::submits(Exchange const& exchange) {
    auto const now = world_.now();
    auto const name = attempt_of(exchange);
    auto const id = call_of(exchange.body);
    if (!world_.knows_call(id)) return world_.problem("a submit of nobody: " + name);
    auto& call = world_.call(id);
    auto const [place, fresh] = attempts_.try_emplace(name);
    auto& attempt = place->second;
    bool loop = false;  // a repeat by the submit loop
    if (fresh) {
        attempt.call = id;
        attempt.throttled = gate->must.recent(now) && !token_came_now();
        auto const session = std::string{json_member(exchange.body, "sampling_session_id")};
        auto const number = name.substr(session.size() + 1);
        numbers_[session].insert(std::stoll(number));
        if (!call.attempt.empty()) {
            auto const& before = attempts_[call.attempt];
            if (before.open) world_.problem("two attempts of one call at once: " + name);
            if (before.accepted && !before.lost) {
                world_.problem("submitted again though its promise stands: " + call.attempt);
            }
        }
        call.attempt = name;
    } else {
        if (attempt.open) world_.problem("two submits of one attempt at once: " + name);
        if (attempt.accepted) world_.problem("an accepted submit was made again: " + name);
        if (attempt.body != exchange.body && attempt.last != 422) {
            world_.problem("an attempt was sent again with another body: " + name);
        }
        auto const last = attempt.last.value_or(-1);
        loop = last == 0 || last == 400 || last == 408 || last == 409 || last >= 500;
    }
    if (!loop) attempt.loop_began = now;
    attempt.body = exchange.body;
    attempt.open = true;
    if (call.over && *call.over < now) world_.problem("a submit for a call that is over: " + name);
    if (gate->must.closed(now) && !loop && !token_came_now()) {
        world_.problem("a submit while the gate is closed: " + name);
    }
    open_bytes_.insert(call.bytes());
    if (static_cast<std::int64_t>(open_bytes_.size()) > limits.count.value_or(400)) {
        world_.problem("more submits at once than allowed");
    }
    std::int64_t sum = -*open_bytes_.rbegin();
    for (auto const bytes : open_bytes_) sum += bytes;
    if (sum > byte_budget()) world_.problem("more bytes at once than allowed");
    // Who waits for bytes has passed the throttle before; there it cannot be told from here.
    bool const ample = byte_budget() >= 1 << 20;
    if (!attempt.throttled || !ample || call.tokens > 1000) {
        attempt.throttled = false;
    } else if (++open_throttled_ > limits.throttled.value_or(10)) {
        world_.problem("more throttled submits at once than allowed");
    }
}

void User::submit_over(Exchange const& exchange, std::optional<int> status) {
    auto const found = attempts_.find(attempt_of(exchange));
    if (found == attempts_.end()) return;
    auto& attempt = found->second;
    auto const& call = world_.call(attempt.call);
    attempt.open = false;
    attempt.last = status;
    open_bytes_.erase(open_bytes_.find(call.bytes()));
    if (attempt.throttled) --open_throttled_;
    if (!status) return;
    auto const now = world_.now();
    if (*status == 429) gate->close(now, backoff_of(call.bytes(), &exchange));
    if (*status == 402 && call.config.enable_retry_logic) {
        // A block that lasts too long is an error and closes nothing.
        auto const duration = backoff_of(call.bytes(), nullptr);
        gate->may.close(now, duration);
        if (service->nature().billing_limit >= 1h) gate->must.close(now, duration);
    }
    if (*status >= 200 && *status < 300) {
        attempt.accepted = true;
        gate->must.accepted(exchange.started);
        gate->may.accepted(attempt.loop_began);
    }
}

void User::polls(Exchange const& exchange) {
    auto const now = world_.now();
    auto const id = request_of(exchange);
    auto const attempt = attempts_.find(id);
    if (attempt == attempts_.end() || !attempt->second.accepted) {
        return world_.problem("a poll for a promise that was not given: " + id);
    }
    auto& polls = polls_[id];
    if (polls.open) world_.problem("two polls at once: " + id);
    if (polls.last && now - *polls.last < 100ms && !polls.sized) {
        world_.problem("polls too close: " + id);
    }
    auto const& call = world_.call(attempt->second.call);
    if (call.over && *call.over < now) world_.problem("a poll for a call that is over: " + id);
    polls.open = true;
    polls.sized = false;
    polls.last = poll_began();
}

void User::asks_completions(Exchange const& exchange) {
    auto const now = world_.now();
    auto const session = std::string{json_member(exchange.body, "sampling_session_id")};
    auto& polls = completions_[session];
    if (polls.open) world_.problem("two completion polls at once: " + session);
    if (polls.last && now - *polls.last < 100ms && !polls.moved) {
        world_.problem("completion polls too close: " + session);
    }
    polls.open = true;
    polls.moved = false;
    polls.last = poll_began();
    // Only what was fetched may be reported, in order.
    std::string_view list = exchange.body;
    list = list.substr(list.find("retrieved_request_ids"));
    list = list.substr(list.find('[') + 1);
    std::string before;
    while (list.starts_with('"') || list.starts_with(",\"")) {
        list = list.substr(list.find('"') + 1);
        auto const id = std::string{list.substr(0, list.find('"'))};
        list = list.substr(id.size() + 1);
        world_.count("reported as fetched");
        if (!polls_[id].answered) world_.problem("reported before it was fetched: " + id);
        if (id <= before) world_.problem("reported out of order: " + id);
        before = id;
    }
}

void User::cancels(Exchange const& exchange) {
    auto const id = request_of(exchange);
    auto const attempt = attempts_.find(id);
    if (attempt == attempts_.end()) return world_.problem("a cancel of nothing: " + id);
    auto const& call = world_.call(attempt->second.call);
    bool const given_up =
        call.cancelled || closed || world_.deadline_of(call).count() > 0 || call.over;
    if (!given_up) world_.problem("a cancel of a call that goes on: " + id);
}

void User::on_answer(Exchange const& exchange) {
    auto const status = exchange.status;
    world_.note(std::to_string(index_) + " < " + exchange.path + ' ' + std::to_string(status) +
                ' ' + exchange.answer.substr(0, 90));
    auto kind = exchange.path;
    if (kind.starts_with("/api/v1/samplers/")) kind = "/api/v1/samplers/ID";
    if (kind.starts_with("/api/v1/sessions/")) kind = "/api/v1/sessions/ID/finish";
    world_.count("answer: " + kind + ' ' + std::to_string(status));
    if (exchange.path == "/api/v1/asample") submit_over(exchange, status);
    if (exchange.path == "/api/v1/auth/token") token_came_ = world_.now();
    if (exchange.path.ends_with("/finish") && finishing) {
        // Repeats of a finish that failed come before the end.
        bool const final = status != 0 && status != 408 && status != 409 && status != 429 &&
                           status != 402 && status != 400 && status < 500;
        if (final) closing = true;
    }
    if (exchange.path == "/api/v1/retrieve_future") {
        auto const id = request_of(exchange);
        auto& polls = polls_[id];
        polls.open = false;
        bool const ok = status >= 200 && status < 300;
        polls.sized = ok && exchange.answer.find("complete_metadata") != std::string::npos;
        bool const waits = exchange.answer.find("try_again") != std::string::npos ||
                           exchange.answer.find(R"("pending")") != std::string::npos;
        if (ok && !polls.sized && !waits) polls.answered = true;
        if (status == 410) attempts_[id].lost = true;
        bool const passing = status == 0 || status == 408 || status == 429 || status >= 500;
        if (!ok && !passing) polls.answered = true;
    }
    if (exchange.path == "/api/v1/retrieve_futures") {
        auto& polls = completions_[std::string{json_member(exchange.body, "sampling_session_id")}];
        polls.open = false;
        if (status == 200) {
            auto const cursor = std::stoll(std::string{json_member(exchange.answer, "cursor")});
            polls.moved = std::exchange(polls.cursor, cursor) != cursor;
        }
    }
}

void User::on_withdrawn(Exchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
    if (exchange.path == "/api/v1/asample") submit_over(exchange, std::nullopt);
    if (exchange.path == "/api/v1/retrieve_future") polls_[request_of(exchange)].open = false;
    if (exchange.path == "/api/v1/retrieve_futures") {
        completions_[std::string{json_member(exchange.body, "sampling_session_id")}].open = false;
    }
}

}  // namespace

Outcome run_sampling_world(std::uint64_t seed) { return World{seed}.run(); }

std::vector<std::string> const& sampling_occurrences() {
    static std::vector<std::string> const names{
        // What the network does.
        "fault: drop_before",
        "fault: status",
        "fault: drop_after",
        "fault: duplicate",
        "fault: reset_body",
        "fault: trickle",
        "fault: delay",
        "fault: wall clock set",
        // What the service does.
        "service: restart",
        "service: silence",
        "service: trickle",
        "service: token",
        "service: 429",
        "service: 429 with retry-after",
        "service: 429 with retry-after-ms",
        "service: 429 with both headers",
        "service: 429 with a hint in its body",
        "service: 429 with a queue state",
        "service: 402",
        "service: 5xx",
        "service: 408",
        "service: 409",
        "service: 400",
        "service: empty 400",
        "service: 422",
        "service: repeat of a submit",
        "service: result at once",
        "service: try_again",
        "service: try_again with a time",
        "service: 408 with a queue state",
        "service: pending",
        "service: metadata",
        "service: JSON result",
        "service: protobuf result",
        "service: failed request",
        "service: lost promise, 410",
        "service: lost promise, 404",
        "service: promise forgotten",
        "service: completions",
        "service: no completions",
        "service: no completion polls",
        "service: cancel_future",
        // What users do, and how their calls end.
        "closed",
        "dropped",
        "shut down",
        "end: cancelled",
        "end: closed",
        "end: deadline",
        "end: stuck",
        "end: billing",
        "end: status",
        "end: request_failed",
        "end: retries spent",
        "end: no sampler",
        "attempt made again",
        "reported as fetched",
        // Where samples stand, as they go and as `status` tells.
        "stage: creating its sampler",
        "stage: waiting for a slot",
        "stage: waiting to be submitted",
        "stage: throttled",
        "stage: waiting for bytes",
        "stage: encoding",
        "stage: backing off",
        "stage: paused for billing",
        "stage: submitting",
        "stage: waiting for completion",
        "stage: polling",
        "stage: decoding",
        "stage: waiting to retry",
        "status: starting",
        "status: creating its sampler",
        "status: waiting for a slot",
        "status: waiting to be submitted",
        "status: throttled",
        "status: waiting for bytes",
        "status: backing off",
        "status: paused for billing",
        "status: submitting",
        "status: waiting to submit again",
        "status: waiting for completion",
        "status: polling",
        "status: waiting to poll",
    };
    return names;
}

}  // namespace tinkxx::simulation
