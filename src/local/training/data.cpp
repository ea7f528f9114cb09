#include "local/training/data.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace tinkxx::local {

namespace {

Error refused(std::string_view operation, std::string field, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::string{operation} + ": " + why,
                              .category = ErrorCategory::user,
                              .field = std::move(field)}};
}

/// The input as a dense tensor, and how many numbers it has for each token.
struct Dense {
    TensorData tensor{};
    std::size_t columns{1};
};

Result<Dense> dense(std::string_view operation, std::size_t index, std::string_view name,
                    TensorView const& view, std::size_t tokens, BatchLimits const& most,
                    std::size_t& cells) {
    auto const where = "datum " + std::to_string(index) + ": " + std::string{name};
    auto const wrong = [&](std::string const& why) {
        return refused(operation,
                       "data/" + std::to_string(index) + "/loss_fn_inputs/" + std::string{name},
                       where + " " + why);
    };
    Dense out;
    auto const dimensions = view.shape ? view.shape->size() : 1;
    if (dimensions < 1 || dimensions > 2) {
        return wrong("has " + std::to_string(dimensions) + " dimensions; it may have one or two");
    }
    if (view.shape && std::ranges::any_of(*view.shape, [](auto size) { return size < 0; })) {
        return wrong("has a negative dimension");
    }
    if (dimensions == 2) out.columns = static_cast<std::size_t>((*view.shape)[1]);
    if (out.columns > most.columns) {
        return wrong("has " + std::to_string(out.columns) +
                     " columns; a token can have no more targets than the vocabulary has tokens, " +
                     std::to_string(most.columns));
    }
    auto const rows = dimensions == 2 ? static_cast<std::size_t>((*view.shape)[0]) : view.size();
    if (rows != tokens) {
        return wrong("has " + std::to_string(rows) + " entries for " + std::to_string(tokens) +
                     " tokens; there must be one for each");
    }
    // No product overflows: both factors are below the limits.
    if (rows * out.columns > most.cells - std::min(cells, most.cells)) {
        return wrong("has " + std::to_string(rows) + " x " + std::to_string(out.columns) +
                     " entries, and those of all data together may be " +
                     std::to_string(most.cells) + "; send fewer data at once, or fewer columns");
    }
    cells += rows * out.columns;
    out.tensor = to_tensor_data(view);
    if (out.tensor.sparse()) out.tensor = to_dense(out.tensor);
    return out;
}

Result<engine::Datum> to_datum(std::string_view operation, engine::LossFn fn,
                               std::string const& loss_name, Datum const& datum, std::size_t index,
                               BatchLimits const& most, std::size_t& cells) {
    engine::Datum out;
    if (auto const length = token_count(datum.model_input); length > most.tokens) {
        return refused(operation, "data/" + std::to_string(index) + "/model_input",
                       "datum " + std::to_string(index) + " has " + std::to_string(length) +
                           " tokens, and the limit is " + std::to_string(most.tokens) + "; cut it");
    }
    auto tokens = tokens_of(operation, datum.model_input);
    if (!tokens) {
        return refused(operation, "data/" + std::to_string(index) + "/model_input",
                       "datum " + std::to_string(index) + ": " + tokens.error().what());
    }
    out.tokens = *std::move(tokens);
    std::set<std::string_view> wanted{"target_tokens"};
    if (fn == engine::LossFn::cross_entropy) {
        wanted.insert("weights");
    } else {
        wanted.insert({"logprobs", "advantages"});
    }
    for (auto const& name : wanted) {
        if (datum.loss_fn_inputs.contains(name)) continue;
        return refused(operation, "data/" + std::to_string(index) + "/loss_fn_inputs",
                       "datum " + std::to_string(index) + " has no " + std::string{name} +
                           ", which the loss " + loss_name + " needs");
    }
    for (auto const& [name, input] : datum.loss_fn_inputs) {
        auto place = "data/" + std::to_string(index);
        place.append("/loss_fn_inputs/").append(name);
        if (!wanted.contains(name)) {
            auto why = "datum " + std::to_string(index) + ": the loss " + loss_name;
            why.append(" has no input ").append(name).append("; leave it out");
            return refused(operation, place, why);
        }
        auto made = dense(operation, index, name, input.view(), out.tokens.size(), most, cells);
        if (!made) return made.error();
        bool const targets = name == "target_tokens";
        if ((made->tensor.dtype() == DType::int64) != targets) {
            return refused(operation, place,
                           "datum " + std::to_string(index) + ": " + name + " must be of " +
                               (targets ? "int64" : "float32"));
        }
        if (targets) {
            out.targets_per_token = made->columns;
            for (auto const token : std::get<std::vector<std::int64_t>>(made->tensor.data)) {
                // Outside of any vocabulary; the engine says so.
                bool const fits = token >= 0 && token <= std::numeric_limits<std::int32_t>::max();
                out.targets.push_back(fits ? static_cast<std::int32_t>(token) : -1);
            }
            continue;
        }
        auto& numbers = std::get<std::vector<float>>(made->tensor.data);
        auto& into = name == "weights"    ? out.weights
                     : name == "logprobs" ? out.logprobs
                                          : out.advantages;
        into = std::move(numbers);
    }
    return out;
}

