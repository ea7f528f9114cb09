#include "golden/replay/training_replay.hpp"

#include "golden/recordings/golden.hpp"
#include "golden/recordings/recorded_call.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace tinkxx::golden {
namespace {

template <class T>
std::vector<T> numbers(value const& json) {
    std::vector<T> out;
    for (auto const& each : json.as_array()) {
        if (each.is_string()) {
            auto const word = value_to<std::string>(each);
            auto const sign = word.starts_with('-') ? -1.0 : 1.0;
            out.push_back(static_cast<T>(word == "NaN" ? NAN : sign * INFINITY));
        } else if (each.is_bool()) {
            out.push_back(static_cast<T>(each.get_bool()));
        } else {
            out.push_back(each.to_number<T>());
        }
    }
    return out;
}

template <class T>
std::vector<std::vector<T>> rows(value const& json) {
    std::vector<std::vector<T>> out;
    for (auto const& row : json.as_array()) out.push_back(numbers<T>(row));
    return out;
}

bool nested(value const& json) {
    return !json.as_array().empty() && json.as_array().front().is_array();
}

bool whole(value const& json) {
    if (json.is_array()) return std::ranges::all_of(json.get_array(), whole);
    return json.is_int64() || json.is_uint64();
}

/// A plain list: what the elements become is a matter of the input's name.
LossInput list(value const& json) {
    if (nested(json)) {
        return whole(json) ? LossInput{rows<std::int64_t>(json)} : LossInput{rows<double>(json)};
    }
    return whole(json) ? LossInput{numbers<std::int64_t>(json)} : LossInput{numbers<double>(json)};
}

/// The numbers of an array of any rank, row by row, and its shape.
void flatten(value const& json, boost::json::array& flat, std::vector<std::int64_t>& shape,
             std::size_t rank = 0) {
    if (!json.is_array()) {
        flat.push_back(json);
        return;
    }
    auto const& rows_of = json.get_array();
    if (shape.size() == rank) shape.push_back(static_cast<std::int64_t>(rows_of.size()));
    for (auto const& row : rows_of) flatten(row, flat, shape, rank + 1);
}

TensorData dense(value const& json, bool integers) {
    TensorData out;
    std::vector<std::int64_t> shape;
    boost::json::array flat;
    flatten(json, flat, shape);
    if (integers) {
        out.data = numbers<std::int64_t>(flat);
    } else {
        out.data = numbers<float>(flat);
    }
    out.shape = std::move(shape);
    return out;
}

/// A number that was kept in a narrower type, to the nearest, ties to even.
float narrowed(float number, int digits, int least_exponent) {
    if (!std::isfinite(number) || number == 0) return number;
    auto const exponent = std::max(std::ilogb(number), least_exponent) - digits;
    return std::ldexp(std::nearbyint(std::ldexp(number, -exponent)), exponent);
}

LossInput loss_input(std::string const& name, value const& json) {
    auto const kind = text(json, "kind");
    auto const& data = json.at("data");
    if (kind == "list") return list(data);
    auto const dtype = text(json, "dtype");
    bool const integers = dtype.find("int") != std::string::npos || dtype == "bool";
    if (kind == "tensor_data") {
        auto out = dense(data, integers);
        using Integers = std::vector<std::int64_t>;
        out.shape = member<Integers>(json, "shape");
        out.sparse_crow_indices = member<Integers>(json, "sparse_crow_indices");
        out.sparse_col_indices = member<Integers>(json, "sparse_col_indices");
        return out;
    }
    auto out = dense(data, integers);
    if (dtype == "bfloat16" || dtype == "float16") {
        bool const brain = dtype == "bfloat16";
        for (auto& each : std::get<std::vector<float>>(out.data)) {
            each = brain ? narrowed(each, 7, -126) : narrowed(each, 10, -14);
        }
    }
    // R-TRAIN-36: torch tensors of these two go as CSR where that is smaller.
    if (kind == "torch" && (name == "target_tokens" || name == "weights")) {
        return csr_if_smaller(std::move(out));
    }
    return out;
}

std::vector<ProvenanceSpan> spans(value const& json) {
    std::vector<ProvenanceSpan> out;
    for (auto const& each : json.as_array()) {
        ProvenanceSpan span;
        span.kind = text(each, "kind") == "prompt" ? ProvenanceSpan::Kind::prompt
                                                   : ProvenanceSpan::Kind::sampled;
        span.sequence_id = text(each, "sequence_id");
        span.offset = member<std::int64_t>(each, "offset").value_or(0);
        span.length = value_to<std::int64_t>(each.at("length"));
        out.push_back(std::move(span));
    }
    return out;
}

Datum datum(value const& json) {
    Datum out;
    out.model_input = model_input(json.at("model_input"));
    for (auto const& entry : json.at("loss_fn_inputs").as_object()) {
        std::string const name{entry.key()};
        out.loss_fn_inputs.set(name, loss_input(name, entry.value()));
    }
    if (auto const* given = find(json, "provenance")) {
        return out.with_provenance(spans(given->at("model_input")),
                                   spans(given->at("loss_fn_inputs")));
    }
    return out;
}

Datum tokens_and_targets(std::vector<Token> tokens, std::vector<std::int64_t> targets,
                         std::vector<float> weights) {
    Datum out;
    out.model_input = ModelInput::from_tokens(std::move(tokens));
    out.loss_fn_inputs.set("target_tokens", std::move(targets));
    out.loss_fn_inputs.set("weights", std::move(weights));
    return out;
}

/// Long data are recorded as the rule that makes them.
std::vector<Datum> by_rule(value const& json) {
    std::vector<Datum> out;
    if (text(json, "rule") == "tiny") {
        auto const count = value_to<std::int64_t>(json.at("count"));
        for (std::int64_t i = 0; i < count; ++i) {
            out.push_back(tokens_and_targets({static_cast<Token>(i % 50000), 1}, {1, i % 50000},
                                             {0.0F, 1.0F}));
        }
        return out;
    }
    EXPECT_EQ(text(json, "rule"), "wide");
    for (auto const size : value_to<std::vector<std::size_t>>(json.at("sizes"))) {
        std::vector<Token> tokens(size);
        std::vector<std::int64_t> targets(size);
        for (std::size_t j = 0; j < size; ++j) {
            tokens[j] = static_cast<Token>(j % 32000);
            targets[j] = static_cast<std::int64_t>((j + 1) % 32000);
        }
        out.push_back(tokens_and_targets(std::move(tokens), std::move(targets),
                                         std::vector<float>(size, 1.0F)));
    }
    return out;
}

value number(double one) {
    if (std::isnan(one)) return "NaN";
    if (std::isinf(one)) return one < 0 ? "-Infinity" : "Infinity";
    return one;
}

value metrics_json(MetricValues const& metrics) {
    boost::json::object out;
    for (auto const& [name, metric] : metrics) out[name] = number(metric);
    return out;
}

value tensor_json(TensorData const& tensor) {
    boost::json::object out;
    boost::json::array data;
    if (auto const* floats = std::get_if<std::vector<float>>(&tensor.data)) {
        for (auto const each : *floats) data.push_back(number(each));
        out["dtype"] = "float32";
    } else {
        for (auto const each : std::get<1>(tensor.data)) data.push_back(each);
        out["dtype"] = "int64";
    }
    out["data"] = std::move(data);
    out["shape"] = tensor.shape ? boost::json::value_from(*tensor.shape) : value(nullptr);
    return out;
}

template <class T>
value or_null(std::optional<T> const& given) {
    return given ? boost::json::value_from(*given) : value(nullptr);
}

value optimizer_json(OptimizerConfig const& config) {
    return {{"type", std::string{optimizer_family(config)}}};
}

}  // namespace

