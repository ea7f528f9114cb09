// The service waits for each number of a model: whatever becomes of a call, those behind it are
// submitted at once, with the number that the service expects next.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"
#include "wire/training/training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zstd.h>

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using support::TrainSubmit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Reply;

std::vector<Datum> data(std::size_t count) {
    std::vector<Datum> made(count);
    for (auto& datum : made) {
        datum.model_input = ModelInput::from_tokens({1, 2});
        datum.loss_fn_inputs.set("target_tokens", std::vector<std::int64_t>{2, 7});
        datum.loss_fn_inputs.set("weights", {0.0, 1.0});
    }
    return made;
}

/// No answer; and if the call is cancelled, the server has seen so much of it.
Reply unanswered(Seen seen = Seen::maybe) {
    return {.status = 0, .delay = 24h, .failure = Failure{.seen = seen}};
}

class TrainingGaps : public ::testing::Test {
protected:
    TrainingClient trainer() {
        service.emplace(client_options ? *client_options : tinker.options());
        auto made = service->create_lora_training_client("org/tiny", 8).get();
        tinker.clock->set_auto_advance(false);
        return made;
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    /// Answers requests for `path` by `reply`, as long as there are any left.
    void answer(std::string path, Reply reply, int times = 1) {
        tinker.on_train = [path = std::move(path), reply = std::move(reply),
                           times](TrainSubmit const& submit) mutable -> RawTinker::Answer {
            if (submit.path != path || times-- <= 0) return std::nullopt;
            return reply;
        };
    }
    void pass_time(std::chrono::seconds span) {
        for (auto left = span; left > 0s; left -= 1s) {
            tinker.clock->advance(1s);
            run();
        }
    }
    /// One that so many failures open.
    CircuitBreaker breaker(int failures = 1) {
        CircuitBreakerOptions rules;
        rules.failure_threshold = failures;
        rules.clock = [this] { return tinker.clock->now(); };
        return CircuitBreaker{"test", rules};
    }
    static TrainingClient guarded(TrainingClient const& client, CircuitBreaker const& by) {
        CallOptions options;
        options.circuit_breaker = by;
        return client.with(std::move(options));
    }
    template <class T>
    Error failure(Future<T> future) {
        run();
        EXPECT_TRUE(future.ready());
        if (!future.ready()) return Error{ErrorDetails{}};
        auto result = future.result();
        EXPECT_FALSE(result.has_value());
        return result ? Error{ErrorDetails{}} : result.error();
    }

    RawTinker tinker;
    std::optional<ClientOptions> client_options{};
    std::optional<ServiceClient> service{};
};

TEST_F(TrainingGaps, ACallThatIsCancelledBeforeItBeganUsesNoNumber) {  // R-TRAIN-13
    auto const client = trainer();
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    first.cancel();
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1"));
    EXPECT_TRUE(second.ready());
    EXPECT_EQ(failure(std::move(first)).kind(), ErrorKind::cancelled);
}

TEST_F(TrainingGaps, CallsBehindOneThatIsCancelledInTheLineMoveUp) {  // R-TRAIN-13
    auto const client = trainer();
    auto held = json_reply(R"({"request_id":"train-1"})");
    held.delay = 5s;
    answer("forward_backward", held);
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    auto second = client.optim_step({});
    auto third = client.forward_backward(data(1), LossFn::cross_entropy);
    auto fourth = client.save_state("a", {.user_metadata = {{"seq_id", "7"}}});
    run();
    second.cancel();
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1"));
    auto late = client.optim_step({});
    tinker.clock->advance(5s);
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "forward_backward 2",
                                                    "save_weights 3", "optim_step 4"));
    EXPECT_EQ(tinker.trained().at(3).json.at("user_metadata").at("seq_id").as_string(), "7");
    EXPECT_TRUE(third.ready() && fourth.ready() && late.ready());
}

TEST_F(TrainingGaps, WhatMayHaveArrivedIsSentAgainBeforeTheNext) {  // R-TRAIN-13, R-TRAIN-14
    auto const client = trainer();
    answer("forward_backward", unanswered());
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    first.cancel();
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1"))
        << "not before somebody is behind it";
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 1", "forward_backward 1", "optim_step 2"));
    EXPECT_EQ(tinker.trained().at(1).bytes, tinker.trained().at(2).bytes);
    EXPECT_TRUE(second.ready());
    EXPECT_EQ(tinker.count("/api/v1/retrieve_future"), 2U) << "the creation and the step";
}

