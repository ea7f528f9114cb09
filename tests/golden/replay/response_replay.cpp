#include "golden/replay/response_replay.hpp"

#include <tinkxx/service_client.hpp>

#include "golden/recordings/forms.hpp"
#include "golden/recordings/golden.hpp"
#include "golden/replay/expect_sent.hpp"
#include "golden/replay/rest_replay.hpp"
#include "golden/replay/stub_service.hpp"
#include "golden/replay/training_replay.hpp"
#include "wire/json/json.hpp"
#include "wire/session/result_answer.hpp"
#include "wire/session/service_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace tinkxx::golden {

using namespace std::chrono_literals;
using testing::SentRequest;

namespace {

constexpr auto submit_of_samples = "/api/v1/asample";
constexpr double longest_hint = 60;  // s
constexpr auto polls = "/api/v1/retrieve_future";

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>{time}.count();
}

/// Where an operation is submitted.
std::string submit_path(std::string const& operation) {
    static std::map<std::string, std::string> const known{
        {"optim_step", "/api/v1/optim_step"},
        {"forward_backward", "/api/v1/forward_backward"},
        {"save_state", "/api/v1/save_weights"},
        {"create_model", "/api/v1/create_model"},
        {"forward", "/api/v1/forward_backward"},
        {"load_state", "/api/v1/load_weights"},
        {"save_weights_for_sampler", "/api/v1/save_weights_for_sampler"},
        {"save_weights_and_get_sampling_client", "/api/v1/save_weights_for_sampler"},
        {"create_sampling_client", "/api/v1/create_sampling_session"},
        {"get_info", "/api/v1/get_info"},
        {"capabilities", "/api/v1/get_server_capabilities"},
    };
    auto const found = known.find(operation);
    return found == known.end() ? submit_of_samples : found->second;
}

std::string body_of(value const& answer) { return reply_of(answer).body; }

// What is expected --------------------------------------------------------------------------------

/// A result in JSON, which tinkxx takes and the official SDK refuses since 0.25 (C-20).
bool json_result(value const& recording) {
    auto const operation = text(recording, "operation");
    if (operation != "sample" && operation != "compute_logprobs" &&
        !operation.starts_with("forward")) {
        return false;
    }
    return std::ranges::any_of(answers_at(recording, polls), [](value const& answer) {
        if (member<int>(answer, "status") != 200) return false;
        auto const body = body_of(answer);
        auto const read = wire::classify_result_answer(
            member<std::string>(answer, "content_type").value_or(""), body);
        return std::holds_alternative<wire::result_answer::Json>(read);
    });
}

bool without_sequence_ids(value const& recording) {
    return std::ranges::any_of(answers_at(recording, submit_of_samples), [](value const& answer) {
        return member<int>(answer, "status") == 200 &&
               body_of(answer).find("sample_sequence_ids") == std::string::npos;
    });
}

/// The release whose behaviour is ours.
std::string version_for(value const& recording) {
    auto const& outcomes = recording.at("outcomes").as_object();
    if (json_result(recording) && outcomes.contains("0.7.0")) return "0.7.0";
    // C-29: the ids are not needed.
    if (without_sequence_ids(recording) && outcomes.contains("0.25.0")) return "0.25.0";
    for (auto const* version : {newest, "0.25.0", "0.7.0"}) {
        if (outcomes.contains(version)) return version;
    }
    throw std::runtime_error{"the recording has no outcome"};
}

/// What a recorded outcome means here, where a decision of docs/spec/behaviour.md says otherwise.
std::optional<ErrorKind> decided_error(value const& recording) {
    if (has_form("429 with retries off", recording)) return ErrorKind::status;
    for (auto const* form : {"offsets beyond the data", "logprobs that were not answered",
                             "a result with numbers that JSON does not have"}) {
        if (has_form(form, recording)) return ErrorKind::validation;
    }
    return std::nullopt;
}

// What came of it ---------------------------------------------------------------------------------

