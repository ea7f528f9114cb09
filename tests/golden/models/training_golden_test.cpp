#include "golden/models/oracle.hpp"

#include "engine/train/optimizer.hpp"
#include "engine/train/trainer.hpp"

namespace tinkxx::engine::golden {
namespace {

struct GradientFigures {
    Figure tensor{"gradients, tensor |d|/|ref|", 1e-4};
    Figure element{"gradients, element / largest of the pass", 5e-5};
    Figure norms{"gradient norms, relative", 5e-5};

    /// Compares named gradients; all of one pass, so that the largest element is known.
    void compare(
        std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> const& pass,
        std::string const& where) {
        double most = 0.0;
        for (auto const& [name, pair] : pass) most = std::max(most, largest(pair.second));
        for (auto const& [name, pair] : pass) {
            auto const& [got, want] = pair;
            ASSERT_EQ(got.size(), want.size()) << where << " " << name;
            auto const size = norm(want);
            auto const delta = distance(got, want);
            tensor.add(size > 0.0 ? delta / size : delta, where + " " + name);
            double worst = 0.0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                auto const d = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
                if (!(d <= worst)) worst = std::isnan(d) ? HUGE_VAL : d;
            }
            element.add(worst / most, where + " " + name);
        }
    }
};

double global_norm(Parameters& gradients) {
    double squares = 0.0;
    for (auto const* matrix : all_matrices(gradients)) {
        for (auto const value : matrix->values()) squares += static_cast<double>(value) * value;
    }
    return std::sqrt(squares);
}

struct LossFigures {
    Figure logprobs{"logprobs", 1e-4};
    Figure tokens{"token losses / largest of the datum", 5e-5};
    Figure sums{"loss_sum / sum of |token loss|", 1e-5};

    void compare(Oracle const& oracle, json::value const& entry, BatchResult const& result,
                 std::string const& where) {
        double absolute_sum = 0.0;
        auto const& datums = entry.at("datums").as_array();
        ASSERT_EQ(result.outputs.size(), datums.size());
        for (std::size_t i = 0; i < datums.size(); ++i) {
            auto const& outputs = datums[i].at("outputs");
            logprobs.absolute(result.outputs[i].logprobs, oracle.named(outputs.at("logprobs")),
                              where);
            auto const want = oracle.named(outputs.at("elementwise_loss"));
            auto const& got = result.outputs[i].elementwise_loss;
            ASSERT_EQ(got.size(), want.size()) << where;
            auto const most = largest(want);
            for (std::size_t j = 0; j < want.size(); ++j) {
                auto const d = std::abs(static_cast<double>(got[j]) - static_cast<double>(want[j]));
                tokens.add(most > 0.0 ? d / most : d, where);
                absolute_sum += std::abs(static_cast<double>(want[j]));
            }
        }
        auto const wanted = entry.at("loss_sum").to_number<double>();
        sums.add(std::abs(result.metrics.at("loss:sum") - wanted) / absolute_sum, where);
    }
};

void compare_lora(Oracle const& oracle, Adapter& adapter, std::string const& prefix,
                  GradientFigures& figures, std::string const& where) {
    auto& gradients = std::get<LoraWeights>(adapter.gradients());
    std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> pass;
    for (auto const& slot : lora_slots(adapter.model().config(), adapter.config(), gradients)) {
        for (auto const& [suffix, matrix] :
             {std::pair{".lora_A", &slot.pair->a}, std::pair{".lora_B", &slot.pair->b}}) {
            auto const name = prefix + slot.module + suffix;
            auto got = rows_of(*matrix);
            // Of a fresh adapter the gradients of A are exactly 0 and not stored.
            auto want = oracle.has(name) ? oracle.tensor(name) : std::vector<float>(got.size());
            pass[name] = {std::move(got), std::move(want)};
        }
    }
    figures.compare(pass, where);
}

double relative(double got, double want) { return std::abs(got - want) / std::abs(want); }

TEST(golden_models, LossesAndLoraGradientsEqualThoseOfPytorch) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        LossFigures losses;
        GradientFigures gradients;
        for (auto const& [key, entry] : oracle.figures.at("lora").as_object()) {
            auto const where = name + " " + std::string(std::string_view(key));
            SCOPED_TRACE(where);
            auto const adapter = oracle_adapter(oracle, model, lora_config(oracle));
            auto const [loss, data] = read_case(oracle, entry);
            auto const alone = trainer.forward(adapter.get(), data, loss).value();
            losses.compare(oracle, entry, alone, where + " (forward)");
            auto const result = trainer.forward_backward(*adapter, data, loss).value();
            losses.compare(oracle, entry, result, where);
            compare_lora(oracle, *adapter, std::string(entry.at("grad_prefix").as_string()),
                         gradients, where);
            gradients.norms.add(relative(global_norm(adapter->gradients()),
                                         entry.at("grad_l2").to_number<double>()),
                                where);
        }
    }
}

