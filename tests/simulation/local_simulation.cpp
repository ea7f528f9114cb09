#include "simulation/local_simulation.hpp"

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "local/core/core.hpp"
#include "service/random.hpp"
#include "simulation/local_host.hpp"
#include "simulation/local_judge.hpp"
#include "simulation/sampling_recorder.hpp"
#include "simulation/training_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;
using service::Random;
using std::chrono::nanoseconds;

/// See the header.
constexpr auto settling = 15min;
constexpr auto gap = 6min;
/// For so long a submit is repeated (R-RETRY-80).
constexpr auto submit_budget = 300s;

enum class What : std::uint8_t {
    create,
    forward,
    forward_backward,
    custom,
    step,
    save,
    save_sampler,
    ephemeral,
    load,
    info,
    unload,
    sample,
    copy,
};

struct Script;

struct UserCall {
    int id{0};
    std::string mark{};
    std::size_t client{0};
    What what{};
    std::string model{};
    TimePoint begun{};
    /// Of the server, when it was made.
    int life{0};
    std::chrono::milliseconds deadline{0};
    bool cancelled{false};
    int ends{0};
    bool succeeded{false};
    Alarm give_up{};
    Future<void> watched{};
    Script* script{nullptr};

    std::optional<ForwardBackwardOutput> output{};
    std::optional<OptimStepResult> step{};
    std::optional<SampleResponse> sample{};
    bool seeded{false};
};

struct Model {
    TrainingClient client{};
    std::string id{};
    bool unloaded{false};
};

/// One who makes calls, some at once, and waits for what comes of them.
struct Script {
    std::size_t client{0};
    int steps{0};
    std::set<int> waits_for{};
    Alarm next{};
};

class World;

/// A service client, and what it sees of the network.
class Client final : private Traffic {
public:
    Client(World& world, std::size_t index) : world_{world}, index_{index} {}

    World& world_;
    std::size_t const index_;
    ClientOptions options{};
    std::shared_ptr<testing::FaultyTransport> network{};
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    std::deque<Model> models{};
    std::deque<SamplingClient> samplers{};
    bool closed{false};

    void connect(Scheduler& scheduler) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, network, traffic);
        options.transport = recorder;
    }

private:
    void on_request(Exchange const& exchange) override;
    void on_answer(Exchange const& exchange) override;
    void on_withdrawn(Exchange const& exchange) override;
};

class World final : public Observer, private ServerWatch {
public:
    explicit World(std::uint64_t seed)
        : seed_{seed},
          random_{seed},
          clock_{make_clock(seed)},
          judge_{*clock_, server_options().fetched_keep,
                 [this](std::string what) { problem(std::move(what)); }, outcome_.occurred},
          host_{std::make_shared<LocalHost>(seed, *clock_, server_options(),
                                            static_cast<ServerWatch&>(*this), outcome_.occurred,
                                            [this](std::string const& what) { note(what); })} {}