TEST_F(TrainingGaps, WhatCannotHaveArrivedIsNotSentAgain) {  // R-TRAIN-13
    auto const client = trainer();
    answer("forward_backward", unanswered(Seen::partly));
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    first.cancel();
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 1"));
}

TEST_F(TrainingGaps, ACallThatIsCancelledOnceItWasTakenHasItsNumber) {  // R-TRAIN-13
    auto const client = trainer();
    tinker.on_poll = [](std::string const& id, std::int64_t) -> RawTinker::Answer {
        if (id == "train-1") return unanswered();
        return std::nullopt;
    };
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    first.cancel();
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 2"));
    EXPECT_TRUE(second.ready());
}

TEST_F(TrainingGaps, ChunksThatWereNotSentLeaveTheirNumbers) {  // R-TRAIN-13, R-TRAIN-32
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["parallel_fwdbwd_chunks"] = false;
    auto const client = trainer();
    tinker.on_train = [left = 1](TrainSubmit const& submit) mutable -> RawTinker::Answer {
        if (submit.seq_id != 2 || left-- <= 0) return std::nullopt;
        return unanswered();
    };
    auto first = client.forward_backward(data(4), LossFn::cross_entropy);
    auto second = client.optim_step({});
    run();
    first.cancel();
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "forward_backward 2",
                                                    "forward_backward 2", "optim_step 3"));
}

TEST_F(TrainingGaps, TheFirstOfParallelChunksLeavesItsNumberToTheNextCall) {  // R-TRAIN-32
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    auto const client = trainer();
    answer("forward_backward", unanswered(), 2);
    auto first = client.forward_backward(data(3), LossFn::cross_entropy);
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 2", "forward_backward 3"));
    first.cancel();
    auto second = client.forward_backward(data(2), LossFn::cross_entropy);
    auto third = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 2", "forward_backward 3", "forward_backward 2",
                            "forward_backward 3", "forward_backward 4", "forward_backward 1",
                            "optim_step 5"));
    EXPECT_TRUE(second.ready() && third.ready());
}

TEST_F(TrainingGaps, ARefusedRequestLeavesItsNumber) {  // R-TRAIN-13
    auto const client = trainer();
    (void)client.optim_step({});
    run();
    for (auto const status : {400, 403, 404, 413, 422}) {
        answer("forward_backward", json_reply(R"({"detail":"no"})", status), 2);
        auto first = client.forward_backward(data(1), LossFn::cross_entropy);
        run();
        EXPECT_TRUE(first.ready()) << status;
        auto second = client.optim_step({});
        run();
        EXPECT_TRUE(second.ready()) << status;
    }
    EXPECT_EQ(tinker.trained_steps().back(), "optim_step 6");
}

TEST_F(TrainingGaps, ARequestThatNeverGotThroughLeavesItsNumber) {  // R-TRAIN-13
    auto const client = trainer();
    answer("optim_step", testing::failing(FailureKind::connect, Seen::no), 1000);
    auto first = client.optim_step({});
    pass_time(400s);
    EXPECT_EQ(failure(std::move(first)).kind(), ErrorKind::connection);
    answer("optim_step", testing::failing(FailureKind::connect, Seen::no), 0);
    auto second = client.save_state("a");
    run();
    EXPECT_EQ(tinker.trained_steps().back(), "save_weights 1");
}

TEST_F(TrainingGaps, AnOutageLeavesNoGapBehind) {  // R-TRAIN-13, R-TRAIN-14
    auto const client = trainer();
    answer("optim_step", json_reply("{}", 503), 1000);
    auto first = client.optim_step({});
    pass_time(400s);
    EXPECT_EQ(failure(std::move(first)).http_status(), 503);
    auto second = client.save_state("a");
    pass_time(400s);
    auto const error = failure(std::move(second));
    EXPECT_EQ(error.http_status(), 503);
    EXPECT_THAT(error.what(), HasSubstr("save_state: request 1 of the model may or may not have "
                                        "arrived, and could not be sent again"));
    answer("optim_step", {}, 0);
    auto const before = tinker.trained().size();
    auto third = client.save_state("a");
    run();
    ASSERT_EQ(tinker.trained().size(), before + 2);
    EXPECT_EQ(tinker.trained()[before].seq_id, 1);
    EXPECT_EQ(tinker.trained_steps().back(), "save_weights 2");
    EXPECT_TRUE(third.ready());
}

