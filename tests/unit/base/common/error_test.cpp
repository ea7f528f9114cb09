#include <tinkxx/error.hpp>
#include <tinkxx/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <type_traits>

namespace tinkxx {
namespace {

Error some_error() {
    auto const cause = std::make_shared<Error const>(
        ErrorDetails{.kind = ErrorKind::connection, .message = "connect: refused"});
    return Error{{.kind = ErrorKind::status,
                  .message = "sample: 503",
                  .retryable = true,
                  .http_status = 503,
                  .request_id = "r-1",
                  .cause = cause}};
}

static_assert(std::is_nothrow_copy_constructible_v<Error>);
static_assert(std::is_nothrow_copy_assignable_v<StatusError>);

TEST(Error, CopiesKeepEverythingIncludingTheCause) {  // R-ERR-02
    auto original = std::make_unique<Error>(some_error());
    Error const copy = *original;
    original.reset();

    EXPECT_STREQ(copy.what(), "sample: 503");
    EXPECT_EQ(copy.http_status(), 503);
    EXPECT_EQ(copy.request_id(), "r-1");
    EXPECT_TRUE(copy.retryable());
    ASSERT_NE(copy.cause(), nullptr);
    EXPECT_EQ(copy.cause()->kind(), ErrorKind::connection);
    EXPECT_EQ(copy.cause()->cause(), nullptr);
}

TEST(Error, MovesBetweenThreads) {  // R-ERR-02
    std::exception_ptr carried;
    std::thread{[&carried] {
        try {
            some_error().raise();
        } catch (...) {
            carried = std::current_exception();
        }
    }}.join();

    try {
        std::rethrow_exception(carried);
        FAIL();
    } catch (StatusError const& error) {
        EXPECT_EQ(error.cause()->kind(), ErrorKind::connection);
    }
}

template <class Class>
void expect_raised(ErrorKind kind) {
    try {
        Error{{.kind = kind, .message = "why"}}.raise();
        FAIL() << to_string(kind);
    } catch (Error const& error) {
        EXPECT_EQ(typeid(error), typeid(Class)) << to_string(kind);
        EXPECT_EQ(error.kind(), kind);
        EXPECT_STREQ(error.what(), "why");
    }
}

TEST(Error, RaisesTheClassOfItsKind) {
    expect_raised<ValidationError>(ErrorKind::validation);
    expect_raised<ConnectionError>(ErrorKind::connection);
    expect_raised<TimeoutError>(ErrorKind::timeout);
    expect_raised<StatusError>(ErrorKind::status);
    expect_raised<BillingError>(ErrorKind::billing);
    expect_raised<RequestFailedError>(ErrorKind::request_failed);
    expect_raised<PromiseLostError>(ErrorKind::promise_lost);
    expect_raised<CancelledError>(ErrorKind::cancelled);
    expect_raised<CircuitOpenError>(ErrorKind::circuit_open);
    expect_raised<QueueFullError>(ErrorKind::queue_full);
    expect_raised<ClosedError>(ErrorKind::closed);
    expect_raised<UsageError>(ErrorKind::usage);
    expect_raised<CallbackError>(ErrorKind::callback);
}

TEST(Error, SaysInWordsWhyRetriesEndedAndWhoCanMendIt) {
    EXPECT_EQ(to_string(RetryEnd::none), "none");
    EXPECT_EQ(to_string(RetryEnd::permanent), "permanent");
    EXPECT_EQ(to_string(RetryEnd::attempts_spent), "attempts_spent");
    EXPECT_EQ(to_string(RetryEnd::time_spent), "time_spent");
    EXPECT_EQ(to_string(RetryEnd::not_repeatable), "not_repeatable");
    EXPECT_EQ(to_string(RetryEnd::cancelled), "cancelled");
    EXPECT_EQ(to_string(ErrorCategory::unknown), "unknown");
    EXPECT_EQ(to_string(ErrorCategory::user), "user");
    EXPECT_EQ(to_string(ErrorCategory::server), "server");
    EXPECT_EQ(to_string(ErrorKind::usage), "usage");
}

TEST(Error, ATimeoutIsAConnectionErrorAndBillingAStatusError) {
    EXPECT_THROW((Error{{.kind = ErrorKind::timeout}}.raise()), ConnectionError);
    EXPECT_THROW((Error{{.kind = ErrorKind::billing}}.raise()), StatusError);
}

TEST(Result, HoldsAValueOrRaisesItsError) {
    Result<std::string> good{"yes"};
    Result<std::string> bad{some_error()};

    ASSERT_TRUE(good);
    EXPECT_EQ(good.value(), "yes");
    EXPECT_EQ(good->size(), 3U);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().kind(), ErrorKind::status);
    EXPECT_EQ(bad.value_or("other"), "other");
    EXPECT_THROW((void)bad.value(), StatusError);
}

TEST(Result, OfNothingIsSuccessOrAnError) {
    Result<void> const good;
    Result<void> const bad{ErrorDetails{.kind = ErrorKind::closed}};

    EXPECT_TRUE(good);
    EXPECT_NO_THROW(good.value());
    EXPECT_FALSE(bad);
    EXPECT_THROW(bad.value(), ClosedError);
}

}  // namespace
}  // namespace tinkxx
