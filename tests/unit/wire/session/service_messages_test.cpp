#include "wire/session/service_messages.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

using namespace std::chrono_literals;

TEST(ServiceMessages, SayWhichVersionAsks) {  // R-CONF-20, R-CONF-30
    EXPECT_EQ(encode_sdk_version("0.36.0"), R"({"sdk_version":"0.36.0"})");
}

TEST(ClientFlags, HaveTheirDefaultsWhenMissing) {  // R-CONF-21
    auto const flags = decode_client_flags("{}");
    ASSERT_TRUE(flags.has_value());
    EXPECT_EQ(*flags, ClientFlags{});
    EXPECT_FALSE(flags->pjwt_auth_enabled);
    EXPECT_EQ(flags->credential_default_source, "api_key");
    EXPECT_EQ(flags->inflight_response_bytes_semaphore_size, 50 * 1024 * 1024);
    EXPECT_TRUE(flags->parallel_fwdbwd_chunks);
    EXPECT_FALSE(flags->proto_compress_fwdbwd);
    EXPECT_EQ(flags->fwdbwd_max_chunk_len, 1024);
    EXPECT_EQ(flags->fwdbwd_max_chunk_bytes_count, 5'000'000);
    EXPECT_EQ(flags->fwdbwd_dispatch_bytes_semaphore_size, 50'000'000);
    EXPECT_EQ(flags->billing_exception_max_pause_duration_sec, 1h);
    EXPECT_FALSE(flags->sample_no_retries);
    EXPECT_TRUE(flags->sample_enable_stuck_detection);
    EXPECT_TRUE(flags->use_pyqwest_transport);
    EXPECT_FALSE(flags->create_model_via_load_weights);
    EXPECT_FALSE(flags->sample_use_retrieve_futures);
    EXPECT_FALSE(flags->sample_join_sampling_session);
    EXPECT_FALSE(flags->custom_loss_server_side);
}

TEST(ClientFlags, TellAMissingLimitFromOneThatIsGiven) {  // R-CONF-22
    EXPECT_EQ(decode_client_flags("{}").value().sample_dispatch_bytes_semaphore_size, std::nullopt);
    EXPECT_EQ(decode_client_flags("{}").value().sample_max_concurrent_requests, std::nullopt);
    auto const given = decode_client_flags(
        R"({"sample_dispatch_bytes_semaphore_size": 7, "sample_max_concurrent_requests": 8})");
    EXPECT_EQ(given.value().sample_dispatch_bytes_semaphore_size, 7);
    EXPECT_EQ(given.value().sample_max_concurrent_requests, 8);
}

TEST(ClientFlags, IgnoreUnknownOnesAndRefuseWrongOnes) {  // R-CONF-21
    EXPECT_EQ(decode_client_flags(R"({"new_flag": 1, "proto_write_fwdbwd": true})").value(),
              ClientFlags{});
    for (auto const* json :
         {R"({"fwdbwd_max_chunk_len": "many"})", R"({"fwdbwd_max_chunk_len": null})",
          R"({"sample_no_retries": 1})", R"({"credential_default_source": 1})", "[]", "null", ""}) {
        EXPECT_FALSE(decode_client_flags(json).has_value()) << json;
    }
    EXPECT_EQ(decode_client_flags(R"({"fwdbwd_max_chunk_len": "many"})").error().field(),
              "/fwdbwd_max_chunk_len");
}

