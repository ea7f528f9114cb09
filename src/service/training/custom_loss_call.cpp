#include "service/training/custom_loss_call.hpp"

#include "math/check.hpp"
#include "math/loss_listener.hpp"
#include "service/common/thrown.hpp"

#include <algorithm>
#include <exception>
#include <span>

namespace tinkxx::service {
namespace {

std::optional<std::vector<std::int64_t>> shape_of(TensorView const& tensor) {
    if (!tensor.shape) return std::nullopt;
    return std::vector<std::int64_t>{tensor.shape->begin(), tensor.shape->end()};
}

std::size_t cells(TensorView const& tensor) {
    if (!tensor.sparse() || !tensor.shape) return tensor.size();
    std::int64_t product = 1;
    for (auto const extent : *tensor.shape) product *= extent;
    return static_cast<std::size_t>(std::max<std::int64_t>(product, 0));
}

TensorData zeros_like(TensorView const& targets) {
    return {.data = std::vector<float>(cells(targets)), .shape = shape_of(targets)};
}

/// Of the exception that is being handled.
Error thrown_by_loss() {
    return Error{{.kind = ErrorKind::callback,
                  .message = "the loss function " + threw(),
                  .category = ErrorCategory::user,
                  .exception = std::current_exception()}};
}

/// Hands what a loss tells of its regularizers to the client's observers, which may be called here:
/// this is the callback executor.
class RegularizerNotes final : private math::LossListener {
public:
    RegularizerNotes(HttpContext const& http, LossEvent const& blank)
        : http_{&http}, blank_{&blank} {}

private:
    void on_regularizer(LossEvent event) override {
        event.model_id = blank_->model_id;
        event.metadata = blank_->metadata;
        http_->tell_here(&Observer::on_loss, event);
    }

    HttpContext const* http_;
    LossEvent const* blank_;
};

}  // namespace

CustomLossData::CustomLossData(std::span<Datum const> data) : given{data.begin(), data.end()} {
    sent.reserve(given.size());
    for (auto& datum : given) {
        datum.loss_fn_inputs.own();
        Datum part;
        part.model_input = datum.model_input;
        part.model_input_spans = datum.model_input_spans;
        part.loss_fn_input_spans = datum.loss_fn_input_spans;
        if (auto const targets = datum.loss_fn_inputs.find("target_tokens")) {
            part.loss_fn_inputs.set("target_tokens", *targets);
            auto const weights = datum.loss_fn_inputs.find("weights");
            part.loss_fn_inputs.set(
                "weights", weights ? LossInput{*weights} : LossInput{zeros_like(*targets)});
        }
        sent.push_back(std::move(part));
    }
}

Result<std::vector<TensorData>> logprobs_of(ForwardBackwardOutput& output,
                                            std::vector<Datum> const& data) {
    auto const invalid = [](std::string message, std::string field) {
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = "the forward pass " + std::move(message),
                            .field = std::move(field)};
    };
    auto& outputs = output.loss_fn_outputs;
    if (outputs.size() != data.size()) {
        return invalid("gave " + std::to_string(outputs.size()) + " outputs for " +
                           std::to_string(data.size()) + " data",
                       "loss_fn_outputs");
    }
    std::vector<TensorData> all;
    all.reserve(data.size());
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const found = outputs[i].find("logprobs");
        auto const place = "loss_fn_outputs[" + std::to_string(i) + "].logprobs";
        if (found == outputs[i].end()) {
            return invalid("gave no logprobs for datum " + std::to_string(i), place);
        }
        auto logprobs = std::move(found->second);
        if (logprobs.sparse()) logprobs = to_dense(logprobs);
        if (logprobs.dtype() != DType::float32) {
            return invalid("gave logprobs for datum " + std::to_string(i) +
                               " that are no floating-point numbers",
                           place);
        }
        auto const targets = data[i].loss_fn_inputs.at("target_tokens");
        auto const count = view(logprobs).size();
        if (count != cells(targets)) {
            return invalid("gave " + std::to_string(count) + " logprobs for the " +
                               std::to_string(cells(targets)) + " target_tokens of datum " +
                               std::to_string(i),
                           place);
        }
        if (auto shape = shape_of(targets)) logprobs.shape = std::move(shape);
        all.push_back(std::move(logprobs));
    }
    return all;
}

ForwardBackwardOutput with_custom_metrics(ForwardBackwardOutput output, CustomLossValue value) {
    auto& metrics = output.metrics;
    // What the service summed is the surrogate's loss; the caller's takes its name.
    auto surrogate = metrics.extract("loss:sum");
    for (auto& [name, metric] : value.metrics) metrics.insert_or_assign(name, metric);
    metrics.insert_or_assign("loss:sum", value.loss);
    if (!surrogate.empty()) {
        metrics.insert_or_assign("surrogate_loss:sum", surrogate.mapped());
    }
    return output;
}