TEST(golden_models, FreshAdaptersHaveTheLossOfTheModelAndGradientsOfB) {
    Threads threads{1};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        GradientFigures gradients;
        auto const& entry = oracle.figures.at("lora_b0");
        auto const adapter = oracle_adapter(oracle, model, lora_config(oracle), true);
        auto const& source = oracle.figures.at("lora").at(entry.at("case").as_string());
        auto const [loss, data] = read_case(oracle, source);
        auto const result = trainer.forward_backward(*adapter, data, loss).value();
        EXPECT_NEAR(result.metrics.at("loss:sum"), entry.at("loss_sum").to_number<double>(), 5e-3);
        compare_lora(oracle, *adapter, std::string(entry.at("grad_prefix").as_string()), gradients,
                     name);
        gradients.norms.add(
            relative(global_norm(adapter->gradients()), entry.at("grad_l2").to_number<double>()),
            name);
    }
}

TEST(golden_models, TrainFlagsDecideWhatIsAdapted) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        Figure logprobs{"logprobs", 1e-4};
        GradientFigures gradients;
        for (auto const& [key, entry] : oracle.figures.at("flags").as_object()) {
            auto const where = name + " " + std::string(std::string_view(key));
            auto config = lora_config(oracle);
            config.train_attn = entry.at("train_attn").as_bool();
            config.train_mlp = entry.at("train_mlp").as_bool();
            config.train_unembed = entry.at("train_unembed").as_bool();
            auto const adapter = oracle_adapter(oracle, model, config);
            auto const [loss, data] =
                read_case(oracle, oracle.figures.at("lora").at(entry.at("case").as_string()));
            auto const result = trainer.forward_backward(*adapter, data, loss).value();
            auto const& wanted = entry.at("logprobs").as_array();
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                logprobs.absolute(result.outputs[i].logprobs, oracle.named(wanted[i]), where);
            }
            gradients.norms.add(relative(global_norm(adapter->gradients()),
                                         entry.at("grad_l2").to_number<double>()),
                                where);
            if (auto const* prefix = entry.as_object().if_contains("grad_prefix")) {
                compare_lora(oracle, *adapter, std::string(prefix->as_string()), gradients, where);
            }
            if (auto const* norms = entry.as_object().if_contains("grad_l2_by_tensor")) {
                auto& own = std::get<LoraWeights>(adapter->gradients());
                std::size_t seen = 0;
                for (auto const& slot : lora_slots(model->config(), config, own)) {
                    for (auto const& [suffix, matrix] : {std::pair{".lora_A", &slot.pair->a},
                                                         std::pair{".lora_B", &slot.pair->b}}) {
                        auto const want = norms->at(slot.module + suffix).to_number<double>();
                        gradients.norms.add(relative(norm(rows_of(*matrix)), want), where);
                        ++seen;
                    }
                }
                EXPECT_EQ(seen, norms->as_object().size()) << where;
            }
        }
    }
}

TEST(golden_models, FullGradientsEqualThoseOfPytorch) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        auto const adapter = Adapter::create(model, {.rank = 0}).value();
        auto const& entry = oracle.figures.at("full");
        auto const [loss, data] = read_case(oracle, entry);
        LossFigures losses;
        GradientFigures gradients;
        losses.compare(oracle, entry, trainer.forward_backward(*adapter, data, loss).value(), name);
        gradients.norms.add(
            relative(global_norm(adapter->gradients()), entry.at("grad_l2").to_number<double>()),
            name);
        auto& own = std::get<Weights>(adapter->gradients());
        std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> pass;
        auto const slots = weight_slots(model->config(), own);
        auto const* digests = entry.as_object().if_contains("grad_digests");
        if (entry.at("grad_prefix").is_string()) {
            auto const prefix = std::string(entry.at("grad_prefix").as_string());
            for (auto const& slot : slots) {
                pass[slot.name] = {rows_of(*slot.matrix), oracle.tensor(prefix + slot.name)};
            }
            gradients.compare(pass, name);
            continue;
        }
        ASSERT_NE(digests, nullptr);
        ASSERT_EQ(digests->as_object().size(), slots.size());
        double most = 0.0;
        for (auto const& [key, digest] : digests->as_object()) {
            most = std::max(most, digest.at("max_abs").to_number<double>());
        }
        for (auto const& slot : slots) {
            auto const& digest = digests->at(slot.name);
            auto const got = rows_of(*slot.matrix);
            auto const size = digest.at("l2").to_number<double>();
            gradients.norms.add(relative(norm(got), size), name + " " + slot.name);
            auto const stride = digest.at("stride").to_number<std::size_t>();
            double squares = 0.0;
            double wanted_squares = 0.0;
            std::size_t at = 0;
            for (auto const& value : digest.at("values").as_array()) {
                ASSERT_LT(at, got.size());
                auto const want = value.to_number<double>();
                auto const d = static_cast<double>(got[at]) - want;
                squares += d * d;
                wanted_squares += want * want;
                gradients.element.add(std::abs(d) / most, name + " " + slot.name);
                at += stride;
            }
            if (wanted_squares > 0.0) {
                gradients.tensor.add(std::sqrt(squares / wanted_squares), name + " " + slot.name);
            }
        }
    }
}

