#include "service/limits/backoff_gate.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TimePoint const start{1h};

TEST(BackoffGate, IsOpenUntilSomethingIsRefused) {  // R-SAMP-25
    BackoffGate const gate;
    EXPECT_FALSE(gate.closed_until(start));
    EXPECT_FALSE(gate.recent(start));
}

TEST(BackoffGate, IsClosedForExactlyAsLongAsItWasTold) {  // R-SAMP-30, R-SAMP-34
    BackoffGate gate;
    gate.close(start, 5s);
    EXPECT_EQ(gate.closed_until(start), start + 5s);
    EXPECT_EQ(gate.closed_until(start + 5s - 1ns), start + 5s);
    EXPECT_FALSE(gate.closed_until(start + 5s));
}

TEST(BackoffGate, RemembersTenSecondsLonger) {  // R-SAMP-25
    BackoffGate gate;
    gate.close(start, 5s);
    EXPECT_TRUE(gate.recent(start));
    EXPECT_TRUE(gate.recent(start + 15s - 1ns));
    EXPECT_FALSE(gate.recent(start + 15s));
}

TEST(BackoffGate, IsNeverOpenedEarlierByAShorterWait) {  // R-SAMP-32
    BackoffGate gate;
    gate.close(start, 10s);
    gate.close(start + 1s, 1s);
    EXPECT_EQ(gate.closed_until(start + 2s), start + 10s);
    gate.close(start + 9s, 5s);
    EXPECT_EQ(gate.closed_until(start + 10s), start + 14s);
}

TEST(BackoffGate, IsOpenedByWhatWasSentLaterAndAccepted) {  // R-SAMP-36
    BackoffGate gate;
    gate.close(start, 10s);
    gate.accepted(start - 1s);  // sent before the refusal: says nothing
    gate.accepted(start);
    EXPECT_TRUE(gate.closed_until(start + 1s));
    gate.accepted(start + 1ns);
    EXPECT_FALSE(gate.closed_until(start + 1s));
    EXPECT_TRUE(gate.recent(start + 19s));  // the memory stays
}

TEST(BackoffGate, IsSharedByEndpointAndCredentialAndDiesWithItsUsers) {  // R-SAMP-35
    BackoffGates gates;
    auto const a = gates.get("http://x", "key", start);
    EXPECT_EQ(gates.get("http://x", "key", start), a);
    EXPECT_NE(gates.get("http://y", "key", start), a);
    EXPECT_NE(gates.get("http://x", "other", start), a);
    for (int i = 0; i < 1000; ++i) (void)gates.get("http://z", std::to_string(i), start);
    EXPECT_LE(gates.size(), 2U);
}

TEST(BackoffGate, OutlivesItsUsersForAsLongAsARefusalCounts) {  // R-SAMP-35
    BackoffGates gates;
    gates.get("http://x", "key", start)->close(start, 10s);
    (void)gates.get("http://other", "key", start + 9s);
    EXPECT_TRUE(gates.get("http://x", "key", start + 9s)->closed_until(start + 9s));
    EXPECT_TRUE(gates.get("http://x", "key", start + 19s)->recent(start + 19s));
    (void)gates.get("http://other", "key", start + 20s);
    EXPECT_LE(gates.size(), 1U);
}

}  // namespace
}  // namespace tinkxx::service
