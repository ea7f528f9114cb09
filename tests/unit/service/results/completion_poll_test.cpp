#include "service/results/completion_poll.hpp"

#include "results_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using How = Completed::How;

/// Waits for one sample and keeps what it is told.
struct Sample final : CompletionWaiter {
    void on_completion(Completed got) override {
        completed = got;
        ++told;
        if (then) then();
    }
    int told{0};
    std::optional<Completed> completed{};
    std::function<void()> then{};
};

struct CompletionPollTest : ResultsTest {
    static constexpr auto path = "/api/v1/retrieve_futures";

    CompletionPollTest() {
        fake->otherwise([](auto const&) { return std::nullopt; });
    }
    [[nodiscard]] std::vector<std::string> bodies() const {
        std::vector<std::string> all;
        for (auto const& sent : fake->sent(path)) all.push_back(sent.body);
        return all;
    }
    [[nodiscard]] std::size_t polls() const { return fake->sent(path).size(); }
    /// Ends the poll under way.
    void answer(std::string completions, int cursor) {
        answer({.headers = {{"content-type", "application/json"}},
                .body = R"({"completions":[)" + std::move(completions) + R"(],"cursor":)" +
                        std::to_string(cursor) + "}"});
    }
    void answer(Reply reply) {
        clock->run_ready();
        ASSERT_TRUE(fake->release_next(std::move(reply)));
        clock->run_ready();
    }
    static std::string finished(std::string const& id, int bytes = 0) {
        return R"({"state":"finished","request_id":")" + id + "\"" +
               (bytes == 0 ? std::string{}
                           : R"(,"response_payload_uncompressed_size":)" + std::to_string(bytes)) +
               "}";
    }

    ResultSurroundings around{context, downloads};
    std::unique_ptr<CompletionPoll> poll{std::make_unique<CompletionPoll>(around, "s1", 3)};
    Sample a{};
    Sample b{};
};

TEST_F(CompletionPollTest, AsksForAllSamplesOfItsSamplerAtOnce) {  // R-FUT-60, R-FUT-61
    EXPECT_EQ(polls(), 0U) << "nobody waits";
    poll->wait(a, "a");
    poll->wait(b, "b");
    clock->run_ready();
    auto const sent = fake->sent(path);
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].method, "POST");
    EXPECT_EQ(sent[0].purpose, Purpose::completion_poll);
    EXPECT_EQ(sent[0].timeouts.read, 45s);
    EXPECT_EQ(sent[0].header("x-stainless-read-timeout"), "45");
    EXPECT_EQ(sent[0].body,
              R"({"target":{"type":"sampling_session","sampling_session_id":"s1",)"
              R"("cloned_sampler_id":3},"prev_cursor":0,"retrieved_request_ids":[]})");
}

TEST_F(CompletionPollTest, TellsWhoIsDone) {  // R-FUT-62, R-FUT-63
    poll->wait(a, "a");
    poll->wait(b, "b");
    answer(finished("b", 1234), 1);
    ASSERT_TRUE(b.completed);
    EXPECT_EQ(b.completed->how, How::finished);
    EXPECT_EQ(b.completed->payload_bytes, 1234);
    EXPECT_FALSE(a.completed);
    ASSERT_EQ(polls(), 2U) << "the other still waits";
    EXPECT_THAT(bodies().back(), HasSubstr(R"("prev_cursor":1,)"));
    answer(R"({"state":"failed","request_id":"a"})", 2);
    ASSERT_TRUE(a.completed);
    EXPECT_EQ(a.completed->how, How::failed);
    EXPECT_EQ(a.completed->payload_bytes, 0);
    clock->advance(1h);
    EXPECT_EQ(polls(), 2U) << "and sleeps when nobody does";
}

TEST_F(CompletionPollTest, RemembersCompletionsThatOvertakeTheirSubmit) {  // R-FUT-62
    poll->wait(a, "a");
    answer(finished("b", 7) + "," + finished("a"), 2);
    EXPECT_EQ(poll->unclaimed(), 1U);
    poll->wait(b, "b");
    EXPECT_EQ(b.told, 0) << "never from inside wait";
    clock->run_ready();
    EXPECT_EQ(b.told, 1);
    EXPECT_EQ(b.completed->payload_bytes, 7);
    EXPECT_EQ(poll->unclaimed(), 0U);
    EXPECT_EQ(polls(), 1U);
}