/// A scripted operation about to be made here.
class Operation {
public:
    explicit Operation(value const& recorded)
        // Braces would make lists of these.
        : recording(recorded),
          outcome(recorded.at("outcomes").at(version_for(recorded))),
          decided{decided_error(recorded)},
          stub{recorded} {}

    /// Compares the result, or the kind of the error.
    template <class T, class Json>
    void expect_outcome(Result<T> const& ours, Json json) const {
        if (decided) {
            ASSERT_FALSE(ours) << "succeeded";
            EXPECT_EQ(ours.error().kind(), *decided) << ours.error().what();
            return;
        }
        if (succeeds_here()) {
            ASSERT_TRUE(ours) << ours.error().what();
            return expect_decided_metrics(json(*ours));
        }
        if (auto const* error = find(outcome, "error")) {
            if (text(*error, "message").find("it may predate this feature") != std::string::npos) {
                EXPECT_TRUE(ours) << "C-30: tokens are not lost with an option";
                return;
            }
            ASSERT_FALSE(ours) << "succeeded, unlike " << *error;
            expect_same_error(with_any_case(*error), ours.error());
            return expect_message(ours.error());
        }
        ASSERT_TRUE(ours) << ours.error().what();
        value const made = json(*ours);
        auto const recorded = without_types(outcome.at("result"));
        EXPECT_TRUE(agrees(recorded, made)) << "recorded: " << recorded << "\nours: " << made;
    }

    /// Whether what the official SDK could not read is read here, by a decision.
    [[nodiscard]] bool succeeds_here() const {
        return std::ranges::any_of(
            std::initializer_list<char const*>{"a mean over no data",
                                               "a metric that names no reduction",
                                               "a result with members that were refused"},
            [this](auto const* form) { return has_form(form, recording); });
    }

    void expect_requests() const {
        if (has_form("429 with retries off", recording)) return;
        auto const& seen_then = outcome.at("requests_seen");
        std::set<std::string> paths;
        for (auto const& entry : seen_then.as_object()) {
            std::string const line{entry.key()};
            paths.insert(line.substr(line.find(' ') + 1));
        }
        auto const sent = stub.seen(paths);
        if (ended_by_chance()) {
            // As many waits as fit into the five minutes; recorded are those of one draw.
            EXPECT_GE(sent.back().at - sent.front().at, 250s);
            return;
        }
        std::map<std::string, int> counts;
        for (auto const& request : sent) ++counts[request.method + ' ' + request.path];
        EXPECT_EQ(counts, (value_to<std::map<std::string, int>>(seen_then)));
        expect_waits(sent);
        expect_lines(sent);
    }

    void expect_queue_reports(boost::json::array ours) const {
        auto const* theirs = find(outcome, "queue_state_reports");
        boost::json::array recorded;
        for (auto const& report : theirs != nullptr ? theirs->as_array() : boost::json::array{}) {
            // R-FUT-31: a state that nobody knows, without a reason, is not worth a report.
            if (report.at(0) == "unknown" && report.at(1).is_null()) continue;
            recorded.push_back(report);
        }
        // C-45: a state in capitals is one too; the official SDK does not know it.
        for (auto const& answer : answers_at(recording, polls)) {
            boost::json::error_code failed;
            auto const body = boost::json::parse(body_of(answer), failed);
            auto const* state = failed ? nullptr : find(body, "queue_state");
            if (state == nullptr || !state->is_string()) continue;
            auto const word = value_to<std::string>(*state);
            auto const meant = parse_queue_state(word);
            if (meant == QueueState::unknown || word == to_string(meant)) continue;
            // The last one of that state: those before it were written as usual.
            for (auto i = ours.size(); i > 0; --i) {
                if (ours[i - 1].at(0).as_string() != to_string(meant)) continue;
                ours.erase(ours.begin() + static_cast<std::ptrdiff_t>(i - 1));
                break;
            }
        }
        ASSERT_EQ(ours.size(), recorded.size()) << value(ours);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            EXPECT_EQ(ours[i].at(0), recorded[i].at(0));
            // Without a reason of the server a sampler says what the state usually means.
            if (!recorded[i].at(1).is_null()) {
                EXPECT_EQ(ours[i].at(1), recorded[i].at(1));
            }
        }
    }

