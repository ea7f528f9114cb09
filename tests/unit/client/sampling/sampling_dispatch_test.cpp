// How samples are let through: limits, backoff and retries, by what reaches the service.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using support::Submit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Reply;
using ::testing::StartsWith;

ModelInput prompt_of(std::size_t tokens) {
    return ModelInput::from_tokens(std::vector<Token>(tokens, 1));
}

Reply too_many(std::string body = R"({"detail":"slow down"})", Headers headers = {}) {
    auto reply = json_reply(std::move(body), 429);
    for (auto const& line : headers) reply.headers.add(line.name, line.value);
    return reply;
}

class SamplingDispatch : public ::testing::Test {
protected:
    SamplingDispatch() { tinker.clock->set_auto_advance(false); }

    SamplingClient sampler(RetryConfig retry = {}) {
        if (!service) service.emplace(options ? *options : tinker.options());
        return service->create_sampling_client("org/tiny", std::move(retry));
    }
    void run() {
        while (tinker.runtime.core() && tinker.clock->run_ready()) {
        }
    }
    ServiceStatus status() {
        auto pending = service->status();
        run();
        return pending.get();
    }
    std::vector<Future<SampleResponse>> draw(SamplingClient const& from, int count,
                                             std::size_t tokens = 3) {
        std::vector<Future<SampleResponse>> futures;
        for (int i = 0; i < count; ++i) {
            futures.push_back(from.sample(prompt_of(tokens), {.max_tokens = 4}));
        }
        run();
        return futures;
    }

    /// The last event of that name that telemetry told of.
    [[nodiscard]] std::optional<boost::json::object> last_event(std::string_view named) const {
        std::optional<boost::json::object> told;
        for (auto const& request : tinker.transport->sent("/api/v1/telemetry")) {
            auto const body = boost::json::parse(request.body);
            for (auto const& event : body.at("events").as_array()) {
                auto const* name = event.as_object().if_contains("event_name");
                if (name != nullptr && name->as_string() == named) told = event.as_object();
            }
        }
        return told;
    }
    /// The first submit is refused; later ones are answered, or not for long while `slow`.
    void refuse_once(bool const& slow) {
        tinker.on_submit = [&slow, refusals = 1](Submit const&) mutable -> RawTinker::Answer {
            if (refusals-- > 0) return too_many();
            if (slow) return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
            return std::nullopt;
        };
    }

    RawTinker tinker;
    std::optional<ClientOptions> options{};
    std::optional<ServiceClient> service{};
};

TEST_F(SamplingDispatch, AtMostFourHundredAreBeingSubmitted) {  // R-SAMP-20
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    auto const futures = draw(sampler(), 450);
    EXPECT_EQ(tinker.submits().size(), 400U);
    auto const now = status();
    EXPECT_EQ(now.count.free, 0);
    EXPECT_EQ(now.count.waiting, 50);
    EXPECT_EQ(std::ranges::count(now.pending, Stage::waiting_for_count, &OperationStatus::stage),
              50);
}

TEST_F(SamplingDispatch, TheLimitsAreTheCallersIfSet) {  // R-SAMP-26
    options = tinker.options();
    options->dispatch.count = 3;
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    auto const futures = draw(sampler(), 5);
    EXPECT_EQ(tinker.submits().size(), 3U);
    EXPECT_EQ(status().count.waiting, 2);
}

TEST_F(SamplingDispatch, TheThrottleIsTheCallersIfSet) {  // R-SAMP-26
    options = tinker.options();
    options->dispatch.throttled = 3;
    bool slow = false;
    refuse_once(slow);
    auto const client = sampler();
    auto const first = draw(client, 1);
    tinker.clock->advance(1s);
    run();
    slow = true;
    auto const futures = draw(client, 5);
    EXPECT_EQ(tinker.submits().size(), 2U + 3U);
    EXPECT_EQ(status().throttled.waiting, 2);
}

TEST_F(SamplingDispatch, PermitsComeBackWhenTheSubmitIsAccepted) {  // R-SAMP-10, R-SAMP-11
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const futures = draw(sampler(), 450);
    EXPECT_EQ(tinker.submits().size(), 450U);
    auto const now = status();
    EXPECT_EQ(now.count.free, 400);
    EXPECT_EQ(now.bytes.free, 5 * 1024 * 1024);
    EXPECT_EQ(std::ranges::count(now.pending, Stage::polling, &OperationStatus::stage), 450);
}

TEST_F(SamplingDispatch, PermitsAreKeptWhileARefusalIsWaitedOut) {  // R-SAMP-10
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return too_many(); };
    auto const futures = draw(sampler(), 1);
    auto const now = status();
    EXPECT_EQ(now.pending.at(0).stage, Stage::backing_off);
    EXPECT_EQ(now.count.free, 399);
    EXPECT_EQ(now.bytes.free, 5 * 1024 * 1024 - 30);
}

