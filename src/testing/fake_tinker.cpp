#include <tinkxx/testing/fake_tinker.hpp>

#include "wire/json/json.hpp"
#include "wire/server/answers.hpp"
#include "wire/server/requests.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace tinkxx::testing {
namespace {

using wire::json_object;
using wire::JsonOut;
namespace server = wire::server;

constexpr std::string_view root = "/api/v1/";
constexpr std::string_view session = "fake-session";
// As long as a real server holds a poll.
constexpr std::chrono::seconds longest_poll{40};
constexpr std::size_t largest_body = std::size_t{1} << 30U;
constexpr float unnamed_logprob = -1;

Reply json_reply(std::string body, int status = 200) {
    return {.status = status,
            .headers = {{"Content-Type", "application/json"}},
            .body = std::move(body)};
}

Reply refusal(int status, std::string_view why) {
    return json_reply(server::encode_detail(why), status);
}

std::string text_object(std::string_view member, std::string_view value) {
    return json_object([&](JsonOut& json) {
        json.key(member);
        json.value(value);
    });
}

SampleResponse default_sample(AskedSample const& asked) {
    std::vector<Token> tokens{1, 2, 3};
    auto const most = asked.params.max_tokens.value_or(4);
    auto const reason = most <= 3 ? StopReason::length : StopReason::stop;
    if (most < 3) tokens.resize(static_cast<std::size_t>(most));
    SampleResponse response;
    response.sequences.assign(static_cast<std::size_t>(asked.options.num_samples),
                              {.stop_reason = reason, .tokens = tokens});
    return response;
}

/// Adds what was asked for and the script left out.
void complete(SampleResponse& response, AskedSample const& asked, std::string const& id) {
    std::size_t index = 0;
    for (auto& sequence : response.sequences) {
        if (!sequence.logprobs) sequence.logprobs.emplace(sequence.tokens.size(), unnamed_logprob);
        if (sequence.sequence_id.empty()) sequence.sequence_id = id + '/' + std::to_string(index);
        ++index;
    }
    if (!asked.options.include_prompt_logprobs || response.prompt_logprobs) return;
    auto& logprobs = response.prompt_logprobs.emplace(
        static_cast<std::size_t>(asked.prompt.length()), std::optional<float>{unnamed_logprob});
    if (!logprobs.empty()) logprobs.front().reset();
}

ForwardBackwardOutput default_pass(AskedStep const& asked) {
    ForwardBackwardOutput output;
    output.loss_fn_output_type = "CrossEntropyLossReturn";
    double sum = 0;
    for (auto const& datum : asked.data) {
        auto const targets = datum.loss_fn_inputs.find("target_tokens");
        auto const count =
            targets ? targets->size() : static_cast<std::size_t>(datum.model_input.length());
        auto& logprobs = output.loss_fn_outputs.emplace_back()["logprobs"];
        logprobs = TensorData{std::vector<float>(count, unnamed_logprob)};
        sum -= unnamed_logprob * static_cast<double>(count);
    }
    output.metrics["loss:sum"] = sum;
    return output;
}

}  // namespace

struct FakeTinker::Impl {
    explicit Impl(FakeTinkerOptions given)
        : options{std::move(given)},
          clock{std::make_shared<ManualClock>(
              ManualClockOptions{.seed = options.seed, .auto_advance = options.auto_advance})},
          transport{std::make_shared<FakeTransport>(*clock)},
          runtime{RuntimeOptions{.threads = 0,
                                 .scheduler = clock,
                                 .log =
                                     [lines = log](LogLevel level, std::string_view line) {
                                         lines->push_back(std::string{to_string(level)} + ": " +
                                                          std::string{line});
                                     },
                                 .log_level = LogLevel::debug}} {
        transport->otherwise([this](SentRequest const& request) { return answer(request); });
    }

    struct Model {
        std::string base_model{};
        std::int64_t rank{0};
        bool lost{false};
    };