private:
    /// R-TRAIN-43: a mean over no data is 0, and a metric that names no reduction is none.
    void expect_decided_metrics(value const& made) const {
        for (auto const& metric : made.at("metrics").as_object()) {
            std::string const name{metric.key()};
            EXPECT_EQ(std::ranges::count(name, ':'), 1) << name;
            if (!has_form("a mean over no data", recording)) continue;
            if (name.ends_with(":mean") || name.ends_with(":slack")) {
                EXPECT_EQ(metric.value().to_number<double>(), 0) << name;
            }
        }
    }

    /// C-45: the category counts whatever its case.
    [[nodiscard]] value with_any_case(value error) const {
        if (find(error, "category") == nullptr) return error;
        for (auto const& answer : answers_at(recording, polls)) {
            boost::json::error_code failed;
            auto const body = boost::json::parse(body_of(answer), failed);
            auto const* category = failed ? nullptr : find(body, "category");
            if (category == nullptr || !category->is_string()) continue;
            auto const given = value_to<std::string>(*category);
            auto const word = lower_case(given);
            if (word != given && (word == "user" || word == "server")) {
                error.as_object()["category"] = word;
            }
            break;
        }
        return error;
    }

    /// The server's own words are in ours.
    void expect_message(Error const& ours) const {
        if (ours.kind() != ErrorKind::request_failed) return;
        for (auto const& answer : answers_at(recording, polls)) {
            boost::json::error_code failed;
            auto const body = boost::json::parse(body_of(answer), failed);
            auto const* words = failed ? nullptr : find(body, "error");
            if (words == nullptr || !words->is_string()) continue;
            EXPECT_THAT(std::string{ours.what()},
                        ::testing::HasSubstr(value_to<std::string>(*words)));
            return;
        }
    }

    /// Whether time ended it, after waits of which each depends on chance.
    [[nodiscard]] bool ended_by_chance() const {
        auto const* waits = find(outcome, "waits");
        if (waits == nullptr || find(outcome, "error") == nullptr) return false;
        double total = 0;
        for (auto const& wait : waits->as_array()) {
            if (wait.at(0) == "http") {
                total += value_to<double>(wait.at(1)) * value_to<double>(wait.at(2));
            }
        }
        return total > 200;
    }

    /// How long a poll's answer asks to wait (R-FUT-03), which the official SDK does not read.
    [[nodiscard]] std::optional<double> asked_wait(std::size_t poll) const {
        auto const answers = answers_at(recording, polls);
        if (poll >= answers.size()) return std::nullopt;
        auto const wait = wire::decode_retry_after(body_of(answers[poll]));
        if (!wait || wait->count() <= 0) return std::nullopt;
        return seconds(*wait);
    }

    void expect_waits(std::vector<SentRequest> const& sent) const {
        std::vector<std::pair<std::string, double>> before_submits;
        std::vector<double> before_polls;
        double gate = 0;
        if (auto const* waits = find(outcome, "waits")) {
            for (auto const& wait : waits->as_array()) {
                auto const layer = value_to<std::string>(wait.at(0));
                auto const time = value_to<double>(wait.at(1));
                auto const times = value_to<std::size_t>(wait.at(2));
                if (layer == "future_loop") {
                    before_polls.insert(before_polls.end(), times, time);
                } else if (layer == "sampling_backoff_gate") {
                    gate += time * static_cast<double>(times);
                } else {
                    before_submits.insert(before_submits.end(), times, {layer, time});
                }
            }
        }
        std::vector<double> ours;
        std::vector<double> our_polls;
        std::map<std::string, TimePoint> last;
        std::size_t poll = 0;
        for (auto const& request : sent) {
            auto const found = last.find(request.path);
            if (found != last.end()) {
                auto const gap = seconds(request.at - found->second);
                if (request.path != polls) {
                    ours.push_back(gap);
                } else if (auto const asked = asked_wait(poll - 1)) {
                    EXPECT_NEAR(gap, *asked, 1e-6);
                } else if (gap > 0.1 + 1e-9 &&
                           request.header("X-Tinker-Request-Iteration") != "0") {
                    our_polls.push_back(gap);  // C-48: 100 ms pass between others
                }
            }
            last[request.path] = request.at;
            if (request.path == polls) ++poll;
        }
        ASSERT_EQ(our_polls.size(), before_polls.size());
        for (std::size_t i = 0; i < our_polls.size(); ++i) {
            EXPECT_NEAR(our_polls[i], before_polls[i], 1e-6) << "poll " << i + 1;
        }
        if (gate > 0) {
            // The official SDK looks every second whether the gate is open; here a wait is one.
            EXPECT_NEAR(std::accumulate(ours.begin(), ours.end(), 0.0), hinted(gate), 1e-6);
            return;
        }
        // A submit that is sent on at once, such as a redirected one, waited for nothing.
        std::erase(ours, 0.0);
        ASSERT_EQ(ours.size(), before_submits.size());
        for (std::size_t i = 0; i < ours.size(); ++i) {
            auto const& [layer, recorded] = before_submits[i];
            auto const time = layer == "http" && asks_too_much() ? longest_hint : recorded;
            // Draws of chance were 0.5 when this was recorded.
            auto const jitter = layer == "http"               ? time / 7
                                : layer == "sampling_handler" ? time / 4
                                                              : 0;
            EXPECT_NEAR(ours[i], time, jitter + 1e-6) << layer << ", repetition " << i + 1;
        }
    }

    /// C-46: the official SDK drops a hint of more than a minute, here it means a
    /// minute.
    [[nodiscard]] bool asks_too_much() const {
        for (auto const& answer :
             answers_at(recording, submit_path(text(recording, "operation")))) {
            auto const reply = reply_of(answer);
            auto const* hint = reply.headers.find("retry-after");
            if (hint != nullptr && std::strtod(hint->c_str(), nullptr) > longest_hint) return true;
        }
        return false;
    }

    /// C-07: the server's hint counts, where it gives one.
    [[nodiscard]] double hinted(double recorded) const {
        double total = 0;
        for (auto const& answer : answers_at(recording, submit_of_samples)) {
            auto const reply = reply_of(answer);
            auto const* hint = reply.headers.find("retry-after");
            if (hint == nullptr) return recorded;
            total += std::stod(*hint);
        }
        return total;
    }

    void expect_lines(std::vector<SentRequest> const& sent) const {
        boost::json::array retries;
        boost::json::array iterations;
        boost::json::array numbers;
        std::set<std::string> keys;
        auto const submits = submit_path(text(recording, "operation"));
        for (auto const& request : sent) {
            if (request.path == polls) {
                auto const body = boost::json::parse(request.body);
                iterations.push_back(
                    boost::json::array{std::stoll(request.header("X-Tinker-Request-Iteration")),
                                       body.at("allow_metadata_only")});
                continue;
            }
            auto const count = request.header("x-stainless-retry-count");
            if (!count.empty()) retries.push_back(std::stoll(count));
            if (request.path == submits) keys.insert(request.header("X-Idempotency-Key"));
            if (request.path == submit_of_samples) {
                numbers.push_back(boost::json::parse(request.body).at("seq_id"));
            }
        }
        auto const compare = [this](char const* name, value const& ours) {
            if (auto const* recorded = find(outcome, name)) {
                EXPECT_EQ(ours, *recorded) << name;
            }
        };
        compare("http_retry_counts", retries);
        compare("asample_seq_ids", numbers);
        compare("distinct_idempotency_keys", keys.size());
        if (version_for(recording) == newest) compare("polls", iterations);
    }

