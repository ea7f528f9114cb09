#include "simulation/training_simulation.hpp"

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/random.hpp"
#include "simulation/sampling_model.hpp"
#include "simulation/sampling_recorder.hpp"
#include "simulation/training_judge.hpp"
#include "simulation/training_model.hpp"

#include <algorithm>
#include <array>
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
using What = TrainCall::What;

/// See the header.
constexpr auto settling = 15min;
/// For so long a submit is repeated (R-RETRY-80).
constexpr auto submit_budget = 300s;

constexpr std::string_view key_mark = "tml-secret-";
constexpr std::string_view root = "/api/v1/";

bool tells_a_secret(std::string_view text) { return text.find(key_mark) != std::string_view::npos; }

struct Script;

struct UserCall : TrainCall {
    std::string mark{};
    TrainJudge* judge{nullptr};
    std::chrono::milliseconds deadline{0};
    bool throws{false};
    /// Its last submit was refused as protobuf, by a service that takes JSON.
    bool wrong_encoding{false};
    Alarm give_up{};
    Future<void> watched{};
    Script* script{nullptr};
};

struct Model {
    TrainingClient client{};
    TrainJudge* judge{nullptr};
    bool unloaded{false};
};

/// One who makes calls, some at once, and waits for what comes of them.
struct Script {
    std::size_t client{0};
    int steps{0};
    std::set<int> waits_for{};
    Alarm next{};
};

/// What the world knows of a service.
struct Endpoint {
    std::unique_ptr<TrainingService> service{};
    std::shared_ptr<testing::FaultyTransport> network{};
    std::map<std::string, std::unique_ptr<TrainJudge>> judges{};
    /// Saved, and known to be.
    std::vector<std::string> checkpoints{};
    bool json_sent{false};
    bool known_old{false};
};

struct Polls {
    bool open{false};
    bool sized{false};  ///< the last answer told the size, so the next may follow at once
    std::optional<TimePoint> last{};
};

class World;

/// A service client, and what it says over the wire.
class Client final : private Traffic {
public:
    Client(World& world, std::size_t index) : world_{world}, index_{index} {}

    World& world_;
    std::size_t const index_;
    Endpoint* endpoint{nullptr};
    ClientOptions options{};
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    std::deque<Model> models{};
    bool closed{false};     ///< `close` was called
    bool closing{false};    ///< and has begun: nothing more but what is drained
    bool finishing{false};  ///< it begins when the finish is answered
    std::optional<TimePoint> last_request{};

    void connect(Scheduler& scheduler) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, endpoint->network, traffic);
    }
    [[nodiscard]] TrainingNature const& nature() const { return endpoint->service->nature(); }
    [[nodiscard]] std::int64_t chunk_items() const {
        return options.chunks.items.value_or(nature().chunk_items.value_or(1024));
    }
    [[nodiscard]] std::int64_t chunk_bytes() const {
        return options.chunks.bytes.value_or(nature().chunk_bytes.value_or(5'000'000));
    }
    [[nodiscard]] std::int64_t byte_budget() const {
        return options.chunks.bytes_in_flight.value_or(
            nature().bytes_in_flight.value_or(50'000'000));
    }
    [[nodiscard]] std::int64_t download_budget() const {
        return nature().download_bytes.value_or(50 << 20);
    }

private:
    void on_request(Exchange const& exchange) override;
    void on_answer(Exchange const& exchange) override;
    void on_withdrawn(Exchange const& exchange) override;
    void submits(Exchange const& exchange, ReadRequest const& read);
    void submit_over(Exchange const& exchange, std::optional<int> status);
    void polls(Exchange const& exchange);

    /// A submit that is not answered.
    struct Open {
        TrainJudge* judge{nullptr};
        UserCall* call{nullptr};
        std::int64_t seq_id{0};
        bool pass{false};
        bool protobuf{false};
        std::int64_t bytes{0};
    };
    std::map<Exchange const*, Open> open_{};
    std::set<std::string> promises_{};
    std::map<std::string, Polls> polls_{};
    std::multiset<std::int64_t> open_bytes_{};
};

