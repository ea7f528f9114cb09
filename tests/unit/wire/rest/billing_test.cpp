#include "wire/rest/billing.hpp"

#include <gtest/gtest.h>

namespace tinkxx::wire {
namespace {

TEST(BillingUsage, HasCostsWhereTheyAreKnown) {  // R-WIRE-07, R-REST-03
    auto const usage = decode_billing_usage(
        R"({"data": [{"bucket_start": "2026-07-13T05:00:00Z", "bucket_end": "2026-07-13T06:00:00Z",
             "base_model": "m", "user_id": "u", "user_name": "n", "session_id": "s",
             "project_id": "p", "estimated_cost_usd": 0.5,
             "effective_rate_usd_per_million_tokens": 2.25,
             "effective_rate_usd_per_gigabyte_month": null,
             "event_info": {"type": "sampling_prefill", "cached": true, "token_count": 12, "x": 1}}],
            "sessions": {"s": {"user_metadata": {"k": "v"}}},
            "cost_data_through": "2026-07-13T00:00:00Z"})");
    ASSERT_TRUE(usage.has_value()) << usage.error().what();
    auto const& event = usage->data.at(0);
    EXPECT_EQ(event.estimated_cost_usd, 0.5);
    EXPECT_EQ(event.effective_rate_usd_per_million_tokens, 2.25);
    EXPECT_FALSE(event.effective_rate_usd_per_gigabyte_month);
    BillingEventInfo expected;
    expected.type = "sampling_prefill";
    expected.token_count = 12;
    expected.cached = true;
    expected.others = {{"x", "1"}};
    EXPECT_EQ(event.event_info, expected);
    EXPECT_EQ(usage->sessions.at("s").user_metadata->at("k"), "v");
    EXPECT_EQ(to_string(*usage->cost_data_through), "2026-07-13T00:00:00Z");
}

TEST(BillingUsage, OfAKindThatNobodyKnowsIsKept) {  // R-REST-05
    auto const usage = decode_billing_usage(
        R"({"data": [{"bucket_start": "2026-07-13T05:00:00Z", "bucket_end": "2026-07-13T06:00:00Z",
             "event_info": {"type": "gpu", "count": {"a": 2}}}]})");
    ASSERT_TRUE(usage.has_value()) << usage.error().what();
    BillingEventInfo expected;
    expected.type = "gpu";
    expected.others = {{"count", R"({"a":2})"}};
    EXPECT_EQ(usage->data.at(0).event_info, expected);
}

TEST(BillingUsage, OfAKnownKindIsComplete) {  // R-WIRE-07
    auto const usage = decode_billing_usage(
        R"({"data": [{"bucket_start": "2026-07-13T05:00:00Z", "bucket_end": "2026-07-13T06:00:00Z",
             "event_info": {"type": "training"}}]})");
    ASSERT_FALSE(usage.has_value());
    EXPECT_EQ(usage.error().field(), "/data/0/event_info/token_count");
}

TEST(AuditLog, KeepsDetailsAsJson) {  // R-WIRE-07
    auto const log = decode_audit_log(
        R"({"entries": [{"timestamp": "2026-01-02T01:00:00Z", "event": "team_add",
                         "event_details": {"a": [1, null], "b": "x"}}]})");
    ASSERT_TRUE(log.has_value()) << log.error().what();
    std::map<std::string, std::string> const expected{{"a", "[1,null]"}, {"b", "\"x\""}};
    EXPECT_EQ(log->entries.at(0).event_details, expected);
    EXPECT_FALSE(log->entries.at(0).tinker_path);
}

}  // namespace
}  // namespace tinkxx::wire