TEST_F(SamplingDispatch, PermitsComeBackInReverseOrder) {  // R-SAMP-11
    options = tinker.options();
    options->dispatch.count = 2;
    options->dispatch.throttled = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (tinker.submits().size() == 1) return too_many();
        if (tinker.submits().size() != 3) return std::nullopt;
        auto reply = json_reply(R"({"request_id":"req-1"})");
        reply.delay = 20s;
        return reply;
    };
    auto const client = sampler();
    auto const refused = draw(client, 1);
    tinker.clock->advance(1s);
    run();
    // The first has all permits, the second waits for the throttle and the third for a count: so
    // long that the third will need no throttle any more.
    auto const futures = draw(client, 3);
    EXPECT_EQ(status().throttled.waiting, 1);
    EXPECT_EQ(status().count.waiting, 1);
    tinker.clock->advance(20s);
    run();
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 0, 1, 2, 3));
}

TEST_F(SamplingDispatch,
       BytesBeingSubmittedAreLimitedAndTheLargestGoesAlone) {  // R-SAMP-22, R-SAMP-23
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    auto const client = sampler();
    auto const large = draw(client, 1, 1'000'000);  // 10 MB of 5 MiB
    auto const small = draw(client, 3);
    EXPECT_EQ(tinker.submits().size(), 1U);
    auto const now = status();
    EXPECT_EQ(now.bytes.free, 5 * 1024 * 1024 - 10'000'000);
    EXPECT_EQ(now.bytes.waiting, 3);
    EXPECT_EQ(std::ranges::count(now.pending, Stage::waiting_for_bytes, &OperationStatus::stage),
              3);
}

TEST_F(SamplingDispatch, TheServersByteBudgetIsUsedIfItNamesOne) {  // R-SAMP-22, R-CONF-22
    tinker.flags["sample_dispatch_bytes_semaphore_size"] = 100;
    auto const futures = draw(sampler(), 1);
    EXPECT_EQ(status().bytes.free, 100);
}

TEST_F(SamplingDispatch,
       A429HoldsBackOneSecondForSmallPromptsAndKeepsItsNumber) {  // R-SAMP-30, R-SAMP-31
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    auto futures = draw(sampler(), 1);
    EXPECT_EQ(tinker.submits().size(), 1U);
    EXPECT_TRUE(status().backoff.active);
    EXPECT_EQ(status().pending.at(0).stage, Stage::backing_off);
    EXPECT_EQ(status().pending.at(0).ends_in, 1s);
    tinker.clock->advance(1s - 1ns);
    EXPECT_EQ(tinker.submits().size(), 1U);
    tinker.clock->advance(1ns);
    run();
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 0));
    EXPECT_EQ(futures[0].get().sequences.at(0).tokens, (std::vector<Token>{7, 8, 9}));
}

TEST_F(SamplingDispatch, LargePromptsBackOffFiveSeconds) {  // R-SAMP-31
    int refusals = 2;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    auto const client = sampler();
    auto const edge = draw(client, 1, 13107);  // 131,070 bytes: small
    EXPECT_EQ(status().backoff.ends_in, 1s);
    tinker.clock->advance(20s);
    run();
    refusals = 1;
    auto const large = draw(client, 1, 13108);
    EXPECT_EQ(status().backoff.ends_in, 5s);
}

TEST_F(SamplingDispatch, TheServersHintSetsTheWait) {  // R-SAMP-31
    Headers const hints[] = {{{"retry-after-ms", "2500"}},
                             {{"retry-after", "3"}},
                             {{"retry-after", "61"}},
                             {{"retry-after-ms", "0"}, {"retry-after", "7"}},
                             {{"retry-after-ms", "60001"}, {"retry-after", "7"}}};
    // C-46: a hint of more than a minute means a minute.
    std::chrono::nanoseconds const waits[] = {2500ms, 3s, 60s, 7s, 60s};
    auto const client = sampler();
    for (std::size_t i = 0; i < std::size(hints); ++i) {
        int refusals = 1;
        tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
            if (refusals-- > 0) return too_many("{}", hints[i]);
            return std::nullopt;
        };
        auto const futures = draw(client, 1);
        EXPECT_EQ(status().backoff.ends_in, waits[i]) << i;
        tinker.clock->advance(100s);
        run();
    }
}

TEST_F(SamplingDispatch, AHintInTheBodyComesBetweenThoseOfTheHeaders) {  // R-SAMP-31
    struct Case {
        std::string body{};
        Headers headers{};
        std::chrono::nanoseconds wait{};
    };
    Case const cases[] = {
        {R"({"retry_after_ms":4200})", {}, 4200ms},
        {R"({"retry_after_ms":4200})", {{"retry-after", "9"}}, 4200ms},
        {R"({"retry_after_ms":4200})", {{"retry-after-ms", "9000"}}, 9s},
        {R"({"retry_after_ms":0})", {{"retry-after", "9"}}, 9s},
        {R"({"retry_after_ms":60001})", {}, 60s},
        {R"({"retry_after_ms":"soon"})", {}, 1s},
    };
    auto const client = sampler();
    for (auto const& each : cases) {
        int refusals = 1;
        tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
            if (refusals-- > 0) return too_many(each.body, each.headers);
            return std::nullopt;
        };
        auto const futures = draw(client, 1);
        EXPECT_EQ(status().backoff.ends_in, each.wait) << each.body;
        tinker.clock->advance(100s);
        run();
    }
}

TEST_F(SamplingDispatch, ALaterShorterBackoffDoesNotShortenALongerOne) {  // R-SAMP-32
    std::vector<Headers> hints{{{"retry-after", "10"}}, {{"retry-after", "1"}}};
    std::size_t next = 0;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (next < hints.size()) return too_many("{}", hints[next++]);
        return std::nullopt;
    };
    auto const futures = draw(sampler(), 2);
    EXPECT_EQ(status().backoff.ends_in, 10s);
}

