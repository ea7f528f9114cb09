#include "local/training/passes.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/training/data.hpp"
#include "wire/server/answers.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

/// A forward or backward pass as it was read.
struct Passes::Pass {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    std::string loss_fn{};
    bool forward_only{false};
    Fingerprint print{};
    /// Why not, if the engine cannot compute it.
    Result<TrainingBatch> batch{TrainingBatch{}};
    std::size_t bytes{0};
};

namespace {

/// What a batch holds in memory, and what its result will.
std::size_t held_bytes(TrainingBatch const& batch) {
    std::size_t bytes = 0;
    for (auto const& datum : batch.data) {
        bytes += sizeof datum + datum.tokens.size() * sizeof(datum.tokens[0]) +
                 datum.targets.size() * sizeof(datum.targets[0]);
        bytes += (datum.weights.size() + datum.logprobs.size() + datum.advantages.size()) *
                 sizeof(float);
        // Log-probabilities and losses of all targets.
        bytes += 2 * datum.targets.size() * sizeof(float);
    }
    return bytes;
}

Fingerprint print_of(ws::ForwardBackward const& request) {
    Fingerprint print;
    print.add("pass").add(request.forward_only).add(request.loss_fn);
    for (auto const& [name, value] : request.config) {
        print.add(name);
        std::visit([&](auto const& one) { print.add(one); }, value);
    }
    print.add(std::uint64_t{request.data.size()});
    for (auto const& datum : request.data) print.add(datum);
    return print;
}

Result<TrainingBatch> read_batch(ws::ForwardBackward const& request, BatchLimits const& most) {
    try {
        return to_batch(request, most);
    } catch (Error const& error) {
        return error;
    }
}

}  // namespace

MaybeRefused Passes::forward_backward(Ask& ask) {
    return read(ask, "forward_backward", is_protobuf(ask));
}

MaybeRefused Passes::forward(Ask& ask) {
    if (is_protobuf(ask)) {
        return Refused{415,
                       "forward: send JSON, or protobuf with forward_only to "
                       "forward_backward"};
    }
    return read(ask, "forward", false);
}

MaybeRefused Passes::read(Ask& ask, std::string_view operation, bool protobuf) {
    auto const& limits = uses_.services.options.limits;
    BatchLimits most{.tokens = uses_.bases.most_positions(),
                     .columns = uses_.bases.largest_vocabulary(),
                     .cells = limits.batch_cells};
    if (limits.prompt_tokens > 0) most.tokens = std::min(most.tokens, limits.prompt_tokens);
    return uses_.models.read_step(
        ask, uses_.services.bodies.most_bytes(ask),
        [operation = std::string{operation}, protobuf,
         most](std::string_view body) -> Result<Pass> {
            auto request = protobuf ? ws::decode_forward_backward_proto(body)
                                    : ws::decode_forward_backward(operation, body);
            if (!request) return request.error();
            Pass pass{.model_id = std::move(request->model_id),
                      .seq_id = request->seq_id,
                      .loss_fn = request->loss_fn,
                      .forward_only = request->forward_only,
                      .print = print_of(*request),
                      .batch = read_batch(*request, most)};
            if (pass.batch) pass.bytes = held_bytes(*pass.batch);
            return pass;
        },
        [this](Ask& asked, Pass pass) { return submit(asked, std::move(pass)); });
}

MaybeRefused Passes::submit(Ask& ask, Pass pass) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    StepRequest const request{.model_id = pass.model_id,
                              .seq_id = pass.seq_id,
                              .print = pass.print,
                              .form = Form::forward_backward,
                              .bytes = pass.bytes};
    return uses_.models.accept(ask, request,
                               [this, shared = std::make_shared<Pass>(std::move(pass))](
                                   std::string const& request_id) { compute(shared, request_id); });
}