public:
    value const recording;
    value const outcome;
    std::optional<ErrorKind> const decided;
    StubService stub;
};

// Operations --------------------------------------------------------------------------------------

RetryConfig retry_config(value const& recording) {
    RetryConfig config;
    auto const* given = find(recording, "retry_config");
    if (given == nullptr) return config;
    for (auto const& entry : given->as_object()) {
        auto const time = [&entry] {
            return std::chrono::milliseconds{
                static_cast<std::int64_t>(entry.value().to_number<double>() * 1000)};
        };
        if (entry.key() == "progress_timeout") {
            config.progress_timeout = time();
        } else if (entry.key() == "retry_delay_base") {
            config.retry_delay_base = time();
        } else if (entry.key() == "retry_delay_max") {
            config.retry_delay_max = time();
        } else if (entry.key() == "enable_retry_logic") {
            config.enable_retry_logic = entry.value().as_bool();
        } else if (entry.key() == "max_connections") {
            config.max_connections = value_to<std::int64_t>(entry.value());
        } else {
            ADD_FAILURE() << "a setting that nobody here knows: " << entry.key();
        }
    }
    return config;
}

/// A service and its sampler, set up.
struct Ready {
    explicit Ready(Operation& operation)
        : service{operation.stub.options()},
          sampler{service.create_sampling_client("org/tiny", retry_config(operation.recording))} {
        EXPECT_TRUE(operation.stub.await(sampler.sampling_session_id()));
        operation.stub.mark();
        operation.stub.script_answers(operation.recording);
    }
    ServiceClient service;
    SamplingClient sampler;
};