TEST_F(SamplingDispatch, AGateThatMovesMeanwhileIsWaitedForAgain) {  // R-SAMP-34
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (tinker.submits().size() == 1) return too_many("{}", {{"retry-after", "2"}});
        if (tinker.submits().size() != 2) return std::nullopt;
        auto later = too_many("{}", {{"retry-after", "10"}});
        later.delay = 1s;
        return later;
    };
    auto futures = draw(sampler(), 2);
    tinker.clock->advance(2s);
    run();
    EXPECT_EQ(tinker.submits().size(), 2U);
    EXPECT_EQ(status().backoff.ends_in, 9s);
    tinker.clock->advance(9s - 1ns);
    run();
    EXPECT_EQ(tinker.submits().size(), 2U);
    tinker.clock->advance(1ns);
    run();
    for (auto& future : futures) EXPECT_TRUE(future.result());
    EXPECT_EQ(tinker.submits().size(), 4U);
}

TEST_F(SamplingDispatch,
       AfterABackoffTenAtATimeAndTwentyTimesTheBytes) {  // R-SAMP-21, R-SAMP-24, R-SAMP-25
    bool slow = false;
    refuse_once(slow);
    auto const client = sampler();
    auto const first = draw(client, 1);
    tinker.clock->advance(1s);  // the gate opens; the memory stays ten seconds more
    run();
    slow = true;
    auto const futures = draw(client, 30, 100);
    EXPECT_EQ(tinker.submits().size(), 2U + 10U);
    auto const now = status();
    EXPECT_EQ(now.throttled.free, 0);
    EXPECT_EQ(now.throttled.waiting, 20);
    EXPECT_EQ(now.bytes.free, 5 * 1024 * 1024 - 10 * 100 * 10 * 20);
    EXPECT_FALSE(now.backoff.active);
    EXPECT_TRUE(now.backoff.recent);
    EXPECT_EQ(std::ranges::count(now.pending, Stage::throttled, &OperationStatus::stage), 20);
}

TEST_F(SamplingDispatch, TenSecondsAfterABackoffAllIsAsBefore) {  // R-SAMP-25
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    auto const client = sampler();
    auto const first = draw(client, 1);
    tinker.clock->advance(11s - 1ns);
    EXPECT_TRUE(status().backoff.recent);
    tinker.clock->advance(1ns);
    EXPECT_FALSE(status().backoff.recent);
    auto const futures = draw(client, 30);
    EXPECT_EQ(tinker.submits().size(), 2U + 30U);
}

TEST_F(SamplingDispatch, AcceptedLaterSubmitsOpenTheGateButLeaveTheMemory) {  // R-SAMP-36
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    auto const futures = draw(sampler(), 1);
    EXPECT_TRUE(status().backoff.active);
    tinker.clock->advance(1s);
    run();
    EXPECT_FALSE(status().backoff.active);
    EXPECT_TRUE(status().backoff.recent);
}

TEST_F(SamplingDispatch,
       ARepeatOfTheSubmitLoopIsBehindTheGateAndOpensItWhenAccepted) {  // R-SAMP-10, R-SAMP-36
    int failures = 1;
    tinker.on_submit = [&](Submit const& submit) -> RawTinker::Answer {
        if (submit.seq_id == 0 && failures-- > 0) return json_reply("{}", 503);
        if (submit.seq_id == 1) return too_many("{}", {{"retry-after", "10"}});
        return std::nullopt;
    };
    auto const client = sampler();
    auto first = draw(client, 1);
    tinker.clock->advance(500ms);
    auto const second = draw(client, 1);
    EXPECT_EQ(status().backoff.ends_in, 10s);
    tinker.clock->advance(500ms - 1ns);
    EXPECT_EQ(tinker.submits().size(), 2U);
    EXPECT_TRUE(status().backoff.active);
    tinker.clock->advance(1ns);  // sent after the refusal, though its loop began before
    run();
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 1, 0));
    EXPECT_TRUE(first[0].result());
    EXPECT_FALSE(status().backoff.active);
    EXPECT_TRUE(status().backoff.recent);
}

TEST_F(SamplingDispatch,
       FiftyMoreSamplesWaitForTheGateThatOneRefusalClosed) {  // R-SAMP-34, R-SAMP-35
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    // Of two samplers with the default limits, whose gate is the same.
    auto const first = sampler();
    auto const second = service->create_sampling_client("org/tiny");
    auto refused = draw(first, 1);
    ASSERT_EQ(tinker.submits().size(), 1U);
    auto futures = draw(first, 25);
    for (auto& future : draw(second, 25)) futures.push_back(std::move(future));
    tinker.clock->advance(1s - 1ns);
    run();
    EXPECT_EQ(tinker.submits().size(), 1U) << "nobody passes a gate that is closed";
    EXPECT_TRUE(status().backoff.active);
    tinker.clock->advance(60s);
    run();
    EXPECT_EQ(tinker.submits().size(), 52U);
    EXPECT_TRUE(refused[0].result());
    for (auto& future : futures) EXPECT_TRUE(future.result());
}