TEST_F(TrainingGaps, WhatTheServerFallsOverIsNotSentAgain) {  // R-TRAIN-13
    auto const client = trainer();
    answer("optim_step", json_reply(R"({"detail":"broken"})", 500), 1000);
    auto first = client.optim_step({});
    pass_time(400s);
    EXPECT_EQ(failure(std::move(first)).http_status(), 500);
    auto second = client.save_state("a");
    run();
    EXPECT_EQ(tinker.trained_steps().back(), "save_weights 2") << "it may have been taken";
}

TEST_F(TrainingGaps, ABreakerThatOpensLeavesNoGapBehind) {  // R-TRAIN-13, R-EXT-03
    for (int const status : {503, 500}) {
        auto const client = trainer();
        auto const careful = guarded(client, breaker());
        answer("optim_step", json_reply("{}", status));
        auto const before = tinker.trained_steps().size();
        EXPECT_EQ(failure(careful.optim_step({})).kind(), ErrorKind::circuit_open);
        auto const error = failure(careful.optim_step({}));
        EXPECT_EQ(error.kind(), ErrorKind::circuit_open);
        EXPECT_THAT(error.what(), HasSubstr("request 1 of the model may or may not have arrived"));
        EXPECT_EQ(tinker.trained_steps().size(), before + 1) << "it is open";
        auto last = client.save_state("a");
        run();
        EXPECT_TRUE(last.ready()) << status;
        auto const steps = tinker.trained_steps();
        ASSERT_EQ(steps.size(), before + 3) << status;
        EXPECT_EQ(steps[before + 1], "optim_step 1");
        EXPECT_EQ(steps[before + 2], "save_weights 2");
        tinker.clock->set_auto_advance(true);
    }
}

/// What a server says that cannot read protobuf.
Reply unread() {
    Reply reply;
    reply.status = 500;
    reply.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
    reply.body = "Internal Server Error";
    return reply;
}

/// The encodings of passes that came, e.g. `PPJ`.
std::string encodings(RawTinker const& tinker) {
    std::string all;
    for (auto const& each : tinker.trained()) {
        if (each.path == "forward_backward") all += each.protobuf ? 'P' : 'J';
    }
    return all;
}

TEST_F(TrainingGaps, WhatMayHaveArrivedInTheFirstEncodingIsSettledInIt) {  // R-TRAIN-13, R-WIRE-10
    auto const client = trainer();
    tinker.on_train = [times = 0](TrainSubmit const& submit) mutable -> RawTinker::Answer {
        if (submit.path != "forward_backward" || ++times > 2) return std::nullopt;
        return times == 1 ? json_reply("{}", 503) : unread();
    };
    auto first = guarded(client, breaker(2)).forward_backward(data(1), LossFn::cross_entropy);
    pass_time(5s);
    EXPECT_EQ(failure(std::move(first)).kind(), ErrorKind::circuit_open);
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "forward_backward 1",
                                                    "forward_backward 1", "optim_step 2"));
    EXPECT_EQ(encodings(tinker), "PPP");
    EXPECT_EQ(tinker.trained().at(1).bytes, tinker.trained().at(3).bytes);
    EXPECT_TRUE(second.ready());
}

TEST_F(TrainingGaps, WhatTheServerCannotReadIsSettledInTheOtherEncoding) {  // R-TRAIN-13, R-WIRE-10
    auto const client = trainer();
    tinker.on_train = [times = 0](TrainSubmit const& submit) mutable -> RawTinker::Answer {
        if (!submit.protobuf) return std::nullopt;
        return ++times == 1 ? json_reply("{}", 503) : unread();
    };
    auto first = guarded(client, breaker(2)).forward_backward(data(1), LossFn::cross_entropy);
    pass_time(5s);
    EXPECT_EQ(failure(std::move(first)).kind(), ErrorKind::circuit_open);
    auto second = client.optim_step({});
    run();
    EXPECT_EQ(encodings(tinker), "PPPJ");
    EXPECT_EQ(tinker.trained().back().seq_id, 2);
    EXPECT_TRUE(second.ready());
}