AdamParams adam_params(json::value const& entry) {
    auto const read = [&](char const* key) { return entry.at(key).to_number<double>(); };
    return {.learning_rate = read("learning_rate"),
            .beta1 = read("beta1"),
            .beta2 = read("beta2"),
            .eps = read("eps"),
            .weight_decay = read("weight_decay"),
            .grad_clip_norm = read("grad_clip_norm")};
}

TEST(golden_models, FiveStepsOfTrainingEndWherePytorchEnds) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        auto const& entry = oracle.figures.at("train");
        auto const adapter = oracle_adapter(oracle, model, lora_config(oracle));
        auto const [loss, data] =
            read_case(oracle, oracle.figures.at("lora").at(entry.at("case").as_string()));
        Figure losses{"losses, relative", 1e-5};
        Figure norms{"gradient norms, relative", 5e-5};
        Figure absolute{"final A and B", 2e-4};
        Figure tensors{"final A and B, |d|/|ref|", 1e-4};
        auto const& wanted = entry.at("losses").as_array();
        auto const steps = entry.at("steps").to_number<std::size_t>();
        for (std::size_t i = 0; i < steps; ++i) {
            auto const result = trainer.forward_backward(*adapter, data, loss).value();
            losses.add(relative(result.metrics.at("loss:sum"), wanted.at(i).to_number<double>()),
                       name);
            auto const step = optim_step(*adapter, adam_params(entry), &threads).value();
            norms.add(relative(step.grad_norm,
                               entry.at("grad_norms").as_array().at(i).to_number<double>()),
                      name);
        }
        auto const last = trainer.forward(adapter.get(), data, loss).value();
        losses.add(relative(last.metrics.at("loss:sum"), wanted.at(steps).to_number<double>()),
                   name);
        auto const prefix = std::string(entry.at("final_prefix").as_string());
        auto& own = std::get<LoraWeights>(adapter->parameters());
        for (auto const& slot : lora_slots(model->config(), adapter->config(), own)) {
            for (auto const& [suffix, matrix] :
                 {std::pair{".lora_A", &slot.pair->a}, std::pair{".lora_B", &slot.pair->b}}) {
                auto const want = oracle.tensor(prefix + slot.module + suffix);
                auto const got = rows_of(*matrix);
                absolute.absolute(got, want, slot.module);
                tensors.add(distance(got, want) / norm(want), slot.module);
            }
        }
    }
}

TEST(golden_models, AdamwStepsEqualThoseOfPytorch) {
    auto const figures = read_json(root() / "adamw/adamw.json");
    auto const file = SafetensorsFile::open(root() / "adamw/adamw.safetensors").value();
    auto const tensor = [&](std::string_view name) {
        return widen_tensor(file.tensors().at(std::string(name)), name).value();
    };
    auto const size = figures.at("size").to_number<std::size_t>();
    auto const grads = tensor(figures.at("grads").as_string());
    Figure params{"param", 1e-6};
    Figure moments{"exp_avg, exp_avg_sq, |d|/|ref|", 2e-6};
    Figure norms{"gradient norms, relative", 5e-5};
    for (auto const& [key, run] : figures.at("runs").as_object()) {
        auto const name = std::string(std::string_view(key));
        PackedMatrix weight(1, size);
        PackedMatrix gradient(1, size);
        PackedMatrix first(1, size);
        PackedMatrix second(1, size);
        set_rows(weight, tensor(figures.at("start").as_string()));
        auto const& settings = run.at("adam_params");
        for (std::size_t step = 0; step < 5; ++step) {
            auto const row = [&](std::vector<float> const& all) {
                auto const begin = all.begin() + static_cast<std::ptrdiff_t>(step * size);
                return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
            };
            set_rows(gradient, row(grads));
            auto const result =
                adamw({.weights = {&weight},
                       .gradients = {&gradient},
                       .moment1 = {&first},
                       .moment2 = {&second}},
                      static_cast<std::int64_t>(step) + 1,
                      adam_params(settings.is_array() ? settings.at(step) : settings), nullptr)
                    .value();
            norms.add(relative(result.grad_norm,
                               run.at("unclipped_grad_norms").at(step).to_number<double>()),
                      name);
            params.absolute(rows_of(weight), row(tensor(run.at("param").as_string())), name);
            for (auto const& [member, matrix] :
                 {std::pair{"exp_avg", &first}, std::pair{"exp_avg_sq", &second}}) {
                auto const want = row(tensor(run.at(member).as_string()));
                moments.add(distance(rows_of(*matrix), want) / norm(want), name);
            }
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine::golden