ModelInput prompt_of(value const& args) {
    auto const* given = find(args, "prompt");
    return given != nullptr ? model_input(*given) : ModelInput::from_tokens({1, 2, 3});
}

void sample(Operation& operation) {
    Ready ready{operation};
    auto const& args = operation.recording.at("args");
    boost::json::array reports;
    CallOptions call;
    call.on_queue_state.emplace_back([&reports](QueueStateEvent const& event) {
        reports.push_back({std::string{to_string(event.state)},
                           event.reason.empty() ? value(nullptr) : value(event.reason)});
    });
    auto const drawn = operation.stub.await(ready.sampler.sample(
        prompt_of(args), SamplingParams{.max_tokens = 4}, sample_options(args), std::move(call)));
    operation.expect_outcome(drawn, [](SampleResponse const& got) { return json_of(got); });
    operation.expect_requests();
    operation.expect_queue_reports(std::move(reports));
}

void logprobs(Operation& operation) {
    Ready ready{operation};
    auto const computed = operation.stub.await(
        ready.sampler.compute_logprobs(prompt_of(operation.recording.at("args"))));
    operation.expect_outcome(
        computed, [](std::vector<std::optional<float>> const& got) { return json_of(got); });
    operation.expect_requests();
}

void create_sampler(Operation& operation) {
    ServiceClient const service{operation.stub.options()};
    ASSERT_TRUE(operation.stub.await(service.session_id()));
    operation.stub.mark();
    operation.stub.script_answers(operation.recording);
    auto const sampler = service.create_sampling_client("org/tiny");
    operation.expect_outcome(operation.stub.await(sampler.sampling_session_id()),
                             [](std::string const& id) -> value {
                                 return {{"sampling_session_id", id}};
                             });
    operation.expect_requests();
}

/// What the server's settings were read as; a client does not show them.
value settings(Operation const& operation, std::string const& id) {
    auto const body = [&operation](char const* path) {
        auto const answers = answers_at(operation.recording, path);
        for (auto const& answer : answers) {
            if (member<int>(answer, "status") == 200) return body_of(answer);
        }
        return std::string{path}.ends_with("dynamic_config")
                   ? std::string{R"({"refresh_interval_sec": 300})"}
                   : std::string{R"({"use_pyqwest_transport": false})"};
    };
    auto flags = wire::decode_client_flags(body("/api/v1/client/config")).value();
    // R-CONF-22: where the server says nothing, these two have other baselines.
    flags.sample_dispatch_bytes_semaphore_size =
        flags.sample_dispatch_bytes_semaphore_size.value_or(10 * 1024 * 1024);
    flags.sample_max_concurrent_requests = flags.sample_max_concurrent_requests.value_or(2000);
    auto const dynamic = wire::decode_dynamic_flags(body("/api/v1/client/dynamic_config")).value();
    return {{"session_id", id},
            {"client_config", boost::json::parse(wire::encode_client_flags(flags))},
            {"dynamic_config", boost::json::parse(wire::encode_dynamic_flags(dynamic))}};
}