TEST(ClientFlags, GoRoundInEveryMember) {  // R-SESS-35
    ClientFlags flags{.pjwt_auth_enabled = true,
                      .credential_default_source = "credential_cmd",
                      .sample_dispatch_bytes_semaphore_size = 1,
                      .inflight_response_bytes_semaphore_size = 2,
                      .parallel_fwdbwd_chunks = false,
                      .proto_compress_fwdbwd = true,
                      .fwdbwd_max_chunk_len = 3,
                      .fwdbwd_max_chunk_bytes_count = 4,
                      .fwdbwd_dispatch_bytes_semaphore_size = 5,
                      .billing_exception_max_pause_duration_sec = 6s,
                      .sample_no_retries = true,
                      .sample_enable_stuck_detection = false,
                      .sample_max_concurrent_requests = 7,
                      .use_pyqwest_transport = false,
                      .create_model_via_load_weights = true,
                      .sample_use_retrieve_futures = true,
                      .sample_join_sampling_session = true,
                      .custom_loss_server_side = true};
    EXPECT_EQ(decode_client_flags(encode_client_flags(flags)).value(), flags);
    EXPECT_EQ(decode_client_flags(encode_client_flags({})).value(), ClientFlags{});
}

TEST(ClientFlags, KeepDurationsAddable) {  // R-CONF-21
    auto const pause = [](std::string const& seconds) {
        return decode_client_flags(R"({"billing_exception_max_pause_duration_sec": )" + seconds +
                                   "}")
            .value()
            .billing_exception_max_pause_duration_sec;
    };
    EXPECT_EQ(pause("-5"), 0s);
    EXPECT_EQ(pause("60"), 60s);
    EXPECT_EQ(pause("9223372036854775807"), 24h * 365 * 10);
}

TEST(DynamicFlags, HaveTheirDefaultsAndGoRound) {  // R-CONF-30, R-CONF-32
    auto const flags = decode_dynamic_flags("{}").value();
    EXPECT_EQ(flags.refresh_interval_sec, 300s);
    EXPECT_FALSE(flags.sample_cancel_enabled);
    EXPECT_EQ(flags.sample_cancel_max_batch_size, 64);
    DynamicFlags const other{.refresh_interval_sec = 20s,
                             .sample_cancel_enabled = true,
                             .sample_cancel_max_batch_size = 3};
    EXPECT_EQ(decode_dynamic_flags(encode_dynamic_flags(other)).value(), other);
    EXPECT_FALSE(decode_dynamic_flags(R"({"refresh_interval_sec": "x"})").has_value());
}

TEST(AuthToken, IsTheMemberJwt) {  // R-AUTH-10
    EXPECT_EQ(encode_auth_token_request(), "{}");
    EXPECT_EQ(decode_auth_token(R"({"jwt": "eyJ", "x": 1})").value(), "eyJ");
}

TEST(AuthToken, ShowsNothingOfAnAnswerThatIsWrong) {  // R-AUTH-10, R-CONF-12
    for (auto const* json :
         {R"({"jwt": ["secret"]})", R"({"token": "secret"})", "secret", "{}", R"({"jwt": 5})"}) {
        auto const token = decode_auth_token(json);
        ASSERT_FALSE(token.has_value()) << json;
        EXPECT_EQ(std::string_view{token.error().what()}.find("secret"), std::string_view::npos);
        EXPECT_TRUE(token.error().value().empty());
    }
}

TEST(CreateSession, SendsTagsMetadataAndWhatIsSet) {  // R-SESS-01, R-SESS-04
    EXPECT_EQ(encode_create_session({.sdk_version = "0.36.0"}),
              R"({"tags":[],"user_metadata":{},"sdk_version":"0.36.0","type":"create_session"})");
    EXPECT_EQ(
        encode_create_session({.tags = {"a", "b"},
                               .user_metadata = {{"note", "\xc3\xa9\"\\\n"}, {"owner", "ada"}},
                               .sdk_version = "v",
                               .project_id = "p",
                               .display_name = "d"}),
        "{\"tags\":[\"a\",\"b\"],\"user_metadata\":{\"note\":\"\xc3\xa9\\\"\\\\\\n\",\"owner\":"
        "\"ada\"},"
        "\"sdk_version\":\"v\",\"project_id\":\"p\",\"display_name\":\"d\",\"type\":\"create_"
        "session\"}");
}