std::string output_type(std::string_view loss_fn) {
    if (loss_fn == "cross_entropy") return "CrossEntropyLossReturn";
    if (loss_fn == "importance_sampling") return "ImportanceSamplingLossReturn";
    if (loss_fn == "ppo") return "PpoLossReturn";
    if (loss_fn == "cispo") return "CispoLossReturn";
    return "DroLossReturn";
}

}  // namespace

Result<std::vector<Token>> tokens_of(std::string_view operation, ModelInput const& input) {
    std::vector<Token> tokens;
    for (auto const& chunk : input.chunks) {
        auto const* const text = std::get_if<EncodedTextChunk>(&chunk);
        if (text == nullptr) {
            return refused(operation, "chunks",
                           "images and audio are not supported by a local server; send text only");
        }
        tokens.insert(tokens.end(), text->tokens.begin(), text->tokens.end());
    }
    return tokens;
}

std::size_t token_count(ModelInput const& input) noexcept {
    std::size_t count = 0;
    for (auto const& chunk : input.chunks) {
        if (auto const* const text = std::get_if<EncodedTextChunk>(&chunk)) {
            count += text->tokens.size();
        }
    }
    return count;
}

Result<TrainingBatch> to_batch(wire::server::ForwardBackward const& request,
                               BatchLimits const& most) {
    std::string_view const operation = request.forward_only ? "forward" : "forward_backward";
    std::map<std::string, double> config;
    for (auto const& [name, value] : request.config) {
        auto const* const number = std::get_if<double>(&value);
        if (number == nullptr) {
            return refused(operation, "loss_fn_config/" + name,
                           "loss " + request.loss_fn.substr(0, 64) + ": " + name +
                               " is a text; only numbers are known here");
        }
        config[name] = *number;
    }
    auto loss = engine::make_loss(request.loss_fn, config);
    if (!loss) {
        return refused(operation, std::string{loss.error().field()}, loss.error().what());
    }
    if (request.data.empty()) return refused(operation, "data", "there are no data; send some");
    TrainingBatch batch{.loss = *loss};
    batch.data.reserve(request.data.size());
    std::size_t cells = 0;
    for (std::size_t i = 0; i < request.data.size(); ++i) {
        auto datum =
            to_datum(operation, loss->fn, request.loss_fn, request.data[i], i, most, cells);
        if (!datum) return datum.error();
        batch.tokens += datum->tokens.size();
        auto const& targets = request.data[i].loss_fn_inputs.at("target_tokens");
        bool const matrix = targets.shape && targets.shape->size() == 2;
        batch.columns.push_back(matrix ? datum->targets_per_token : 0);
        batch.data.push_back(*std::move(datum));
    }
    return batch;
}

ForwardBackwardOutput to_output(std::string_view loss_fn, std::vector<std::size_t> const& columns,
                                engine::BatchResult result) {
    ForwardBackwardOutput out{.loss_fn_output_type = output_type(loss_fn)};
    out.loss_fn_outputs.reserve(result.outputs.size());
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
        auto const wide = static_cast<std::int64_t>(columns.at(i));
        auto const tensor = [&](std::vector<float> numbers) {
            TensorData made;
            auto const count = static_cast<std::int64_t>(numbers.size());
            made.shape = wide > 0 ? std::vector<std::int64_t>{count / wide, wide}
                                  : std::vector<std::int64_t>{count};
            made.data = std::move(numbers);
            return made;
        };
        auto& one = out.loss_fn_outputs.emplace_back();
        one.emplace("logprobs", tensor(std::move(result.outputs[i].logprobs)));
        one.emplace("elementwise_loss", tensor(std::move(result.outputs[i].elementwise_loss)));
    }
    for (auto const& [name, value] : result.metrics) out.metrics.emplace(name, value);
    return out;
}

}  // namespace tinkxx::local