TEST_F(CompletionPollTest, DropsTheOldestOfTooManyUnclaimedCompletions) {  // R-FUT-62
    poll->wait(a, "a");
    std::string many;
    for (std::size_t i = 0; i < CompletionPoll::most_unclaimed + 2; ++i) {
        many += (i == 0 ? "" : ",") + finished("u" + std::to_string(i));
    }
    answer(many, 1);
    EXPECT_EQ(poll->unclaimed(), CompletionPoll::most_unclaimed);
    poll->wait(b, "u2");
    clock->run_ready();
    EXPECT_EQ(b.told, 1);
    Sample oldest;
    poll->wait(oldest, "u1");
    clock->run_ready();
    EXPECT_EQ(oldest.told, 0);
}

TEST_F(CompletionPollTest, KeepsARepeatedCompletionOnce) {  // R-FUT-62
    poll->wait(a, "a");
    answer(finished("b", 1) + "," + finished("b", 2), 1);
    EXPECT_EQ(poll->unclaimed(), 1U);
}

TEST_F(CompletionPollTest, ReportsWhatWasFetchedUntilAPollSucceeds) {  // R-FUT-64
    poll->wait(a, "a");
    answer(finished("a"), 1);
    poll->retrieved("z");
    poll->retrieved("a");
    clock->run_ready();
    ASSERT_EQ(polls(), 2U) << "that alone is worth a poll";
    EXPECT_THAT(bodies()[1], HasSubstr(R"("retrieved_request_ids":["z"])"));
    answer({.status = 503});
    clock->advance(1s);
    EXPECT_THAT(bodies()[2], HasSubstr(R"("retrieved_request_ids":["a","z"])"));
    answer("", 1);
    clock->advance(1h);
    EXPECT_EQ(polls(), 3U);
}

TEST_F(CompletionPollTest, TriesAgainAfterASecond) {  // R-FUT-65
    poll->wait(a, "a");
    for (auto const& reply : {Reply{.status = 429}, Reply{.status = 500}, Reply{.status = 408},
                              tinkxx::testing::failing(FailureKind::reset)}) {
        auto const before = polls();
        answer(reply);
        clock->advance(999ms);
        EXPECT_EQ(polls(), before);
        clock->advance(1ms);
        EXPECT_EQ(polls(), before + 1);
    }
    EXPECT_EQ(a.told, 0);
}

TEST_F(CompletionPollTest, TriesAgainWhenTheServerFallsSilent) {  // R-FUT-61, R-FUT-65
    poll->wait(a, "a");
    clock->advance(46s - 1ms);
    EXPECT_EQ(polls(), 1U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 2U);
    EXPECT_EQ(fake->sent(path)[1].header("x-stainless-retry-count"), "0");
}

TEST_F(CompletionPollTest, WaitsOutABillingBlockInSilence) {  // R-FUT-65
    poll->wait(a, "a");
    answer({.status = 402, .body = "unpaid"});
    clock->advance(5s - 1ms);
    EXPECT_EQ(polls(), 1U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 2U);
    EXPECT_THAT(telemetry.events, IsEmpty());
    EXPECT_THAT(logged(LogLevel::info), IsEmpty());
}

TEST_F(CompletionPollTest, LetsEveryonePollForHimselfWhenItCannotGoOn) {  // R-FUT-66, C-28
    poll->wait(a, "a");
    poll->wait(b, "b");
    answer({.status = 404, .body = "{}"});
    EXPECT_EQ(a.completed->how, How::poll_yourselves);
    EXPECT_EQ(b.completed->how, How::poll_yourselves);
    EXPECT_FALSE(poll->works());

    Sample later;
    poll->wait(later, "c");
    EXPECT_EQ(later.told, 0) << "never from inside wait";
    clock->run_ready();
    EXPECT_EQ(later.completed->how, How::poll_yourselves);
    poll->retrieved("a");
    clock->advance(1h);
    EXPECT_EQ(polls(), 1U) << "for the rest of its life";
    EXPECT_THAT(logged(LogLevel::warning), ElementsAre(HasSubstr("completion poll of s1: ")));
}

TEST_F(CompletionPollTest, GivesUpOnAnAnswerThatItCannotRead) {  // R-FUT-65, R-FUT-66
    poll->wait(a, "a");
    answer({.body = "<html>"});
    EXPECT_EQ(a.completed->how, How::poll_yourselves);
    EXPECT_THAT(logged(LogLevel::warning), SizeIs(1));
}

TEST_F(CompletionPollTest, LetsARecordedCompletionWinOverALaterFailure) {  // R-FUT-62
    poll->wait(a, "a");
    answer(finished("b", 5), 1);
    answer({.status = 401, .body = "{}"});
    poll->wait(b, "b");
    clock->run_ready();
    EXPECT_EQ(b.completed->how, How::finished);
    EXPECT_EQ(b.completed->payload_bytes, 5);
}