std::vector<Datum> data_of(value const& json) {
    if (json.is_object()) return by_rule(json);
    std::vector<Datum> out;
    for (auto const& each : json.as_array()) out.push_back(datum(each));
    return out;
}

AdamParams adam_params(value const& json) {
    AdamParams out;
    for (auto const& entry : json.as_object()) {
        auto const given = entry.value().to_number<double>();
        if (entry.key() == "learning_rate") {
            out.learning_rate = given;
        } else if (entry.key() == "beta1") {
            out.beta1 = given;
        } else if (entry.key() == "beta2") {
            out.beta2 = given;
        } else if (entry.key() == "eps") {
            out.eps = given;
        } else if (entry.key() == "weight_decay") {
            out.weight_decay = given;
        } else if (entry.key() == "grad_clip_norm") {
            out.grad_clip_norm = given;
        } else {
            ADD_FAILURE() << "a parameter that nobody here knows: " << entry.key();
        }
    }
    return out;
}

DimuonParams dimuon_params(value const& json) {
    DimuonParams out;
    for (auto const& entry : json.as_object()) {
        auto const given = entry.value().to_number<double>();
        if (entry.key() == "learning_rate") {
            out.learning_rate = given;
        } else if (entry.key() == "beta1") {
            out.beta1 = given;
        } else if (entry.key() == "grad_clip_norm") {
            out.grad_clip_norm = given;
        } else {
            ADD_FAILURE() << "a parameter that nobody here knows: " << entry.key();
        }
    }
    return out;
}