    [[nodiscard]] Reply answer(SentRequest const& request) {
        auto const path = request.path.starts_with(root)
                              ? std::string_view{request.path}.substr(root.size())
                              : std::string_view{};
        if (path == "asample") return submit(request, path);
        if (path == "retrieve_future") return poll(request);
        if (path == "create_model" || path == "forward" || path == "forward_backward" ||
            path == "optim_step" || path.starts_with("save_weights") || path == "load_weights" ||
            path == "unload_model") {
            return submit(request, path);
        }
        if (path.starts_with("training_runs/")) return run(path.substr(path.find('/') + 1));
        if (path == "get_info") return info(request);
        if (path == "weights_info") return checkpoint(request);
        return of_session(request, path);
    }

    // What every program calls before it samples or trains.
    [[nodiscard]] Reply of_session(SentRequest const& request, std::string_view path) {
        if (path == "auth/token") return json_reply(R"({"jwt":"a.b.c"})");
        if (path.starts_with("client/") || path == "session_heartbeat" || path == "cancel_future" ||
            path.ends_with("/finish")) {
            return json_reply("{}");
        }
        if (path == "create_session") return json_reply(text_object("session_id", session));
        if (path == "healthz") return json_reply(text_object("status", "ok"));
        if (path == "telemetry") return json_reply(text_object("status", "accepted"));
        if (path == "create_sampling_session") return sampler(request);
        if (path.starts_with("samplers/")) {
            auto const id = std::string{path.substr(path.find('/') + 1)};
            auto const found = samplers.find(id);
            if (found == samplers.end()) return refusal(404, "there is no sampler " + id);
            return json_reply(json_object([&](JsonOut& json) {
                json.member("sampler_id", id);
                json.member("base_model", base_of(found->second));
                if (found->second.starts_with("tinker://")) {
                    json.member("model_path", found->second);
                }
            }));
        }
        if (path == "get_server_capabilities") {
            return json_reply(json_object([&](JsonOut& json) {
                json.key("supported_models");
                json.open_array();
                for (auto const& model : options.models) {
                    json.open_object();
                    json.member("model_name", model);
                    json.close_object();
                }
                json.close_array();
            }));
        }
        return refusal(404, "FakeTinker does not know " + request.method + ' ' + request.path +
                                "; answer it by a rule of transport()");
    }

    /// The base model of what a sampler samples from, or of a checkpoint.
    [[nodiscard]] std::string base_of(std::string const& model) const {
        auto const found = saved.find(model);
        if (found != saved.end()) return found->second.base_model;
        return model.starts_with("tinker://") ? options.models.front() : model;
    }
    [[nodiscard]] Reply checkpoint(SentRequest const& request) const {
        auto const path = server::decode_text("weights_info", request.body, "tinker_path");
        if (!path) return refusal(422, path.error().what());
        auto const found = saved.find(*path);
        if (found == saved.end()) return refusal(404, "there is no checkpoint " + *path);
        return json_reply(json_object([&](JsonOut& json) {
            json.member("base_model", found->second.base_model);
            json.member("is_lora", true);
            json.member("lora_rank", found->second.rank);
        }));
    }

    [[nodiscard]] Reply sampler(SentRequest const& request) {
        auto const asked = server::decode_create_sampling_session(request.body);
        if (!asked) return refusal(422, asked.error().what());
        auto const id = sampler_id(asked->sampling_session_seq_id);
        samplers[id] = asked->model_path.value_or(asked->base_model.value_or(""));
        return json_reply(text_object("sampling_session_id", id));
    }
    [[nodiscard]] static std::string sampler_id(std::int64_t number) {
        return std::string{session} + ":sample:" + std::to_string(number);
    }

    [[nodiscard]] Reply run(std::string_view id) const {
        auto const found = models.find(id);
        if (found == models.end()) return refusal(404, "there is no training run of this name");
        return json_reply(json_object([&](JsonOut& json) {
            json.member("training_run_id", id);
            json.member("base_model", found->second.base_model);
            json.member("model_owner", "fake");
            json.member("is_lora", true);
            json.member("lora_rank", found->second.rank);
            json.member("corrupted", found->second.lost);
            json.member("last_request_time", "2027-01-15T08:00:00Z");
            if (auto const last = last_saved.find(id); last != last_saved.end()) {
                json.key("last_checkpoint");
                json.open_object();
                json.member("checkpoint_id", last->second.substr(last->second.find("weights/")));
                json.member("checkpoint_type", "training");
                json.member("time", "2027-01-15T08:00:00Z");
                json.member("tinker_path", last->second);
                json.close_object();
            }
        }));
    }