TEST_F(SamplingDispatch, FiftySamplesAndOneRefusal) {  // R-SAMP-34, R-SAMP-38
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    options = tinker.options();
    options->dispatch.count = 1;  // the refusal comes before the others are sent
    auto futures = draw(sampler(), 50);
    auto const refused_at = tinker.submits().at(0).at;
    tinker.clock->advance(1s - 1ns);
    EXPECT_EQ(tinker.submits().size(), 1U);
    tinker.clock->advance(60s);
    run();
    for (auto& future : futures) EXPECT_EQ(future.get().sequences.size(), 1U);
    for (std::size_t i = 1; i < tinker.submits().size(); ++i) {
        EXPECT_GE(tinker.submits()[i].at, refused_at + 1s);
    }
    auto seq_ids = tinker.submitted_seq_ids();
    std::ranges::sort(seq_ids);
    auto const repeated = std::ranges::unique(seq_ids);
    seq_ids.erase(repeated.begin(), repeated.end());
    std::vector<std::int64_t> expected(50);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(seq_ids, expected);
    EXPECT_FALSE(status().backoff.active);
}

TEST_F(SamplingDispatch,
       ABackoffIsSharedByClientsOfOneAccountAndNoOther) {  // R-SAMP-35, R-CONF-10, R-CONF-11
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many();
        return std::nullopt;
    };
    auto const first = draw(sampler(), 1);
    auto same = tinker.options();
    same.base_url = "http://TINKER.test:80/";
    ServiceClient const sibling{same};
    auto other_key = tinker.options();
    other_key.api_key = "tml-another-key";
    ServiceClient const stranger{other_key};
    auto other_url = tinker.options();
    other_url.base_url = "http://elsewhere.test";
    ServiceClient const elsewhere{other_url};
    EXPECT_EQ(tinker.submits().size(), 1U);
    auto const a = draw(sibling.create_sampling_client("m"), 1);
    EXPECT_EQ(tinker.submits().size(), 1U);
    auto const b = draw(stranger.create_sampling_client("m"), 1);
    EXPECT_EQ(tinker.submits().size(), 2U);
    auto const c = draw(elsewhere.create_sampling_client("m"), 1);
    EXPECT_EQ(tinker.submits().size(), 3U);
    tinker.clock->advance(1s);
    run();
    EXPECT_EQ(tinker.submits().size(), 5U);
}

TEST_F(SamplingDispatch,
       ARetryHandlerIsSharedByClientsOfOneAccountAndNoOther) {  // R-RETRY-25, R-CONF-11
    // The fake gives every sampler the same id.
    auto const processed = [&](ClientOptions given) {
        ServiceClient const client{std::move(given)};
        auto const from = client.create_sampling_client("m");
        (void)draw(from, 1);
        auto stats = from.stats();
        run();
        return stats.get().processed;
    };
    auto other_key = tinker.options();
    other_key.api_key = "tml-another-key";
    auto other_url = tinker.options();
    other_url.base_url = "http://elsewhere.test";
    EXPECT_EQ(processed(tinker.options()), 1);
    EXPECT_EQ(processed(tinker.options()), 2);
    EXPECT_EQ(processed(other_key), 1);
    EXPECT_EQ(processed(other_url), 1);
    EXPECT_EQ(processed(tinker.options()), 3);
}

TEST_F(SamplingDispatch,
       WithoutRetriesARefusalSurfacesAtOnceWithItsWait) {  // R-SAMP-33, R-RETRY-13
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return too_many("{}", {{"retry-after", "4"}});
    };
    auto futures = draw(sampler({.enable_retry_logic = false}), 1);
    auto const result = futures[0].result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().http_status(), 429);
    EXPECT_EQ(result.error().retry_after(), 4s);
    EXPECT_EQ(tinker.submits().size(), 1U);
    EXPECT_TRUE(status().backoff.active);  // shared all the same
}

TEST_F(SamplingDispatch, WithoutRetriesServerErrorsSurfaceAtOnce) {  // R-SAMP-33, R-RETRY-13
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return json_reply("{}", 503); };
    auto futures = draw(sampler({.enable_retry_logic = false}), 1);
    EXPECT_EQ(futures[0].result().error().http_status(), 503);
    EXPECT_EQ(tinker.submits().size(), 1U);
}

TEST_F(SamplingDispatch, BadRequestsSurfaceAtOnce) {  // R-SAMP-40
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"no such model"})", 400);
    };
    auto futures = draw(sampler(), 1);
    auto const result = futures[0].result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().http_status(), 400);
    EXPECT_EQ(result.error().category(), ErrorCategory::user);
    EXPECT_NE(std::string{result.error().what()}.find("sample"), std::string::npos);
    EXPECT_NE(std::string{result.error().what()}.find("no such model"), std::string::npos);
    EXPECT_EQ(tinker.submits().size(), 1U);
}

TEST_F(SamplingDispatch,
       ServerErrorsAreSentAgainWithTheSameNumber) {  // R-SAMP-04, R-SAMP-40, R-RETRY-81
    int failures = 2;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (failures-- > 0) return json_reply("{}", 503);
        return std::nullopt;
    };
    auto futures = draw(sampler(), 1);
    EXPECT_EQ(status().pending.at(0).stage, Stage::waiting_to_submit);
    tinker.clock->advance(1s);
    run();
    tinker.clock->advance(2s);
    run();
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 0, 0));
    EXPECT_TRUE(futures[0].result());
}

