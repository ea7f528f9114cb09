#include "simulation/local/local_world.hpp"

#include <span>

namespace tinkxx::simulation::local_world {

using namespace std::chrono_literals;

void World::step(Script& script) {
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

Model* World::pick(Client& client) {
    std::vector<Model*> usable;
    for (auto& model : client.models) {
        if (!model.unloaded) usable.push_back(&model);
    }
    if (usable.empty()) return nullptr;
    return usable[random_.next() % usable.size()];
}

UserCall& World::new_call(Client const& client, Script& script, What what, std::string model) {
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
    note("begin " + call.mark + ' ' + std::to_string(static_cast<int>(what)) + ' ' + call.model);
    if (!call.model.empty() && chance(0.05)) {
        call.deadline = 1s + std::chrono::milliseconds{below(60'000)};
    }
    if (chance(0.07)) {
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

UserCall& World::create(Client& client, Script& script) {
    auto& call = new_call(client, script, What::create, {});
    Future<TrainingClient> made;
    if (!saved_.empty() && chance(0.7)) {
        auto const& path = saved_[random_.next() % saved_.size()];
        made = chance(0.5) ? client.client->create_training_client_from_state_with_optimizer(path)
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

UserCall& World::make_call(Client& client, Model& model, Script& script) {
    // The world of training has such a list too, with other calls and other shares: a table that
    // both could read would hide which call is how frequent.
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

Datum World::draw_datum(bool policy) {
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

void World::make_pass(TrainingClient const& trainer, UserCall& call) {
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
        std::move(made).then_result([this, &call](Result<ForwardBackwardOutput> const& result) {
            if (result) call.output = *result;
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
}

void World::make_other(Client& client, Model& model, TrainingClient const& trainer,
                       UserCall& call) {
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

Future<LoadResult> World::load(TrainingClient const& trainer) {
    auto const& path = saved_[random_.next() % saved_.size()];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return chance(0.5) ? trainer.load_state_with_optimizer(path) : trainer.load_state(path);
#pragma GCC diagnostic pop
}

UserCall& World::sample(Client& client, Script& script) {
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
        watch_sample(call, draw(client, call, client.client->create_sampling_client(local_model)));
    }
    return call;
}

Future<SampleResponse> World::draw(Client& client, UserCall& call, SamplingClient sampler) {
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

void World::watch_sample(UserCall& call, Future<SampleResponse> sample) {
    call.watched = std::move(sample).then_result([this, &call](Result<SampleResponse> result) {
        if (result) call.sample = *result;
        // A sampler that could not be made stays so.
        if (!result) clients_[call.client].samplers.clear();
        end(call, result ? std::nullopt : std::optional{result.error()});
    });
}

}  // namespace tinkxx::simulation::local_world