    Outcome run() {
        storm_ = 10s + span(chance(0.1) ? nanoseconds{10min} : nanoseconds{120s});
        host_->on_down = [this] {
            away_ = true;
            at(chance(0.8) ? span(10s) : span(90s), [this] { up(); });
        };
        up();
        make_clients();
        make_scripts();
        make_weather();
        auto const start = now();
        while (open_ > 0) {
            runtime_->poll(1h);
            if (now() - start > storm_ + settling + gap * given_up_) {
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

    void on_stage(StageEvent const& event) override {
        count("stage: " + std::string{to_string(event.stage)});
    }
    [[nodiscard]] bool wants_stages() const noexcept override { return true; }

    [[nodiscard]] TimePoint now() const { return clock_->now(); }
    void note(std::string const& what) {
        outcome_.trace +=
            std::to_string(now().time_since_epoch().count() / 1000) + ' ' + what + '\n';
    }

private:
    static std::shared_ptr<testing::ManualClock> make_clock(std::uint64_t seed) {
        return std::make_shared<testing::ManualClock>(
            testing::ManualClockOptions{.seed = seed, .auto_advance = true});
    }
    local::ServerOptions server_options() {
        auto options = local_server_options(folder_.path() / "home");
        // Some answers are large to this server, which then says so first.
        if (seed_ % 4 == 0) options.inline_result_bytes = 100;
        return options;
    }

    void problem(std::string what) {
        note("PROBLEM " + what);
        outcome_.problems.push_back(std::move(what));
    }
    void count(std::string const& what) { ++outcome_.occurred[what]; }

    // The world ----------------------------------------------------------------------------------

    void on_asked(Served const& served) override { judge_.on_asked(served); }
    void on_served(Served const& served) override {
        judge_.on_served(served);
        // What is under way just after an answer is most easily lost.
        bool const save = served.path.find("save_weights") != std::string::npos;
        if (may_die() && chance(save ? 0.1 : 0.003)) host_->crash_after(1 + below(12));
    }
    void on_clean_stop(int life) override { judge_.on_clean_stop(life); }

    [[nodiscard]] bool may_die() const { return !calm_ && host_->life() <= 4; }

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

    void make_clients() {
        auto const clients = chance(0.3) ? 2U : 1U;
        for (std::size_t i = 0; i < clients; ++i) {
            auto& client = clients_.emplace_back(*this, i);
            client.network =
                std::make_shared<testing::FaultyTransport>(*clock_, host_, draw_faults());
            auto& options = client.options;
            client.connect(*clock_);
            options.base_url = "http://localhost";
            options.api_key = "tml-simulation";
            options.project_id = "simulation";
            options.runtime = *runtime_;
            options.telemetry = chance(0.2);
            options.observers = {std::shared_ptr<Observer>{this, [](Observer*) {}}};
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

    void make_scripts() {
        for (auto const& client : clients_) {
            auto const scripts = 1 + below(2);
            for (std::int64_t i = 0; i < scripts; ++i) {
                auto& script = scripts_.emplace_back();
                script.client = client.index_;
                script.steps = 3 + static_cast<int>(below(6));
                script.next.action = [this, &script] { step(script); };
                arm(script.next, span(2s));
                ++open_;
            }
        }
    }

    /// The server comes up, perhaps to die soon.
    void up() {
        if (judging_ || host_->running()) return;
        host_->start_server();
        away_ = false;
        last_up_ = now();
        if (!may_die() || chance(0.3)) return;
        // From the first steps of its life to far into it.
        auto const events = std::int64_t{1} << below(11);
        host_->crash_after(events + below(static_cast<std::uint64_t>(events)));
    }

    void make_weather() {
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

    // What users do ------------------------------------------------------------------------------

    void step(Script& script) {
        auto& client = clients_[script.client];
        if (!client.client || script.steps-- == 0) {
            --open_;
            return;
        }
        std::vector<int> begun;
        auto* const model = pick(client);
        if (chance(0.3)) {
            auto const calls = 1 + below(4);
            for (std::int64_t i = 0; i < calls; ++i) begun.push_back(sample(client, script).id);
        } else if (model == nullptr || (client.models.size() < 4 && chance(0.15))) {
            begun.push_back(create(client, script).id);
        } else {
            auto const calls = 1 + below(6);
            for (std::int64_t i = 0; i < calls && !model->unloaded; ++i) {
                begun.push_back(make_call(client, *model, script).id);
            }
        }
        bool const waits = begun.size() < 2 || chance(0.7);
        if (!waits) return arm(script.next, span(5s));
        script.waits_for = {begun.begin(), begun.end()};
        std::erase_if(script.waits_for,
                      [this](int id) { return calls_[static_cast<std::size_t>(id)].ends > 0; });
        if (script.waits_for.empty()) arm(script.next, span(1s));
    }

    /// One of those that can still be trained, as far as its user knows.
    Model* pick(Client& client) {
        std::vector<Model*> usable;
        for (auto& model : client.models) {
            if (!model.unloaded) usable.push_back(&model);
        }
        if (usable.empty()) return nullptr;
        return usable[random_.next() % usable.size()];
    }

    UserCall& new_call(Client const& client, Script& script, What what, std::string model) {
        auto& call = calls_.emplace_back();
        call.id = static_cast<int>(calls_.size()) - 1;
        call.mark = std::to_string(call.id);
        call.client = client.index_;
        call.script = &script;
        call.what = what;
        call.model = std::move(model);
        call.begun = now();
        call.life = host_->life();
        mark_ = call.mark;
        ++outcome_.calls;
        ++open_;
        note("begin " + call.mark + ' ' + std::to_string(static_cast<int>(what)) + ' ' +
             call.model);
        if (!call.model.empty() && chance(0.05)) {
            call.deadline = 1s + std::chrono::milliseconds{below(60'000)};
            ++given_up_;
        }
        if (chance(0.07)) {
            ++given_up_;
            call.give_up.action = [this, &call] {
                if (call.ends > 0 || !call.watched.valid()) return;
                note("cancel " + call.mark);
                call.cancelled = true;
                call.watched.cancel();
            };
            arm(call.give_up, chance(0.7) ? span(500ms) : span(30s));
        }
        return call;
    }

    UserCall& create(Client& client, Script& script) {
        auto& call = new_call(client, script, What::create, {});
        Future<TrainingClient> made;
        if (!saved_.empty() && chance(0.7)) {
            auto const& path = saved_[random_.next() % saved_.size()];
            made = chance(0.5)
                       ? client.client->create_training_client_from_state_with_optimizer(path)
                       : client.client->create_training_client_from_state(path);
        } else {
            TrainingOptions options;
            options.lora.rank = 1 + below(3);
            options.lora.seed = call.id;
            made = client.client->create_lora_training_client(local_model, options);
        }
        call.watched =
            std::move(made).then_result([this, &call, &client](Result<TrainingClient> result) {
                if (result) {
                    call.model = result->model_id();
                    client.models.push_back({.client = *result, .id = result->model_id()});
                }
                end(call, result ? std::nullopt : std::optional{result.error()});
            });
        return call;
    }

    UserCall& make_call(Client& client, Model& model, Script& script) {
        auto const drawn = random_.unit();
        auto const what = drawn < 0.08   ? What::forward
                          : drawn < 0.38 ? What::forward_backward
                          : drawn < 0.44 ? What::custom
                          : drawn < 0.66 ? What::step
                          : drawn < 0.76 ? What::save
                          : drawn < 0.81 ? What::save_sampler
                          : drawn < 0.90 ? What::ephemeral
                          : drawn < 0.93 ? What::load
                          : drawn < 0.95 ? What::info
                          : drawn < 0.97 ? What::copy
                                         : What::unload;
        bool const nothing = (what == What::load || what == What::copy) && saved_.empty();
        auto& call = new_call(client, script, nothing ? What::save : what, model.id);
        auto const trainer = model.client.with({.deadline = call.deadline});
        switch (call.what) {
            case What::forward:
            case What::forward_backward:
            case What::custom:
                make_pass(trainer, call);
                break;
            default:
                make_other(client, model, trainer, call);
        }
        return call;
    }

    Datum draw_datum(bool policy) {
        auto const size = static_cast<std::size_t>(1 + below(5));
        std::vector<Token> tokens;
        std::vector<std::int64_t> targets;
        for (std::size_t i = 0; i < size; ++i) {
            tokens.push_back(static_cast<Token>(below(local_vocabulary)));
            targets.push_back(below(local_vocabulary));
        }
        Datum datum;
        auto const put = [&](std::string const& name) {
            std::vector<float> numbers;
            for (std::size_t i = 0; i < size; ++i) {
                numbers.push_back(static_cast<float>(below(256) - 64) / 64);
            }
            datum.loss_fn_inputs.set(name, std::move(numbers));
        };
        datum.model_input = ModelInput::from_tokens(std::move(tokens));
        datum.loss_fn_inputs.set("target_tokens", std::move(targets));
        if (policy) {
            put("logprobs");
            put("advantages");
        } else {
            put("weights");
        }
        return datum;
    }

    void make_pass(TrainingClient const& trainer, UserCall& call) {
        bool const policy = call.what != What::custom && chance(0.3);
        Loss const loss = policy ? Loss{PpoConfig{}} : Loss{LossFn::cross_entropy};
        std::vector<Datum> data;
        auto const size = 1 + below(5);
        for (std::int64_t i = 0; i < size; ++i) data.push_back(draw_datum(policy));
        Future<ForwardBackwardOutput> made;
        if (call.what == What::forward) made = trainer.forward(data, loss);
        if (call.what == What::forward_backward) made = trainer.forward_backward(data, loss);
        if (call.what == What::custom) {
            made = trainer.forward_backward_custom(
                data, [](std::span<Datum const>, std::span<TensorData const> logprobs) {
                    CustomLossValue value;
                    for (auto const& each : logprobs) {
                        auto const& numbers = std::get<std::vector<float>>(each.data);
                        value.gradient.emplace_back(numbers.size(), 0.5F);
                        for (auto const number : numbers) value.loss += 0.5 * number;
                    }
                    return value;
                });
        }
        call.watched =
            std::move(made).then_result([this, &call](Result<ForwardBackwardOutput> result) {
                if (result) call.output = *std::move(result);
                end(call, result ? std::nullopt : std::optional{result.error()});
            });
    }

    void make_other(Client& client, Model& model, TrainingClient const& trainer, UserCall& call) {
        auto const over = [this, &call](auto const& result) {
            end(call, result ? std::nullopt : std::optional{result.error()});
        };
        auto const name = "n" + call.mark;
        switch (call.what) {
            case What::step: {
                AdamParams params{.learning_rate = static_cast<double>(1 + below(40)) / 256};
                if (chance(0.3)) params.weight_decay = 0.125;
                if (chance(0.3)) params.grad_clip_norm = 1;
                call.watched = trainer.optim_step(params).then_result(
                    [over, &call](Result<OptimStepResult> result) {
                        if (result) call.step = *result;
                        over(result);
                    });
                break;
            }
            case What::save: {
                SaveOptions options;
                options.overwrite = chance(0.3);
                bool const known = !options.overwrite;
                call.watched = trainer.save_state(known ? name : "last", options)
                                   .then_result([this, over, known](Result<SaveResult> result) {
                                       // What an overwritten one holds depends on when it is read.
                                       if (result && known) saved_.push_back(result->path);
                                       over(result);
                                   });
                break;
            }
            case What::save_sampler: {
                auto saved = trainer.save_weights_for_sampler(name);
                if (chance(0.3)) {
                    call.watched = std::move(saved).then_result(over);
                    break;
                }
                watch_sample(call, std::move(saved).then([this, &call, &client,
                                                          trainer](SaveResult const& result) {
                    return draw(client, call, trainer.create_sampling_client(result.path));
                }));
                break;
            }
            case What::ephemeral: {
                auto made = trainer.save_weights_and_get_sampling_client();
                watch_sample(call, std::move(made).then([this, &call, &client](SamplingClient it) {
                    return draw(client, call, std::move(it));
                }));
                break;
            }
            case What::load:
                call.watched = load(trainer).then_result(over);
                break;
            case What::info:
                call.watched = trainer.get_info().then_result(over);
                break;
            case What::copy:
                call.watched = client.client->copy_weights(saved_[random_.next() % saved_.size()])
                                   .then_result(over);
                break;
            default:
                model.unloaded = true;
                call.watched = trainer.unload().then_result(over);
        }
    }

    Future<LoadResult> load(TrainingClient const& trainer) {
        auto const& path = saved_[random_.next() % saved_.size()];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        return chance(0.5) ? trainer.load_state_with_optimizer(path) : trainer.load_state(path);
#pragma GCC diagnostic pop
    }

    UserCall& sample(Client& client, Script& script) {
        auto& call = new_call(client, script, What::sample, {});
        auto const drawn = random_.unit();
        if (!client.samplers.empty() && drawn < 0.6) {
            auto const sampler = client.samplers[random_.next() % client.samplers.size()];
            watch_sample(call, draw(client, call, sampler));
        } else if (!saved_.empty() && drawn < 0.9) {
            SamplerOptions options;
            options.model_path = saved_[random_.next() % saved_.size()];
            watch_sample(call, draw(client, call, client.client->create_sampling_client(options)));
        } else {
            watch_sample(call,
                         draw(client, call, client.client->create_sampling_client(local_model)));
        }
        return call;
    }

    Future<SampleResponse> draw(Client& client, UserCall& call, SamplingClient sampler) {
        mark_ = call.mark;
        std::vector<Token> prompt;
        auto const size = 1 + below(8);
        for (std::int64_t i = 0; i < size; ++i) {
            prompt.push_back(static_cast<Token>(below(local_vocabulary)));
        }
        SamplingParams params{.max_tokens = 1 + below(12)};
        call.seeded = chance(0.8);
        if (call.seeded) params.seed = random_.next() >> 1U;
        if (chance(0.3)) params.temperature = 0;
        SampleOptions options{.num_samples = 1 + below(3)};
        if (chance(0.2)) options.include_prompt_logprobs = true;
        if (chance(0.1)) options.topk_sample_logprobs = 2;
        auto made = sampler.sample(ModelInput::from_tokens(std::move(prompt)), params, options);
        if (client.samplers.size() < 6) client.samplers.push_back(std::move(sampler));
        return made;
    }

    void watch_sample(UserCall& call, Future<SampleResponse> sample) {
        call.watched = std::move(sample).then_result([this, &call](Result<SampleResponse> result) {
            if (result) call.sample = *result;
            // A sampler that could not be made stays so.
            if (!result) clients_[call.client].samplers.clear();
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
    }

    // How calls end ------------------------------------------------------------------------------

    void end(UserCall& call, std::optional<Error> const& error) {
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

    bool explained(UserCall const& call, Error const& error) {
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
        if (call.what == What::create && host_->life() != call.life && (gone || status == 409)) {
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

    /// The user lets go of a model that the server does not have any more.
    void lose(UserCall const& call) {
        for (auto& model : clients_[call.client].models) {
            if (model.id == call.model) model.unloaded = true;
        }
    }

    [[nodiscard]] bool was_unloaded(UserCall const& call) const {
        return std::ranges::any_of(calls_, [&](UserCall const& other) {
            return other.what == What::unload && other.model == call.model && other.id != call.id &&
                   !call.model.empty();
        });
    }

    // What clients say about themselves ----------------------------------------------------------

    void look(Client& client) {
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

    void close(Client& client) {
        if (!client.client || client.closed || judging_) return;
        note("close " + std::to_string(client.index_));
        count("closed");
        client.closed = true;
        (void)(chance(0.5) ? client.client->close(CloseReason::success) : client.client->close());
    }

    void drop(Client& client) {
        if (judging_) return;
        note("drop " + std::to_string(client.index_));
        count("dropped");
        client.models.clear();
        client.samplers.clear();
        client.client.reset();
    }

    void report_hanging() {
        problem(std::to_string(open_) + " calls were still open long after the last fault");
        for (auto& client : clients_) {
            if (!client.client) continue;
            for (auto const& each : client.client->status().get().pending) note(to_string(each));
        }
    }

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up() {
        calm_ = true;
        host_->stop_crashing();
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

    void check_rest(Client& client) {
        auto const status = client.client->status().get();
        if (!status.pending.empty()) problem("pending: " + to_string(status.pending.front()));
        auto const back = [&](LimitStatus const& limit, char const* name) {
            if (limit.waiting != 0) problem(std::string{name} + ": somebody still waits");
        };
        back(status.training_bytes, "bytes of passes");
        back(status.bytes, "bytes");
        back(status.count, "samples");
        back(status.download, "download bytes");
    }

    // Judgement ----------------------------------------------------------------------------------

    void judge() {
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

    void check_result(UserCall const& call) {
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

    void count_faults(testing::FaultCounts const& c) {
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
    std::int64_t below(std::uint64_t bound) {
        return static_cast<std::int64_t>(random_.next() % bound);
    }
    nanoseconds span(nanoseconds most) {
        return nanoseconds{below(static_cast<std::uint64_t>(most.count()))};
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
    ScratchFolder folder_{};
    std::shared_ptr<testing::ManualClock> clock_;
    TimePoint start_{clock_->now()};
    LocalJudge judge_;
    std::shared_ptr<LocalHost> host_;
    std::deque<UserCall> calls_{};
    std::string mark_{};
    std::deque<Script> scripts_{};
    std::deque<Client> clients_{};
    std::deque<Alarm> alarms_{};
    /// Checkpoints of training that were acknowledged, and will not be overwritten.
    std::vector<std::string> saved_{};
    // Ends before what its clients use.
    std::optional<Runtime> runtime_{
        Runtime{RuntimeOptions{.threads = 0, .scheduler = clock_, .log = silent_log()}}};
    nanoseconds storm_{0};
    int open_{0};
    /// Calls that may be given up, and so may leave others waiting for their numbers.
    int given_up_{0};
    bool calm_{false};
    /// The server is stopping, or there is none; and since when there is one.
    bool away_{false};
    TimePoint last_up_{};
    /// All calls are over; what users had still planned would only disturb.
    bool judging_{false};
};

void Client::on_request(Exchange const& exchange) {
    bool const text = exchange.body.starts_with('{');
    world_.note(
        std::to_string(index_) + " > " + exchange.path + ' ' +
        (text ? exchange.body.substr(0, 110) : std::to_string(exchange.body.size()) + " bytes"));
}

void Client::on_answer(Exchange const& exchange) {
    bool const text = exchange.answer.empty() || exchange.answer.front() == '{';
    world_.note(std::to_string(index_) + " < " + exchange.path + ' ' +
                std::to_string(exchange.status) + ' ' +
                (text ? exchange.answer.substr(0, 110)
                      : std::to_string(exchange.answer.size()) + " bytes"));
}

void Client::on_withdrawn(Exchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
}

}  // namespace

Outcome run_local_world(std::uint64_t seed) { return World{seed}.run(); }

std::vector<std::string> const& local_occurrences() {
    static std::vector<std::string> const names{
        // What the network does.
        "fault: drop_before",
        "fault: status",
        "fault: drop_after",
        "fault: duplicate",
        "fault: reset_body",
        "fault: trickle",
        "fault: delay",
        // What befalls the server, and what it does.
        "server: crash",
        "server: crash between two steps",
        "server: crash before a save was known",
        "server: clean stop",
        "server: nobody there",
        "server: repeat of a submit",
        "server: repeat of a sample",
        "server: request after a later one",
        "server: poll of a request that is held back",
        "server: metadata",
        "server: completion told",
        "server: result of an earlier life",
        "server: step lost",
        "answer: forward_backward 404",
        "answer: retrieve_future 404",
        "answer: retrieve_future 410",
        "answer: copy_weights 200",
        "answer: cancel_future 200",
        // What is trained, and held against a quiet server.
        "step: forward",
        "step: forward_backward",
        "step: optim_step",
        "step: save_state",
        "step: save_for_sampler",
        "step: load_state",
        "step: protobuf",
        "compared: step",
        "compared: sample",
        "audited: checkpoint",
        // What users do, and how their calls end.
        "closed",
        "dropped",
        "end: cancelled",
        "end: closed",
        "end: deadline",
        "end: model lost",
        "end: model lost before it was made",
        "end: bad network",
        // Where calls stand, as they go and as `status` tells.
        "stage: starting",
        "stage: creating its sampler",
        "stage: waiting for its turn",
        "stage: submitting",
        "stage: waiting to submit again",
        "stage: waiting for completion",
        "stage: polling",
        "stage: waiting to poll",
        "stage: computing its loss",
        "status: starting",
        "status: waiting for its turn",
        "status: submitting",
        "status: waiting to submit again",
        "status: polling",
        "status: waiting to poll",
    };
    return names;
}

}  // namespace tinkxx::simulation