    [[nodiscard]] Reply info(SentRequest const& request) const {
        auto const id = server::decode_text("get_info", request.body, "model_id");
        if (!id) return refusal(422, id.error().what());
        auto const found = models.find(*id);
        if (found == models.end()) return refusal(404, "there is no model " + *id);
        return json_reply(json_object([&](JsonOut& json) {
            json.member("model_id", *id);
            json.member("is_lora", true);
            json.member("lora_rank", found->second.rank);
            json.member("model_name", found->second.base_model);
            json.key("model_data");
            json.open_object();
            json.member("model_name", found->second.base_model);
            json.close_object();
        }));
    }

    /// Anything that is answered by a promise.
    [[nodiscard]] Reply submit(SentRequest const& request, std::string_view path) {
        if (clock->now() < billing_until) {
            return refusal(402, "the account is blocked: its payment method was declined");
        }
        if (refused_left > 0) {
            --refused_left;
            auto reply = refusal(refused_status, "FakeTinker refuses, as its script says");
            for (auto const& [name, value] : refused_headers) reply.headers.add(name, value);
            return reply;
        }
        auto const id = "request-" + std::to_string(++promised);
        try {
            return path == "asample" ? sample(request, id) : step(request, path, id);
        } catch (std::exception const& e) {
            results[id] = failed(e.what());
            return promise(id);
        }
    }
    [[nodiscard]] static Reply promise(std::string_view id) {
        return json_reply(text_object("request_id", id));
    }
    [[nodiscard]] static std::string failed(std::string_view why) {
        return json_object([&](JsonOut& json) {
            json.member("error", why);
            json.member("category", "server");
        });
    }

    [[nodiscard]] Reply sample(SentRequest const& request, std::string const& id) {
        auto read = server::decode_sample("asample", request.body);
        if (!read) return refusal(422, read.error().what());
        AskedSample asked{.prompt = std::move(read->prompt),
                          .params = std::move(read->params),
                          .options = std::move(read->options),
                          .at = clock->now()};
        if (read->sampling_session_id) {
            auto const found = samplers.find(*read->sampling_session_id);
            if (found == samplers.end()) {
                return refusal(404, "there is no sampler " + *read->sampling_session_id);
            }
            asked.model = found->second;
        } else {
            asked.model = read->model_path.value_or(read->base_model.value_or(""));
        }
        samples.push_back(asked);
        auto response = on_sample ? on_sample(asked) : default_sample(asked);
        complete(response, asked, id);
        results[id] = server::encode_sample_json(response);
        return promise(id);
    }

    [[nodiscard]] Reply step(SentRequest const& request, std::string_view call,
                             std::string const& id) {
        auto body = server::decode_body(call, request.body, request.header("Content-Encoding"),
                                        largest_body);
        if (!body) return refusal(422, body.error().what());
        AskedStep asked{.call = std::string{call}, .at = clock->now()};
        std::optional<Result<std::string>> made;
        if (call == "create_model") {
            made = create(*body, asked);
        } else if (call == "forward" || call == "forward_backward") {
            made = pass(request, *body, asked);
        } else if (call == "optim_step") {
            made = update(*body, asked);
        } else if (call.starts_with("save_weights")) {
            made = save(*body, asked);
        } else if (call == "load_weights") {
            made = load(*body, asked);
        } else {
            made = unload(*body, asked);
        }
        if (!*made) {
            auto const& error = made->error();
            return refusal(error.http_status().value_or(422), error.what());
        }
        results[id] = **std::move(made);
        return promise(id);
    }

    /// The model, unless it is unknown or lost.
    [[nodiscard]] std::optional<Error> missing(std::string const& model_id) const {
        auto const found = models.find(model_id);
        if (found != models.end() && !found->second.lost) return std::nullopt;
        return Error{{.kind = ErrorKind::status,
                      .message = "there is no model " + model_id + " in memory",
                      .http_status = 404}};
    }
    [[nodiscard]] std::string new_model(std::int64_t number, std::string base_model,
                                        std::int64_t rank) {
        auto id = std::string{session} + ":train:" + std::to_string(number);
        models[id] = {.base_model = std::move(base_model), .rank = rank};
        return id;
    }