TEST_F(SamplingDispatch,
       ALostPromiseIsSubmittedAnewUnderTheNextNumber) {  // R-RETRY-19, R-FUT-14, R-SAMP-40
    int lost = 1;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (lost-- > 0) return json_reply("{}", 410);
        return std::nullopt;
    };
    auto futures = draw(sampler({.jitter_factor = 0}), 1);
    EXPECT_EQ(status().pending.at(0).stage, Stage::waiting_to_retry);
    EXPECT_EQ(status().pending.at(0).ends_in, 500ms);
    tinker.clock->advance(500ms);
    run();
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 1));
    EXPECT_EQ(futures[0].get().sequences.at(0).sequence_id, "req-1/0");  // R-SAMP-72
}

TEST_F(SamplingDispatch, AFailedRequestIsFinal) {  // R-RETRY-20
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply(R"({"error":"out of memory","category":"server"})");
    };
    auto futures = draw(sampler(), 1);
    auto const result = futures[0].result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::request_failed);
    EXPECT_EQ(result.error().category(), ErrorCategory::server);
    EXPECT_EQ(result.error().request_id(), "req-0");
}

TEST_F(SamplingDispatch, CancellingGivesEverythingBack) {  // R-RETRY-18, R-SAMP-11, R-FUT-22
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    auto futures = draw(sampler(), 450);
    for (auto& future : futures) future.cancel();
    run();
    auto const now = status();
    EXPECT_TRUE(now.pending.empty());
    EXPECT_EQ(now.count.free, 400);
    EXPECT_EQ(now.count.waiting, 0);
    EXPECT_EQ(now.bytes.free, 5 * 1024 * 1024);
    EXPECT_EQ(tinker.transport->open_count(), 0U);
    EXPECT_EQ(futures[0].result().error().kind(), ErrorKind::cancelled);
}

TEST_F(SamplingDispatch, TheSamplersSlotsAreLimited) {  // R-RETRY-05, R-RETRY-10
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const futures = draw(sampler({.max_connections = 7}), 20);
    EXPECT_EQ(tinker.submits().size(), 7U);
    auto const now = status();
    EXPECT_EQ(std::ranges::count(now.pending, Stage::waiting_for_slot, &OperationStatus::stage),
              13);
}

TEST_F(SamplingDispatch,
       SlotsAreTheServersOrAThousandUnlessTheCallerWantsFewer) {  // R-RETRY-05, R-CONF-22
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const futures = draw(sampler(), 1001);
    EXPECT_EQ(tinker.submits().size(), 1000U);
}

TEST_F(SamplingDispatch, ALargerLimitOfTheCallerIsCappedByTheServers) {  // R-RETRY-05, R-CONF-22
    tinker.flags["sample_max_concurrent_requests"] = 5;
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const futures = draw(sampler({.max_connections = 50}), 20);
    EXPECT_EQ(tinker.submits().size(), 5U);
}

TEST_F(SamplingDispatch, WithoutProgressAllFailAsStuckAfterTwoHours) {  // R-RETRY-34
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply(R"({"type":"try_again","request_id":"x"})");
        reply.delay = 30s;
        return reply;
    };
    auto futures = draw(sampler(), 3);
    tinker.clock->advance(2h - 1s);
    EXPECT_FALSE(futures[0].ready());
    tinker.clock->advance(2s);
    run();
    for (auto& future : futures) {
        auto const result = future.result();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind(), ErrorKind::connection);
        EXPECT_NE(std::string{result.error().what()}.find("7200 s"), std::string::npos);
        EXPECT_NE(std::string{result.error().what()}.find("stuck"), std::string::npos);
    }
    EXPECT_EQ(tinker.submits().size(), 3U);  // not submitted again
}

TEST_F(SamplingDispatch, TheServersFlagTurnsTheWatchOff) {  // R-RETRY-37, R-CONF-21
    tinker.flags["sample_enable_stuck_detection"] = false;
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply(R"({"type":"try_again","request_id":"x"})");
        reply.delay = 30s;
        return reply;
    };
    auto futures = draw(sampler({.progress_timeout = 1min}), 1);
    tinker.clock->advance(1h);
    EXPECT_FALSE(futures[0].ready());
}

TEST_F(SamplingDispatch, TheServerCanTurnTheRetryEngineOff) {  // R-SAMP-41, R-CONF-21
    tinker.flags["sample_no_retries"] = true;
    tinker.flags["sample_max_concurrent_requests"] = 1;
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply("{}", 410);
    };
    auto const client = sampler();
    auto futures = draw(client, 2);
    EXPECT_EQ(tinker.submits().size(), 2U);                                  // no semaphore
    EXPECT_EQ(futures[0].result().error().kind(), ErrorKind::promise_lost);  // no second attempt
    auto logprobs = client.compute_logprobs(prompt_of(3));
    run();
    EXPECT_FALSE(logprobs.ready());  // this one has its engine still
}

TEST_F(SamplingDispatch, BillingBlocksAreWaitedOutLikeRefusals) {  // R-SAMP-52
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return json_reply(R"({"detail":"pay"})", 402);
        return std::nullopt;
    };
    auto futures = draw(sampler(), 1);
    EXPECT_EQ(status().pending.at(0).stage, Stage::billing_pause);
    EXPECT_TRUE(status().billing_pause);
    tinker.clock->advance(1s);
    run();
    EXPECT_TRUE(futures[0].result());
    EXPECT_TRUE(status().backoff.recent);
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 0));
}