void start(Operation& operation) {
    operation.stub.script_answers(operation.recording);
    ServiceClient const service{operation.stub.options()};
    auto const id = operation.stub.await(service.session_id());
    if (has_form("a server without client/config", operation.recording)) {
        EXPECT_TRUE(id) << "C-53";
        return;
    }
    operation.expect_outcome(id, [&](std::string const& got) { return settings(operation, got); });
    operation.expect_requests();
    // R-SESS-02: what the server has to say is logged.
    for (auto const& answer : answers_at(operation.recording, "/api/v1/create_session")) {
        if (!id || member<int>(answer, "status") != 200) continue;
        auto const body = boost::json::parse(body_of(answer));
        for (auto const* level : {"info", "warning", "error"}) {
            auto const words = member<std::string>(body, std::string{level} + "_message");
            if (!words) continue;
            EXPECT_THAT(operation.stub.lines(),
                        ::testing::Contains(std::string{level} + ": " + *words));
        }
    }
}

void beat(Operation& operation) {
    ServiceClient const service{operation.stub.options()};
    ASSERT_TRUE(operation.stub.await(service.session_id()));
    operation.stub.mark();
    operation.stub.script_answers(operation.recording);
    operation.stub.clock->advance(10min);
    operation.expect_requests();
}

void capabilities(Operation& operation) {
    ServiceClient const service{operation.stub.options()};
    operation.stub.script_answers(operation.recording);
    operation.expect_outcome(operation.stub.await(service.get_server_capabilities()),
                             [](ServerCapabilities const& got) { return json_of(got); });
    operation.expect_requests();
}

/// R-REST-10: every half minute, and six times at most.
void expect_patience(Operation const& operation, Result<value> const& url) {
    std::vector<TimePoint> times;
    for (auto const& request : operation.stub.transport->sent()) {
        if (request.path.ends_with("/archive")) times.push_back(request.at);
    }
    auto const path = text(operation.recording.at("answers").at(0), "to");
    auto const answers = answers_at(operation.recording, path);
    auto const busy = std::ranges::count_if(
        answers, [](value const& answer) { return member<int>(answer, "status") == 503; });
    ASSERT_EQ(static_cast<std::ptrdiff_t>(times.size()), std::min<std::ptrdiff_t>(busy + 1, 6));
    EXPECT_EQ(times.back() - times.front(), 30s * static_cast<int>(times.size() - 1));
    EXPECT_EQ(url.has_value(), busy < 6);
    if (!url) {
        EXPECT_EQ(url.error().http_status(), 503);
    }
}

void rest(Operation& operation) {
    auto const& args = operation.recording.at("args");
    ServiceClient const service{operation.stub.options()};
    operation.stub.script_answers(operation.recording);
    auto const made = call_rest(operation.stub, service, text(args, "method"), args.at("args"),
                                version_for(operation.recording));
    if (has_form("an archive that is being built", operation.recording)) {
        return expect_patience(operation, made);
    }
    bool const open = has_form("a checkpoint of an unknown type", operation.recording) ||
                      has_form("usage of an unknown kind", operation.recording);
    if (open) {
        EXPECT_TRUE(made) << "R-REST-05: " << made.error().what();
        return;
    }
    operation.expect_outcome(made, [](value const& got) { return got; });
    operation.expect_requests();
}