    [[nodiscard]] Result<std::string> create(std::string_view body, AskedStep& asked) {
        auto read = server::decode_create_model(body);
        if (!read) return read.error();
        asked.base_model = read->base_model;
        asked.lora = read->lora;
        asked.model_id = new_model(read->model_seq_id, read->base_model, read->lora.rank);
        steps.push_back(asked);
        return text_object("model_id", asked.model_id);
    }
    [[nodiscard]] Result<std::string> pass(SentRequest const& request, std::string_view body,
                                           AskedStep& asked) {
        bool const proto = request.header("Content-Type") == "application/x-protobuf";
        auto read = proto ? server::decode_forward_backward_proto(body)
                          : server::decode_forward_backward(asked.call, body);
        if (!read) return read.error();
        if (auto gone = missing(read->model_id)) return *std::move(gone);
        if (read->forward_only) asked.call = "forward";
        asked.model_id = read->model_id;
        asked.data = std::move(read->data);
        asked.loss = read->loss_fn;
        asked.loss_config = read->config;
        steps.push_back(asked);
        return server::encode_forward_backward_json(on_pass ? on_pass(asked) : default_pass(asked));
    }
    [[nodiscard]] Result<std::string> update(std::string_view body, AskedStep& asked) {
        auto const read = server::decode_optim_step(body);
        if (!read) return read.error();
        if (auto gone = missing(read->model_id)) return *std::move(gone);
        asked.model_id = read->model_id;
        asked.adam = read->adam;
        steps.push_back(asked);
        return std::string{R"({"metrics":null})"};
    }
    [[nodiscard]] Result<std::string> save(std::string_view body, AskedStep& asked) {
        auto const read = server::decode_save(asked.call, body);
        if (!read) return read.error();
        if (auto gone = missing(read->model_id)) return *std::move(gone);
        asked.model_id = read->model_id;
        asked.path = read->name.value_or("");
        steps.push_back(asked);
        std::string_view const kind = asked.call == "save_weights" ? "weights" : "sampler_weights";
        auto const path = "tinker://" + read->model_id + '/' + std::string{kind} + '/' + asked.path;
        if (asked.path.empty() && read->sampling_session_seq_id) {
            auto const id = sampler_id(*read->sampling_session_seq_id);
            samplers[id] = "tinker://" + read->model_id + "/sampler_weights/unnamed";
            return json_object([&](JsonOut& json) {
                json.key("path");
                json.null();
                json.member("sampling_session_id", id);
            });
        }
        saved[path] = models.find(read->model_id)->second;
        if (kind == "weights") last_saved[read->model_id] = path;
        return text_object("path", path);
    }
    [[nodiscard]] Result<std::string> load(std::string_view body, AskedStep& asked) {
        auto const read = server::decode_load_weights(body);
        if (!read) return read.error();
        asked.path = read->path;
        auto const found = saved.find(read->path);
        if (found == saved.end()) {
            return Error{{.kind = ErrorKind::status,
                          .message = "there is no checkpoint " + read->path,
                          .http_status = 404}};
        }
        if (read->model_id) {
            if (auto gone = missing(*read->model_id)) return *std::move(gone);
            asked.model_id = *read->model_id;
        } else {
            asked.model_id = new_model(read->model_seq_id.value_or(0), found->second.base_model,
                                       found->second.rank);
        }
        steps.push_back(asked);
        return json_object([&](JsonOut& json) {
            json.member("path", asked.path);
            json.member("model_id", asked.model_id);
        });
    }
    [[nodiscard]] Result<std::string> unload(std::string_view body, AskedStep& asked) {
        auto const id = server::decode_text("unload_model", body, "model_id");
        if (!id) return id.error();
        asked.model_id = *id;
        steps.push_back(asked);
        return text_object("model_id", *id);
    }