TEST_F(SamplingDispatch, ABlockThatLastsTooLongIsAnError) {  // R-SAMP-51
    tinker.flags["billing_exception_max_pause_duration_sec"] = 0;
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"pay"})", 402);
    };
    auto futures = draw(sampler(), 1);
    tinker.clock->advance(5s);
    run();
    auto const result = futures[0].result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::billing);
}

TEST_F(SamplingDispatch, ADeadlineEndsACallWhereverItStands) {
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return too_many(); };
    auto const client = sampler();
    auto future = client.sample(prompt_of(3), {.max_tokens = 4}, {}, {.deadline = 30s});
    run();
    tinker.clock->advance(29s);
    EXPECT_FALSE(future.ready());
    tinker.clock->advance(1s);
    run();
    auto const result = future.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::timeout);
    EXPECT_NE(std::string{result.error().what()}.find("backing off"), std::string::npos);
    EXPECT_TRUE(status().pending.empty());
}

TEST_F(SamplingDispatch, QueueStatesOfRefusalsReachTheCaller) {  // R-SAMP-37, R-SAMP-64, R-FUT-30
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) {
            return too_many(R"({"queue_state":"paused_capacity","queue_state_reason":"too busy"})");
        }
        return std::nullopt;
    };
    std::vector<std::string> seen;
    CallOptions call;
    call.on_queue_state.emplace_back([&](QueueState state, std::string_view reason) {
        seen.push_back(std::string{to_string(state)} + ": " + std::string{reason});
    });
    auto future = sampler().sample(prompt_of(3), {.max_tokens = 4}, {}, call);
    run();
    EXPECT_THAT(seen, ElementsAre("paused_capacity: too busy"));
    EXPECT_EQ(tinker.logged("too busy"), 1U);  // R-SAMP-60
    tinker.clock->advance(1s);
    run();
    EXPECT_TRUE(future.result());
}

TEST_F(SamplingDispatch, AThrowingHandlerOfQueueStatesHarmsNothing) {  // R-FUT-32
    int refusals = 1;
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        if (refusals-- > 0) return too_many(R"({"queue_state":"paused_capacity"})");
        return std::nullopt;
    };
    CallOptions call;
    call.on_queue_state.emplace_back([](QueueState) { throw std::runtime_error{"oops"}; });
    auto future = sampler().sample(prompt_of(3), {.max_tokens = 4}, {}, call);
    run();
    tinker.clock->advance(1s);
    run();
    EXPECT_TRUE(future.result());
    EXPECT_EQ(tinker.logged("oops"), 1U);
}

TEST_F(SamplingDispatch, MembersThatAnOldServerRefusesAreLeftOut) {  // R-WIRE-10
    tinker.on_submit = [](Submit const& submit) -> RawTinker::Answer {
        if (submit.body.contains("topk_sample_logprobs")) {
            return json_reply(
                R"({"detail":[{"type":"extra_forbidden","loc":["body","topk_sample_logprobs"]}]})",
                422);
        }
        return std::nullopt;
    };
    auto const client = sampler();
    auto first = draw(client, 1);
    EXPECT_TRUE(first[0].result());
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(0, 0));
    auto second = draw(client, 1);
    EXPECT_TRUE(second[0].result());
    EXPECT_EQ(tinker.submits().size(), 3U);  // remembered
    auto asked = client.sample(prompt_of(3), {.max_tokens = 4}, {.topk_sample_logprobs = 2});
    run();
    auto const answer = asked.result();
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->sequences.at(0).topk_logprobs) << "the tokens are paid for";
    EXPECT_EQ(tinker.logged("did not answer topk_sample_logprobs"), 1U);
}

TEST_F(SamplingDispatch, ALostPromiseKeepsItsPromptWhenTheMembersChangeMeanwhile) {  // R-WIRE-10
    // The server behind the address changes: the newer one took the sample, the older one is asked
    // for its promise, and another sample learns which members it knows.
    bool old = false;
    tinker.on_submit = [&](Submit const& submit) -> RawTinker::Answer {
        if (!old || !submit.body.contains("topk_sample_logprobs")) return std::nullopt;
        return json_reply(R"({"detail":[{"loc":["body","topk_sample_logprobs"]}]})", 422);
    };
    tinker.on_poll = [&](std::string const& id, std::int64_t) -> RawTinker::Answer {
        if (id == "req-0") return json_reply(R"({"detail":"gone"})", old ? 410 : 503);
        return std::nullopt;
    };
    auto const client = sampler();
    auto lost = draw(client, 1);
    old = true;
    auto other = draw(client, 1);
    EXPECT_TRUE(other[0].result());
    old = true;
    tinker.clock->advance(2s);
    run();
    old = false;
    ASSERT_GE(tinker.submits().size(), 4U);
    auto const& again = tinker.submits().back().body;
    EXPECT_EQ(again.at("seq_id"), 2);
    EXPECT_EQ(again.at("prompt"), tinker.submits().front().body.at("prompt"));
}

