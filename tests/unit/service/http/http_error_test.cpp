#include "service/http/http_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

WallTime const now{1'800'000'000s};
Operation const healthz{.method = "GET", .path = "/api/v1/healthz"};

ErrorDetails error(int status, std::string_view body = {}, Headers headers = {}) {
    Head head;
    head.status = status;
    head.headers = std::move(headers);
    return status_error(healthz, head, body, now, {});
}

TEST(WithOperation, NamesItOnce) {  // R-ERR-01
    EXPECT_EQ(with_operation("sample", "it failed"), "sample: it failed");
    EXPECT_EQ(with_operation("sample", "sample: it failed"), "sample: it failed");
    EXPECT_EQ(with_operation("sample", "sampler: it failed"), "sample: sampler: it failed");
    EXPECT_EQ(with_operation("sample", ""), "sample: ");
}

TEST(FailureError, SaysWhatCannotHealAndLeavesTheWayOutToTheTransport) {
    auto const error = failure_error(
        healthz, {.kind = FailureKind::tls, .message = "refused; do this", .permanent = true}, {});
    EXPECT_EQ(error.message, "GET /api/v1/healthz: refused; do this");
    EXPECT_FALSE(error.retryable);
    EXPECT_TRUE(failure_error(healthz, {.kind = FailureKind::tls}, {}).retryable);
}

TEST(StatusError, NamesOperationCauseAndWayOut) {  // R-ERR-01
    EXPECT_EQ(error(401, R"( {"detail": "no key"} )").message,
              R"(GET /api/v1/healthz: 401 unauthorized: {"detail":"no key"}; )"
              "set TINKER_API_KEY or ClientOptions::api_key");
}

TEST(StatusError, ShowsJsonElseTextElseJustTheCode) {  // R-ERR-01
    EXPECT_EQ(error(418, R"([1, 2])").message, "GET /api/v1/healthz: 418: [1,2]");
    EXPECT_EQ(error(418, "  short and stout\n").message,
              "GET /api/v1/healthz: 418: short and stout");
    EXPECT_EQ(error(418).message, "GET /api/v1/healthz: 418");
}

TEST(StatusError, KeepsItsMessageOnOneLine) {  // R-ERR-01
    auto const e = error(418, "<html>\n  <p>tea\r\n\ttinkxx: error: forged</p>\n</html>");
    EXPECT_EQ(e.message,
              "GET /api/v1/healthz: 418: <html> <p>tea tinkxx: error: forged</p> </html>");
    EXPECT_THAT(e.body, HasSubstr("\n  <p>")) << "the body stays as it came";
}

TEST(StatusError, CutsLongBodiesBetweenCharacters) {  // R-ERR-01
    std::string const long_body(3000, 'x');
    auto const e = error(418, long_body);
    EXPECT_LT(e.message.size(), 1200U);
    EXPECT_THAT(e.message, EndsWith("..."));
    EXPECT_EQ(e.body.size(), 3000U);
    std::string umlauts = "x";
    for (int i = 0; i < 4000; ++i) umlauts += "\xc3\xa4";
    EXPECT_EQ(error(418, umlauts).body.size(), 4095U);
}

TEST(StatusError, FallsBackToACategoryByStatus) {  // R-ERR-03
    EXPECT_EQ(error(404).category, ErrorCategory::user);
    EXPECT_EQ(error(429).category, ErrorCategory::server);
    EXPECT_EQ(error(503).category, ErrorCategory::server);
    EXPECT_EQ(error(302).category, ErrorCategory::unknown);
    EXPECT_EQ(error(500, R"({"category": "User"})").category, ErrorCategory::user);
    EXPECT_EQ(error(400, R"({"category": "SERVER"})").category, ErrorCategory::server);
    EXPECT_EQ(error(400, R"({"category": "martian"})").category, ErrorCategory::user);
}

TEST(StatusError, KnowsItsKind) {  // R-RETRY-74
    EXPECT_EQ(error(402).kind, ErrorKind::billing);
    EXPECT_EQ(error(500).kind, ErrorKind::status);
    EXPECT_TRUE(error(500).retryable);
    EXPECT_TRUE(error(409).retryable);
    EXPECT_FALSE(error(404).retryable);
    EXPECT_EQ(error(404).http_status, 404);
}

TEST(StatusError, TakesTheRequestIdFromHeaderOrBody) {
    EXPECT_EQ(error(500, R"({"request_id": "b"})", {{"x-request-id", "a"}}).request_id, "a");
    EXPECT_EQ(error(500, R"({"request_id": "b"})").request_id, "b");
    EXPECT_EQ(error(500, R"({"request_id": 7})").request_id, "");
}

TEST(StatusError, KeepsWhatTheServerAskedFor) {
    EXPECT_EQ(error(429, {}, {{"retry-after", "3600"}}).retry_after, 3600s);
    EXPECT_EQ(error(429, {}, {{"retry-after-ms", "1.5"}}).retry_after, 2ms);
    EXPECT_FALSE(error(429).retry_after);
}

TEST(StatusError, HoldsNoSecrets) {  // R-ERR-04
    Scrubber scrubber;
    scrubber.add("tml-0123456789abcdef");
    Head head;
    head.status = 401;
    head.headers = {{"set-cookie", "id=1"}, {"x-echo", "key tml-0123456789abcdef"}};
    auto const e =
        status_error(healthz, head, R"({"detail": "bad key tml-0123456789abcdef"})", now, scrubber);
    EXPECT_THAT(e.message, Not(HasSubstr("tml-0123")));
    EXPECT_THAT(e.body, Not(HasSubstr("tml-0123")));
    for (auto const& [name, value] : e.headers) {
        EXPECT_THAT(value, Not(HasSubstr("tml-0123"))) << name;
        EXPECT_THAT(value, Not(HasSubstr("id=1"))) << name;
    }
}

TEST(StatusError, NamesAFeatureThatTheServerLacks) {  // R-ERR-05
    Operation const newer{.method = "POST", .path = "/x", .feature = "custom losses"};
    Head head;
    head.status = 404;
    auto const e = status_error(newer, head, {}, now, {});
    EXPECT_EQ(e.unsupported_feature, "custom losses");
    EXPECT_THAT(e.message, HasSubstr("; this server does not support custom losses"));
    EXPECT_EQ(status_error(newer, head, R"({"detail": "Not Found"})", now, {}).message,
              "POST /x: 404 not found: {\"detail\":\"Not Found\"}; this server does not support "
              "custom losses");
    EXPECT_EQ(status_error(newer, head, R"({"detail": "no model m-1"})", now, {}).message,
              "POST /x: 404 not found: {\"detail\":\"no model m-1\"}; if it exists, this server "
              "does not support custom losses");
    head.status = 400;
    EXPECT_EQ(status_error(newer, head, {}, now, {}).unsupported_feature, "");
    EXPECT_EQ(error(404).unsupported_feature, "");
}

TEST(FailureError, TellsTimeoutsFromOtherFailures) {  // R-RETRY-74
    auto const timeout = failure_error(
        healthz, {.kind = FailureKind::read_timeout, .message = "h:80: silent for 60 s"}, {});
    EXPECT_EQ(timeout.kind, ErrorKind::timeout);
    EXPECT_TRUE(timeout.retryable);
    EXPECT_THAT(timeout.message, HasSubstr("GET /api/v1/healthz: h:80: silent for 60 s; "));
    auto const reset = failure_error(healthz, {.kind = FailureKind::reset}, {});
    EXPECT_EQ(reset.kind, ErrorKind::connection);
    EXPECT_TRUE(reset.retryable);
    EXPECT_EQ(failure_error(healthz, {.kind = FailureKind::invalid_request}, {}).kind,
              ErrorKind::validation);
    EXPECT_EQ(failure_error(healthz, {.kind = FailureKind::closed}, {}).kind, ErrorKind::closed);
}

TEST(Error, IsACopyableValueWithACause) {  // R-ERR-02
    auto details = error(500);
    details.cause = std::make_shared<Error const>(error(503));
    Error const original{details};
    Error const copy = original;
    ASSERT_NE(copy.cause(), nullptr);
    EXPECT_EQ(copy.cause()->http_status(), 503);
    EXPECT_STREQ(copy.what(), original.what());
    EXPECT_THROW(copy.raise(), StatusError);
    EXPECT_THROW(Error{error(402)}.raise(), BillingError);
    EXPECT_THROW(Error{failure_error(healthz, {.kind = FailureKind::read_timeout}, {})}.raise(),
                 TimeoutError);
}

}  // namespace
}  // namespace tinkxx::service