    [[nodiscard]] Reply poll(SentRequest const& request) {
        auto const asked = server::decode_retrieve_future(request.body);
        if (!asked) return refusal(422, asked.error().what());
        if (clock->now() < paused_until) {
            auto reply = json_reply(json_object([&](JsonOut& json) {
                json.member("type", "try_again");
                json.member("request_id", asked->request_id);
                json.member("queue_state", to_string(paused_state));
                json.member("queue_state_reason", paused_reason);
            }));
            // The first answer at once, so that a client learns why it waits.
            if (request.header("X-Tinker-Request-Iteration") != "0") {
                reply.delay =
                    std::min<std::chrono::nanoseconds>(paused_until - clock->now(), longest_poll);
            }
            return reply;
        }
        auto const found = results.find(asked->request_id);
        if (found == results.end()) return refusal(410, "the result is lost");
        if (failures_left > 0) {
            --failures_left;
            return json_reply(failed(failure));
        }
        return json_reply(found->second);
    }

    FakeTinkerOptions const options;
    std::shared_ptr<std::vector<std::string>> const log{
        std::make_shared<std::vector<std::string>>()};
    std::shared_ptr<ManualClock> const clock;
    std::shared_ptr<FakeTransport> const transport;
    Runtime const runtime;

    std::function<SampleResponse(AskedSample const&)> on_sample{};
    std::function<ForwardBackwardOutput(AskedStep const&)> on_pass{};
    TimePoint paused_until{};
    QueueState paused_state{QueueState::active};
    std::string paused_reason{};
    TimePoint billing_until{};
    int refused_left{0};
    int refused_status{0};
    Headers refused_headers{};
    int failures_left{0};
    std::string failure{};

    std::vector<AskedSample> samples{};
    std::vector<AskedStep> steps{};
    std::int64_t promised{0};
    std::map<std::string, std::string, std::less<>> results{};
    /// What each sampler samples from.
    std::map<std::string, std::string, std::less<>> samplers{};
    std::map<std::string, Model, std::less<>> models{};
    /// Checkpoints by path, and the last one of each run.
    std::map<std::string, Model, std::less<>> saved{};
    std::map<std::string, std::string, std::less<>> last_saved{};
};

FakeTinker::FakeTinker(FakeTinkerOptions options)
    : impl_{std::make_unique<Impl>(std::move(options))} {}
FakeTinker::~FakeTinker() = default;

ClientOptions FakeTinker::options() const {
    ClientOptions options;
    options.base_url = "http://tinker.test";
    options.api_key = "tml-fake";
    options.telemetry = false;
    options.transport = impl_->transport;
    options.runtime = impl_->runtime;
    return options;
}

ManualClock& FakeTinker::clock() const noexcept { return *impl_->clock; }
FakeTransport& FakeTinker::transport() const noexcept { return *impl_->transport; }

void FakeTinker::on_sample(std::function<SampleResponse(AskedSample const&)> fn) {
    impl_->on_sample = std::move(fn);
}
void FakeTinker::on_pass(std::function<ForwardBackwardOutput(AskedStep const&)> fn) {
    impl_->on_pass = std::move(fn);
}
void FakeTinker::pause(QueueState state, std::string reason, std::chrono::nanoseconds time) {
    impl_->paused_state = state;
    impl_->paused_reason = std::move(reason);
    impl_->paused_until = impl_->clock->now() + time;
}
void FakeTinker::refuse(int status, int times, Headers headers) {
    impl_->refused_status = status;
    impl_->refused_left = times;
    impl_->refused_headers = std::move(headers);
}
void FakeTinker::fail_results(std::string error, int times) {
    impl_->failure = std::move(error);
    impl_->failures_left = times;
}
void FakeTinker::block_billing(std::chrono::nanoseconds time) {
    impl_->billing_until = impl_->clock->now() + time;
}
void FakeTinker::restart() {
    impl_->results.clear();
    for (auto& [id, model] : impl_->models) model.lost = true;
}

std::vector<AskedSample> const& FakeTinker::samples() const noexcept { return impl_->samples; }
std::vector<AskedStep> const& FakeTinker::steps() const noexcept { return impl_->steps; }
std::vector<std::string> FakeTinker::step_names() const {
    std::vector<std::string> names;
    names.reserve(impl_->steps.size());
    for (auto const& step : impl_->steps) names.push_back(step.call);
    return names;
}
std::vector<std::string> const& FakeTinker::log() const noexcept { return *impl_->log; }

}  // namespace tinkxx::testing
