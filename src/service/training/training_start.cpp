#include "service/training/training_start.hpp"

#include "base/common/invalid.hpp"
#include "service/calls/ready_call.hpp"
#include "service/training/training_call.hpp"
#include "service/training/training_pass.hpp"
#include "wire/training/training.hpp"

#include <utility>

namespace tinkxx::service {
namespace {

/// Creates a model by one request: from nothing, or from a checkpoint.
class CreateCall final : public PromiseCall<ModelHandle, TrainingCall> {
public:
    /// Writes the request, once the session is there.
    using Write = std::function<SubmitOrder(std::string const& session, std::int64_t model_seq,
                                            wire::Members)>;
    /// The id in the answer, or the one that follows from the request.
    using Read = std::function<Result<std::string>(
        std::string_view answer, std::string const& session, std::int64_t model_seq)>;

    struct Order {
        std::string operation{};
        /// What a waiting creation is known by.
        std::string subject{};
        Write write{};
        Read read{};
        std::optional<OptimizerConfig> optimizer{};
        /// Whether the request would ask for the same without the members newer than 0.25.0.
        bool fits_old_members{true};
    };

    CreateCall(Promise<ModelHandle> promise, CoreHandle session, Order order)
        : PromiseCall{std::move(promise), session, order.operation, CallOptions{}},
          session_{std::move(session)},
          order_{std::move(order)} {}

private:
    void go() override {
        core().prepare();
        // The same number when it is sent again: the server then knows it for the same model.
        model_seq_ = core().session().next_model_seq();
        send();
    }
    void send() {
        members_ = core().members();
        PassPlan plan;
        plan.name = name();
        plan.submits.push_back(order_.write(core().session().session_id(), model_seq_, members_));
        start(std::move(plan));
    }
    void on_refusal(Error const& error) override {
        if (error.http_status() == 422 && members_ == wire::Members::newest &&
            error.body().find("optimizer_config") != std::string_view::npos) {
            if (order_.fits_old_members) {
                core().only_old_members();
                return send();
            }
            auto details = error.details();
            details.unsupported_feature = "optimizers other than Adam";
            return fail(named(Error{std::move(details)}));
        }
        fail(named(error));
    }
    void on_pass(std::vector<RetrievedResult> results) override {
        auto id = order_.read(results.front().view(), core().session().session_id(), model_seq_);
        if (!id) return unreadable(id.error());
        core().http().log(LogLevel::info, name() + ": model " + *id + " of " + order_.subject);
        auto model =
            std::make_shared<TrainingModel>(session_, *std::move(id), std::move(order_.optimizer));
        keep(std::move(model));
    }
    QueueStateReporter& reporter() override { return reporter_; }
    std::string const& owner() const override { return order_.subject; }

