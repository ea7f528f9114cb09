// A server without sockets ends each call as the network transport does.
#include "local/in_process.hpp"

#include <tinkxx/testing/contract_sink.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using testing::ContractSink;
using ::testing::IsEmpty;

/// Answers each request by a function, or keeps its answer for later.
struct ScriptedHandler final : Handler {
    void handle(ServerRequest request, std::shared_ptr<Answer> answer) override {
        seen.push_back(request);
        if (answers) {
            answers(request, *answer);
        } else {
            held.push_back(std::move(answer));
        }
    }
    std::function<void(ServerRequest const&, Answer&)> answers{};
    std::vector<ServerRequest> seen{};
    std::vector<std::shared_ptr<Answer>> held{};
};

struct InProcess : ::testing::Test {
    ContractSink& start(Request request) {
        auto& sink = *sinks.emplace_back(std::make_unique<ContractSink>());
        sink.start(*transport, std::move(request));
        clock.run_ready();
        return sink;
    }
    static Request get(std::string url = "http://local/") { return {.url = std::move(url)}; }
    void expect_failure(ContractSink const& sink, FailureKind kind) {
        ASSERT_TRUE(sink.ended());
        ASSERT_TRUE(sink.failure());
        EXPECT_EQ(sink.failure()->kind, kind) << sink.failure()->message;
        EXPECT_THAT(sink.breaches(), IsEmpty());
    }

    testing::ManualClock clock{};
    std::shared_ptr<ScriptedHandler> handler{std::make_shared<ScriptedHandler>()};
    std::optional<InProcessTransport> transport{std::in_place, clock, handler};
    std::vector<std::unique_ptr<ContractSink>> sinks{};
};

TEST_F(InProcess, SilenceEndsByTheReadTimeout) {
    auto request = get();
    request.timeouts.read = 10s;
    auto& call = start(std::move(request));
    clock.advance(9s);
    EXPECT_FALSE(call.ended());
    clock.advance(2s);
    expect_failure(call, FailureKind::read_timeout);
    EXPECT_EQ(call.failure()->seen, Seen::maybe);
}

TEST_F(InProcess, ATrickleEndsByTheTotalTimeout) {
    auto request = get();
    request.timeouts.read = 10s;
    request.timeouts.total = 25s;
    auto& call = start(std::move(request));
    handler->held[0]->head(200, {}, std::nullopt);
    for (int i = 0; i < 4 && !call.ended(); ++i) {
        handler->held[0]->data("drop");
        clock.advance(8s);
    }
    expect_failure(call, FailureKind::total_timeout);
    EXPECT_EQ(call.body(), "dropdropdropdrop");
}

TEST_F(InProcess, AnAnswerLongerThanAllowedIsCutOff) {
    handler->answers = [](ServerRequest const&, Answer& answer) {
        answer.head(200, {}, std::nullopt);
        answer.data(std::string(60, 'x'));
        answer.data(std::string(60, 'x'));
        answer.done();
    };
    auto request = get();
    request.max_response_bytes = 100;
    auto& call = start(std::move(request));
    expect_failure(call, FailureKind::too_large);
    EXPECT_EQ(call.body().size(), 60U);
}

TEST_F(InProcess, RedirectsAreFollowedButNotForEver) {
    handler->answers = [](ServerRequest const& request, Answer& answer) {
        bool const there = request.target == "/there";
        auto const next = request.target == "/here" ? "http://local/there" : "http://local/round";
        answer.head(there ? 200 : 302, there ? Headers{} : Headers{{"Location", next}}, {});
        answer.data(there ? "found" : "moved");
        answer.done();
    };
    auto request = get("http://local/here");
    request.redirects = Redirects::follow;
    auto& found = start(std::move(request));
    EXPECT_TRUE(found.succeeded());
    EXPECT_EQ(found.body(), "found");

    auto endless = get("http://local/round");
    endless.redirects = Redirects::follow;
    auto& lost = start(std::move(endless));
    expect_failure(lost, FailureKind::redirect);
    EXPECT_LT(handler->seen.size(), 30U);

    auto unfollowed = get("http://local/here");
    unfollowed.redirects = Redirects::none;
    EXPECT_EQ(start(std::move(unfollowed)).status(), 302);
}

TEST_F(InProcess, APausedCallIsGivenNothingUntilItGoesOn) {
    auto& call = start(get());
    bool drained = false;
    transport->pause(call.call(), true);
    handler->held[0]->head(200, {}, std::nullopt);
    handler->held[0]->data("one");
    handler->held[0]->on_drained([&] { drained = true; });
    clock.run_ready();
    EXPECT_EQ(call.status(), 200);
    EXPECT_EQ(call.body(), "");
    EXPECT_EQ(handler->held[0]->pending(), 3U);
    EXPECT_FALSE(drained);
    transport->pause(call.call(), false);
    clock.run_ready();
    EXPECT_EQ(call.body(), "one");
    EXPECT_TRUE(drained);
    handler->held[0]->done();
    clock.run_ready();
    EXPECT_TRUE(call.succeeded());
    EXPECT_THAT(call.breaches(), IsEmpty());
}

TEST_F(InProcess, DrainLetsCallsFinishUntilTheDeadlineAndTakesNoMore) {
    auto& quick = start(get());
    auto& slow = start(get());
    transport->drain(clock.now() + 5s);
    expect_failure(start(get()), FailureKind::closed);
    handler->held[0]->head(200, {}, 0);
    handler->held[0]->done();
    clock.advance(1s);
    EXPECT_TRUE(quick.succeeded());
    EXPECT_FALSE(slow.ended());
    clock.advance(5s);
    expect_failure(slow, FailureKind::closed);
}

TEST_F(InProcess, AnAnswerDroppedByTheServerIsAReset) {
    auto& call = start(get());
    handler->held.clear();
    clock.run_ready();
    expect_failure(call, FailureKind::reset);
}

TEST_F(InProcess, TheServerLearnsThatItsPeerIsGone) {
    auto& call = start(get());
    bool gone = false;
    handler->held[0]->on_gone([&] { gone = true; });
    call.cancel(*transport);
    clock.run_ready();
    EXPECT_TRUE(gone);
    handler->held[0]->head(200, {}, 0);
    handler->held[0]->done();
    clock.run_ready();
    EXPECT_THAT(call.breaches(), IsEmpty());
}

TEST_F(InProcess, WhatIsNoUrlIsRefused) {
    expect_failure(start(get("no url")), FailureKind::invalid_request);
    EXPECT_THAT(handler->seen, IsEmpty());
}

TEST_F(InProcess, AReleasedTransportTellsNobodyAnyMore) {
    auto& call = start(get());
    transport.reset();
    handler->held[0]->head(200, {}, 0);
    handler->held[0]->done();
    clock.run_ready();
    EXPECT_FALSE(call.ended());
}

}  // namespace
}  // namespace tinkxx::local
