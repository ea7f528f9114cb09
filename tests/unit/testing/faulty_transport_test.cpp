#include <tinkxx/testing/faulty_transport.hpp>

#include <tinkxx/testing/contract_sink.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <stdexcept>

namespace tinkxx::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

struct FaultyTransportTest : ::testing::Test {
    FaultyTransportTest() {
        fake->otherwise(
            [](SentRequest const&) { return Reply{.body = "an answer of thirty-two bytes ..."}; });
    }

    ContractSink& call(FaultyTransport& faulty) {
        auto& sink = sinks.emplace_back();
        Request request;
        request.url = "http://host/" + std::to_string(sinks.size());
        sink.start(faulty, request);
        return sink;
    }

    ManualClock clock{};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(clock)};
    std::deque<ContractSink> sinks{};
};

TEST_F(FaultyTransportTest, PassesCallsThroughWithoutFaults) {
    FaultyTransport faulty{clock, fake, {}};
    auto& sink = call(faulty);
    clock.run_ready();
    EXPECT_TRUE(sink.succeeded());
    EXPECT_EQ(sink.body(), "an answer of thirty-two bytes ...");
    EXPECT_EQ(faulty.counts(), (FaultCounts{.calls = 1}));
}

TEST_F(FaultyTransportTest, DrainReachesTheTransportBelow) {
    FaultyTransport faulty{clock, fake, {}};
    faulty.drain(clock.now() + 5s);
    EXPECT_TRUE(fake->draining());
    auto& refused = call(faulty);
    clock.run_ready();
    ASSERT_TRUE(refused.failure());
    EXPECT_EQ(refused.failure()->kind, FailureKind::closed);
}

TEST_F(FaultyTransportTest, DropsBeforeTheServerSaw) {
    FaultyTransport faulty{clock, fake, {.drop_before = 1}};
    auto& sink = call(faulty);
    clock.run_ready();
    ASSERT_TRUE(sink.failure());
    EXPECT_EQ(sink.failure()->seen, Seen::no);
    EXPECT_EQ(fake->sent_count(), 0U);
    EXPECT_EQ(faulty.times_sent(0), 0);
    EXPECT_THAT(sink.breaches(), IsEmpty());
}

TEST_F(FaultyTransportTest, DropsAfterTheServerSaw) {
    FaultyTransport faulty{clock, fake, {.drop_after = 1}};
    auto& sink = call(faulty);
    clock.run_ready();
    ASSERT_TRUE(sink.failure());
    EXPECT_EQ(sink.failure()->seen, Seen::maybe);
    EXPECT_FALSE(sink.head());
    EXPECT_TRUE(fake->sent().at(0).ended);
    EXPECT_THAT(sink.breaches(), IsEmpty());
}

TEST_F(FaultyTransportTest, SendsTwiceAndAnswersOnce) {
    FaultyTransport faulty{clock, fake, {.duplicate = 1}};
    auto& sink = call(faulty);
    clock.run_ready();
    EXPECT_TRUE(sink.succeeded());
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(faulty.times_sent(0), 2);
    EXPECT_THAT(sink.breaches(), IsEmpty());
}

TEST_F(FaultyTransportTest, AnswersInTheServersPlace) {
    FaultyTransport faulty{
        clock, fake, {.status = 1, .statuses = {503}, .retry_after = 1, .retry_after_max = 5s}};
    auto& sink = call(faulty);
    clock.run_ready();
    EXPECT_EQ(sink.status(), 503);
    EXPECT_TRUE(sink.head()->headers.contains("retry-after-ms"));
    EXPECT_EQ(fake->sent_count(), 0U);
    EXPECT_THAT(sink.breaches(), IsEmpty());
}

TEST_F(FaultyTransportTest, BreaksOffInTheBody) {
    FaultyTransport faulty{clock, fake, {.reset_body = 1}};
    auto& sink = call(faulty);
    clock.run_ready();
    ASSERT_TRUE(sink.failure());
    EXPECT_TRUE(sink.head());
    EXPECT_LT(sink.body().size(), 32U);
    EXPECT_THAT(sink.breaches(), IsEmpty());
    EXPECT_EQ(fake->open_count(), 0U);
}