    CoreHandle const session_;
    Order order_;
    QueueStateReporter reporter_{model_creation_queue};
    std::int64_t model_seq_{0};
    wire::Members members_{wire::Members::newest};
};

/// R-TRAIN-82: one request makes a model as its checkpoint was.
Future<ModelHandle> load_new_model(Runtime const& runtime, CoreHandle session, SavedModel saved,
                                   std::string token) {
    CreateCall::Order order;
    order.operation = saved.operation;
    order.subject = saved.path;
    if (!saved.with_optimizer) {
        order.optimizer = saved.options.optimizer.value_or(OptimizerConfig{AdamConfig{}});
        order.fits_old_members = !saved.options.optimizer;
    }
    order.write = [saved = std::move(saved), token = std::move(token)](
                      std::string const& session_id, std::int64_t model_seq,
                      wire::Members members) {
        wire::LoadWeights request;
        request.session_id = session_id;
        request.model_seq_id = model_seq;
        if (!saved.options.base_model.empty()) request.base_model = saved.options.base_model;
        request.user_metadata = metadata_if_any(saved.options.user_metadata);
        if (!saved.with_optimizer) request.optimizer_config = saved.options.optimizer;
        request.path = saved.path;
        request.optimizer = saved.with_optimizer;
        if (!token.empty()) request.weights_access_token = token;
        auto made = json_submit("/api/v1/load_weights", "LoadWeights",
                                wire::encode_load_weights(request, members));
        made.secret = token;
        return made;
    };
    order.read = [](std::string_view answer, std::string const& session_id,
                    std::int64_t model_seq) -> Result<std::string> {
        if (auto const loaded = wire::decode_weights_loaded(answer); !loaded) {
            return loaded.error();
        }
        return session_id + ":train:" + std::to_string(model_seq);
    };
    return launch<CreateCall>(runtime, std::move(session), std::move(order));
}

/// Which model a checkpoint needs (R-TRAIN-81, R-TRAIN-84).
Result<NewModel> model_for(SavedModel const& saved, WeightsInfo const& info) {
    if (!info.is_lora || !info.lora_rank) {
        return base::invalid(
            saved.operation, "path", saved.path,
            saved.path + " is no LoRA checkpoint with a rank; training can only go on from those");
    }
    NewModel model;
    model.operation = saved.operation;
    model.base_model =
        saved.options.base_model.empty() ? info.base_model : saved.options.base_model;
    auto& lora = model.options.lora;
    lora.rank = *info.lora_rank;
    lora.train_unembed = info.train_unembed.value_or(true);
    lora.train_mlp = info.train_mlp.value_or(true);
    lora.train_attn = info.train_attn.value_or(true);
    model.options.optimizer = saved.with_optimizer ? info.optimizer_config
                                                   : saved.options.optimizer.value_or(AdamConfig{});
    model.options.user_metadata = saved.options.user_metadata;
    return model;
}

/// What the service says of how a model is made of a checkpoint.
struct StartFlags {
    bool via_load{false};
    bool exchanges{false};
};

/// A checkpoint as the service describes it, and the token to load it with.
struct Checkpointed {
    WeightsInfo info{};
    std::string token{};
};

/// The token of another owner travels as the service wants tokens: exchanged, if it has ours
/// exchanged (R-TRAIN-83).
std::string token_of(ClientCore& core, std::string const& raw) {
    auto const exchanged = core.session().exchanged_token();
    return !raw.empty() && exchanged ? *exchanged : raw;
}

Future<ModelHandle> create_by_load(Runtime const& runtime, CoreHandle const& session,
                                   CoreHandle const& lookup, SavedModel saved, bool exchanges) {
    if (saved.options.weights_access_token.empty() || !exchanges) {
        auto token = saved.options.weights_access_token;
        return load_new_model(runtime, session, std::move(saved), std::move(token));
    }
    auto token = once_ready<std::string>(
        runtime, lookup, nullptr, saved.operation,
        [core = lookup.get(), raw = saved.options.weights_access_token]() -> Result<std::string> {
            return token_of(*core, raw);
        });
    return token.then([runtime, session, saved = std::move(saved)](std::string exchanged) mutable {
        return load_new_model(runtime, session, std::move(saved), std::move(exchanged));
    });
}

Future<Checkpointed> look_up(Runtime const& runtime, CoreHandle const& lookup,
                             SavedModel const& saved) {
    return launch<RequestCall<Checkpointed>>(
        runtime, lookup, nullptr, saved.operation,
        [path = saved.path](ClientCore& core) {
            auto order = post_order(core.http(), "/api/v1/weights_info",
                                    wire::encode_weights_info(path), Purpose::train);
            add_method(order, core.session().config().sdk_version,
                       "get_weights_info_by_tinker_path");
            return order;
        },
        Repeat::submit_loop,
        [core = lookup.get(), raw = saved.options.weights_access_token](
            HttpResponse const& response) -> Result<Checkpointed> {
            auto info = wire::decode_weights_info(response.body);
            if (!info) return info.error();
            return Checkpointed{*std::move(info), token_of(*core, raw)};
        });
}

/// A model of the checkpoint's shape, and then its weights: two requests.
Future<ModelHandle> create_and_load(Runtime const& runtime, CoreHandle const& session,
                                    SavedModel saved, Checkpointed of) {
    auto model = model_for(saved, of.info);
    if (!model) return make_failed_future<ModelHandle>(model.error());
    auto created = create_model(runtime, session, *std::move(model));
    return created.then([runtime, saved = std::move(saved),
                         token = std::move(of.token)](ModelHandle made) mutable {
        auto loaded = load_weights(runtime, made, saved.operation, CallOptions(), Headers(),
                                   std::move(saved.path), saved.with_optimizer, std::move(token));
        return loaded.then([made = std::move(made)](LoadResult const&) { return made; });
    });
}

}  // namespace

Future<ModelHandle> create_model(Runtime const& runtime, CoreHandle session, NewModel model) {
    CreateCall::Order order;
    order.operation = model.operation;
    order.subject = model.base_model;
    order.optimizer = model.options.optimizer;
    order.fits_old_members = std::holds_alternative<AdamConfig>(model.options.optimizer);
    order.write = [model = std::move(model)](std::string const& session_id, std::int64_t model_seq,
                                             wire::Members members) {
        wire::CreateModel request;
        request.session_id = session_id;
        request.model_seq_id = model_seq;
        request.base_model = model.base_model;
        request.user_metadata = metadata_if_any(model.options.user_metadata);
        request.lora_config = model.options.lora;
        request.optimizer_config = model.options.optimizer;
        auto made = json_submit("/api/v1/create_model", "CreateModel",
                                wire::encode_create_model(request, members));
        made.repeat = Repeat::once;
        return made;
    };
    order.read = [](std::string_view answer, std::string const&, std::int64_t) {
        return wire::decode_model_created(answer);
    };
    return launch<CreateCall>(runtime, std::move(session), std::move(order));
}

Future<ModelHandle> create_model_from(Runtime const& runtime, CoreHandle const& session,
                                      CoreHandle const& lookup, SavedModel saved) {
    auto flags = once_ready<StartFlags>(
        runtime, session, nullptr, saved.operation, [core = session.get()]() -> Result<StartFlags> {
            auto const& given = core->session().flags();
            return StartFlags{given.create_model_via_load_weights, given.pjwt_auth_enabled};
        });
    return flags.then([runtime, session, lookup,
                       saved = std::move(saved)](StartFlags given) mutable -> Future<ModelHandle> {
        if (given.via_load) {
            return create_by_load(runtime, session, lookup, std::move(saved), given.exchanges);
        }
        auto found = look_up(runtime, lookup, saved);
        return found.then([runtime, session, saved = std::move(saved)](Checkpointed of) mutable {
            return create_and_load(runtime, session, std::move(saved), std::move(of));
        });
    });
}

Future<LoadResult> load_weights(Runtime const& runtime, ModelHandle const& model,
                                std::string_view operation, CallOptions call, Headers headers,
                                std::string path, bool optimizer, std::string token) {
    auto ticket = model->take(1);
    wire::LoadWeights request;
    request.model_id = model->id();
    request.path = std::move(path);
    request.optimizer = optimizer;
    if (!token.empty()) request.weights_access_token = token;
    auto order =
        numbered_submit("/api/v1/load_weights", "LoadWeights", ticket,
                        [request = std::move(request)](std::int64_t seq_id) mutable {
                            request.seq_id = seq_id;
                            return wire::encode_load_weights(request, wire::Members::newest);
                        });
    order.secret = std::move(token);
    auto plan = one_submit(*model, operation, std::move(ticket), std::move(order));
    plan.headers = std::move(headers);
    return call_model<LoadResult>(runtime, model, std::string{operation}, std::move(call),
                                  std::move(plan), [](std::vector<RetrievedResult> const& results) {
                                      return wire::decode_weights_loaded(results.front().view());
                                  });
}

Future<TrainingRun> get_training_run(Runtime const& runtime, CoreHandle sessionless,
                                     std::string const& run_id, Repeat repeat) {
    static constexpr std::string_view operation = "get_training_run";
    if (run_id.empty() || run_id.find_first_of("/?#") != std::string::npos) {
        return make_failed_future<TrainingRun>(Error{base::invalid(
            operation, "run_id", run_id,
            "run_id is \"" + run_id +
                "\"; it must be the id of a run, such as TrainingClient::model_id() gives")});
    }
    return launch<RequestCall<TrainingRun>>(
        runtime, std::move(sessionless), nullptr, std::string{operation},
        [path = "/api/v1/training_runs/" + run_id](ClientCore& ready) {
            auto const& config = ready.http().config();
            auto order = get_order(ready.http(), path, Purpose::train);
            order.url =
                config.endpoint.url(path, config.default_query, {{"access_scope", "owned"}});
            add_method(order, ready.session().config().sdk_version, operation);
            return order;
        },
        repeat,
        [](HttpResponse const& response) { return wire::decode_training_run(response.body); });
}

}  // namespace tinkxx::service