TEST_F(TrainingGaps, ARefusalOfTheSecondEncodingSaysNothingOfTheFirst) {  // R-TRAIN-13, R-WIRE-10
    auto const client = trainer();
    tinker.on_train = [times = 0](TrainSubmit const& submit) mutable -> RawTinker::Answer {
        if (submit.path != "forward_backward") return std::nullopt;
        if (!submit.protobuf) return json_reply(R"({"detail":"protobuf only"})", 415);
        ++times;
        if (times == 1) return json_reply("{}", 503);
        return times < 4 ? RawTinker::Answer{unread()} : std::nullopt;
    };
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    pass_time(5s);
    EXPECT_EQ(failure(std::move(first)).http_status(), 500);
    EXPECT_EQ(encodings(tinker), "PPJ");
    auto second = client.optim_step({});
    run();
    EXPECT_EQ(encodings(tinker), "PPJPJ");
    EXPECT_EQ(tinker.trained().back().seq_id, 2) << "it may have the first";
    EXPECT_TRUE(second.ready());
}

TEST_F(TrainingGaps, WhatTheServerCannotReadAndJsonHasNoWordsForLeavesItsNumber) {  // R-TRAIN-13
    auto const client = trainer();
    answer("forward_backward", unread());
    auto batch = data(1);
    batch[0] = batch[0].with_provenance({{.sequence_id = "s", .length = 2}},
                                        {{.sequence_id = "s", .length = 2}});
    auto first = client.forward_backward(batch, LossFn::cross_entropy);
    run();
    EXPECT_EQ(failure(std::move(first)).http_status(), 500);
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 1"));
}

TEST_F(TrainingGaps, AnOpenBreakerRefusesACallThatWouldWaitInLine) {  // R-EXT-03, R-TRAIN-13
    auto by = breaker();
    auto const client = trainer();
    auto const careful = guarded(client, by);
    auto held = json_reply(R"({"request_id":"train-1"})");
    held.delay = 5s;
    answer("optim_step", held);
    auto first = client.optim_step({});
    run();
    by.admit()->failed(Error{{.kind = ErrorKind::connection}});  // of another call
    auto second = careful.forward_backward(data(1), LossFn::cross_entropy);
    auto third = client.save_state("a");
    EXPECT_EQ(failure(std::move(second)).kind(), ErrorKind::circuit_open);
    auto fourth = careful.forward_backward_custom(
        data(1), [](std::span<Datum const>, std::span<TensorData const>) -> CustomLossValue {
            throw std::logic_error{"not called"};
        });
    EXPECT_EQ(failure(std::move(fourth)).kind(), ErrorKind::circuit_open);
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1"));
    auto fifth = client.save_state("b");
    pass_time(5s);
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("optim_step 1", "save_weights 2", "save_weights 3"));
    EXPECT_TRUE(first.ready() && third.ready() && fifth.ready());
}

TEST_F(TrainingGaps, AnOpenBreakerRefusesAPassThatWouldWaitForBytes) {  // R-EXT-03, R-TRAIN-33
    client_options = tinker.options();
    client_options->chunks.bytes_in_flight = 1;
    auto by = breaker();
    auto const client = trainer();
    tinker.clock->set_auto_advance(true);
    auto const other = service->create_lora_training_client("org/other", 8).get();
    tinker.clock->set_auto_advance(false);
    auto held = json_reply(R"({"request_id":"train-1"})");
    held.delay = 5s;
    answer("forward_backward", held);
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    by.admit()->failed(Error{{.kind = ErrorKind::connection}});
    auto second = guarded(other, by).forward_backward(data(1), LossFn::cross_entropy);
    EXPECT_EQ(failure(std::move(second)).kind(), ErrorKind::circuit_open);
    EXPECT_FALSE(first.ready());
    pass_time(5s);
    EXPECT_TRUE(first.ready());
}

TEST_F(TrainingGaps, ACallWaitsInLineWhileABreakerTries) {  // R-EXT-03
    auto by = breaker();
    auto const client = trainer();
    auto held = json_reply(R"({"request_id":"train-1"})");
    held.delay = 5s;
    answer("optim_step", held);
    auto first = client.optim_step({});
    run();
    by.admit()->failed(Error{{.kind = ErrorKind::connection}});
    pass_time(31s);
    auto trial = by.admit();
    ASSERT_TRUE(trial);
    auto next = client.optim_step({});
    answer("optim_step", held);
    auto last = client.optim_step({});
    run();
    auto second = guarded(client, by).forward_backward(data(1), LossFn::cross_entropy);
    run();
    EXPECT_FALSE(second.ready());
    trial->succeeded();
    pass_time(10s);
    EXPECT_TRUE(second.result().has_value());
}

