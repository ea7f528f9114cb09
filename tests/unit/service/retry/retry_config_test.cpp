#include <tinkxx/retry_config.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

std::string refusal_of(RetryConfig const& config) {
    try {
        config.validate();
    } catch (ValidationError const& error) {
        return error.what();
    }
    return {};
}

TEST(RetryConfig, HasTheDocumentedDefaults) {  // R-RETRY-05
    RetryConfig const config;
    EXPECT_FALSE(config.max_connections);
    EXPECT_EQ(config.progress_timeout, 7200s);
    EXPECT_EQ(config.retry_delay_base, 500ms);
    EXPECT_EQ(config.retry_delay_max, 10s);
    EXPECT_EQ(config.jitter_factor, 0.25);
    EXPECT_TRUE(config.enable_retry_logic);
    EXPECT_TRUE(config.enable_stuck_detection);
    EXPECT_EQ(config.retryable_errors,
              (std::vector{ErrorKind::timeout, ErrorKind::connection, ErrorKind::promise_lost}));
    for (int const status : {408, 409, 429, 500, 503, 599}) {
        EXPECT_TRUE(config.retryable_statuses.contains(status)) << status;
    }
    for (int const status : {400, 401, 402, 404, 410, 422, 499, 600}) {
        EXPECT_FALSE(config.retryable_statuses.contains(status)) << status;
    }
    EXPECT_FALSE(config.max_retries);
    EXPECT_FALSE(config.retry_budget);
    EXPECT_TRUE(config.semaphore_key.empty());
    EXPECT_EQ(refusal_of(config), "");
}

TEST(RetryConfig, RefusesWhatCannotWorkNamingFieldAndValue) {  // R-RETRY-01, R-CONF-08
    EXPECT_NE(refusal_of({.max_connections = 0}).find("max_connections is 0"), std::string::npos);
    EXPECT_NE(refusal_of({.max_connections = -7}).find("-7"), std::string::npos);
    EXPECT_NE(refusal_of({.progress_timeout = 0ms}).find("progress_timeout"), std::string::npos);
    EXPECT_NE(refusal_of({.retry_delay_base = 0ms}).find("retry_delay_base"), std::string::npos);
    EXPECT_NE(refusal_of({.retry_delay_base = 2s, .retry_delay_max = 1s}).find("retry_delay_max"),
              std::string::npos);
    EXPECT_NE(refusal_of({.jitter_factor = -0.1}).find("-0.1"), std::string::npos);
    EXPECT_NE(refusal_of({.jitter_factor = 1.1}).find("jitter_factor"), std::string::npos);
    EXPECT_NE(refusal_of({.jitter_factor = std::numeric_limits<double>::quiet_NaN()}).find("nan"),
              std::string::npos);
    EXPECT_NE(refusal_of({.max_retries = -1}).find("max_retries"), std::string::npos);
    EXPECT_NE(refusal_of({.retryable_statuses = {{599, 500}}}).find("599 to 500"),
              std::string::npos);
}

TEST(RetryConfig, EqualityAndHashCoverEveryField) {  // R-RETRY-02
    auto const yes = std::make_shared<std::function<bool(Error const&)> const>(
        [](Error const&) { return true; });
    RetryConfig const plain;
    RetryConfig const others[] = {
        {.max_connections = 1},
        {.progress_timeout = 1s},
        {.retry_delay_base = 1ms},
        {.retry_delay_max = 11s},
        {.jitter_factor = 0.5},
        {.enable_retry_logic = false},
        {.enable_stuck_detection = false},
        {.retryable_errors = {}},
        {.retryable_statuses = {500}},
        {.retry_if = yes},
        {.max_retries = 3},
        {.retry_budget = RetryBudget{.capacity = 1}},
        {.semaphore_key = "all"},
    };
    std::hash<RetryConfig> const hash;
    EXPECT_EQ(hash(plain), hash(RetryConfig{}));
    for (auto const& other : others) {
        EXPECT_NE(plain, other);
        EXPECT_NE(hash(plain), hash(other));
        auto const copy = other;
        EXPECT_EQ(copy, other);
        EXPECT_EQ(hash(copy), hash(other));
    }
}

TEST(RetryOverrides, ReplaceOnlyWhatTheySet) {  // R-RETRY-60
    RetryConfig const sampler{.max_connections = 5, .retry_delay_base = 1s, .max_retries = 9};
    auto const merged =
        RetryOverrides{.retry_delay_max = 20s, .enable_retry_logic = false, .max_retries = 0}.over(
            sampler);
    EXPECT_EQ(merged.max_connections, 5);
    EXPECT_EQ(merged.retry_delay_base, 1s);
    EXPECT_EQ(merged.retry_delay_max, 20s);
    EXPECT_FALSE(merged.enable_retry_logic);
    EXPECT_EQ(merged.max_retries, 0);
    EXPECT_EQ(RetryOverrides{}.over(sampler), sampler);
}

TEST(RetryOverrides, CanLiftALimit) {  // R-RETRY-60
    RetryConfig const sampler{.max_connections = 5,
                              .max_retries = 9,
                              .retry_budget = RetryBudget{.capacity = 1},
                              .semaphore_key = "all"};
    auto const merged = RetryOverrides{.max_connections = no_limit,
                                       .max_retries = no_limit,
                                       .retry_budget = no_limit,
                                       .semaphore_key = ""}
                            .over(sampler);
    EXPECT_GT(merged.max_connections, 1'000'000'000);
    EXPECT_EQ(merged.max_retries, std::nullopt);
    EXPECT_EQ(merged.retry_budget, std::nullopt);
    EXPECT_EQ(merged.semaphore_key, "");
    RetryBudget const own{.capacity = 7};
    EXPECT_EQ(RetryOverrides{.retry_budget = own}.over(sampler).retry_budget, own);
}

TEST(RetryConfig, RefusesKindsOfErrorsThatAreNeverRepeated) {  // R-RETRY-03, R-RETRY-20
    for (auto const kind : {ErrorKind::validation, ErrorKind::request_failed, ErrorKind::cancelled,
                            ErrorKind::closed, ErrorKind::usage, ErrorKind::callback}) {
        RetryConfig const config{.retryable_errors = {ErrorKind::timeout, kind}};
        try {
            config.validate();
            ADD_FAILURE() << to_string(kind);
        } catch (ValidationError const& error) {
            EXPECT_EQ(error.field(), "retryable_errors");
            EXPECT_EQ(error.value(), to_string(kind));
        }
    }
    EXPECT_NO_THROW((RetryConfig{.retryable_errors = {ErrorKind::circuit_open}}.validate()));
}

}  // namespace
}  // namespace tinkxx