CustomLossCall::CustomLossCall(Promise<ForwardBackwardOutput> promise,
                               std::shared_ptr<TrainingModel> model, CallOptions call,
                               Headers headers, std::shared_ptr<CustomLossData> data,
                               CustomLoss loss, Cut cut, PassPlan forward, Ticket backward)
    : PromiseCall{std::move(promise), model->core_handle(), std::string{operation},
                  std::move(call)},
      model_{std::move(model)},
      headers_{std::move(headers)},
      data_{std::move(data)},
      loss_{std::move(loss)},
      cut_{std::move(cut)},
      forward_{std::move(forward)},
      backward_{std::move(backward)} {}

void CustomLossCall::go() { start(std::move(forward_)); }

void CustomLossCall::drop() noexcept {
    forward_ = {};
    backward_.reset();
    TrainingCall::drop();
}

void CustomLossCall::on_pass(std::vector<RetrievedResult> results) {
    auto self = std::static_pointer_cast<CustomLossCall>(shared_from_this());
    if (value_) {
        read<Result<ForwardBackwardOutput>>(
            std::move(results),
            [model = model_](std::vector<RetrievedResult> const& all) {
                return read_pass(*model, operation, all);
            },
            [this](Result<ForwardBackwardOutput> output) {
                if (!output) return unreadable(output.error());
                keep(with_custom_metrics(*std::move(output), *std::move(value_)));
            });
        return;
    }
    set_stage(Stage::computing_loss, "the loss function has not returned yet");
    asked_ = scheduler().now();
    auto start = event(LossEvent::Kind::start);
    core().http().tell(&Observer::on_loss, start);
    core().http().runtime().run_callback(
        [self, results = std::move(results), start = std::move(start),
         seq_id = backward_.seq_id(0)]() mutable {
            auto value = self->compute(results, start);
            results.clear();
            Result<PassPlan> plan{PassPlan{}};
            if (value) {
                plan = write_pass(*self->model_, operation, self->data_->sent,
                                  LossFn::cross_entropy, Direction::both, self->cut_, seq_id);
            }
            auto& scheduler = self->model_->scheduler();
            scheduler.post([self = std::move(self), value = std::move(value),
                            plan = std::move(plan)]() mutable {
                self->computed(std::move(value), std::move(plan));
            });
        },
        [self](Error error) { self->computed(std::move(error), Result<PassPlan>{PassPlan{}}); });
}

/// On the callback executor. Leaves weights that give the gradient in what is to be sent.
Result<CustomLossValue> CustomLossCall::compute(std::vector<RetrievedResult> const& results,
                                                LossEvent const& blank) const {
    auto output = read_pass(*model_, operation, results);
    if (!output) return output.error();
    auto logprobs = logprobs_of(*output, data_->given);
    if (!logprobs) return logprobs.error();
    CustomLossValue value;
    try {
        RegularizerNotes const notes{core().http(), blank};
        value = loss_(data_->given, *logprobs);
    } catch (Error const& error) {
        return error;
    } catch (...) {
        return thrown_by_loss();
    }
    if (auto problem = math::custom_value_problem(operation, value, *logprobs)) {
        return *std::move(problem);
    }
    for (std::size_t i = 0; i < data_->sent.size(); ++i) {
        TensorData weights;
        auto& negated = weights.data.emplace<std::vector<float>>(std::move(value.gradient[i]));
        for (auto& each : negated) each = -each;
        weights.shape = std::move((*logprobs)[i].shape);
        data_->sent[i].loss_fn_inputs.set("weights", std::move(weights));
    }
    value.gradient.clear();
    return value;
}

void CustomLossCall::computed(Result<CustomLossValue> value, Result<PassPlan> plan) {
    auto ended = event(value ? LossEvent::Kind::stop : LossEvent::Kind::exception);
    ended.duration = scheduler().now() - asked_;
    if (!value) ended.error = value.error();
    core().http().tell(&Observer::on_loss, std::move(ended));
    if (!under_way()) return;
    auto const keep_alive = shared_from_this();
    if (!value) return fail(named(value.error()));
    if (!plan) return fail(named(plan.error()));
    value_ = *std::move(value);
    plan->headers = headers_;
    plan->ticket = std::move(backward_);
    start(*std::move(plan));
}

LossEvent CustomLossCall::event(LossEvent::Kind kind) const {
    LossEvent event;
    event.kind = kind;
    event.model_id = model_->id();
    event.metadata = core().metadata(metadata());
    return event;
}

}  // namespace tinkxx::service
