#include "golden/replay/request_replay.hpp"

#include <tinkxx/service_client.hpp>

#include "golden/recordings/golden.hpp"
#include "golden/recordings/recorded_call.hpp"
#include "golden/replay/stub_service.hpp"
#include "wire/json/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tinkxx::golden {

using namespace std::chrono_literals;

// Calls -------------------------------------------------------------------------------------------

namespace {

void start(RecordedCall& call) {
    call.expect_outcome(call.stub.await(call.service->session_id()),
                        [](std::string const& id) -> value {
                            return {{"session_id", id}};
                        });
    call.expect_requests();
}

void beat(RecordedCall& call) {
    call.stub.clock->advance(std::chrono::seconds{10} *
                             call.recording().at("requests").as_array().size());
    call.expect_requests();
}

void refresh(RecordedCall& call) {
    call.stub.clock->advance(std::chrono::seconds{300} *
                             call.recording().at("requests").as_array().size());
    call.expect_requests();
}

void capabilities(RecordedCall& call) {
    call.expect_outcome(call.stub.await(call.service->get_server_capabilities()),
                        [](ServerCapabilities const& got) { return json_of(got); });
    call.expect_requests();
}

void health(RecordedCall& call) {
    call.expect_outcome(call.stub.await(call.service->health()),
                        [](std::string const& word) -> value {
                            return {{"status", word}};
                        });
    // A client of its own, session-less, asks for its settings first.
    call.expect_requests();
}

void close(RecordedCall& call) {
    std::map<std::string, CloseReason> const reasons{{"success", CloseReason::success},
                                                     {"errored", CloseReason::errored},
                                                     {"interrupted", CloseReason::interrupted}};
    auto const reason = reasons.at(text(call.args(), "status"));
    auto const detail = member<std::string>(call.args(), "detail");
    auto const done = call.stub.await(detail ? call.service->close(reason, *detail)
                                             : call.service->close(reason));
    EXPECT_TRUE(done) << done.error().what();
    call.expect_requests();
}

void create_samplers(RecordedCall& call) {
    Result<std::string> last{std::string{}};
    std::vector<SamplingClient> samplers;
    for (auto const& one : call.calls()) {
        SamplerOptions options;
        options.base_model = member<std::string>(one, "base_model").value_or("");
        options.model_path = member<std::string>(one, "model_path").value_or("");
        try {
            samplers.push_back(call.service->create_sampling_client(std::move(options)));
            last = call.stub.await(samplers.back().sampling_session_id());
        } catch (Error const& error) {
            last = error;
        }
    }
    call.expect_outcome(last, [](std::string const& id) -> value {
        return {{"sampling_session_id", id}};
    });
    call.expect_requests();
}

void base_model(RecordedCall& call) {
    call.expect_outcome(call.stub.await(call.sampler->get_base_model()),
                        [](std::string const& name) -> value { return value(name); });
    call.expect_requests();
}

Result<SampleResponse> draw(RecordedCall& call, SamplingClient const& sampler, value const& args) {
    auto prompt = model_input(args.at("prompt"));
    return call.stub.await(sampler.sample(
        std::move(prompt), sampling_params(args.at("sampling_params")), sample_options(args)));
}

void sample(RecordedCall& call) {
    auto const calls = call.calls();
    if (call.has_form("an empty prompt")) {
        auto const refused = draw(call, *call.sampler, calls.front());
        ASSERT_FALSE(refused) << "C-61: an empty prompt is refused here";
        EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
        return call.expect_no_request();
    }
    if (calls.size() == 1) {
        auto const drawn = draw(call, *call.sampler, calls.front());
        if (!drawn && call.has_form("parameters of sampling out of range")) {
            EXPECT_EQ(drawn.error().kind(), ErrorKind::validation) << drawn.error().what();
            return call.expect_no_request();
        }
        call.expect_outcome(drawn, [](SampleResponse const& got) { return json_of(got); });
    } else {
        boost::json::array results;
        for (auto const& args : calls) {
            auto const drawn = draw(call, *call.sampler, args);
            ASSERT_TRUE(drawn) << drawn.error().what();
            results.push_back(json_of(*drawn));
        }
        EXPECT_TRUE(agrees(call.recording().at("result"), results)) << value(results);
    }
    call.stub.settle();
    call.expect_requests();
    call.expect_waits();
}

void sample_by_copy(RecordedCall& call) {
    auto const handle = call.stub.await(call.sampler->get_sampler_handle());
    ASSERT_TRUE(handle) << handle.error().what();
    auto const copy = from_sampler_handle(*handle, call.stub.options());
    auto const& expected = call.recording().at("result").as_array();
    for (auto const& one : expected) {
        auto const drawn = draw(call, copy, call.args());
        ASSERT_TRUE(drawn) << drawn.error().what();
        EXPECT_TRUE(agrees(one, json_of(*drawn))) << json_of(*drawn);
    }
    call.expect_requests();
}

void cancelled_sample(RecordedCall& call) {
    call.stub.hold("/api/v1/retrieve_future");
    auto const& args = call.args();
    auto pending =
        call.sampler->sample(model_input(args.at("prompt")),
                             sampling_params(args.at("sampling_params")), sample_options(args));
    call.stub.settle();
    pending.cancel();
    auto const outcome = call.stub.await(std::move(pending));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind(), ErrorKind::cancelled);
    call.stub.settle();
    // Whether a poll was under way is a matter of luck, and the recording was not made of it.
    call.expect_requests({"/api/v1/retrieve_future"});
}

