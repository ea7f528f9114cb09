#include "service/telemetry/error_text.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tinkxx::service {
namespace {

Error error_of(ErrorKind kind, std::optional<int> status = {}) {
    ErrorDetails details;
    details.kind = kind;
    details.http_status = status;
    return Error{std::move(details)};
}

TEST(ErrorType, IsTheWordOfTheOfficialSdk) {  // R-TEL-30
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 400)), "BadRequestError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 401)), "AuthenticationError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 403)), "PermissionDeniedError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 404)), "NotFoundError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 409)), "ConflictError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 422)), "UnprocessableEntityError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 429)), "RateLimitError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 418)), "APIStatusError");
    EXPECT_EQ(error_type(error_of(ErrorKind::status, 503)), "InternalServerError");
    EXPECT_EQ(error_type(error_of(ErrorKind::billing, 402)), "BillingError");
    EXPECT_EQ(error_type(error_of(ErrorKind::connection)), "APIConnectionError");
    EXPECT_EQ(error_type(error_of(ErrorKind::timeout)), "APITimeoutError");
    EXPECT_EQ(error_type(error_of(ErrorKind::request_failed)), "RequestFailedError");
}

TEST(ErrorType, TellsKindsApart) {  // R-TEL-30
    std::set<std::string_view> names;
    for (auto kind = ErrorKind::validation; kind <= ErrorKind::callback;
         kind = static_cast<ErrorKind>(static_cast<int>(kind) + 1)) {
        EXPECT_TRUE(names.insert(error_type(error_of(kind))).second) << to_string(kind);
    }
}

}  // namespace
}  // namespace tinkxx::service