/// Calls of one training client, by their recorded names.
Result<value> train_once(Operation& operation, ServiceClient const& service,
                         std::optional<TrainingClient> const& trainer, CallOptions call) {
    auto const name = text(operation.recording, "operation");
    auto& stub = operation.stub;
    auto const json = [](auto const& result) -> Result<value> {
        if (!result) return result.error();
        return json_of(*result);
    };
    if (name == "create_model") {
        auto const made = stub.await(service.create_lora_training_client("org/tiny"));
        if (!made) return made.error();
        return value{{"model_id", made->model_id()}};
    }
    auto const client = trainer->with(std::move(call));
    if (name == "forward" || name == "forward_backward") {
        auto const count =
            member<std::size_t>(operation.recording.at("args"), "datums").value_or(1);
        std::vector<Datum> data(count);
        for (auto& each : data) {
            each.model_input = ModelInput::from_tokens({1, 2});
            each.loss_fn_inputs.set("target_tokens", {2, 3});
        }
        return json(stub.await(name == "forward" ? client.forward(data, "cross_entropy")
                                                 : client.forward_backward(data, "cross_entropy")));
    }
    if (name == "optim_step") return json(stub.await(client.optim_step({})));
    if (name == "save_state") return json(stub.await(client.save_state("n")));
    if (name == "save_weights_for_sampler") {
        return json(stub.await(client.save_weights_for_sampler("n")));
    }
    if (name == "get_info") return json(stub.await(client.get_info()));
    if (name == "save_weights_and_get_sampling_client") {
        auto const sampler = stub.await(client.save_weights_and_get_sampling_client());
        if (!sampler) return sampler.error();
        auto const id = stub.await(sampler->sampling_session_id());
        if (!id) return id.error();
        return value{{"sampling_session_id", *id}};
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return json(stub.await(client.load_state("tinker://r/weights/n")));
#pragma GCC diagnostic pop
}

void train(Operation& operation) {
    auto options = operation.stub.options();
    options.check_data = false;
    auto const name = text(operation.recording, "operation");
    if (version_for(operation.recording) == "0.7.0") {
        options.submit_encoding = SubmitEncoding::json;
    }
    ServiceClient const service{std::move(options)};
    ASSERT_TRUE(operation.stub.await(service.session_id()));
    std::optional<TrainingClient> trainer;
    if (name != "create_model") {
        auto made = operation.stub.await(service.create_lora_training_client("org/tiny", 8));
        ASSERT_TRUE(made) << made.error().what();
        trainer = *std::move(made);
    }
    operation.stub.mark();
    operation.stub.script_answers(operation.recording);
    boost::json::array reports;
    CallOptions call;
    call.on_queue_state.emplace_back([&reports](QueueStateEvent const& event) {
        reports.push_back({std::string{to_string(event.state)},
                           event.reason.empty() ? value(nullptr) : value(event.reason)});
    });
    operation.expect_outcome(train_once(operation, service, trainer, std::move(call)),
                             [](value const& got) { return got; });
    operation.expect_requests();
    if (name != "create_model") operation.expect_queue_reports(std::move(reports));
}

std::function<void(Operation&)> known_operation(value const& recording) {
    static std::map<std::string, std::function<void(Operation&)>> const known{
        {"sample", sample},
        {"compute_logprobs", logprobs},
        {"create_sampling_client", create_sampler},
        {"service", start},
        {"heartbeat", beat},
        {"capabilities", capabilities},
        {"create_model", train},
        {"forward", train},
        {"forward_backward", train},
        {"get_info", train},
        {"load_state", train},
        {"optim_step", train},
        {"save_state", train},
        {"save_weights_and_get_sampling_client", train},
        {"save_weights_for_sampler", train},
    };
    auto const operation = text(recording, "operation");
    if (auto const found = known.find(operation); found != known.end()) return found->second;
    if (operation == "rest" && knows_rest(text(recording.at("args"), "method"))) return rest;
    return {};
}

}  // namespace

bool replays_operation(value const& recording) {
    return static_cast<bool>(known_operation(recording));
}

void replay_operation(value const& recording) {
    Operation operation{recording};
    known_operation(recording)(operation);
}

}  // namespace tinkxx::golden
