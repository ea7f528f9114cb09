#include "golden/models/oracle.hpp"

#include "engine/sample/filter.hpp"
#include "engine/sample/sampler.hpp"

namespace tinkxx::engine::golden {
namespace {

SampleResult sample(Sampler& sampler, SampleRequest request) {
    std::optional<Result<SampleResult>> answer;
    request.on_done = [&](Result<SampleResult> result) { answer = std::move(result); };
    (void)sampler.submit(std::move(request)).value();
    while (sampler.step()) {
    }
    return answer.value().value();
}

TEST(golden_models, GreedyContinuationsEqualThoseOfTransformers) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Sampler sampler{model, threads};
        std::shared_ptr<Adapter const> const adapter =
            oracle_adapter(oracle, model, lora_config(oracle));
        Figure logprobs{"logprobs of greedy tokens", 1e-4};
        for (auto const& entry : oracle.figures.at("greedy").as_array()) {
            auto const wanted = tokens_of(entry.at("tokens"));
            bool const adapted = entry.at("model").as_string() == "lora";
            auto const result = sample(sampler, {.adapter = adapted ? adapter : nullptr,
                                                 .prompt = tokens_of(entry.at("prompt")),
                                                 .filter = {.temperature = 0.0},
                                                 .max_tokens = wanted.size()});
            EXPECT_EQ(result.sequences.at(0).tokens, wanted) << name;
            logprobs.absolute(result.sequences.at(0).logprobs, oracle.named(entry.at("logprobs")),
                              name);
        }
    }
}

TEST(golden_models, PromptLogprobsAndMostLikelyTokensEqualThoseOfTransformers) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Sampler sampler{model, threads};
        Figure prompt{"prompt logprobs", 1e-4};
        Figure top{"top-k prompt logprobs", 1e-4};
        for (auto const& entry : oracle.figures.at("sequences").as_array()) {
            auto const* wanted = entry.as_object().if_contains("topk_ids");
            if (wanted == nullptr) continue;
            auto const& ids = wanted->as_array();
            auto const k = ids.front().as_array().size();
            auto const tokens = tokens_of(entry.at("tokens"));
            auto const result = sample(
                sampler, {.prompt = tokens, .prompt_logprobs = true, .topk_prompt_logprobs = k});
            ASSERT_EQ(result.prompt_logprobs.size(), tokens.size());
            EXPECT_FALSE(result.prompt_logprobs.front().has_value());
            EXPECT_TRUE(result.topk_prompt_logprobs.front().empty());
            std::vector<float> next;
            std::vector<float> best;
            for (std::size_t i = 1; i < tokens.size(); ++i) {
                next.push_back(result.prompt_logprobs[i].value());
                std::vector<std::int32_t> found;
                for (auto const& [token, logprob] : result.topk_prompt_logprobs[i]) {
                    found.push_back(token);
                    best.push_back(logprob);
                }
                EXPECT_EQ(found, tokens_of(ids[i - 1])) << name << " position " << i;
            }
            prompt.absolute(next, oracle.named(entry.at("next_logprobs")), name);
            top.absolute(best, oracle.named(entry.at("topk_logprobs")), name);
        }
    }
}

TEST(golden_models, FiltersKeepTheTokensThatTransformersKeeps) {
    auto const figures = read_json(root() / "sampling/sampling.json");
    auto const file = SafetensorsFile::open(root() / "sampling/sampling.safetensors").value();
    auto const tensor = [&](std::string_view name) {
        return widen_tensor(file.tensors().at(std::string(name)), name).value();
    };
    Figure probabilities{"probabilities after filters", 2e-6};
    TokenFilter filter;
    for (auto const& entry : figures.at("cases").as_array()) {
        auto const where = std::string(entry.at("probs").as_string());
        auto const logits = tensor(entry.at("logits").as_string());
        auto const wanted = tensor(entry.at("probs").as_string());
        filter.apply(logits, {.temperature = entry.at("temperature").to_number<double>(),
                              .top_k = entry.at("top_k").to_number<std::int64_t>(),
                              .top_p = entry.at("top_p").to_number<double>()});
        auto const got = filter.probabilities(logits.size());
        auto const& kept = filter.tokens();
        for (std::size_t i = 0; i < got.size(); ++i) {
            probabilities.add(std::abs(got[i] - static_cast<double>(wanted[i])), where);
            // A kept token may be so unlikely that its probability is 0 in float32.
            if (wanted[i] == 0.0F) {
                EXPECT_LT(got[i], 1e-37) << where << " token " << i;
            } else {
                auto const token = static_cast<std::int32_t>(i);
                EXPECT_NE(std::ranges::find(kept, token), kept.end()) << where << " token " << i;
            }
        }
        EXPECT_GE(kept.size(), entry.at("kept").to_number<std::size_t>()) << where;
    }
}

}  // namespace
}  // namespace tinkxx::engine::golden
