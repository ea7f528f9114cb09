#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/model_options.hpp>
#include <tinkxx/types/training.hpp>

#include "service/calls/request_call.hpp"
#include "service/http/http_order.hpp"
#include "service/training/model.hpp"
#include "wire/rest/training_runs.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

using CoreHandle = std::shared_ptr<ClientCore>;
using ModelHandle = std::shared_ptr<TrainingModel>;

/// Posts a JSON body and reads the JSON of the answer. Any thread.
template <class T>
[[nodiscard]] Future<T> ask_json(Runtime const& runtime, CoreHandle core, std::string_view name,
                                 std::string path, std::string body, CallOptions const& call,
                                 Result<T> (*decode)(std::string_view)) {
    return launch_prepared<RequestCall<T>>(
        runtime, [&](auto& made) { made.set_call(call.deadline, call.metadata); }, std::move(core),
        nullptr, std::string{name},
        [path = std::move(path), body = std::move(body)](ClientCore& ready) {
            return post_order(ready.http(), path, body, Purpose::train);
        },
        Repeat::submit_loop,
        [decode](HttpResponse const& response) { return decode(response.body); });
}

/// Metadata as requests have them: none rather than empty ones.
[[nodiscard]] inline std::optional<UserMetadata> metadata_if_any(UserMetadata metadata) {
    if (metadata.empty()) return std::nullopt;
    return metadata;
}

/// A model to be created.
struct NewModel {
    /// Names the call in messages.
    std::string operation{};
    std::string base_model{};
    TrainingOptions options{};
};
[[nodiscard]] Future<ModelHandle> create_model(Runtime const& runtime, CoreHandle session,
                                               NewModel model);

/// A model to be created from a checkpoint.
struct SavedModel {
    std::string operation{};
    std::string path{};
    /// Whether the state of the optimizer is restored too.
    bool with_optimizer{false};
    FromStateOptions options{};
};
/// `lookup` is where the checkpoint is looked up: a core without a session, with the token as its
/// credential if there is one (R-TRAIN-83).
[[nodiscard]] Future<ModelHandle> create_model_from(Runtime const& runtime,
                                                    CoreHandle const& session,
                                                    CoreHandle const& lookup, SavedModel saved);

/// Loads a checkpoint into a model. Any thread.
[[nodiscard]] Future<LoadResult> load_weights(Runtime const& runtime, ModelHandle const& model,
                                              std::string_view operation, CallOptions call,
                                              Headers headers, std::string path, bool optimizer,
                                              std::string token);

/// What the service knows about a run of the account's own. `sessionless` is a core without a
/// session (R-REST-00). Fails with `ValidationError` for an id that would lead elsewhere.
///
/// `repeat` is `once` for those who ask again anyway. Any thread.
[[nodiscard]] Future<TrainingRun> get_training_run(Runtime const& runtime, CoreHandle sessionless,
                                                   std::string const& run_id, Repeat repeat);

}  // namespace tinkxx::service