TEST(CreateSession, ReadsTheIdAndTheMessages) {  // R-SESS-01, R-SESS-02
    auto const answer = decode_session_created(
        R"({"session_id": "s-1", "info_message": "i", "warning_message": "w", "error_message": "e", "x": 1})");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->session_id, "s-1");
    EXPECT_EQ(answer->info_message, "i");
    EXPECT_EQ(answer->warning_message, "w");
    EXPECT_EQ(answer->error_message, "e");
    EXPECT_EQ(
        decode_session_created(R"({"session_id": "s", "info_message": null})").value().info_message,
        std::nullopt);
    EXPECT_EQ(decode_session_created(R"({"type": "create_session"})").error().field(),
              "/session_id");
    EXPECT_EQ(decode_session_created(R"({"session_id": "s", "type": "z"})").error().field(),
              "/type");
}

TEST(Session, HasHeartbeatsAndAnEnd) {  // R-SESS-10, R-SESS-22
    EXPECT_EQ(encode_session_heartbeat("S"), R"({"session_id":"S","type":"session_heartbeat"})");
    EXPECT_EQ(encode_finish(CloseReason::success, std::nullopt),
              R"({"reason":{"type":"success"},"detail":null})");
    EXPECT_EQ(encode_finish(CloseReason::errored, "out of data"),
              R"({"reason":{"type":"errored"},"detail":"out of data"})");
    EXPECT_EQ(encode_finish(CloseReason::interrupted, ""),
              R"({"reason":{"type":"interrupted"},"detail":""})");
}

TEST(SamplingSession, IsCreatedFromAModelOrAPath) {  // R-SAMP-02
    EXPECT_EQ(
        encode_create_sampling_session({.session_id = "S", .base_model = "org/tiny"}),
        R"({"session_id":"S","sampling_session_seq_id":0,"base_model":"org/tiny","type":"create_sampling_session"})");
    EXPECT_EQ(
        encode_create_sampling_session({.session_id = "S",
                                        .sampling_session_seq_id = 3,
                                        .model_path = "tinker://r/sampler_weights/n"}),
        R"({"session_id":"S","sampling_session_seq_id":3,"model_path":"tinker://r/sampler_weights/n","type":"create_sampling_session"})");
    EXPECT_EQ(decode_sampling_session_created(R"({"sampling_session_id": "S:sample:0"})").value(),
              "S:sample:0");
    EXPECT_EQ(decode_sampling_session_created("{}").error().field(), "/sampling_session_id");
}

TEST(SamplingSession, IsJoinedByACopy) {  // R-SESS-36
    EXPECT_EQ(encode_join_sampling_session("S:sample:0"),
              R"({"sampling_session_id":"S:sample:0","type":"join_sampling_session"})");
    EXPECT_EQ(
        decode_sampling_session_joined(R"({"type": "join_sampling_session", "client_counter": 7})")
            .value(),
        7);
    EXPECT_EQ(decode_sampling_session_joined("{}").error().field(), "/client_counter");
}

TEST(Capabilities, ListModelsOfWhichLittleMayBeKnown) {  // R-WIRE-07
    auto const answer = decode_server_capabilities(
        R"({"supported_models": [{"model_name": "a", "max_context_length": 1024, "trainable": true, "sampleable": false}, {}, {"model_name": null}]})");
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->supported_models.size(), 3);
    EXPECT_EQ(answer->supported_models[0].model_name, "a");
    EXPECT_EQ(answer->supported_models[0].max_context_length, 1024);
    EXPECT_EQ(answer->supported_models[0].trainable, true);
    EXPECT_EQ(answer->supported_models[0].sampleable, false);
    EXPECT_EQ(answer->supported_models[1].model_name, std::nullopt);
    EXPECT_EQ(answer->supported_models[2].trainable, std::nullopt);
    EXPECT_EQ(decode_server_capabilities("{}").error().field(), "/supported_models");
    EXPECT_EQ(decode_healthz(R"({"status": "ok"})").value(), "ok");
    EXPECT_EQ(decode_healthz("{}").error().field(), "/status");
}

}  // namespace
}  // namespace tinkxx::wire
