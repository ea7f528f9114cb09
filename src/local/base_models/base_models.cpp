#include "local/base_models/base_models.hpp"

#include "base/loop/loop_rule.hpp"
#include "engine/memory.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::local {

namespace {

/// The bytes of the tokens of a byte-level model.
std::string_view byte_of(std::int32_t token) {
    static auto const bytes = [] {
        std::array<char, 256> all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
        return all;
    }();
    if (token < 0 || token > 255) return {};
    return {&bytes[static_cast<std::size_t>(token)], 1};
}

Error bad_model(std::string value, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "local server: " + why,
                              .category = ErrorCategory::user,
                              .field = "models",
                              .value = std::move(value)}};
}

}  // namespace

Result<BaseModels::Map> BaseModels::read(std::vector<ModelSource>& sources) {
    if (sources.empty()) {
        return bad_model({},
                         "there is no model to serve; name a folder with config.json and "
                         "*.safetensors");
    }
    Map models;
    for (auto& source : sources) {
        auto config = engine::check_model(source.folder);
        if (!config) {
            return bad_model(source.folder.string(),
                             "the folder " + source.folder.string() +
                                 " is no model that can be served: " + config.error().what());
        }
        if (source.name.empty()) {
            source.name = source.folder.filename().empty()
                              ? source.folder.parent_path().filename().string()
                              : source.folder.filename().string();
        }
        auto const name = source.name;
        BaseModel model{.source = source, .config = *config};
        if (!source.byte_level) {
            auto texts = TokenTexts::of_folder(source.folder);
            if (texts) {
                model.texts = *std::move(texts);
            } else {
                model.no_texts = texts.error().what();
            }
        }
        if (!models.emplace(name, std::move(model)).second) {
            return bad_model(name, "two models are called " + name + "; rename one");
        }
    }
    return models;
}

void BaseModels::load() {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    for (auto& [name, model] : models_) {
        engine::LoadModel job{.model = name, .folder = model.source.folder};
        if (model.source.byte_level) job.token_bytes = byte_of;
        if (model.texts) {
            job.token_bytes = [texts = model.texts](std::int32_t token) {
                return texts->bytes(token);
            };
        }
        if (!model.no_texts.empty()) {
            services_.log(LogLevel::warning, "local server: stop texts of " + name +
                                                 " are refused, since its tokenizer cannot be "
                                                 "read: " +
                                                 model.no_texts);
        }
        services_.engine->submit(
            std::move(job), [this, name = name](Result<engine::ModelInfo> const& loaded) {
                if (loaded) {
                    services_.log(LogLevel::info, "local server: " + name + " is ready");
                    return;
                }
                auto& known = models_.at(name);
                known.failure = loaded.error().what();
                services_.log(LogLevel::error,
                              "local server: " + name + " cannot be served: " + known.failure);
            });
    }
}

Outcome<BaseModel const*> BaseModels::find(std::string_view operation,
                                           std::string const& name) const {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const found = models_.find(name);
    if (found == models_.end()) {
        std::string known;
        for (auto const& [other, model] : models_) known += (known.empty() ? "" : ", ") + other;
        return Refused{404, std::string{operation} + ": there is no base model " +
                                name.substr(0, 200) + "; this server has " + known};
    }
    if (!found->second.failure.empty()) {
        return Refused{400, std::string{operation} + ": the base model " + name +
                                " could not be loaded: " + found->second.failure};
    }
    return &found->second;
}

std::size_t BaseModels::most_positions() const {
    std::size_t most = 0;
    for (auto const& [name, model] : models_) {
        most = std::max(most, engine::wide(model.config.max_positions));
    }
    return most;
}

std::size_t BaseModels::largest_vocabulary() const {
    std::size_t most = 0;
    for (auto const& [name, model] : models_) {
        most = std::max(most, engine::wide(model.config.vocab_size));
    }
    return most;
}

}  // namespace tinkxx::local
