#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/result.hpp>

#include "engine/model/model.hpp"
#include "local/base_models/token_texts.hpp"
#include "local/services/services.hpp"
#include "local/store/rows.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// A model that the server offers.
struct BaseModel {
    ModelSource source{};
    engine::ModelConfig config{};
    /// By the tokenizer in its folder; null if there is none, or if each token is a byte.
    std::shared_ptr<TokenTexts const> texts{};
    /// Why its tokenizer could not be read.
    std::string no_texts{};
    /// Why it could not be loaded.
    std::string failure{};

    /// Whether the text of a token is known.
    [[nodiscard]] bool has_texts() const noexcept { return source.byte_level || texts != nullptr; }
};

/// The models that the server offers, by name. Loop thread.
class BaseModels {
public:
    using Map = std::map<std::string, BaseModel>;
    /// Reads the configurations of the models and gives each a name. Any thread.
    [[nodiscard]] static Result<Map> read(std::vector<ModelSource>& sources);

    BaseModels(Services& services, Map models) : services_{services}, models_{std::move(models)} {}

    /// Has the engine load them.
    void load();
    [[nodiscard]] Map const& all() const noexcept { return models_; }
    /// The model, unless it is missing or could not be loaded.
    [[nodiscard]] Outcome<BaseModel const*> find(std::string_view operation,
                                                 std::string const& name) const;
    /// Of the model with the most of them.
    [[nodiscard]] std::size_t most_positions() const;
    [[nodiscard]] std::size_t largest_vocabulary() const;

private:
    Services& services_;
    Map models_;
};

}  // namespace tinkxx::local
