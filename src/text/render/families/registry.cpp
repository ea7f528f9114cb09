// Names of renderers, and which of them suit which model.
#include <tinkxx/text/renderer.hpp>

#include "text/errors/refuse.hpp"
#include "text/render/families/families.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace tinkxx::text {

namespace {

using render::ImFormat;
using render::KimiFormat;
using render::Qwen3Mode;
using render::TokenizerPointer;

using Pointer = std::unique_ptr<Renderer>;

template <class Make>
RendererFactory strips(bool by_default, Make make) {
    return [by_default, make](TokenizerPointer tokenizer, RendererOptions const& options) {
        return make(std::move(tokenizer), options.strip_thinking_from_history.value_or(by_default));
    };
}

RendererFactory qwen3(Qwen3Mode mode) {
    return strips(true, [mode](TokenizerPointer tokenizer, bool strip) {
        return render::make_qwen3(std::move(tokenizer), mode, strip);
    });
}

RendererFactory im(ImFormat format, bool thinks, bool by_default, std::string_view effort = {}) {
    return strips(by_default, [=](TokenizerPointer tokenizer, bool strip) {
        return render::make_im(
            std::move(tokenizer),
            {.format = format, .thinks = thinks, .strip_thinking = strip, .effort = effort});
    });
}

RendererFactory deepseek_v3(bool thinks) {
    return [thinks](TokenizerPointer tokenizer, RendererOptions const& options) {
        return render::make_deepseek_v3(std::move(tokenizer), thinks,
                                        options.strip_thinking_from_history.value_or(true),
                                        options.system_role_as_user);
    };
}

RendererFactory deepseek_v4_1(int effort, bool by_default) {
    return strips(by_default, [effort](TokenizerPointer tokenizer, bool strip) {
        return render::make_deepseek_v4_1(std::move(tokenizer), effort, strip);
    });
}

RendererFactory glm5_3(std::string_view effort) {
    return strips(false, [effort](TokenizerPointer tokenizer, bool strip) {
        return render::make_glm5_3(std::move(tokenizer), effort, strip);
    });
}

RendererFactory kimi(KimiFormat format, bool by_default) {
    return strips(by_default, [format](TokenizerPointer tokenizer, bool strip) {
        return render::make_kimi(std::move(tokenizer), format, strip);
    });
}

RendererFactory gpt_oss(std::string_view effort) {
    return [effort](TokenizerPointer tokenizer, RendererOptions const& options) {
        return render::make_gpt_oss(std::move(tokenizer), effort, options.current_date);
    };
}

RendererFactory simple(Pointer (*make)(TokenizerPointer)) {
    return [make](TokenizerPointer tokenizer, RendererOptions const& /*options*/) {
        return make(std::move(tokenizer));
    };
}

constexpr std::string_view xhigh_effort =
    "Reasoning effort is set to xhigh. Please think carefully through the task, validate key "
    "assumptions, consider plausible alternatives, and prioritize correctness, consistency, and "
    "clarity in the final answer.";
constexpr std::string_view low_effort =
    "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the "
    "conclusion without unnecessary elaboration.";

using Factories = std::vector<std::pair<std::string, RendererFactory>>;

void add_qwen(Factories& out) {
    out.emplace_back("qwen3", qwen3(Qwen3Mode::thinking));
    out.emplace_back("qwen3_5", im(ImFormat::qwen3_5, true, true));
    out.emplace_back("qwen3_5_disable_thinking", im(ImFormat::qwen3_5, false, true));
    out.emplace_back("qwen3_5_preserve_thinking", im(ImFormat::qwen3_5, true, false));
    out.emplace_back("qwen3_8_disable_thinking", im(ImFormat::qwen3_8, false, false));
    out.emplace_back("qwen3_8_low_reasoning", im(ImFormat::qwen3_8, true, false, low_effort));
    out.emplace_back("qwen3_8_medium_reasoning", im(ImFormat::qwen3_8, true, false));
    out.emplace_back("qwen3_8_xhigh_reasoning", im(ImFormat::qwen3_8, true, false, xhigh_effort));
    out.emplace_back("qwen3_disable_thinking", qwen3(Qwen3Mode::no_thinking));
    out.emplace_back("qwen3_instruct", qwen3(Qwen3Mode::instruct));
    out.emplace_back("qwen3_vl", im(ImFormat::qwen3_vl, true, true));
    out.emplace_back("qwen3_vl_instruct", im(ImFormat::qwen3_vl_instruct, true, true));
}

void add_nemotron(Factories& out) {
    using enum ImFormat;
    out.emplace_back("nemotron3", im(nemotron3, true, true));
    out.emplace_back("nemotron3_disable_thinking", im(nemotron3, false, true));
    out.emplace_back("nemotron3_low_thinking",
                     im(nemotron3, true, true, render::nemotron_low_effort));
    out.emplace_back("nemotron3_preserve_thinking", im(nemotron3, true, false));
    out.emplace_back("nemotron3_ultra", im(nemotron3_ultra, true, true));
    out.emplace_back("nemotron3_ultra_disable_thinking", im(nemotron3_ultra, false, true));
    out.emplace_back("nemotron3_ultra_medium_thinking",
                     im(nemotron3_ultra, true, true, render::nemotron_medium_effort));
    out.emplace_back("nemotron3_ultra_preserve_thinking", im(nemotron3_ultra, true, false));
}

Factories built_in() {
    Factories out;
    out.emplace_back("deepseekv3", deepseek_v3(false));
    out.emplace_back("deepseekv3_disable_thinking", deepseek_v3(false));
    out.emplace_back("deepseekv3_thinking", deepseek_v3(true));
    out.emplace_back("deepseekv4_1", deepseek_v4_1(75, true));
    out.emplace_back("deepseekv4_1_disable_thinking", deepseek_v4_1(0, true));
    out.emplace_back("deepseekv4_1_low_reasoning", deepseek_v4_1(50, true));
    out.emplace_back("deepseekv4_1_max_reasoning", deepseek_v4_1(100, true));
    out.emplace_back("deepseekv4_1_preserve_thinking", deepseek_v4_1(75, false));
    out.emplace_back("glm5_3_high_reasoning", glm5_3("High"));
    out.emplace_back("glm5_3_low_reasoning", glm5_3("Low"));
    out.emplace_back("glm5_3_max_reasoning", glm5_3("Max"));
    out.emplace_back("gpt_oss_high_reasoning", gpt_oss("high"));
    out.emplace_back("gpt_oss_low_reasoning", gpt_oss("low"));
    out.emplace_back("gpt_oss_medium_reasoning", gpt_oss("medium"));
    out.emplace_back("gpt_oss_no_sysprompt", gpt_oss(""));
    out.emplace_back("kimi_k2", kimi(KimiFormat::k2, true));
    out.emplace_back("kimi_k25", kimi(KimiFormat::k2_5, true));
    out.emplace_back("kimi_k25_disable_thinking", kimi(KimiFormat::k2_5_no_thinking, true));
    out.emplace_back("kimi_k26", kimi(KimiFormat::k2_5, true));
    out.emplace_back("kimi_k26_disable_thinking", kimi(KimiFormat::k2_5_no_thinking, true));
    out.emplace_back("kimi_k26_preserve_thinking", kimi(KimiFormat::k2_5, false));
    out.emplace_back("llama3", simple(render::make_llama3));
    add_nemotron(out);
    add_qwen(out);
    out.emplace_back("role_colon", simple(render::make_role_colon));
    return out;
}

using Names = std::vector<std::string>;
using Models = std::vector<std::pair<std::string, Names>>;

void add_models(Models& out, std::string_view organisation,
                std::initializer_list<std::string_view> models, Names const& renderers) {
    for (auto const model : models) {
        out.emplace_back(std::string{organisation} + "/" + std::string{model}, renderers);
    }
}

void add_qwen_models(Models& out) {
    add_models(out, "Qwen", {"Qwen3-VL-30B-A3B-Instruct", "Qwen3-VL-235B-A22B-Instruct"},
               {"qwen3_vl_instruct"});
    add_models(out, "Qwen",
               {"Qwen3-8B-Base", "Qwen3-30B-A3B-Base", "Qwen3.5-9B-Base", "Qwen3.5-35B-A3B-Base"},
               {"role_colon"});
    add_models(out, "Qwen", {"Qwen3-8B", "Qwen3-32B", "Qwen3-30B-A3B"},
               {"qwen3", "qwen3_disable_thinking"});
    add_models(
        out, "Qwen",
        {"Qwen3-4B-Instruct-2507", "Qwen3-30B-A3B-Instruct-2507", "Qwen3-235B-A22B-Instruct-2507"},
        {"qwen3_instruct"});
    add_models(out, "Qwen",
               {"Qwen3.5-4B", "Qwen3.5-9B", "Qwen3.5-27B", "Qwen3.5-35B-A3B", "Qwen3.5-397B-A17B",
                "Qwen3.6-27B", "Qwen3.6-35B-A3B"},
               {"qwen3_5", "qwen3_5_disable_thinking", "qwen3_5_preserve_thinking"});
    add_models(out, "Qwen", {"Qwen3.8-27B"},
               {"qwen3_8_xhigh_reasoning", "qwen3_8_disable_thinking", "qwen3_8_medium_reasoning",
                "qwen3_8_low_reasoning"});
}

void add_nemotron_models(Models& out) {
    Names nemotron{"nemotron3", "nemotron3_disable_thinking", "nemotron3_preserve_thinking"};
    add_models(out, "nvidia", {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"}, nemotron);
    nemotron.emplace_back("nemotron3_low_thinking");
    add_models(out, "nvidia", {"NVIDIA-Nemotron-3-Super-120B-A12B-BF16"}, nemotron);
    add_models(
        out, "nvidia",
        {"NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "NVIDIA-Nemotron-3.5-Super-VL-120B-A12B-BF16"},
        {"nemotron3_ultra", "nemotron3_ultra_disable_thinking", "nemotron3_ultra_medium_thinking",
         "nemotron3_ultra_preserve_thinking"});
    add_models(out, "nvidia", {"NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"},
               {"nemotron3_ultra", "nemotron3_ultra_disable_thinking",
                "nemotron3_ultra_preserve_thinking"});
}

Models known_models() {
    Models out;
    add_models(out, "meta-llama", {"Llama-3.1-8B-Instruct", "Llama-3.3-70B-Instruct"}, {"llama3"});
    add_models(out, "meta-llama", {"Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.1-8B", "Llama-3.1-70B"},
               {"role_colon"});
    add_qwen_models(out);
    add_models(out, "deepseek-ai", {"DeepSeek-V3.1"}, {"deepseekv3", "deepseekv3_thinking"});
    add_models(out, "deepseek-ai", {"DeepSeek-V3.1-Base"}, {"role_colon"});
    add_models(out, "deepseek-ai", {"DeepSeek-V4.1-Flash", "DeepSeek-V4.1-Flash-1017"},
               {"deepseekv4_1", "deepseekv4_1_low_reasoning", "deepseekv4_1_max_reasoning",
                "deepseekv4_1_disable_thinking", "deepseekv4_1_preserve_thinking"});
    add_models(out, "openai", {"gpt-oss-20b", "gpt-oss-120b"},
               {"gpt_oss_no_sysprompt", "gpt_oss_medium_reasoning"});
    add_models(out, "moonshotai", {"Kimi-K2-Thinking"}, {"kimi_k2"});
    add_models(out, "moonshotai", {"Kimi-K2.5"}, {"kimi_k25", "kimi_k25_disable_thinking"});
    add_models(out, "moonshotai", {"Kimi-K2.6"},
               {"kimi_k26", "kimi_k26_disable_thinking", "kimi_k26_preserve_thinking"});
    add_models(out, "zai-org", {"GLM-5.3", "GLM-5.3-Flash"},
               {"glm5_3_max_reasoning", "glm5_3_low_reasoning", "glm5_3_high_reasoning"});
    add_nemotron_models(out);
    add_models(out, "thinkingmachines", {"Inkling", "Inkling-Small"}, {"tml_v0"});
    return out;
}

template <class Entries>
auto entry_of(Entries& entries, std::string_view name) {
    return std::ranges::find_if(entries, [name](auto const& entry) { return entry.first == name; });
}

template <class Value>
void put_entry(std::vector<std::pair<std::string, Value>>& entries, std::string name, Value value) {
    auto const found = entry_of(entries, name);
    if (found == entries.end()) {
        entries.emplace_back(std::move(name), std::move(value));
    } else {
        found->second = std::move(value);
    }
}

}  // namespace

Renderers::Renderers() : factories_{built_in()}, models_{known_models()} {}

void Renderers::add(std::string name, RendererFactory factory) {
    if (!factory) {
        text::refuse("Renderers::add", "factory", name,
                     "the factory of \"" + name + "\" is empty; give a function");
    }
    put_entry(factories_, std::move(name), std::move(factory));
}

bool Renderers::remove(std::string_view name) {
    auto const found = entry_of(factories_, name);
    if (found == factories_.end()) return false;
    factories_.erase(found);
    return true;
}

bool Renderers::contains(std::string_view name) const {
    return entry_of(factories_, name) != factories_.end();
}

std::vector<std::string> Renderers::names() const {
    std::vector<std::string> out;
    out.reserve(factories_.size());
    for (auto const& factory : factories_) out.push_back(factory.first);
    std::ranges::sort(out);
    return out;
}

std::unique_ptr<Renderer> Renderers::make(std::string_view name, TokenizerPointer tokenizer,
                                          RendererOptions const& options) const {
    auto const found = entry_of(factories_, name);
    if (found != factories_.end()) return found->second(std::move(tokenizer), options);
    std::string all;
    for (auto const& one : names()) all += (all.empty() ? "" : ", ") + one;
    text::refuse(
        "Renderers::make", "name", std::string{name},
        "there is no renderer \"" + std::string{name} + "\"; add it, or use one of " + all);
}

void Renderers::recommend(std::string model, std::vector<std::string> renderers) {
    put_entry(models_, std::move(model), std::move(renderers));
}

std::vector<std::string> Renderers::recommended(std::string_view model) const {
    model = model.substr(0, model.find(':'));
    auto const found = entry_of(models_, model);
    if (found != models_.end()) return found->second;
    // Whatever is called so is read by the same format.
    if (model.starts_with("thinkingmachines/Inkling")) return {"tml_v0"};
    return {};
}

}  // namespace tinkxx::text