value json_of(ForwardBackwardOutput const& output) {
    boost::json::array outputs;
    for (auto const& each : output.loss_fn_outputs) {
        boost::json::object fields;
        for (auto const& [name, tensor] : each) fields[name] = tensor_json(tensor);
        outputs.push_back(std::move(fields));
    }
    return {{"loss_fn_output_type", output.loss_fn_output_type},
            {"loss_fn_outputs", outputs},
            {"metrics", metrics_json(output.metrics)}};
}

value json_of(OptimStepResult const& result) {
    return {{"metrics", result.metrics ? metrics_json(*result.metrics) : value(nullptr)}};
}

value json_of(SaveResult const& result) { return boost::json::object{{"path", result.path}}; }

value json_of(LoadResult const& result) {
    return {{"path", or_null(result.path)}, {"model_id", or_null(result.model_id)}};
}

value json_of(ModelInfo const& info) {
    return {{"model_id", info.model_id},
            {"is_lora", or_null(info.is_lora)},
            {"lora_rank", or_null(info.lora_rank)},
            {"model_name", or_null(info.model_name)},
            {"model_data",
             {{"arch", or_null(info.model_data.arch)},
              {"model_name", or_null(info.model_data.model_name)},
              {"tokenizer_id", or_null(info.model_data.tokenizer_id)}}},
            {"optimizer_config", optimizer_json(info.optimizer_config)}};
}

// Calls -------------------------------------------------------------------------------------------