TEST_F(SamplingDispatch, ClosingLetsNobodyPassWhoWaitedForAnother) {  // R-SESS-24, R-CONF-45
    options = tinker.options();
    options->dispatch.count = 1;
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    auto const first = sampler();
    auto const slots = service->create_sampling_client("org/tiny", {.max_connections = 1});
    auto waiting = draw(first, 3);
    for (auto& each : draw(slots, 3)) waiting.push_back(std::move(each));
    EXPECT_EQ(tinker.submits().size(), 1U);
    auto closing = service->close();
    run();
    EXPECT_TRUE(closing.result());
    EXPECT_EQ(tinker.submits().size(), 1U);
    for (auto& each : waiting) EXPECT_EQ(each.result().error().kind(), ErrorKind::cancelled);
}

TEST_F(SamplingDispatch, ClosingLetsNobodyFetchWhoWaitedForAnother) {  // R-SESS-24, R-FUT-40
    tinker.flags["inflight_response_bytes_semaphore_size"] = 10;
    tinker.on_poll = [](std::string const&, std::int64_t iteration) -> RawTinker::Answer {
        if (iteration > 0) return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
        return json_reply(R"({"status":"complete_metadata","response_payload_size":100})");
    };
    auto const futures = draw(sampler(), 3);
    EXPECT_EQ(tinker.count("/api/v1/retrieve_future"), 4U);
    auto closing = service->close();
    run();
    EXPECT_TRUE(closing.result());
    EXPECT_EQ(tinker.count("/api/v1/retrieve_future"), 4U);
}

TEST_F(SamplingDispatch, WithTheCompletionPollOneFetchFollows) {  // R-SAMP-12, R-FUT-63
    tinker.flags["sample_use_retrieve_futures"] = true;
    int polls = 0;
    tinker.on_other = [&](testing::SentRequest const& sent) -> RawTinker::Answer {
        if (sent.path != "/api/v1/retrieve_futures") return std::nullopt;
        if (++polls > 1) return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
        auto reply = json_reply(R"({"completions":[{"state":"finished","request_id":"req-0",)"
                                R"("response_payload_uncompressed_size":70}],"cursor":1})");
        reply.delay = 5s;
        return reply;
    };
    auto futures = draw(sampler(), 1);
    EXPECT_EQ(status().pending.at(0).stage, Stage::waiting_for_completion);
    EXPECT_EQ(status().count.free, 400);
    EXPECT_EQ(tinker.count("/api/v1/retrieve_future"), 0U);
    tinker.clock->advance(5s);
    run();
    EXPECT_TRUE(futures[0].result());
    auto const fetches = tinker.transport->sent("/api/v1/retrieve_future");
    ASSERT_EQ(fetches.size(), 1U);
    EXPECT_NE(fetches[0].body.find(R"("allow_metadata_only":false)"), std::string::npos);
}

TEST_F(SamplingDispatch, NoCompletionPollBeginsAfterAClose) {  // R-SESS-20, R-SESS-24
    tinker.flags["sample_use_retrieve_futures"] = true;
    tinker.dynamic_flags["sample_cancel_enabled"] = true;
    tinker.on_other = [&](testing::SentRequest const& sent) -> RawTinker::Answer {
        if (sent.path == "/api/v1/cancel_future") {  // holds up the close
            return Reply{.status = 0, .delay = 1min, .failure = Failure{}};
        }
        if (sent.path != "/api/v1/retrieve_futures") return std::nullopt;
        auto reply =
            json_reply(R"({"completions":[{"state":"finished","request_id":"req-0"}],"cursor":1})");
        reply.delay = 2s;
        return reply;
    };
    auto futures = draw(sampler(), 2);
    tinker.clock->advance(3s);  // the first is done, and its fetch is to be reported
    run();
    EXPECT_TRUE(futures[0].result());
    EXPECT_EQ(tinker.count("/api/v1/retrieve_futures"), 2U);
    auto const closing = service->close();
    tinker.clock->advance(4s);
    run();
    EXPECT_EQ(tinker.count("/api/v1/retrieve_futures"), 2U);
}

TEST_F(SamplingDispatch, AnAnswerThatIsTheResultIsTakenAsSuch) {  // R-SAMP-03
    tinker.on_submit = [&](Submit const&) -> RawTinker::Answer {
        return json_reply(tinker.result);
    };
    auto futures = draw(sampler(), 1);
    EXPECT_EQ(futures[0].get().sequences.at(0).tokens.size(), 3U);
    EXPECT_EQ(tinker.count("/api/v1/retrieve_future"), 0U);
}

TEST_F(SamplingDispatch,
       WithTheCompletionPollSlotsAreUnlimitedUnlessTheCallerLimitsThem) {  // R-RETRY-06
    tinker.flags["sample_use_retrieve_futures"] = true;
    tinker.flags["sample_max_concurrent_requests"] = 5;
    tinker.on_other = [](testing::SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("retrieve_futures")) return std::nullopt;
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const free = draw(sampler(), 20);
    EXPECT_EQ(tinker.submits().size(), 20U);
    EXPECT_EQ(std::ranges::count(status().pending, Stage::waiting_for_completion,
                                 &OperationStatus::stage),
              20);
    auto const limited = draw(sampler({.max_connections = 7}), 20);
    EXPECT_EQ(tinker.submits().size(), 27U);
}