TEST_F(FaultyTransportTest, TricklesTheBody) {
    FaultyTransport faulty{clock, fake, {.trickle = 1, .trickle_bytes = 8, .trickle_delay = 1s}};
    auto& sink = call(faulty);
    clock.advance(1s);
    EXPECT_EQ(sink.body(), "an answe");
    faulty.pause(sink.call(), true);
    clock.advance(1min);
    EXPECT_EQ(sink.body(), "an answe");
    faulty.pause(sink.call(), false);
    clock.advance(1min);
    EXPECT_TRUE(sink.succeeded());
    EXPECT_EQ(sink.body(), "an answer of thirty-two bytes ...");
    EXPECT_EQ(sink.pieces(), 5U);
}

TEST_F(FaultyTransportTest, DelaysACall) {
    FaultyTransport faulty{clock, fake, {.seed = 5, .delay = 1, .delay_max = 10s}};
    auto& sink = call(faulty);
    clock.run_ready();
    EXPECT_EQ(fake->sent_count(), 0U);
    clock.advance(10s);
    EXPECT_TRUE(sink.succeeded());
    EXPECT_EQ(faulty.counts().delay, 1U);
}

TEST_F(FaultyTransportTest, FreesTheSinkOnCancelAtAnyStage) {
    FaultOptions const all[] = {{.drop_before = 1}, {.status = 1},  {.drop_after = 1},
                                {.duplicate = 1},   {.trickle = 1}, {.delay = 1}};
    for (auto const& options : all) {
        FaultyTransport faulty{clock, fake, options};
        auto& at_once = call(faulty);
        at_once.cancel(faulty);
        auto& in_head = call(faulty);
        in_head.on_event = [&](std::string_view) { in_head.cancel(faulty); };
        clock.advance(1h);
        EXPECT_THAT(at_once.breaches(), IsEmpty());
        EXPECT_THAT(in_head.breaches(), IsEmpty());
    }
}

std::string outcome(ContractSink const& sink) {
    return std::to_string(sink.status()) + (sink.failure() ? sink.failure()->message : "ok") +
           std::to_string(sink.body().size());
}

TEST_F(FaultyTransportTest, WhatTheTransportBelowThrowsIsAFailure) {
    struct Throwing final : Transport {
        Call start(Request /*request*/, ReplySink& /*sink*/) override {
            throw std::runtime_error{"no cable"};
        }
        void cancel(Call /*call*/) noexcept override {}
        void pause(Call /*call*/, bool /*on*/) noexcept override {}
        void drain(TimePoint /*deadline*/) noexcept override {}
    };
    for (FaultOptions const& options :
         {FaultOptions{}, FaultOptions{.delay = 1}, FaultOptions{.duplicate = 1}}) {
        FaultyTransport faulty{clock, std::make_shared<Throwing>(), options};
        auto& sink = call(faulty);
        clock.advance(1h);
        ASSERT_TRUE(sink.failure());
        EXPECT_EQ(sink.failure()->message, "the transport threw: no cable");
        EXPECT_THAT(sink.breaches(), IsEmpty());
    }
}

TEST_F(FaultyTransportTest, EqualSeedsGiveEqualFaults) {  // R-CONV-02
    EXPECT_TRUE(rc::check("faults depend on seed and ordinal alone", [&](std::uint64_t seed) {
        FaultOptions const options{.seed = seed,
                                   .drop_before = 0.2,
                                   .status = 0.2,
                                   .drop_after = 0.2,
                                   .duplicate = 0.2,
                                   .reset_body = 0.2};
        FaultyTransport one{clock, fake, options};
        FaultyTransport two{clock, fake, options};
        for (int i = 0; i < 20; ++i) {
            auto& first = call(one);
            clock.run_ready();
            auto& second = call(two);
            if (i % 3 == 0) {
                second.cancel(two);  // does not shift the others
            } else {
                clock.run_ready();
                RC_ASSERT(outcome(first) == outcome(second));
                RC_ASSERT(second.breaches().empty());
            }
        }
        sinks.clear();
    }));
}

}  // namespace
}  // namespace tinkxx::testing