void logprobs(RecordedCall& call) {
    auto prompt = model_input(call.args().at("prompt"));
    auto const last = member<std::int64_t>(call.args(), "prompt_logprobs_last_n").value_or(0);
    call.expect_outcome(
        call.stub.await(call.sampler->compute_logprobs(std::move(prompt), last, CallOptions{})),
        [](std::vector<std::optional<float>> const& got) { return json_of(got); });
    call.expect_requests();
}

void whoami(RecordedCall& call) {
    call.expect_outcome(call.stub.await(call.service->whoami()), [](Identity const& got) -> value {
        return {{"user_urn", got.user_urn},
                {"email", got.email ? value(*got.email) : value(nullptr)},
                {"org_urn", got.organization_urn ? value(*got.organization_urn) : value(nullptr)}};
    });
    call.expect_requests();
}

/// The client tells of its own start.
void telemetry(RecordedCall& call) {
    call.stub.clock->advance(20s);
    call.expect_requests();
    call.expect_waits();
}

KnownCalls const& known_calls() {
    static KnownCalls const known = [] {
        KnownCalls all{
            {"ServiceClient", start},
            {"(heartbeat, two beats)", beat},
            {"(dynamic config refresh)", refresh},
            {"ServiceClient.get_server_capabilities", capabilities},
            {"low-level service.health_check", health},
            {"ServiceClient.close", close},
            {"ServiceClient.create_sampling_client", create_samplers},
            {"SamplingClient.get_base_model", base_model},
            {"RestClient.whoami", whoami},
            {"SamplingClient.sample", sample},
            {"SamplingClient.sample (several in a row)", sample},
            {"SamplingClient.sample, copied client", sample_by_copy},
            {"SamplingClient.sample, then cancel", cancelled_sample},
            {"SamplingClient.compute_logprobs", logprobs},
            {"Telemetry", telemetry},
        };
        add_training_calls(all);
        add_rest_calls(all);
        return all;
    }();
    return known;
}

}  // namespace

bool replays_call(value const& recording) {
    return known_calls().contains(text(recording, "call"));
}

void replay_call(value const& recording) {
    // What a caller of Python's telemetry object logs has no public call here.
    if (text(recording, "call") == "Telemetry" && !recording.at("args").as_object().empty()) {
        return replay_telemetry(recording);
    }
    RecordedCall call{recording};
    known_calls().at(text(recording, "call"))(call);
    call.expect_compared();
}

}  // namespace tinkxx::golden