TEST_F(SamplingDispatch, ACallersCancelIsNoWatchdogsAndTheOtherWayRound) {  // R-RETRY-35
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply(R"({"type":"try_again","request_id":"x"})");
        reply.delay = 30s;
        return reply;
    };
    auto futures = draw(sampler({.progress_timeout = 1min}), 2);
    tinker.clock->advance(1min - 1s);
    futures[0].cancel();
    tinker.clock->advance(2s);
    futures[1].cancel();  // too late: the watchdog was first
    run();
    EXPECT_EQ(futures[0].result().error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(futures[1].result().error().kind(), ErrorKind::connection);
}

TEST_F(SamplingDispatch, ABreakerStandsBeforeTheSubmitOfThoseWhoWantOne) {  // R-RETRY-24, R-EXT-03
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"no"})", 422);
    };
    auto const plain = sampler();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(draw(plain, 1)[0].result().error().http_status(), 422);
    EXPECT_EQ(tinker.submits().size(), 3U);  // off unless asked for

    CircuitBreakerOptions rules;
    rules.failure_threshold = 1;
    rules.is_failure = [](Error const&) { return true; };
    rules.clock = [&] { return tinker.clock->now(); };
    SamplerOptions wanted;
    wanted.base_model = "org/tiny";
    wanted.circuit_breaker = CircuitBreaker{"samples", rules};
    auto const guarded = service->create_sampling_client(wanted);
    EXPECT_EQ(draw(guarded, 1)[0].result().error().http_status(), 422);
    EXPECT_EQ(draw(guarded, 1)[0].result().error().kind(), ErrorKind::circuit_open);
    EXPECT_EQ(tinker.submits().size(), 4U);

    // Its refusal is retried only by those who say so.
    wanted.retry.retryable_errors.push_back(ErrorKind::circuit_open);
    tinker.on_submit = {};
    auto patient = draw(service->create_sampling_client(wanted), 1);
    EXPECT_FALSE(patient[0].ready());
    tinker.clock->advance(60s);
    run();
    EXPECT_TRUE(patient[0].result());
}

TEST_F(SamplingDispatch, EveryFailedAttemptIsToldToTelemetry) {  // R-RETRY-40, R-TEL-10
    options = tinker.options();
    options->telemetry = true;
    int lost = 1;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (lost-- > 0) return json_reply("{}", 410);
        return std::nullopt;
    };
    auto futures = draw(sampler(), 1);
    tinker.clock->advance(30s);
    run();
    EXPECT_TRUE(futures[0].result());
    auto const told = last_event("RetryHandler.execute.exception");
    ASSERT_TRUE(told);
    EXPECT_EQ(told->at("severity").as_string(), "WARNING");
    auto const& data = told->at("event_data").as_object();
    EXPECT_TRUE(data.at("should_retry").as_bool());
    EXPECT_EQ(data.at("attempt_count").as_int64(), 1);
    EXPECT_EQ(data.at("exception_type").as_string(), "RetryableException");
    auto const stack = std::string{data.at("exception_stack").as_string()};
    EXPECT_THAT(stack, StartsWith("sample, attempt 1\nRetryableException"));
    EXPECT_THAT(stack, HasSubstr("\ncaused by APIStatusError after 1 HTTP attempt: POST "
                                 "/api/v1/retrieve_future: 410"));
    for (auto const* member :
         {"func", "exception", "status_code", "start_time", "current_time", "elapsed_time"}) {
        EXPECT_TRUE(data.contains(member)) << member;
    }
}

TEST_F(SamplingDispatch, TelemetryTellsTheFaultsOfUsersFromThoseOfTheService) {  // R-RETRY-40
    options = tinker.options();
    options->telemetry = true;
    struct Case {
        int status;
        char const* severity;
        bool user;
    };
    for (auto const& [status, severity, user] :
         {Case{422, "WARNING", true}, Case{403, "WARNING", true}, Case{302, "ERROR", false}}) {
        tinker.on_submit = [status = status](Submit const&) -> RawTinker::Answer {
            return json_reply(R"({"detail":"no"})", status);
        };
        service.reset();
        auto futures = draw(sampler(), 1);
        tinker.clock->advance(30s);
        run();
        EXPECT_FALSE(futures[0].result());
        auto const told = last_event("RetryHandler.execute.exception");
        ASSERT_TRUE(told) << status;
        EXPECT_EQ(told->at("severity").as_string(), severity) << status;
        auto const& data = told->at("event_data").as_object();
        EXPECT_EQ(data.at("is_user_error"), user) << status;
        EXPECT_EQ(data.at("should_retry"), false) << status;
    }
}

TEST_F(SamplingDispatch,
       CancellingAnAcceptedSampleStopsItOnTheServerIfThatIsAllowed) {  // R-SAMP-42, R-FUT-70
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    for (bool const allowed : {false, true}) {
        tinker.dynamic_flags["sample_cancel_enabled"] = allowed;
        service.emplace(tinker.options());
        auto futures = draw(service->create_sampling_client("org/tiny"), 1);
        futures[0].cancel();
        run();
        auto const sent = tinker.transport->sent("/api/v1/cancel_future");
        ASSERT_EQ(sent.size(), allowed ? 1U : 0U);
        if (allowed) {
            EXPECT_EQ(boost::json::parse(sent[0].body).at("request_id").as_string(), "req-0");
        }
    }
}

}  // namespace
}  // namespace tinkxx