class World final : public Observer {
public:
    explicit World(std::uint64_t seed) : seed_{seed}, random_{seed}, clock_{make_clock(seed)} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
    }

    Outcome run() {
        storm_ = chance(0.1) ? 15min : 10s + span(170s);
        make_clients();
        make_scripts();
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
                problem("call " + call.mark + " ended " + std::to_string(call.ends) + " times");
            }
        }
        for (auto& [url, endpoint] : endpoints_) judge(endpoint);
        return std::move(outcome_);
    }

    void on_stage(StageEvent const& event) override {
        count("stage: " + std::string{to_string(event.stage)});
    }
    [[nodiscard]] bool wants_stages() const noexcept override { return true; }

    [[nodiscard]] TimePoint now() const { return clock_->now(); }
    [[nodiscard]] UserCall* call_of(Exchange const& exchange) {
        auto const* mark = exchange.lines.find(mark_line);
        if (mark == nullptr) return nullptr;
        auto const found = marks_.find(*mark);
        if (found == marks_.end()) {
            problem("a mark that nobody made: " + *mark);
            return nullptr;
        }
        return found->second;
    }
    TrainJudge& judge_of(Endpoint& endpoint, std::string const& model) {
        auto& judge = endpoint.judges[model];
        if (!judge) {
            judge = std::make_unique<TrainJudge>(
                model, [this](std::string what) { problem(std::move(what)); });
        }
        return *judge;
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

    // The world ----------------------------------------------------------------------------------

    testing::FaultOptions draw_faults(TrainingNature const& nature) {
        auto const storm = random_.unit();
        testing::FaultOptions faults{.seed = seed_,
                                     .drop_before = 0.1 * storm * random_.unit(),
                                     .status = 0.1 * storm * random_.unit(),
                                     .drop_after = 0.1 * storm * random_.unit(),
                                     .duplicate = 0.2 * random_.unit(),
                                     .reset_body = 0.1 * storm * random_.unit(),
                                     .trickle = 0.2 * random_.unit(),
                                     .delay = 0.3 * random_.unit()};
        // What the network sends twice such a service does twice: no client could help it.
        if (!nature.knows_repeats) faults.duplicate = 0;
        return faults;
    }

    Endpoint& make_endpoint(std::string const& url, std::uint64_t seed) {
        auto& endpoint = endpoints_[url];
        if (endpoint.service) return endpoint;
        endpoint.service = std::make_unique<TrainingService>(url.substr(7), seed, *clock_, *fake_,
                                                             outcome_.occurred);
        auto const& nature = endpoint.service->nature();
        endpoint.network =
            std::make_shared<testing::FaultyTransport>(*clock_, fake_, draw_faults(nature));
        endpoint.known_old = !nature.has_config;
        return endpoint;
    }

    void make_clients() {
        auto const clients = chance(0.25) ? 2U : 1U;
        bool const same_url = chance(0.7);
        for (std::size_t i = 0; i < clients; ++i) {
            auto& client = clients_.emplace_back(*this, i);
            auto const url = "http://service-" + (same_url ? "0" : std::to_string(i));
            client.endpoint = &make_endpoint(url, seed_ * 2 + i);
            client.connect(*clock_);
            auto& options = client.options;
            options.base_url = url;
            options.api_key = std::string{key_mark} + "0";
            options.transport = client.recorder;
            options.runtime = *runtime_;
            options.telemetry = chance(0.3);
            options.max_retries = chance(0.2) ? 2 : 10;
            options.observers = {std::shared_ptr<Observer>{this, [](Observer*) {}}};
            options.log_level = chance(0.3) ? LogLevel::debug : LogLevel::warning;
            options.log = [this](LogLevel, std::string_view line) {
                if (tells_a_secret(line)) {
                    problem("a log line tells a secret: " + std::string{line});
                }
            };
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
            if (chance(0.1)) options.repeat_steps = chance(0.5);
            if (chance(0.1)) {
                auto const takes = client.nature().takes;
                options.submit_encoding =
                    takes == TrainingNature::Takes::json ||
                            (takes == TrainingNature::Takes::both && chance(0.5))
                        ? SubmitEncoding::json
                        : SubmitEncoding::protobuf;
            }
            client.client.emplace(options);
        }
    }

    void make_scripts() {
        for (auto const& client : clients_) {
            auto const scripts = 1 + below(2);
            for (std::int64_t i = 0; i < scripts; ++i) {
                auto& script = scripts_.emplace_back();
                script.client = client.index_;
                script.steps = 2 + static_cast<int>(below(5));
                script.next.action = [this, &script] { step(script); };
                arm(script.next, span(2s));
                ++open_;
            }
        }
    }

    void make_weather() {
        at(storm_, [this] {
            note("calm");
            for (auto& [url, endpoint] : endpoints_) {
                endpoint.network->set_options({.seed = seed_});
                endpoint.service->calm();
            }
        });
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
        for (auto& client : clients_) {
            for (int i = 0; i < 6; ++i) at(span(storm_ + 20s), [this, &client] { look(client); });
            if (chance(0.1)) {
                at(span(storm_), [this, &client] {
                    if (!judging_) close(client);
                });
            }
            if (chance(0.08)) {
                at(span(storm_), [this, &client] {
                    if (!judging_) drop(client);
                });
            }
        }
        if (chance(0.05)) at(span(storm_), [this] { shut_down_ = true; });
    }

    // What users do ------------------------------------------------------------------------------

    void step(Script& script) {
        auto& client = clients_[script.client];
        if (!client.client || ended_ || script.steps-- == 0) {
            --open_;
            return;
        }
        std::vector<int> begun;
        auto const usable = [&] {
            return std::ranges::any_of(client.models, [](Model const& m) { return !m.unloaded; });
        };
        if (!usable() || (client.models.size() < 3 && chance(0.2))) {
            begun.push_back(create(client, script).id);
        } else {
            auto& model = pick(client);
            auto const calls = 1 + below(5);
            for (std::int64_t i = 0; i < calls && !model.unloaded; ++i) {
                begun.push_back(make_call(client, model, script).id);
            }
        }
        bool const waits = begun.size() < 2 || chance(0.7);
        if (!waits) return arm(script.next, span(10s));
        script.waits_for = {begun.begin(), begun.end()};
        if (chance(0.3)) script.waits_for = {begun.back()};
        std::erase_if(script.waits_for, [this](int id) { return call(id).ends > 0; });
        if (script.waits_for.empty()) arm(script.next, span(1s));
    }

    Model& pick(Client& client) {
        for (;;) {
            auto& model = client.models[random_.next() % client.models.size()];
            if (!model.unloaded) return model;
        }
    }

    UserCall& new_call(Client const& client, Script& script, What what) {
        auto& call = calls_.emplace_back();
        call.id = static_cast<int>(calls_.size()) - 1;
        call.mark = std::to_string(call.id);
        call.client = client.index_;
        call.script = &script;
        call.what = what;
        call.begun = now();
        marks_[call.mark] = &call;
        mark_ = call.mark;
        ++outcome_.calls;
        ++open_;
        if (what != What::create && chance(0.1)) {
            call.deadline = 1s + std::chrono::milliseconds{below(90'000)};
        }
        if (chance(0.1)) {
            call.give_up.action = [this, &call] {
                if (call.ends > 0 || !call.watched.valid()) return;
                note("cancel " + call.mark);
                call.cancelled = now();
                call.watched.cancel();
            };
            arm(call.give_up, chance(0.5) ? span(3s) : span(60s));
        }
        return call;
    }

    UserCall& create(Client& client, Script& script) {
        auto& call = new_call(client, script, What::create);
        auto const& known = client.endpoint->checkpoints;
        Future<TrainingClient> made;
        if (!known.empty() && chance(0.6)) {
            call.name = known[random_.next() % known.size()];
            call.optimizer = chance(0.5);
            made = call.optimizer
                       ? client.client->create_training_client_from_state_with_optimizer(call.name)
                       : client.client->create_training_client_from_state(call.name);
        } else {
            made = client.client->create_lora_training_client("org/tiny", 8);
        }
        note("begin " + call.mark + " create " + call.name);
        call.watched =
            std::move(made).then_result([this, &call, &client](Result<TrainingClient> result) {
                if (result) {
                    auto& judge = judge_of(*client.endpoint, result->model_id());
                    client.models.push_back({.client = *std::move(result), .judge = &judge});
                }
                end(call, result ? std::nullopt : std::optional{result.error()});
            });
        return call;
    }

    UserCall& make_call(Client& client, Model& model, Script& script) {
        auto const drawn = random_.unit();
        auto const what = drawn < 0.12   ? What::forward
                          : drawn < 0.42 ? What::forward_backward
                          : drawn < 0.54 ? What::custom
                          : drawn < 0.76 ? What::step
                          : drawn < 0.82 ? What::save
                          : drawn < 0.86 ? What::save_sampler
                          : drawn < 0.87 ? What::save_external
                          : drawn < 0.92 ? What::ephemeral
                          : drawn < 0.95 ? What::load
                          : drawn < 0.98 ? What::info
                                         : What::unload;
        bool const nothing = what == What::load && client.endpoint->checkpoints.empty();
        auto& call = new_call(client, script, nothing ? What::save : what);
        call.judge = model.judge;
        model.judge->add(call);
        auto const trainer = model.client.with({.deadline = call.deadline});
        if (call.pass()) {
            make_pass(client, trainer, call);
        } else {
            make_other(client, model, trainer, call);
        }
        note("begin " + call.mark + ' ' + model.judge->id() + ' ' +
             std::to_string(static_cast<int>(call.what)) + " data " +
             std::to_string(call.data.size()));
        return call;
    }

    void make_pass(Client& client, TrainingClient const& trainer, UserCall& call) {
        auto const custom = call.what == What::custom;
        bool const policy = !custom && chance(0.3);
        Loss const loss =
            policy ? Loss{PpoConfig{.clip_high_threshold = 1.25}} : Loss{LossFn::cross_entropy};
        call.loss = loss.name();
        if (policy) call.config = {{"clip_high_threshold", 1.25}};
        std::vector<Datum> data;
        auto const size = 1 + below(7);
        for (std::int64_t i = 0; i < size; ++i) {
            auto& sent = call.data.emplace_back();
            data.push_back(draw_datum(call.id, static_cast<Token>(i), policy, sent));
            if (custom && chance(0.5)) {  // without weights the forward pass is sent zeros
                data.back().loss_fn_inputs.erase("weights");
                auto& weights = sent.inputs["weights"].values;
                weights.assign(weights.size(), 0);
            }
        }
        std::vector<std::int64_t> as_json;
        std::vector<std::int64_t> as_proto;
        for (auto const& datum : call.data) {
            as_json.push_back(json_estimate(datum));
            as_proto.push_back(proto_estimate(datum));
        }
        call.cuts = {stretches(as_proto, client.chunk_items(), client.chunk_bytes()),
                     stretches(as_json, client.chunk_items(), client.chunk_bytes())};
        if (call.cuts[0] == call.cuts[1]) call.cuts.pop_back();
        if (call.cuts[0].size() > 1) count("call in chunks");
        Future<ForwardBackwardOutput> made;
        if (call.what == What::forward) made = trainer.forward(data, loss);
        if (call.what == What::forward_backward) made = trainer.forward_backward(data, loss);
        if (custom) {
            call.throws = chance(0.08);
            made = trainer.forward_backward_custom(
                data,
                [this, &call](std::span<Datum const> given, std::span<TensorData const> logprobs) {
                    return loss_of(call, given.size(), logprobs);
                });
        }
        call.watched =
            std::move(made).then_result([this, &call](Result<ForwardBackwardOutput> result) {
                if (result) call.output = *std::move(result);
                end(call, result ? std::nullopt : std::optional{result.error()});
            });
    }

    Datum draw_datum(int call, Token place, bool policy, SentDatum& sent) {
        std::vector<Token> tokens{call, place};
        auto const more = below(4);
        for (std::int64_t i = 0; i < more; ++i) tokens.push_back(static_cast<Token>(below(1000)));
        auto const size = tokens.size();
        std::vector<std::int64_t> targets;
        for (std::size_t i = 0; i < size; ++i) targets.push_back(below(1000));
        sent.tokens.assign(tokens.begin(), tokens.end());
        Datum datum;
        datum.model_input = ModelInput::from_tokens(std::move(tokens));
        auto const put = [&](std::string const& name) {
            std::vector<float> numbers;
            for (std::size_t i = 0; i < size; ++i) {
                numbers.push_back(static_cast<float>(below(256) - 64) / 64);
            }
            sent.inputs[name] = {.shape = {static_cast<std::int64_t>(size)},
                                 .values = {numbers.begin(), numbers.end()}};
            datum.loss_fn_inputs.set(name, std::move(numbers));
        };
        sent.inputs["target_tokens"] = {.integers = true,
                                        .shape = {static_cast<std::int64_t>(size)},
                                        .values = {targets.begin(), targets.end()}};
        datum.loss_fn_inputs.set("target_tokens", std::move(targets));
        if (policy) {
            put("logprobs");
            put("advantages");
        } else {
            put("weights");
        }
        return datum;
    }

    /// A loss function of the user's own: numbers that come from those it is given.
    CustomLossValue loss_of(UserCall& call, std::size_t data,
                            std::span<TensorData const> logprobs) {
        if (call.seen) problem("a loss function was called twice: " + call.mark);
        if (data != call.data.size()) problem("a loss function got other data: " + call.mark);
        call.seen.emplace();
        CustomLossValue value;
        call.backward = call.data;
        for (std::size_t i = 0; i < logprobs.size(); ++i) {
            auto const& numbers = std::get<std::vector<float>>(logprobs[i].data);
            call.seen->push_back(numbers);
            auto& gradient = value.gradient.emplace_back();
            for (auto const each : numbers) {
                value.loss += static_cast<double>(each) * 0.5;
                gradient.push_back(0.5F + each / 8);
            }
            auto& weights = call.backward[i].inputs["weights"].values;
            weights.assign(gradient.begin(), gradient.end());
            for (auto& weight : weights) weight = -weight;
        }
        value.metrics["mine:mean"] = value.loss * 2;
        call.value = value;
        if (call.throws) throw std::runtime_error{"not today"};
        return value;
    }

    void make_other(Client& client, Model& model, TrainingClient const& trainer, UserCall& call) {
        auto const keep_path = [this, &call](Result<SaveResult> const& result) {
            if (result) call.path = result->path;
            end(call, result ? std::nullopt : std::optional{result.error()});
        };
        call.name = "n" + call.mark;
        switch (call.what) {
            case What::step: {
                AdamParams params{.learning_rate = static_cast<double>(call.id + 1) / 1024};
                if (chance(0.3)) params.weight_decay = 0.125;
                if (chance(0.3)) params.grad_clip_norm = 1;
                call.adam = {params.learning_rate, params.beta1,        params.beta2,
                             params.eps,           params.weight_decay, params.grad_clip_norm};
                call.watched = trainer.optim_step(params).then_result(
                    [this, &call](Result<OptimStepResult> result) {
                        if (result) call.step = *std::move(result);
                        end(call, result ? std::nullopt : std::optional{result.error()});
                    });
                break;
            }
            case What::save: {
                SaveOptions options;
                options.overwrite = call.overwrite = chance(0.3);
                if (call.overwrite) call.name = "last";
                auto& known = client.endpoint->checkpoints;
                call.watched = trainer.save_state(call.name, options)
                                   .then_result([keep_path, &known](Result<SaveResult> result) {
                                       if (result) known.push_back(result->path);
                                       keep_path(result);
                                   });
                break;
            }
            case What::save_external:
                call.watched = trainer.save_weights_external(call.name).then_result(keep_path);
                break;
            case What::save_sampler: {
                auto saved = trainer.save_weights_for_sampler(call.name);
                if (chance(0.5)) {
                    call.watched = std::move(saved).then_result(keep_path);
                    break;
                }
                watch_sample(call, std::move(saved).then([this, &call, trainer](SaveResult result) {
                    call.path = std::move(result.path);
                    return draw(trainer.create_sampling_client(call.path), call);
                }));
                break;
            }
            case What::ephemeral: {
                auto sampler = trainer.save_weights_and_get_sampling_client();
                watch_sample(call, std::move(sampler).then([this, &call](SamplingClient made) {
                    return draw(made, call);
                }));
                break;
            }
            case What::load: {
                auto const& known = client.endpoint->checkpoints;
                call.name = known[random_.next() % known.size()];
                call.optimizer = chance(0.5);
                call.watched =
                    load(trainer, call).then_result([this, &call](Result<LoadResult> result) {
                        if (result) call.path = result->path.value_or("");
                        end(call, result ? std::nullopt : std::optional{result.error()});
                    });
                break;
            }
            case What::info:
                call.watched =
                    trainer.get_info().then_result([this, &call](Result<ModelInfo> result) {
                        if (result && result->model_id != call.judge->id()) {
                            problem("another model: " + call.mark);
                        }
                        end(call, result ? std::nullopt : std::optional{result.error()});
                    });
                break;
            default:
                model.unloaded = true;
                call.watched = trainer.unload().then_result([this, &call](Result<void> result) {
                    end(call, result ? std::nullopt : std::optional{result.error()});
                });
        }
    }

    static Future<LoadResult> load(TrainingClient const& trainer, UserCall const& call) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        return call.optimizer ? trainer.load_state_with_optimizer(call.name)
                              : trainer.load_state(call.name);
#pragma GCC diagnostic pop
    }

    Future<SampleResponse> draw(SamplingClient const& sampler, UserCall const& call) {
        mark_ = call.mark;
        return sampler.sample(ModelInput::from_tokens({call.id, 7}),
                              SamplingParams{.max_tokens = 2});
    }

    void watch_sample(UserCall& call, Future<SampleResponse> sample) {
        call.watched = std::move(sample).then_result([this, &call](Result<SampleResponse> result) {
            if (result) call.drawn = result->sequences.at(0).tokens;
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
    }

    // How calls end ------------------------------------------------------------------------------

    UserCall& call(int id) { return calls_[static_cast<std::size_t>(id)]; }

    void end(UserCall& call, std::optional<Error> const& error) {
        if (++call.ends > 1) return problem("call " + call.mark + " ended twice");
        --open_;
        call.over = now();
        call.succeeded = !error;
        bool const samples = call.what == What::save_sampler || call.what == What::ephemeral;
        if (call.deadline.count() > 0 && !samples && now() - *call.begun > call.deadline) {
            problem("call " + call.mark + " went on after its deadline");
        }
        if (call.judge != nullptr) call.judge->on_over(call, now());
        clients_[call.client].endpoint->service->call_over(call.mark);
        if (!error) {
            note("done " + call.mark);
            ++outcome_.succeeded;
        } else {
            note("failed " + call.mark + ' ' + error->what());
            if (tells_a_secret(error->what()) || tells_a_secret(error->body())) {
                problem("an error tells a secret");
            }
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
        if (call.what == What::create || call.what == What::info) {  // these have no mark
            count(call.what == What::create ? "end: no model" : "end: no information");
            return true;
        }
        if (text.starts_with("sample: ")) {  // another world is about these
            count("end: no sample");
            return true;
        }
        auto const status = error.http_status().value_or(0);
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
                return call.told_failure || (status >= 500 && seen);
            case ErrorKind::promise_lost:
                return call.statuses.contains(410);
            case ErrorKind::billing:
                return seen;
            case ErrorKind::status: {
                bool const passing =
                    status == 408 || status == 409 || status == 429 || status >= 500;
                // A 500 may mean that the encoding is not known, and then it ends the trial.
                return seen && !call.wrong_encoding &&
                       (!passing || status == 500 || now() - *call.begun >= submit_budget);
            }
            case ErrorKind::connection:
            case ErrorKind::timeout:
                return now() - *call.begun >= submit_budget;
            default:
                return false;
        }
    }

    // What clients say about themselves ----------------------------------------------------------

    void look(Client& client) {
        if (!client.client || ended_ || judging_) return;
        count("looked");
        ++open_;
        (void)client.client->status().then_result(
            [this, &client](Result<ServiceStatus> const& status) {
                --open_;
                if (!status) return problem("no status: " + std::string{status.error().what()});
                check_status(client, *status);
            });
    }

    void check_status(Client const& client, ServiceStatus const& status) {
        std::int64_t waiting_for_bytes = 0;
        for (auto const& each : status.pending) {
            count("status: " + std::string{to_string(each.stage)});
            auto const text = to_string(each);
            if (each.stage == Stage::waiting_for_bytes) ++waiting_for_bytes;
            if (to_string(each.stage) == "unknown") problem("a stage that has no name: " + text);
            if (each.in_stage < 0s || each.age < each.in_stage) problem("odd times: " + text);
            if (each.ends_in && *each.ends_in < 0s) problem("a wait that is over: " + text);
            if (each.why.empty()) problem("pending without a reason: " + text);
            constexpr std::array timed{Stage::billing_pause, Stage::waiting_to_submit,
                                       Stage::waiting_to_poll};
            bool const waits = std::ranges::find(timed, each.stage) != timed.end();
            if (waits && !each.ends_in) problem("a wait without an end: " + text);
            if (tells_a_secret(text)) problem("a status tells a secret: " + text);
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

    void close(Client& client) {
        if (!client.client || client.closed || ended_) return;
        note("close " + std::to_string(client.index_));
        count("closed");
        client.closed = true;
        client.finishing = chance(0.4);
        // Just before the close begins, which is put into the same queue.
        clock_->post([&client] { client.closing = !client.finishing; });
        (void)(client.finishing ? client.client->close(CloseReason::success)
                                : client.client->close());
    }

    void drop(Client& client) {
        if (ended_) return;
        note("drop " + std::to_string(client.index_));
        count("dropped");
        client.models.clear();
        client.client.reset();
    }

    void shut_down() {
        note("shutdown");
        count("shut down");
        ended_ = true;
        runtime_->shutdown();
        for (auto& call : calls_) {
            if (call.ends > 0) continue;
            auto const ended = call.watched.wait_for(0ms);
            if (!ended) problem("call " + call.mark + " survived the shutdown");
            if (ended && call.ends == 0) {
                ++call.ends;  // its continuation was dropped with the loop
                ++outcome_.cancelled;
                call.over = now();
            }
        }
        for (auto& client : clients_) {
            if (client.recorder->open() > 0) problem("a request survived the shutdown");
        }
    }

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up() {
        judging_ = true;
        for (auto& client : clients_) {
            if (client.client && !client.closed && outcome_.problems.empty()) check_rest(client);
        }
        for (auto& client : clients_) {
            if (client.client) close(client);
            client.models.clear();
            client.client.reset();
        }
        auto const start = now();
        while (now() - start < 8min && runtime_->poll(1min)) {
        }
        for (auto& client : clients_) {
            if (client.recorder->open() > 0) problem("requests were left open");
            if (client.last_request && *client.last_request > start + 6min) {
                problem("a client that is gone still makes requests");
            }
        }
    }

    void check_rest(Client& client) {
        auto const status = client.client->status().get();
        if (!status.pending.empty()) problem("pending: " + to_string(status.pending.front()));
        if (!status.training_bytes.free) return;  // it never came to training
        auto const back = [&](LimitStatus const& limit, std::int64_t all, char const* name) {
            if (limit.free != all || limit.waiting != 0) {
                problem(std::string{name} + ": " + std::to_string(limit.free.value_or(-1)) +
                        " came back of " + std::to_string(all));
            }
        };
        back(status.training_bytes, client.byte_budget(), "bytes of passes");
        back(status.download, client.download_budget(), "download bytes");
        back(status.count, 400, "samples");
    }

    void report_hanging() {
        problem(std::to_string(open_) + " calls were still open " +
                std::to_string(std::chrono::duration_cast<std::chrono::minutes>(settling).count()) +
                " minutes after the last fault");
        for (auto& client : clients_) {
            if (!client.client) continue;
            for (auto const& each : client.client->status().get().pending) note(to_string(each));
        }
    }

    void judge(Endpoint& endpoint) {
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
        for (auto& complaint : endpoint.service->take_complaints()) problem(std::move(complaint));
        auto const& c = endpoint.network->counts();
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

    std::optional<testing::Reply> serve(testing::SentRequest const& sent) {
        auto const slash = sent.url.find('/', 7);
        auto const found = endpoints_.find(sent.url.substr(0, slash));
        if (found == endpoints_.end()) return testing::Reply{.status = 404};
        return found->second.service->serve(sent);
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
    std::shared_ptr<testing::ManualClock> clock_;
    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::map<std::string, Endpoint> endpoints_{};
    std::deque<UserCall> calls_{};
    std::map<std::string, UserCall*, std::less<>> marks_{};
    std::string mark_{};
    std::deque<Script> scripts_{};
    std::deque<Client> clients_{};
    std::deque<Alarm> alarms_{};
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

// What goes over the wire ------------------------------------------------------------------------

void Client::on_request(Exchange const& exchange) {
    auto const now = world_.now();
    last_request = now;
    bool const drained = exchange.path == "/api/v1/telemetry" || exchange.path.ends_with("/finish");
    if (closing && !drained) world_.problem("a request after the close: " + exchange.path);
    auto const read = read_train_request(exchange.path, exchange.body);
    world_.note(std::to_string(index_) + " > " + exchange.path + ' ' +
                (read ? read->request.model_id + '/' + std::to_string(read->request.seq_id)
                      : exchange.body.substr(0, 90)));
    if (exchange.path == "/api/v1/retrieve_future") polls(exchange);
    if (read && !read->request.model_id.empty()) submits(exchange, *read);
}

void Client::submits(Exchange const& exchange, ReadRequest const& read) {
    auto const& request = read.request;
    auto& judge = world_.judge_of(*endpoint, request.model_id);
    auto& open = open_[&exchange];
    open = {.judge = &judge,
            .call = world_.call_of(exchange),
            .seq_id = request.seq_id,
            .pass = request.pass(),
            .protobuf = read.protobuf};
    if (open.pass) {
        for (auto const& datum : request.data) open.bytes += proto_estimate(datum);
        open_bytes_.insert(open.bytes);
        std::int64_t sum = -*open_bytes_.rbegin();
        for (auto const each : open_bytes_) sum += each;
        if (sum > byte_budget()) world_.problem("more bytes at once than allowed");
        if (!read.protobuf) endpoint->json_sent = true;
    }
    bool const step = open.pass || request.kind == TrainKind::optim_step;
    bool const json = open.pass && !read.protobuf;
    bool const fixed = options.submit_encoding.has_value();
    bool const known_old = !fixed && (endpoint->known_old || json);
    bool const twice = step && !nature().knows_repeats && options.repeat_steps.value_or(!known_old);
    judge.on_submit(open.call, read, exchange.body, world_.now(),
                    {.parallel = nature().parallel, .may_be_done_twice = twice});
}

void Client::submit_over(Exchange const& exchange, std::optional<int> status) {
    auto const found = open_.find(&exchange);
    if (found == open_.end()) return;
    auto const open = found->second;
    open_.erase(found);
    if (open.pass) open_bytes_.erase(open_bytes_.find(open.bytes));
    if (open.call != nullptr) {
        open.call->wrong_encoding = open.protobuf && status == nature().refusal &&
                                    nature().takes == TrainingNature::Takes::json &&
                                    !exchange.answer.empty();
    }
    if (!status) return open.judge->on_withdrawn(open.seq_id);
    open.judge->on_answer(open.seq_id, *status);
    bool const accepted = *status >= 200 && *status < 300;
    if (accepted && open.pass && !open.protobuf && !options.submit_encoding) {
        endpoint->known_old = true;
    }
}

void Client::polls(Exchange const& exchange) {
    auto const now = world_.now();
    auto const id = std::string{json_member(exchange.body, "request_id")};
    if (!promises_.contains(id)) world_.problem("a poll for a promise that was not given: " + id);
    auto& polls = polls_[id];
    if (polls.open) world_.problem("two polls at once: " + id);
    if (polls.last && now - *polls.last < 100ms && !polls.sized) {
        world_.problem("polls too close: " + id);
    }
    auto const* call = world_.call_of(exchange);
    if (call != nullptr && call->gone_before(now)) {
        world_.problem("a poll for a call that is over: " + id);
    }
    polls.open = true;
    polls.sized = false;
    polls.last = now;
}

void Client::on_answer(Exchange const& exchange) {
    auto const status = exchange.status;
    bool const ok = status >= 200 && status < 300;
    auto const path = std::string_view{exchange.path};
    bool const text = exchange.answer.empty() || exchange.answer.front() == '{';
    world_.note(
        std::to_string(index_) + " < " + exchange.path + ' ' + std::to_string(status) + ' ' +
        (text ? exchange.answer.substr(0, 90) : std::to_string(exchange.answer.size()) + " bytes"));
    if (path.starts_with(root)) {
        auto const name = path.substr(root.size(), path.find('/', root.size()) - root.size());
        world_.count("answer: " + std::string{name} + ' ' + std::to_string(status));
    }
    submit_over(exchange, status);
    auto* const call = world_.call_of(exchange);
    if (call != nullptr) call->statuses.insert(status);
    if (path.ends_with("/finish") && finishing) {
        // Repeats of a finish that failed come before the end.
        bool const final = status != 0 && status != 400 && status != 402 && status != 408 &&
                           status != 409 && status != 429 && status < 500;
        if (final) closing = true;
    }
    if (path == "/api/v1/retrieve_future") {
        auto& polls = polls_[std::string{json_member(exchange.body, "request_id")}];
        polls.open = false;
        polls.sized = ok && exchange.answer.find("complete_metadata") != std::string::npos;
        bool const failed = exchange.answer.find("it failed") != std::string::npos;
        if (failed && call != nullptr) call->told_failure = true;
    } else if (auto const id = json_member(exchange.answer, "request_id"); ok && !id.empty()) {
        promises_.emplace(id);
    }
}

void Client::on_withdrawn(Exchange const& exchange) {
    world_.note(std::to_string(index_) + " x " + exchange.path);
    submit_over(exchange, std::nullopt);
    if (exchange.path == "/api/v1/retrieve_future") {
        polls_[std::string{json_member(exchange.body, "request_id")}].open = false;
    }
}

}  // namespace

Outcome run_training_world(std::uint64_t seed) { return World{seed}.run(); }

std::vector<std::string> const& training_occurrences() {
    static std::vector<std::string> const names{
        // What the network does.
        "fault: drop_before",
        "fault: status",
        "fault: drop_after",
        "fault: duplicate",
        "fault: reset_body",
        "fault: trickle",
        "fault: delay",
        // What the service does.
        "service: restart that keeps work",
        "service: restart that loses work",
        "service: job lost",
        "service: silence",
        "service: trickle",
        "service: 400",
        "service: 402",
        "service: 408",
        "service: 409",
        "service: 422",
        "service: 429",
        "service: 5xx",
        "service: plain 500",
        "service: empty 400",
        "service: no configuration",
        "service: no protobuf",
        "service: protobuf pass",
        "service: compressed pass",
        "service: JSON pass",
        "service: chunk held back",
        "service: repeat of a submit",
        "service: repeat of a save that is not recognised",
        "service: model by load",
        "service: result at once",
        "service: try_again",
        "service: 408 with a queue state",
        "service: pending",
        "service: metadata",
        "service: JSON result",
        "service: protobuf result",
        "service: failed request",
        "service: lost promise, 404",
        "service: lost promise, 410",
        "service: result forgotten",
        // What users do, and how their calls end.
        "call in chunks",
        "closed",
        "dropped",
        "shut down",
        "end: cancelled",
        "end: closed",
        "end: deadline",
        "end: callback",
        "end: promise_lost",
        "end: request_failed",
        "end: status",
        "end: billing",
        "end: may have been applied",
        "end: no model",
        // Where calls stand, as they go and as `status` tells.
        "stage: starting",
        "stage: waiting for its turn",
        "stage: waiting for bytes",
        "stage: encoding",
        "stage: submitting",
        "stage: waiting to submit again",
        "stage: paused for billing",
        "stage: polling",
        "stage: waiting to poll",
        "stage: waiting to download",
        "stage: decoding",
        "stage: computing its loss",
        "stage: creating its sampler",
        "status: starting",
        "status: waiting for its turn",
        "status: submitting",
        "status: waiting to submit again",
        "status: paused for billing",
        "status: polling",
        "status: waiting to poll",
    };
    return names;
}

}  // namespace tinkxx::simulation
