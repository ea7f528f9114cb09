// Start-up, sessions and promises as the official SDK was seen to handle them.
#include "golden.hpp"
#include "wire/base64.hpp"
#include "wire/completions.hpp"
#include "wire/future.hpp"
#include "wire/json.hpp"
#include "wire/jwt.hpp"
#include "wire/sample.hpp"
#include "wire/service_messages.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tinkxx::wire {
namespace {

using boost::json::value;
using boost::json::value_to;

std::string text(value const& object, char const* name) {
    return value_to<std::string>(object.at(name));
}

std::optional<std::string> text_if(value const& object, char const* name) {
    auto const* found = object.as_object().if_contains(name);
    if (found == nullptr || found->is_null()) return std::nullopt;
    return value_to<std::string>(*found);
}

// What was answered at a path of a recorded response, first of all.
std::string answer_at(value const& recording, std::string const& path) {
    for (auto const& answers : recording.at("answers").as_array()) {
        if (text(answers, "to") == path) {
            return text(answers.at("then").at(0).at("answer"), "body_text");
        }
    }
    ADD_FAILURE() << "no answer at " << path;
    return {};
}

struct Case {
    char const* file;
    char const* path;
    std::function<bool(std::string_view)> decodes;
};

// R-CONF-09, R-CONF-21, R-SESS-01, R-WIRE-07
TEST(GoldenService, AnswersAreTakenOrRefusedAsByTheOfficialSdk) {
    auto const flags = [](std::string_view json) { return decode_client_flags(json).has_value(); };
    auto const session = [](std::string_view json) {
        return decode_session_created(json).has_value();
    };
    auto const models = [](std::string_view json) {
        return decode_server_capabilities(json).has_value();
    };
    auto const sampler = [](std::string_view json) { return decode_sampler(json).has_value(); };
    auto const token = [](std::string_view json) { return decode_auth_token(json).has_value(); };
    auto const submit = [](std::string_view json) { return decode_submitted(json).has_value(); };
    for (auto const& one :
         std::vector<Case>{{"304-startup-empty-config", "/api/v1/client/config", flags},
                           {"305-startup-unknown-flags", "/api/v1/client/config", flags},
                           {"306-startup-all-flags", "/api/v1/client/config", flags},
                           {"307-startup-flag-wrong-type", "/api/v1/client/config", flags},
                           {"308-startup-flag-null", "/api/v1/client/config", flags},
                           {"313-startup-token-missing-jwt", "/api/v1/auth/token", token},
                           {"316-session-messages", "/api/v1/create_session", session},
                           {"317-session-minimal", "/api/v1/create_session", session},
                           {"318-session-missing-id", "/api/v1/create_session", session},
                           {"319-session-wrong-type-tag", "/api/v1/create_session", session},
                           {"324-capabilities", "/api/v1/get_server_capabilities", models},
                           {"325-capabilities-missing", "/api/v1/get_server_capabilities", models},
                           {"368-rest-sampler", "/api/v1/samplers/x:sample:0", sampler},
                           {"369-rest-sampler-no-base-model", "/api/v1/samplers/x", sampler},
                           {"277-submit-optim-missing-request-id", "/api/v1/optim_step", submit},
                           {"278-submit-optim-int-request-id", "/api/v1/optim_step", submit}}) {
        auto const recording = golden::load(std::string{"responses/"} + one.file + ".json");
        EXPECT_EQ(one.decodes(answer_at(recording, one.path)),
                  recording.at("outcomes").at("0.36.0").as_object().contains("result"))
            << one.file;
    }
}

TEST(GoldenService, FlagsHaveTheValuesThatTheOfficialSdkReads) {  // R-CONF-21, R-CONF-22
    for (auto const* file :
         {"304-startup-empty-config", "305-startup-unknown-flags", "306-startup-all-flags"}) {
        auto const recording = golden::load(std::string{"responses/"} + file + ".json");
        auto flags = decode_client_flags(answer_at(recording, "/api/v1/client/config")).value();
        // The two baselines that differ here when the server is silent.
        auto& bytes = flags.sample_dispatch_bytes_semaphore_size;
        bytes = bytes.value_or(10 * 1024 * 1024);
        auto& count = flags.sample_max_concurrent_requests;
        count = count.value_or(2000);
        EXPECT_EQ(boost::json::parse(encode_client_flags(flags)),
                  recording.at("outcomes").at("0.36.0").at("result").at("client_config"))
            << file;
    }
}

// The bodies of one path in a recorded request.
std::vector<value> bodies(std::string const& file, std::string const& path_end) {
    std::vector<value> out;
    auto const recording = golden::load("requests/0.36.0/" + file + ".json");
    for (auto const& request : recording.at("requests").as_array()) {
        if (text(request, "path").ends_with(path_end)) out.push_back(request.at("body_json"));
    }
    EXPECT_FALSE(out.empty()) << file;
    return out;
}

// R-SESS-01, R-SESS-04, R-SESS-10, R-SESS-22
TEST(GoldenService, SessionsAreCreatedAsByTheOfficialSdk) {
    for (auto const* file : {"008-create-session-metadata", "009-create-session-tags-one",
                             "016-create-session-display-name"}) {
        for (auto const& body : bodies(file, "/create_session")) {
            CreateSession request;
            request.tags = value_to<std::vector<std::string>>(body.at("tags"));
            request.user_metadata =
                value_to<std::map<std::string, std::string>>(body.at("user_metadata"));
            request.sdk_version = text(body, "sdk_version");
            request.display_name = text_if(body, "display_name");
            EXPECT_EQ(boost::json::parse(encode_create_session(request)), body) << file;
        }
    }
    for (auto const& body : bodies("018-session-heartbeat", "/session_heartbeat")) {
        EXPECT_EQ(boost::json::parse(encode_session_heartbeat(text(body, "session_id"))), body);
    }
    EXPECT_EQ(boost::json::parse(encode_finish(FinishReason::success, std::nullopt)),
              bodies("022-close-success", "/finish").at(0));
    EXPECT_EQ(boost::json::parse(encode_finish(FinishReason::errored, "out of data")),
              bodies("023-close-errored-detail", "/finish").at(0));
}

// R-SAMP-02, R-SESS-36
TEST(GoldenService, SamplingSessionsAreCreatedAndJoinedAsByTheOfficialSdk) {
    for (auto const* file :
         {"024-create-sampling-session-base-model", "025-create-sampling-session-model-path",
          "026-create-sampling-session-both"}) {
        auto const body = bodies(file, "/create_sampling_session").at(0);
        CreateSamplingSession request;
        request.session_id = text(body, "session_id");
        request.sampling_session_seq_id =
            value_to<std::int64_t>(body.at("sampling_session_seq_id"));
        request.base_model = text_if(body, "base_model");
        request.model_path = text_if(body, "model_path");
        EXPECT_EQ(boost::json::parse(encode_create_sampling_session(request)), body) << file;
    }
    auto const join = bodies("085-asample-joined-copy", "/join_sampling_session").at(0);
    EXPECT_EQ(boost::json::parse(encode_join_sampling_session(text(join, "sampling_session_id"))),
              join);
}

TEST(GoldenFutures, ArePolledAndCancelledAsByTheOfficialSdk) {  // R-FUT-40, R-FUT-60, R-FUT-64
    auto const* file = "083-asample-poll-via-retrieve-futures";
    for (auto const& body : bodies(file, "/retrieve_futures")) {
        auto const session = text(body.at("target"), "sampling_session_id");
        auto const retrieved = value_to<std::vector<std::string>>(body.at("retrieved_request_ids"));
        EXPECT_EQ(boost::json::parse(encode_completion_poll(
                      {.sampling_session_id = session,
                       .cloned_sampler_id =
                           value_to<std::int64_t>(body.at("target").at("cloned_sampler_id")),
                       .prev_cursor = value_to<std::int64_t>(body.at("prev_cursor")),
                       .retrieved_request_ids = retrieved})),
                  body);
    }
    for (auto const& body : bodies("080-asample-try-again-metadata", "/retrieve_future")) {
        EXPECT_EQ(boost::json::parse(encode_retrieve_future(
                      text(body, "request_id"), body.at("allow_metadata_only").as_bool())),
                  body);
    }
    EXPECT_EQ(boost::json::parse(encode_cancel_future("req-0")),
              bodies("086-asample-cancel", "/cancel_future").at(0));
}

// Where tinkxx differs on purpose: the decision of behaviour.md §13.
std::map<std::string, ErrorCategory> const other_category{
    {"future-failed-user-capital", ErrorCategory::user},  // C-45: any case
    {"future-failed-user-upper", ErrorCategory::user},    // C-45
};

class GoldenFailure : public testing::TestWithParam<std::string> {};

TEST_P(GoldenFailure, HasTheCategoryThatTheOfficialSdkReads) {  // R-FUT-03
    auto const recording = golden::load(GetParam());
    auto const body = answer_at(recording, "/api/v1/retrieve_future");
    auto const answer = classify_future_answer("application/json", body);
    auto const* failed = std::get_if<future_answer::Failed>(&answer);
    ASSERT_NE(failed, nullptr) << body;
    auto const& error = recording.at("outcomes").at("0.36.0").at("error");
    EXPECT_EQ(text(error, "class"), "RequestFailedError");
    auto const other = other_category.find(text(recording, "name"));
    EXPECT_EQ(to_string(failed->category),
              other == other_category.end() ? text(error, "category") : to_string(other->second));
    auto const given = boost::json::parse(body).at("error");
    if (given.is_string()) {
        EXPECT_EQ(failed->message, std::string_view{given.as_string()});
    }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFailure,
                         testing::ValuesIn(golden::list("responses",
                                                        std::regex{"future-failed-.*"})),
                         [](auto const& one) { return golden::test_name(one.param); });

TEST(GoldenFutures, AnswersAreToldApartAsByTheOfficialSdk) {  // R-FUT-03, R-FUT-40
    using namespace future_answer;
    int again = 0;
    int metadata = 0;
    for (auto const& file :
         golden::list("responses", std::regex{"future-(try-again|complete-metadata).*"})) {
        auto const recording = golden::load(file);
        for (auto const& answers : recording.at("answers").as_array()) {
            for (auto const& then : answers.at("then").as_array()) {
                auto const body = text_if(then.at("answer"), "body_text");
                if (!body) continue;
                auto const answer = classify_future_answer("application/json", *body);
                if (body->find("try_again") != std::string::npos) {
                    EXPECT_TRUE(std::holds_alternative<TryAgain>(answer)) << *body;
                    ++again;
                } else if (body->find("complete_metadata") != std::string::npos) {
                    EXPECT_TRUE(std::holds_alternative<Metadata>(answer)) << *body;
                    ++metadata;
                } else {
                    EXPECT_TRUE(std::holds_alternative<Json>(answer)) << *body;
                }
            }
        }
    }
    EXPECT_GT(again, 10);
    EXPECT_GE(metadata, 6);
}

TEST(GoldenFutures, StrictJsonIsWhatTheOfficialSdkTakes) {  // R-FUT-03
    int checked = 0;
    for (auto const& file :
         golden::list("responses", std::regex{"future-(json-|not-json|empty-200).*"})) {
        auto const recording = golden::load(file);
        auto const& first = recording.at("answers").at(0).at("then").at(0).at("answer");
        auto const body = decode_base64(text(first, "body_base64")).value();
        auto const answer =
            classify_future_answer(text_if(first, "content_type").value_or(""), body);
        auto const* json = std::get_if<future_answer::Json>(&answer);
        EXPECT_EQ(json != nullptr && parse_json("t", json->result).has_value(),
                  recording.at("outcomes").at("0.36.0").as_object().contains("result"))
            << file;
        ++checked;
    }
    EXPECT_GE(checked, 12);
}

TEST(GoldenFutures, QueueStatesAreThoseThatTheOfficialSdkReports) {  // R-FUT-07, R-FUT-30
    int checked = 0;
    for (auto const& file : golden::list("responses", std::regex{"future-408-.*"})) {
        auto const recording = golden::load(file);
        boost::json::array ours;
        for (auto const& then : recording.at("answers").at(0).at("then").as_array()) {
            if (then.at("answer").at("status") != 408) continue;
            auto const report =
                decode_queue_report(text_if(then.at("answer"), "body_text").value_or(""));
            if (!report) continue;
            ours.push_back({std::string{to_string(report->state)},
                            report->reason.empty() ? value(nullptr) : value(report->reason)});
        }
        auto const* theirs =
            recording.at("outcomes").at("0.36.0").as_object().if_contains("queue_state_reports");
        EXPECT_EQ(value(ours), theirs == nullptr ? value(boost::json::array{}) : *theirs) << file;
        ++checked;
    }
    EXPECT_EQ(checked, 5);
}

TEST(GoldenJwt, EndsWhenTheOfficialSdkSays) {  // R-AUTH-11
    int checked = 0;
    for (auto const& vector : golden::newest_vectors("jwt_expiry")) {
        auto const claims = decode_jwt(text(vector, "token"));
        auto const* expiry = vector.as_object().if_contains("expiry");
        std::optional<double> ours;
        if (claims && claims->exp) {
            ours = std::chrono::duration<double>{claims->exp->time_since_epoch()}.count();
        }
        std::optional<double> theirs;
        if (expiry != nullptr && expiry->is_number()) theirs = expiry->to_number<double>();
        EXPECT_EQ(ours, theirs) << vector;
        ++checked;
    }
    EXPECT_EQ(checked, 13);
}

}  // namespace
}  // namespace tinkxx::wire