void Passes::compute(std::shared_ptr<Pass> const& pass, std::string const& request_id) {
    auto const& id = pass->model_id;
    auto& batch = pass->batch;
    if (!batch) return uses_.models.fail(id, request_id, batch.error());
    auto done = [this, pass, request_id](Result<engine::BatchResult> result) {
        computed(pass, request_id, std::move(result));
    };
    auto& engine = *uses_.services.engine;
    if (pass->forward_only) {
        engine.submit(
            engine::Forward{.adapter = id, .data = std::move(batch->data), .loss = batch->loss},
            std::move(done));
    } else {
        engine.submit(
            engine::ForwardBackward{
                .adapter = id, .data = std::move(batch->data), .loss = batch->loss},
            std::move(done));
    }
}

void Passes::computed(std::shared_ptr<Pass> const& pass, std::string const& request_id,
                      Result<engine::BatchResult> result) {
    if (!result) return uses_.models.fail(pass->model_id, request_id, result.error());
    auto encode = [pass, output = *std::move(result)]() mutable {
        return ws::encode_forward_backward_proto(
            to_output(pass->loss_fn, pass->batch->columns, std::move(output)));
    };
    if (pass->bytes <= Results::on_loop) return keep(*pass, request_id, encode());
    auto const payload = std::make_shared<std::string>();
    uses_.services.result_worker->run(
        [payload, encode = std::move(encode)]() mutable { *payload = encode(); },
        [this, payload, pass, request_id] { keep(*pass, request_id, std::move(*payload)); });
}

void Passes::keep(Pass const& pass, std::string const& request_id, std::string payload) {
    auto const tokens = pass.batch->tokens;
    std::vector<Change> changes;
    if (auto const* const run = uses_.runs.find(pass.model_id)) {
        uses_.usage.count_tokens(
            changes, {.session = run->session, .base_model = run->base_model, .type = "training"},
            tokens);
    }
    uses_.services.counters.add("tinkxx_trained_tokens_total", {}, tokens);
    uses_.models.complete(pass.model_id, request_id, std::move(payload), std::move(changes));
}

MaybeRefused Passes::optim_step(Ask& ask) {
    return uses_.models.read_step(
        ask, Bodies::small_json, [](std::string_view body) { return ws::decode_optim_step(body); },
        [this](Ask& asked, ws::OptimStep request) {
            return submit_step(asked, std::move(request));
        });
}

MaybeRefused Passes::submit_step(Ask& ask, ws::OptimStep request) {
    auto const& adam = request.adam;
    Fingerprint print;
    print.add("optim_step").add(request.optimizer).add(adam.learning_rate).add(adam.beta1);
    print.add(adam.beta2).add(adam.eps).add(adam.weight_decay).add(adam.grad_clip_norm);
    StepRequest const step{.model_id = request.model_id, .seq_id = request.seq_id, .print = print};
    return uses_.models.accept(ask, step, [this, request](std::string const& request_id) {
        compute_step(request, request_id);
    });
}

void Passes::compute_step(ws::OptimStep const& request, std::string const& request_id) {
    auto const& model_id = request.model_id;
    if (request.optimizer != "adamw") {
        return uses_.models.fail(model_id, request_id,
                                 "optim_step: the model was created for adamw, and the "
                                 "parameters are those of " +
                                     request.optimizer.substr(0, 64),
                                 ErrorCategory::user);
    }
    auto const& params = request.adam;
    uses_.services.engine->submit(
        engine::OptimStep{.adapter = model_id,
                          .params = {.learning_rate = params.learning_rate,
                                     .beta1 = params.beta1,
                                     .beta2 = params.beta2,
                                     .eps = params.eps,
                                     .weight_decay = params.weight_decay,
                                     .grad_clip_norm = params.grad_clip_norm}},
        [this, model_id, request_id](Result<engine::StepResult> result) {
            if (!result) return uses_.models.fail(model_id, request_id, result.error());
            uses_.services.counters.add("tinkxx_steps_total", {});
            uses_.models.complete(model_id, request_id, json_object([&](JsonOut& json) {
                                      json.key("metrics");
                                      json.open_object();
                                      json.member("unclipped_grad_l2:mean", result->grad_norm);
                                      json.close_object();
                                      json.member("type", "optim_step");
                                  }),
                                  {});
        });
}

}  // namespace tinkxx::local
