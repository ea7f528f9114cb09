#include "service/session/start_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Step = StartUp::Step;

Error status(int code) {
    return Error{{.kind = ErrorKind::status, .message = "x", .http_status = code}};
}

wire::CreateSession request() { return {.tags = {"a"}, .sdk_version = "0.36.0"}; }

TEST(StartUp, AsksForConfigThenDynamicConfigThenASession) {  // R-CONF-41, R-CONF-20, R-CONF-30
    StartUp start{SessionKind::session, request()};
    auto order = start.order();
    EXPECT_EQ(order.path, "/api/v1/client/config");
    EXPECT_EQ(order.body, R"({"sdk_version":"0.36.0"})");
    EXPECT_EQ(order.repeat, Repeat::submit_loop);
    EXPECT_TRUE(order.http_retries);
    EXPECT_FALSE(start.on_answer(R"({"fwdbwd_max_chunk_len":7})"));

    order = start.order();
    EXPECT_EQ(order.path, "/api/v1/client/dynamic_config");
    EXPECT_EQ(order.repeat, Repeat::submit_loop);
    EXPECT_FALSE(order.http_retries);
    EXPECT_EQ(order.timeout, 10s);
    EXPECT_EQ(order.purpose, Purpose::session);
    EXPECT_FALSE(start.on_answer(R"({"refresh_interval_sec":15})"));

    order = start.order();
    EXPECT_EQ(order.path, "/api/v1/create_session");
    EXPECT_EQ(order.repeat, Repeat::once) << "R-SESS-01";
    EXPECT_TRUE(order.http_retries);
    EXPECT_FALSE(start.on_answer(R"({"session_id":"s-1"})"));

    EXPECT_EQ(start.step(), Step::done);
    EXPECT_EQ(start.flags().fwdbwd_max_chunk_len, 7);
    EXPECT_EQ(start.dynamic().refresh_interval_sec, 15s);
    EXPECT_EQ(start.session_id(), "s-1");
}

TEST(StartUp, WithoutASessionItEndsBeforeOne) {  // R-CONF-41
    StartUp start{SessionKind::sessionless, request()};
    EXPECT_FALSE(start.on_answer("{}"));
    EXPECT_FALSE(start.on_answer("{}"));
    EXPECT_EQ(start.step(), Step::done);
}

TEST(StartUp, AShadowHasNothingToAsk) {  // R-SESS-31
    StartUp const start{SessionSnapshot{.session_id = "s-1",
                                        .flags = {.fwdbwd_max_chunk_len = 7},
                                        .dynamic = {.refresh_interval_sec = 15s}}};
    EXPECT_EQ(start.step(), Step::done);
    EXPECT_EQ(start.session_id(), "s-1");
    EXPECT_EQ(start.flags().fwdbwd_max_chunk_len, 7);
}

TEST(StartUp, AServerWithoutConfigsGetsTheDefaults) {  // R-CONF-20, R-CONF-30
    StartUp start{SessionKind::session, request()};
    EXPECT_THAT(start.on_error(status(404)).value(), HasSubstr("no client config"));
    EXPECT_THAT(start.on_error(status(404)).value(), HasSubstr("no dynamic config"));
    EXPECT_EQ(start.flags(), wire::ClientFlags{});
    EXPECT_EQ(start.dynamic(), wire::DynamicFlags{});
    EXPECT_EQ(start.step(), Step::session);
    EXPECT_FALSE(start.on_error(status(404))) << "without a session there is nothing to do";
}

TEST(StartUp, StaysWhereItFailed) {  // R-CONF-20, R-CONF-30
    StartUp start{SessionKind::session, request()};
    EXPECT_FALSE(start.on_error(status(403)));
    EXPECT_EQ(start.step(), Step::client_config);
    EXPECT_FALSE(start.on_answer("{}"));
    EXPECT_FALSE(start.on_error(status(500)));
    EXPECT_EQ(start.step(), Step::dynamic_config);
}

TEST(StartUp, RefusesAnswersThatMakeNoSense) {  // R-SESS-01
    StartUp start{SessionKind::session, request()};
    auto problem = start.on_answer(R"({"fwdbwd_max_chunk_len":"many"})");
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->kind, ErrorKind::validation);
    EXPECT_THAT(problem->message, HasSubstr("/api/v1/client/config"));
    EXPECT_THAT(problem->message, HasSubstr("fwdbwd_max_chunk_len"));
    (void)start.on_answer("{}");
    EXPECT_TRUE(start.on_answer("[]"));
    (void)start.on_answer("{}");
    problem = start.on_answer(R"({"type":"create_session"})");
    ASSERT_TRUE(problem);
    EXPECT_THAT(problem->message, HasSubstr("session_id"));
    EXPECT_EQ(start.step(), Step::session);
}

}  // namespace
}  // namespace tinkxx::service
