#pragma once

#include "local/base_models/base_models.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/training/step_name.hpp"
#include "local/training/step_order.hpp"
#include "local/weights/folders.hpp"
#include "local/weights/weights_cache.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// A place for a new model.
struct ModelPlace {
    std::string id{};
    std::string session{};
    Fingerprint print{};
    /// The request that has made it already; empty if it is to be made.
    std::string made_by{};
};

/// A training request: what it is accepted by.
struct StepRequest {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    Fingerprint print{};
    Form form{Form::json};
    /// What it holds in memory until it is done.
    std::size_t bytes{0};
};

/// Models in memory, and what was asked of them. Loop thread.
class Models final : public SessionContents {
public:
    struct Uses {
        Services& services;
        BaseModels const& bases;
        Sessions& sessions;
        Runs& runs;
        WeightsCache& weights;
        Folders& folders;
    };
    explicit Models(Uses const& uses) : uses_{uses} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused create_model(Ask& ask);
    [[nodiscard]] MaybeRefused unload_model(Ask& ask);
    [[nodiscard]] MaybeRefused get_info(Ask& ask);

    // For those who make models.

    /// Where the model of a session with this number goes. Refuses one that is there, made
    /// otherwise, or that is gone.
    [[nodiscard]] Outcome<ModelPlace> place(std::string_view operation, std::string const& session,
                                            std::int64_t model_seq_id, Fingerprint const& print);
    /// Counts it and takes memory for it; returns the id of the request that makes it.
    [[nodiscard]] Outcome<std::string> add(std::string_view operation, ModelPlace const& place,
                                           BaseModel const& base, Training const& training,
                                           Texts metadata);
    /// Loads a checkpoint into a model, before anything that is asked of the model from now on.
    void load(std::string const& id, CheckpointRow const& row, engine::OptimizerState state,
              engine::Done<engine::AdapterInfo> done);
    /// A new model could not be made.
    void discard(std::string const& id, std::string const& request_id, Error const& why);

    // For training requests.

    /// Reads the body of one by `read(std::string_view)`; then `then(ask, value)`. One that cannot
    /// be read must not hold up those behind it.
    template <class Read, class Then>
    [[nodiscard]] MaybeRefused read_step(Ask& ask, std::size_t most, Read read, Then then);
    /// Answers with the id of its result, and carries `step` out when its turn comes.
    [[nodiscard]] MaybeRefused accept(Ask& ask, StepRequest const& request, Step step);
    /// Whether a request of that number was accepted.
    [[nodiscard]] bool seen(std::string const& model_id, std::optional<std::int64_t> seq_id) const;
    /// Ends a request of a model, which may be gone.
    void complete(std::string const& model_id, std::string const& request_id, std::string payload,
                  std::vector<Change> more);
    void fail(std::string const& model_id, std::string const& request_id, Error const& error);
    void fail(std::string const& model_id, std::string const& request_id, std::string error,
              ErrorCategory category);

    [[nodiscard]] bool contains(std::string const& id) const { return models_.contains(id); }
    [[nodiscard]] std::size_t count() const noexcept { return models_.size(); }
    /// Training requests that are not done, and the bytes of their bodies.
    [[nodiscard]] std::size_t pending() const;
    [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_bytes_; }
    /// Why the request has to wait, if one of a model has to.
    [[nodiscard]] std::optional<QueueNote> why_waiting(std::string const& request_id) const;
    /// Goes on without requests that have not come for too long.
    void skip_gaps();

    [[nodiscard]] bool in_use(std::string const& session) const override;
    [[nodiscard]] bool must_stay(std::string const& session) const override;
    void end_session(std::string const& session) override;

private:
    struct Model {
        std::size_t bytes{0};
        SeenStep creation{};
        StepOrder order{};
        /// It is unloaded once it is held no longer, after what was asked of it before.
        bool ending{false};
        std::size_t pending{0};
        std::int64_t unnumbered{0};
    };

    [[nodiscard]] Outcome<Model*> find(std::string_view operation, std::string const& id);
    [[nodiscard]] MaybeRefused make_model(Ask& ask, wire::server::CreateModel request);
    [[nodiscard]] MaybeRefused send_info(Ask& ask, std::string const& id);
    /// Whether its number can be taken.
    [[nodiscard]] MaybeRefused check_number(std::string const& what, Model const& model,
                                            StepRequest const& request) const;
    [[nodiscard]] MaybeRefused check_room(std::string const& what, Model const& model,
                                          StepRequest const& request) const;
    void refuse_step(StepName const& name);
    void run_steps(std::string const& id);
    void end_step(std::string const& model_id, std::string const& request_id);
    void unload(std::string const& id);
    [[nodiscard]] std::size_t bytes_of_training(BaseModel const& base,
                                                Training const& training) const;

    Uses uses_;
    std::map<std::string, Model> models_{};
    /// Bytes of the bodies of training requests that are not done.
    std::map<std::string, std::size_t> step_bytes_{};
    std::size_t pending_bytes_{0};
};

/// Answers with the id of a result that is to come.
void send_request_id(Ask& ask, std::string const& request_id, std::string const& model_id);

template <class Read, class Then>
MaybeRefused Models::read_step(Ask& ask, std::size_t most, Read read, Then then) {
    using Value = typename std::invoke_result_t<Read&, std::string_view>::value_type;
    struct ReadStep {
        Result<Value> value;
        StepName name{};
    };
    bool const protobuf = is_protobuf(ask);
    return uses_.services.bodies.read(
        ask, most,
        [read = std::move(read), protobuf](std::string body) mutable -> Result<ReadStep> {
            auto value = read(std::string_view{body});
            if (value) return ReadStep{.value = std::move(value)};
            return ReadStep{.value = std::move(value), .name = name_of_step(body, protobuf)};
        },
        [this, then = std::move(then)](Ask& asked, ReadStep step) mutable -> MaybeRefused {
            if (step.value) return then(asked, *std::move(step.value));
            // Its number will not come again, unless in another form.
            refuse_step(step.name);
            return Refused{422, step.value.error().what()};
        });
}

}  // namespace tinkxx::local