namespace {

/// A name goes as it is, whether this release knows it or not (C-44).
Loss loss_of(value const& args) {
    LossConfig config;
    if (auto const* given = find(args, "loss_fn_config")) {
        for (auto const& entry : given->as_object()) {
            if (entry.value().is_string()) {
                config[entry.key()] = value_to<std::string>(entry.value());
            } else {
                config[entry.key()] = entry.value().to_number<double>();
            }
        }
    }
    return Loss{text(args, "loss_fn"), std::move(config)};
}

/// The outcome of a call that may refuse its arguments by throwing.
template <class Make>
auto attempt(RecordedCall& call, Make make) -> decltype(call.stub.await(make())) {
    try {
        return call.stub.await(make());
    } catch (Error const& error) {
        return error;
    }
}

/// Expects arguments to be refused here that the official SDK sends.
template <class T>
void expect_refused(RecordedCall& call, Result<T> const& ours) {
    ASSERT_FALSE(ours) << "succeeded";
    EXPECT_EQ(ours.error().kind(), ErrorKind::validation) << ours.error().what();
    call.expect_no_request();
}

/// A long result is recorded in short.
void expect_summary(value const& summary, ForwardBackwardOutput const& ours, double tolerance = 0) {
    EXPECT_EQ(ours.loss_fn_outputs.size(),
              value_to<std::size_t>(summary.at("loss_fn_outputs_count")));
    EXPECT_EQ(ours.loss_fn_output_type, text(summary, "loss_fn_output_type"));
    EXPECT_TRUE(agrees(summary.at("metrics"), metrics_json(ours.metrics), tolerance))
        << metrics_json(ours.metrics);
    std::string shapes;  // as Python writes a list of lists
    for (auto const& output : ours.loss_fn_outputs) {
        auto const& tensor = output.at("logprobs");
        auto const& numbers_of = std::get<std::vector<float>>(tensor.data);
        for (std::size_t i = 0; i < numbers_of.size(); ++i) {
            ASSERT_EQ(numbers_of[i], -0.25F * static_cast<float>(i + 1));
        }
        shapes += shapes.empty() ? "[[" : ", [";
        std::string one;
        for (auto const size : tensor.shape.value_or(std::vector<std::int64_t>{})) {
            one += (one.empty() ? "" : ", ") + std::to_string(size);
        }
        shapes += one + ']';
    }
    EXPECT_EQ(sha256(shapes + ']'), text(summary, "logprobs_shapes_sha256"));
}

template <class T>
void expect(RecordedCall& call, Result<T> const& ours) {
    auto const* result = find(call.recording(), "result");
    auto const* summary = result == nullptr ? nullptr : find(*result, "summary");
    if constexpr (std::is_same_v<T, ForwardBackwardOutput>) {
        if (summary != nullptr) {
            ASSERT_TRUE(ours) << ours.error().what();
            expect_summary(*summary, *ours);
        }
    }
    if (summary == nullptr) {
        call.expect_outcome(ours, [](T const& got) { return json_of(got); });
    }
    call.stub.settle();
    call.expect_requests();
    call.expect_waits();
}

void replay_pass(RecordedCall& call, bool forward_only) {
    auto const ours = attempt(call, [&] {
        auto const data = data_of(call.args().at("data"));
        auto const loss = loss_of(call.args());
        return forward_only ? call.trainer->forward(data, loss)
                            : call.trainer->forward_backward(data, loss);
    });
    if (call.has_form("a pass without data")) return expect_refused(call, ours);
    if (call.has_form("a plain list of an unknown name") ||
        call.has_form("a loss whose name was refused")) {
        EXPECT_TRUE(ours) << ours.error().what();
        EXPECT_EQ(call.stub.seen({}).size(), 2U) << "one submit, one poll";
        return call.differs();
    }
    expect(call, ours);
}

void forward(RecordedCall& call) { replay_pass(call, true); }

void forward_backward(RecordedCall& call) { replay_pass(call, false); }

// Losses of the recorded caller -------------------------------------------------------------------

/// The part of a loss that one datum has, and its derivatives.
struct Part {
    double loss{0};
    std::vector<float> gradient{};
    MetricValues metrics{};
};

Part sum_square(Datum const& /*datum*/, std::span<float const> logprobs) {
    Part part;
    for (auto const each : logprobs) {
        part.loss += each * each;
        part.gradient.push_back(2 * each);
    }
    part.metrics["custom_metric"] = part.loss;
    return part;
}

Part weighted(Datum const& /*datum*/, std::span<float const> logprobs) {
    Part part;
    for (std::size_t i = 0; i < logprobs.size(); ++i) {
        auto const weight = static_cast<float>(i + 1) / 2;
        part.loss += logprobs[i] * weight;
        part.gradient.push_back(weight);
    }
    return part;
}

Part clipped(Datum const& datum, std::span<float const> logprobs) {
    Part part;
    auto const advantages =
        std::get<std::span<float const>>(datum.loss_fn_inputs.at("advantages").data);
    float ratios = 0;
    for (std::size_t i = 0; i < logprobs.size(); ++i) {
        auto const ratio = std::exp(logprobs[i]);
        auto const share = i == 0 ? 0.0F : -1.0F;
        ratios += ratio;
        part.loss += share * std::max(ratio, 0.5F) * advantages[i];
        // A zero keeps the sign that it has in torch.
        part.gradient.push_back((ratio < 0.5F ? 0.0F : share * advantages[i]) * ratio);
    }
    part.metrics["custom/loss:sum"] = part.loss;
    part.metrics["custom/ratio:mean"] = ratios / static_cast<float>(logprobs.size());
    return part;
}

/// The sum over the data; a mean is one over the data too (R-TRAIN-75).
CustomLoss custom_loss(std::string const& name) {
    using OfDatum = Part (*)(Datum const&, std::span<float const>);
    static std::map<std::string, OfDatum> const known{
        {"sum_square", sum_square}, {"weighted", weighted}, {"clipped", clipped}};
    auto const found = known.find(name);
    if (found == known.end()) throw std::runtime_error{"nobody here knows the loss " + name};
    return [of_datum = found->second](std::span<Datum const> data,
                                      std::span<TensorData const> logprobs) {
        CustomLossValue made;
        for (std::size_t i = 0; i < data.size(); ++i) {
            auto part = of_datum(data[i], std::get<std::vector<float>>(logprobs[i].data));
            made.loss += part.loss;
            made.gradient.push_back(std::move(part.gradient));
            for (auto const& [metric, number_of] : part.metrics) made.metrics[metric] += number_of;
        }
        for (auto& [metric, number_of] : made.metrics) {
            if (metric.ends_with(":mean")) number_of /= static_cast<double>(data.size());
        }
        return made;
    };
}

/// C-32: releases before 0.36.0 left `loss:sum` to the server; here the caller's loss has that
/// name.
value with_names_of_now(value recorded, std::string const& version, double loss) {
    if (version == newest || !recorded.is_object()) return recorded;
    auto* const inner = recorded.get_object().if_contains("summary");
    auto& output = inner != nullptr ? inner->as_object() : recorded.get_object();
    auto& metrics = output.at("metrics").as_object();
    if (auto const* of_server = metrics.if_contains("loss:sum")) {
        metrics["surrogate_loss:sum"] = value(*of_server);
    }
    metrics["loss:sum"] = loss;
    return recorded;
}

void custom(RecordedCall& call) {
    auto const name = text(call.args(), "loss");
    if (name == "clipped") call.expect_rounding();  // it has an exponential function
    double loss = 0;
    auto const kept = [&loss, made = custom_loss(name)](std::span<Datum const> data,
                                                        std::span<TensorData const> logprobs) {
        auto out = made(data, logprobs);
        loss = out.loss;
        return out;
    };
    auto const ours = attempt(call, [&] {
        return call.trainer->forward_backward_custom(data_of(call.args().at("data")), kept);
    });
    if (call.has_form("a custom loss with inputs that were refused")) {
        EXPECT_TRUE(ours) << ours.error().what();
        EXPECT_EQ(call.stub.seen({}).size(), 4U) << "two submits, two polls";
        return call.differs();
    }
    auto const* error = find(call.recording(), "error");
    if (error != nullptr || !ours) {
        call.expect_outcome(ours, [](ForwardBackwardOutput const& got) { return json_of(got); });
    } else {
        // A handle of a loss says what it is made of, too.
        auto recorded = call.recording().at("result");
        if (auto const* output = find(recorded, "output")) recorded = value(*output);
        recorded = with_names_of_now(std::move(recorded), call.version(), loss);
        if (auto const* summary = find(recorded, "summary")) {
            expect_summary(*summary, *ours, 1e-4);  // torch adds up many float32
        } else {
            EXPECT_TRUE(agrees(recorded, json_of(*ours), 1e-6))
                << "recorded: " << recorded << "\nours: " << json_of(*ours);
        }
    }
    call.stub.settle();
    call.expect_requests();
    call.expect_waits();
}

// Other calls of a model --------------------------------------------------------------------------

void optim_step(RecordedCall& call) {
    auto const ours = attempt(call, [&] {
        if (auto const* dimuon = find(call.args(), "dimuon")) {
            return call.trainer->optim_step(dimuon_params(*dimuon));
        }
        auto const* given = find(call.args(), "adam_params");
        return call.trainer->optim_step(given != nullptr ? adam_params(*given) : AdamParams{});
    });
    if (call.has_form("parameters of an optimizer out of range")) {
        return expect_refused(call, ours);
    }
    expect(call, ours);
}

SaveOptions save_options(value const& args) {
    SaveOptions options;
    if (auto const ttl = member<std::int64_t>(args, "ttl_seconds")) {
        options.ttl = std::chrono::seconds{*ttl};
    }
    options.overwrite = member<bool>(args, "overwrite").value_or(false);
    options.user_metadata = member<UserMetadata>(args, "user_metadata").value_or(UserMetadata{});
    return options;
}

template <class T>
void expect_save(RecordedCall& call, Result<T> const& ours) {
    if (call.has_form("a time to live of nothing")) return expect_refused(call, ours);
    expect(call, ours);
}

void save_state(RecordedCall& call) {
    auto const& args = call.args();
    expect_save(call, attempt(call, [&] {
                    return call.trainer->save_state(text(args, "name"), save_options(args));
                }));
}

void save_for_sampler(RecordedCall& call) {
    auto const& args = call.args();
    expect_save(call, attempt(call, [&] {
                    return call.trainer->save_weights_for_sampler(text(args, "name"),
                                                                  save_options(args));
                }));
}

void save_external(RecordedCall& call) {
    auto const& args = call.args();
    ExternalSaveOptions options;
    options.ttl = save_options(args).ttl;
    if (auto const* keys = find(args, "age_encryption_recipients")) {
        options.age_recipients = value_to<std::vector<std::string>>(*keys);
    }
    expect_save(call, attempt(call, [&] {
                    return call.trainer->save_weights_external(text(args, "name"), options);
                }));
}

void unnamed_save(RecordedCall& call) {
    boost::json::array ids;
    for (int i = 0; i < value_to<int>(call.args().at("times")); ++i) {
        auto const sampler = call.stub.await(call.trainer->save_weights_and_get_sampling_client());
        ASSERT_TRUE(sampler) << sampler.error().what();
        auto const id = call.stub.await(sampler->sampling_session_id());
        ids.emplace_back(id ? *id : id.error().what());
    }
    call.expect_result(ids);
    call.expect_requests();
    call.expect_waits();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void load_state(RecordedCall& call) {
    auto const& args = call.args();
    auto const token = member<std::string>(args, "weights_access_token").value_or("");
    bool const optimizer = text(call.recording(), "call").ends_with("with_optimizer");
    auto const path = text(args, "path");
    expect(call, attempt(call, [&] {
               return optimizer ? call.trainer->load_state_with_optimizer(path, token)
                                : call.trainer->load_state(path, token);
           }));
}
#pragma GCC diagnostic pop

void get_info(RecordedCall& call) { expect(call, call.stub.await(call.trainer->get_info())); }

void pipeline(RecordedCall& call) {
    auto const data = data_of(call.args().at("data"));
    auto const& client = *call.trainer;
    auto first = client.forward_backward(data, "cross_entropy");
    auto step = client.optim_step({.learning_rate = 0.001});
    auto second = client.forward_backward(data, "cross_entropy");
    auto state = client.save_state("p1");
    auto weights = client.save_weights_for_sampler("p2");
    boost::json::array results;
    auto const take = [&](auto future) {
        auto const result = call.stub.await(std::move(future));
        ASSERT_TRUE(result) << result.error().what();
        results.push_back(json_of(*result));
    };
    take(std::move(first));
    take(std::move(step));
    take(std::move(second));
    take(std::move(state));
    take(std::move(weights));
    call.expect_result(results);
    call.expect_requests();
}

void unload(RecordedCall& call) {
    // There one only submits; here the call waits for the end.
    call.stub.script("/api/v1/retrieve_future", reply_of({{"status", 200},
                                                          {"content_type", "application/json"},
                                                          {"body_text", R"({"model_id":"x"})"}}));
    auto const done = call.stub.await(call.trainer->unload());
    EXPECT_TRUE(done) << done.error().what();
    call.expect_requests({"/api/v1/retrieve_future"});
}

OptimizerConfig optimizer_of(value const& json) {
    auto const type = text(json, "type");
    if (type == "dimuon") return DimuonConfig{};
    if (type == "adamw") return AdamConfig{};
    OpenOptimizer other{.type = type};
    for (auto const& entry : json.as_object()) {
        if (entry.key() == "type") continue;
        other.members[entry.key()] = boost::json::serialize(entry.value());
    }
    return other;
}

void create(RecordedCall& call) {
    Result<TrainingClient> last{ErrorDetails{}};
    boost::json::array ids;
    for (auto const& one : call.calls()) {
        TrainingOptions options;
        options.lora.rank = member<std::int64_t>(one, "rank").value_or(32);
        options.lora.seed = member<std::int64_t>(one, "seed");
        options.lora.train_mlp = member<bool>(one, "train_mlp").value_or(true);
        options.lora.train_attn = member<bool>(one, "train_attn").value_or(true);
        options.lora.train_unembed = member<bool>(one, "train_unembed").value_or(true);
        options.user_metadata = member<UserMetadata>(one, "user_metadata").value_or(UserMetadata{});
        if (auto const* optimizer = find(one, "optimizer")) {
            options.optimizer = optimizer_of(*optimizer);
        }
        last = attempt(call, [&] {
            return call.service->create_lora_training_client(text(one, "base_model"), options);
        });
        if (last) ids.emplace_back(last->model_id());
    }
    call.expect_outcome(last, [&ids](TrainingClient const&) -> value { return ids; });
    call.expect_requests();
}

void from_state(RecordedCall& call) {
    auto const& args = call.args();
    FromStateOptions options;
    options.base_model = member<std::string>(args, "base_model").value_or("");
    options.user_metadata = member<UserMetadata>(args, "user_metadata").value_or(UserMetadata{});
    options.weights_access_token = member<std::string>(args, "weights_access_token").value_or("");
    if (auto const* optimizer = find(args, "optimizer")) {
        options.optimizer = optimizer_of(*optimizer);
    }
    bool const with = text(call.recording(), "call").ends_with("with_optimizer");
    auto const path = text(args, "path");
    auto const made = attempt(call, [&] {
        return with ? call.service->create_training_client_from_state_with_optimizer(path, options)
                    : call.service->create_training_client_from_state(path, options);
    });
    call.expect_outcome(made, [](TrainingClient const& got) -> value {
        return {{"model_id", got.model_id()}};
    });
    call.expect_requests();
    call.expect_waits();
}

void copy_weights(RecordedCall& call) {
    auto const& args = call.args();
    CopyWeightsOptions options;
    options.destination_project = member<std::string>(args, "destination_project_id").value_or("");
    options.ttl = save_options(args).ttl;
    options.weights_access_token = member<std::string>(args, "weights_access_token").value_or("");
    auto const copied =
        attempt(call, [&] { return call.service->copy_weights(text(args, "path"), options); });
    call.expect_outcome(copied, [](std::string const& path) -> value { return value(path); });
    call.expect_requests();
}

}  // namespace

void add_training_calls(KnownCalls& known) {
    known.insert({
        {"ServiceClient.create_lora_training_client", create},
        {"ServiceClient.create_training_client_from_state", from_state},
        {"ServiceClient.create_training_client_from_state_with_optimizer", from_state},
        {"TrainingClient.forward", forward},
        {"TrainingClient.forward_backward", forward_backward},
        {"TrainingClient.forward_backward_custom", custom},
        // While the flag is off, the handle of a loss is evaluated by the client.
        {"ServiceClient.create_custom_loss + TrainingClient.forward_backward_custom", custom},
        {"TrainingClient.optim_step", optim_step},
        {"TrainingClient.save_state", save_state},
        {"TrainingClient.save_weights_for_sampler", save_for_sampler},
        {"TrainingClient.save_weights_external", save_external},
        {"TrainingClient.save_weights_and_get_sampling_client", unnamed_save},
        {"TrainingClient.load_state", load_state},
        {"TrainingClient.load_state_with_optimizer", load_state},
        {"TrainingClient.get_info", get_info},
        {"TrainingClient (pipeline)", pipeline},
        {"low-level models.unload", unload},
        {"RestClient.copy_weights", copy_weights},
    });
}

}  // namespace tinkxx::golden
