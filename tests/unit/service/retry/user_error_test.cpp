#include "service/retry/user_error.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace tinkxx::service {
namespace {

Error status(int code, std::string message = "status") {
    ErrorDetails details;
    details.kind = code == 402 ? ErrorKind::billing : ErrorKind::status;
    details.http_status = code;
    details.message = std::move(message);
    return Error{std::move(details)};
}

Error failed(ErrorCategory category) {
    ErrorDetails details;
    details.kind = ErrorKind::request_failed;
    details.category = category;
    return Error{std::move(details)};
}

Error caused_by(Error cause) {
    ErrorDetails details;
    details.kind = ErrorKind::connection;
    details.cause = std::make_shared<Error const>(std::move(cause));
    return Error{std::move(details)};
}

Error thrown(std::exception_ptr exception) {
    ErrorDetails details;
    details.kind = ErrorKind::callback;
    details.exception = std::move(exception);
    return Error{std::move(details)};
}

TEST(FindUserError, FindsStatusesOfTheUser) {  // R-RETRY-21
    for (int const code : {400, 401, 402, 403, 404, 409, 410, 422, 429, 499}) {
        EXPECT_TRUE(find_user_error(status(code))) << code;
    }
    for (int const code : {301, 399, 408, 500, 503}) {
        EXPECT_FALSE(find_user_error(status(code))) << code;
    }
}

TEST(FindUserError, FindsRequestsThatFailedByTheirOwnFault) {  // R-RETRY-21
    EXPECT_TRUE(find_user_error(failed(ErrorCategory::user)));
    EXPECT_FALSE(find_user_error(failed(ErrorCategory::server)));
    EXPECT_FALSE(find_user_error(failed(ErrorCategory::unknown)));
}

TEST(FindUserError, LeavesOutTheMoodOfAProxy) {  // R-RETRY-21, R-RETRY-75
    ErrorDetails details;
    details.kind = ErrorKind::connection;
    details.http_status = 400;
    EXPECT_FALSE(find_user_error(Error{details}));
}

TEST(FindUserError, LooksAtTheWholeChainOfCauses) {  // R-RETRY-21
    auto const found = find_user_error(caused_by(caused_by(status(422, "deep"))));
    ASSERT_TRUE(found);
    EXPECT_STREQ(found->what(), "deep");
    EXPECT_FALSE(find_user_error(caused_by(caused_by(status(500)))));
}

TEST(FindUserError, GivesTheOutermostOfSeveral) {  // R-RETRY-21
    ErrorDetails details = status(404, "outer").details();
    details.cause = std::make_shared<Error const>(status(400, "inner"));
    EXPECT_STREQ(find_user_error(Error{details})->what(), "outer");
}

TEST(FindUserError, LooksAtCausesBeforeExceptions) {  // R-RETRY-21
    ErrorDetails details = thrown(std::make_exception_ptr(status(400, "thrown"))).details();
    details.cause = std::make_shared<Error const>(caused_by(status(404, "cause")));
    EXPECT_STREQ(find_user_error(Error{details})->what(), "cause");
}

TEST(FindUserError, LooksIntoWhatACallbackThrew) {  // R-RETRY-21
    EXPECT_TRUE(find_user_error(thrown(std::make_exception_ptr(status(400)))));
    EXPECT_FALSE(find_user_error(thrown(std::make_exception_ptr(std::runtime_error{"mine"}))));
    EXPECT_FALSE(find_user_error(thrown(std::make_exception_ptr(7))));
    std::exception_ptr nested;
    try {
        try {
            throw StatusError{status(403).details()};
        } catch (...) {
            std::throw_with_nested(std::runtime_error{"while working"});
        }
    } catch (...) {
        nested = std::current_exception();
    }
    EXPECT_TRUE(find_user_error(thrown(nested)));
}

TEST(FindUserError, EndsInChainsOfAnyLength) {  // R-RETRY-21
    auto error = status(400, "too deep to be of interest");
    for (int i = 0; i < 1000; ++i) error = caused_by(std::move(error));
    EXPECT_FALSE(find_user_error(error));
    auto exception = std::make_exception_ptr(status(400));
    for (int i = 0; i < 1000; ++i) exception = std::make_exception_ptr(thrown(exception));
    EXPECT_FALSE(find_user_error(thrown(exception)));
}

TEST(FindUserError, LooksAtEachErrorOnce) {  // R-RETRY-21
    // Every link leads to the next in two ways: looked at twice each, they would take for ever.
    auto error = status(500);
    for (int i = 0; i < 60; ++i) {
        ErrorDetails details;
        details.kind = ErrorKind::callback;
        details.cause = std::make_shared<Error const>(error);
        details.exception = std::make_exception_ptr(error);
        error = Error{std::move(details)};
    }
    EXPECT_FALSE(find_user_error(error));
}

}  // namespace
}  // namespace tinkxx::service