TEST_F(TrainingGaps, AfterABillingPauseTheBreakerIsAskedAgain) {  // R-EXT-03, R-RETRY-82
    auto by = breaker();
    auto const client = guarded(trainer(), by);
    answer("optim_step", json_reply("{}", 402), 1000);
    auto pending = client.optim_step({});
    run();
    by.admit()->failed(Error{{.kind = ErrorKind::connection}});  // of another call
    pass_time(6s);
    EXPECT_EQ(failure(std::move(pending)).kind(), ErrorKind::circuit_open);
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1"));
}

TEST_F(TrainingGaps, AStepOfAnOldServerIsNotSentAgain) {  // R-TRAIN-14
    client_options = tinker.options();
    client_options->repeat_steps = false;
    auto const client = trainer();
    answer("optim_step", unanswered());
    auto first = client.optim_step({});
    run();
    first.cancel();
    auto second = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1", "optim_step 2"));
}

TEST_F(TrainingGaps, AModelThatCannotBeUnloadedGoesOn) {  // R-TRAIN-65
    auto const client = trainer();
    answer("unload_model", json_reply(R"({"detail":"what?"})", 404));
    auto unloaded = client.unload();
    auto step = client.optim_step({});
    run();
    EXPECT_EQ(tinker.trained_steps().back(), "optim_step 1");
    EXPECT_TRUE(unloaded.ready() && step.ready());
}

TEST_F(TrainingGaps, ACustomPassThatIsCancelledInItsForwardPassLeavesTheRest) {  // R-TRAIN-70
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["parallel_fwdbwd_chunks"] = false;
    auto const client = trainer();
    tinker.on_poll = [](std::string const& id, std::int64_t) -> RawTinker::Answer {
        if (id == "train-1") return unanswered();
        return std::nullopt;
    };
    auto first = client.forward_backward_custom(
        data(2), [](std::span<Datum const>, std::span<TensorData const>) -> CustomLossValue {
            throw std::logic_error{"not called"};
        });
    run();
    first.cancel();
    auto second = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 1", "forward_backward 2", "forward_backward 3"));
    EXPECT_TRUE(second.ready());
}

TEST_F(TrainingGaps, ACompressedPassIsNumberedAnew) {  // R-TRAIN-10, R-TRAIN-30
    tinker.flags["proto_compress_fwdbwd"] = true;
    auto const client = trainer();
    auto first = client.optim_step({});
    auto second = client.forward_backward(data(3), LossFn::cross_entropy);
    first.cancel();
    run();
    auto const sent = tinker.transport->sent("/api/v1/forward_backward");
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].header("Content-Encoding"), "zstd");
    std::string plain(10'000, '\0');
    plain.resize(
        ::ZSTD_decompress(plain.data(), plain.size(), sent[0].body.data(), sent[0].body.size()));
    auto const batch = data(3);
    Loss const loss{LossFn::cross_entropy};
    auto const model_id = client.model_id();
    auto const fresh = wire::encode_forward_backward(
        {.model_id = model_id, .seq_id = 1, .data = batch, .loss = &loss}, wire::Encoding::protobuf,
        wire::Compression::none);
    EXPECT_EQ(plain, fresh.value().bytes);
}

TEST_F(TrainingGaps, TheStatusSaysWhatIsSentAgain) {  // R-TEST-01
    auto const client = trainer();
    answer("optim_step", unanswered(), 2);
    auto first = client.optim_step({});
    run();
    first.cancel();
    auto second = client.save_state("a");
    run();
    auto asked = service->status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 1U);
    EXPECT_EQ(status.pending[0].stage, Stage::submitting);
    EXPECT_THAT(status.pending[0].why,
                HasSubstr("request 1 of the model, which may not have arrived, is sent again"));
    second.cancel();
    auto third = client.save_state("a");
    run();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("optim_step 1", "optim_step 1", "optim_step 1", "save_weights 2"));
}

}  // namespace
}  // namespace tinkxx
