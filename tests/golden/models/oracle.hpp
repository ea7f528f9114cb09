#pragma once

#include "engine/files/safetensors.hpp"
#include "engine/model/adapter.hpp"
#include "engine/model/model.hpp"
#include "engine/train/loss.hpp"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine::golden {

namespace json = boost::json;

/// The folder with the numbers: ours, or that of TINKXX_GOLDEN_MODELS.
inline std::filesystem::path root() {
    char const* const other = std::getenv("TINKXX_GOLDEN_MODELS");
    if (other != nullptr && *other != '\0') return other;
    return std::filesystem::path(TINKXX_SOURCE_DIR) / "tests/golden/models/data";
}

inline json::value read_json(std::filesystem::path const& path) {
    return json::parse(read_text(path, std::size_t{64} << 20U).value());
}

/// Folders of `root()` that hold a model, by name.
inline std::vector<std::string> model_names() {
    std::vector<std::string> names;
    for (auto const& entry : std::filesystem::directory_iterator(root())) {
        if (std::filesystem::exists(entry.path() / "oracle.json")) {
            names.push_back(entry.path().filename().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

inline std::vector<std::int32_t> tokens_of(json::value const& list) {
    std::vector<std::int32_t> tokens;
    for (auto const& item : list.as_array()) tokens.push_back(item.to_number<std::int32_t>());
    return tokens;
}

/// The reference numbers of one model.
struct Oracle {
    std::string name{};
    json::value figures{};
    SafetensorsFile file{};

    explicit Oracle(std::string const& model)
        : name{model},
          figures(read_json(root() / model / "oracle.json"))  // braces would make it a list of one
          ,
          file{SafetensorsFile::open(root() / model / "oracle.safetensors").value()} {}

    [[nodiscard]] std::filesystem::path folder() const { return root() / name; }
    [[nodiscard]] bool has(std::string_view tensor) const {
        return file.tensors().contains(tensor);
    }
    [[nodiscard]] std::vector<float> tensor(std::string_view tensor) const {
        auto const found = file.tensors().find(tensor);
        if (found == file.tensors().end()) {
            ADD_FAILURE() << name << " has no tensor " << tensor;
            return {};
        }
        return widen_tensor(found->second, tensor).value();
    }
    /// The tensor that a member of the JSON names.
    [[nodiscard]] std::vector<float> named(json::value const& member) const {
        return tensor(std::string_view(member.as_string()));
    }
};

/// Collects the worst figure of a kind and holds it against its limit.
class Figure {
public:
    Figure(std::string name, double limit) : name_{std::move(name)}, limit_{limit} {}
    Figure(Figure const&) = delete;
    Figure& operator=(Figure const&) = delete;
    ~Figure() {
        std::printf("    %-44s %.2e (limit %.0e, %zu values)\n", name_.c_str(), worst_, limit_,
                    count_);
        EXPECT_GT(count_, 0U) << name_ << ": nothing was compared";
        EXPECT_LE(worst_, limit_) << name_ << ": " << where_;
    }

    void add(double error, std::string const& where) {
        ++count_;
        // NaN must not pass for small.
        if (!(error <= worst_)) {
            worst_ = std::isnan(error) ? HUGE_VAL : error;
            where_ = where;
        }
    }
    /// Largest absolute difference.
    void absolute(std::vector<float> const& got, std::vector<float> const& want,
                  std::string const& where) {
        ASSERT_EQ(got.size(), want.size()) << where;
        double worst = 0.0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            auto const error = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
            if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
        }
        add(worst, where);
    }

private:
    std::string name_;
    double limit_;
    double worst_{0};
    std::size_t count_{0};
    std::string where_{};
};

inline double norm(std::vector<float> const& values) {
    double squares = 0.0;
    for (auto const value : values) squares += static_cast<double>(value) * value;
    return std::sqrt(squares);
}

inline double largest(std::vector<float> const& values) {
    double most = 0.0;
    for (auto const value : values) most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

inline double distance(std::vector<float> const& a, std::vector<float> const& b) {
    double squares = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto const d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        squares += d * d;
    }
    return std::sqrt(squares);
}

inline std::vector<float> rows_of(PackedMatrix const& matrix) {
    std::vector<float> values(matrix.outputs() * matrix.inputs());
    matrix.unpack(values.data());
    return values;
}

inline void set_rows(PackedMatrix& matrix, std::vector<float> const& values) {
    ASSERT_EQ(values.size(), matrix.outputs() * matrix.inputs());
    matrix.assign({.type = ElementType::f32,
                   .data = values.data(),
                   .rows = matrix.outputs(),
                   .cols = matrix.inputs()});
}

inline LoraConfig lora_config(Oracle const& oracle) {
    auto const& config = oracle.figures.at("lora_config");
    return {.rank = config.at("rank").to_number<int>(),
            .alpha = config.at("alpha").to_number<float>()};
}

/// An adapter with the matrices of the oracle, or with every B zero.
inline std::unique_ptr<Adapter> oracle_adapter(Oracle const& oracle,
                                               std::shared_ptr<Model const> const& model,
                                               LoraConfig const& config, bool zero_b = false) {
    auto lora = zero_lora(model->config(), config);
    for (auto const& slot : lora_slots(model->config(), config, lora)) {
        set_rows(slot.pair->a, oracle.tensor("lora." + slot.module + ".lora_A"));
        if (!zero_b) set_rows(slot.pair->b, oracle.tensor("lora." + slot.module + ".lora_B"));
    }
    return std::make_unique<Adapter>(model, config, std::move(lora));
}

struct Case {
    Loss loss{};
    std::vector<Datum> data{};
};

inline Case read_case(Oracle const& oracle, json::value const& entry) {
    Case result;
    std::map<std::string, double> config;
    for (auto const& [key, value] : entry.at("config").as_object()) {
        config.emplace(std::string_view(key), value.to_number<double>());
    }
    result.loss = make_loss(std::string_view(entry.at("loss_fn").as_string()), config).value();
    for (auto const& item : entry.at("datums").as_array()) {
        Datum datum{.tokens = tokens_of(item.at("model_input"))};
        for (auto const& target : item.at("target_tokens").as_array()) {
            if (target.is_array()) {
                datum.targets_per_token = target.as_array().size();
                for (auto const token : tokens_of(target)) datum.targets.push_back(token);
            } else {
                datum.targets.push_back(target.to_number<std::int32_t>());
            }
        }
        auto const& inputs = item.at("inputs").as_object();
        auto const read = [&](char const* name, std::vector<float>& to) {
            if (auto const* member = inputs.if_contains(name)) to = oracle.named(*member);
        };
        read("weights", datum.weights);
        read("logprobs", datum.logprobs);
        read("advantages", datum.advantages);
        result.data.push_back(std::move(datum));
    }
    return result;
}

}  // namespace tinkxx::engine::golden