TEST_F(CompletionPollTest, ForgetsOneWithoutDisturbingTheOthers) {  // R-FUT-67
    poll->wait(a, "a");
    {
        Sample gone;
        poll->wait(gone, "gone");
        poll->wait(b, "b");
    }
    poll->forget(a);
    poll->forget(a);
    EXPECT_EQ(poll->waiting(), 1U);
    answer(finished("gone") + "," + finished("a") + "," + finished("b"), 3);
    EXPECT_EQ(a.told, 0);
    EXPECT_EQ(b.told, 1);
    EXPECT_EQ(fake->cancelled_count(), 0U);
}

TEST_F(CompletionPollTest, ForgetsOneThatIsAboutToBeTold) {  // R-FUT-67
    a.then = [&] { poll->forget(b); };
    poll->wait(a, "a");
    poll->wait(b, "b");
    answer(finished("a") + "," + finished("b"), 2);
    EXPECT_EQ(a.told, 1);
    EXPECT_EQ(b.told, 0);
}

TEST_F(CompletionPollTest, MayBeDestroyedWhileItTells) {
    a.then = [&] { poll.reset(); };
    poll->wait(a, "a");
    poll->wait(b, "b");
    answer(finished("a") + "," + finished("b"), 2);
    EXPECT_EQ(a.told, 1);
    EXPECT_EQ(b.told, 0);
    clock->advance(1h);
    EXPECT_EQ(polls(), 1U);
}

TEST_F(CompletionPollTest, EndsItsPollWhenDestroyed) {  // R-FUT-60
    poll->wait(a, "a");
    clock->run_ready();
    poll.reset();
    EXPECT_EQ(fake->cancelled_count(), 1U);
    EXPECT_EQ(a.told, 0);
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(CompletionPollTest, LetsAWaiterWaitAgainFromInside) {
    a.then = [&] {
        if (a.told == 1) poll->wait(a, "a2");
    };
    poll->wait(a, "a");
    answer(finished("a"), 1);
    clock->run_ready();
    ASSERT_EQ(polls(), 2U);
    answer(finished("a2"), 2);
    EXPECT_EQ(a.told, 2);
}

TEST_F(CompletionPollTest, LetsTheSecondWhoWaitsForOneIdLookForItself) {
    poll->wait(a, "same");
    poll->wait(b, "same");
    clock->run_ready();
    ASSERT_TRUE(b.completed);
    EXPECT_EQ(b.completed->how, How::poll_yourselves);
    answer(finished("same"), 1);
    EXPECT_EQ(a.completed->how, How::finished);
}

TEST_F(CompletionPollTest, KeepsItsPaceWithAServerThatDoesNotHoldPolls) {  // R-FUT-11
    poll->wait(a, "a");
    answer("", 0);
    clock->advance(99ms);
    EXPECT_EQ(polls(), 1U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 2U);
    answer(finished("x"), 4);
    EXPECT_EQ(polls(), 3U) << "where the cursor moved there may be more";
}

TEST_F(CompletionPollTest, LeavesQuietlyWhenItsClientCloses) {  // R-FUT-66
    poll->wait(a, "a");
    clock->run_ready();
    http->close();
    clock->run_ready();
    ASSERT_TRUE(a.completed) << "its own poll will say that the client is closed";
    EXPECT_EQ(a.completed->how, How::poll_yourselves);
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty());
}

TEST_F(CompletionPollTest, TellsEachWaiterOnceUnderRandomUse) {  // R-TEST-03
    EXPECT_TRUE(rc::check("told once, or forgotten", [this] {
        auto one = std::make_unique<CompletionPoll>(around, "s2", 0);
        std::vector<std::unique_ptr<Sample>> samples;
        std::vector<std::string> announced;
        int cursor = 0;
        auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 40));
        for (int const step : steps) {
            auto const id = std::to_string(samples.size());
            if (step < 20) {
                samples.push_back(std::make_unique<Sample>());
                one->wait(*samples.back(), id);
            } else if (step < 30 && !samples.empty()) {
                clock->run_ready();
                auto const done = static_cast<std::size_t>(step) % samples.size();
                (void)fake->release_next(
                    {.headers = {{"content-type", "application/json"}},
                     .body = R"({"completions":[)" + finished(std::to_string(done)) +
                             R"(],"cursor":)" + std::to_string(++cursor) + "}"});
                clock->run_ready();
            } else if (!samples.empty()) {
                auto& sample = samples[static_cast<std::size_t>(step) % samples.size()];
                one->forget(*sample);
            }
        }
        clock->run_ready();
        for (auto const& sample : samples) RC_ASSERT(sample->told <= 1);
        one.reset();
        RC_ASSERT(fake->open_count() == 0U);
    }));
}

}  // namespace
}  // namespace tinkxx::service
