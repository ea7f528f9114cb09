#include "simulation/training/training_world.hpp"

#include <algorithm>
#include <stdexcept>

namespace tinkxx::simulation::training_world {

using namespace std::chrono_literals;

void World::step(Script& script) {
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

UserCall& World::new_call(Client const& client, Script& script, What what) {
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

UserCall& World::create(Client& client, Script& script) {
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
        std::move(made).then_result([this, &call, &client](Result<TrainingClient> const& result) {
            if (result) {
                auto& judge = judge_of(*client.endpoint, result->model_id());
                client.models.push_back({.client = *result, .judge = &judge});
            }
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
    return call;
}

UserCall& World::make_call(Client& client, Model& model, Script& script) {
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
    CallOptions options;
    options.deadline = call.deadline;
    call.breaker = pick_breaker(breakers_, random_, 0.5);
    if (call.breaker != nullptr) options.circuit_breaker = call.breaker->breaker();
    expect_refusal(call);
    auto const trainer = model.client.with(std::move(options));
    if (call.pass()) {
        make_pass(client, trainer, call);
    } else {
        make_other(client, model, trainer, call);
    }
    note("begin " + call.mark + ' ' + model.judge->id() + ' ' +
         std::to_string(static_cast<int>(call.what)) + " data " + std::to_string(call.data.size()));
    return call;
}

/// A call ends at once if its breaker refuses it, also where it would have to wait for its turn.
void World::expect_refusal(UserCall const& call) {
    if (call.breaker == nullptr || !call.breaker->open() || !call.numbered()) return;
    count(call.judge->next_to_submit() == &call ? "call while its breaker is open"
                                                : "call in line while its breaker is open");
    at(1ns, [this, &call] {
        if (call.ends == 0) problem("call " + call.mark + " was not refused at once");
    });
}

void World::make_pass(Client& client, TrainingClient const& trainer, UserCall& call) {
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
        std::move(made).then_result([this, &call](Result<ForwardBackwardOutput> const& result) {
            if (result) call.output = *result;
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
}

Datum World::draw_datum(int call, Token place, bool policy, SentDatum& sent) {
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

CustomLossValue World::loss_of(UserCall& call, std::size_t data,
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

void World::make_other(Client& client, Model& model, TrainingClient const& trainer,
                       UserCall& call) {
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
                [this, &call](Result<OptimStepResult> const& result) {
                    if (result) call.step = *result;
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
            call.watched = trainer.get_info().then_result([this, &call](Result<ModelInfo> result) {
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

Future<LoadResult> World::load(TrainingClient const& trainer, UserCall const& call) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return call.optimizer ? trainer.load_state_with_optimizer(call.name)
                          : trainer.load_state(call.name);
#pragma GCC diagnostic pop
}

}  // namespace tinkxx::simulation::training_world
