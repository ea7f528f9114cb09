// What a client says about calls that wait: one case for each state in which one can.
#include <tinkxx/service_client.hpp>

#include "support/held_executor.hpp"
#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::HeldExecutor;
using support::json_reply;
using support::RawTinker;
using support::Submit;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Reply;
using testing::SentRequest;

Reply never() { return Reply{.status = 0, .delay = 24h, .failure = Failure{}}; }

/// Keeps what it is told of stages.
class StageNotes final : public Observer {
public:
    void on_stage(StageEvent const& event) override {
        events.push_back(event);
        if (then) then(event);
    }
    bool wants_stages() const noexcept override { return true; }
    [[nodiscard]] std::vector<Stage> of(std::string_view operation) const {
        std::vector<Stage> stages;
        for (auto const& event : events) {
            if (event.operation == operation) stages.push_back(event.stage);
        }
        return stages;
    }
    std::vector<StageEvent> events{};
    std::function<void(StageEvent const&)> then{};
};

class StatusTest : public ::testing::Test {
protected:
    StatusTest() {
        tinker.clock->set_auto_advance(false);
        options.observers.push_back(notes);
    }

    ServiceClient& service() {
        if (!client_) client_.emplace(options);
        return *client_;
    }
    SamplingClient sampler(RetryConfig retry = {}) {
        return service().create_sampling_client("org/tiny", std::move(retry));
    }
    TrainingClient trainer() {
        auto pending = service().create_lora_training_client("org/tiny");
        run();
        return pending.get();
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void advance(std::chrono::nanoseconds step) {
        tinker.clock->advance(step);
        run();
    }
    /// Starts a call whose result is not of interest.
    template <class T>
    void start(Future<T> future) {
        kept_.push_back(std::make_shared<Future<T>>(std::move(future)));
        run();
    }
    void draw(SamplingClient const& from, std::size_t tokens = 3) {
        start(
            from.sample(ModelInput::from_tokens(std::vector<Token>(tokens, 1)), {.max_tokens = 4}));
    }
    ServiceStatus status() {
        auto pending = service().status();
        run();
        return pending.get();
    }
    /// The request to a path is not answered.
    void hold(std::string path) {
        tinker.on_other = [path =
                               std::move(path)](SentRequest const& request) -> RawTinker::Answer {
            if (!request.path.ends_with(path)) return std::nullopt;
            return never();
        };
    }
    void hold_submits() {
        tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return never(); };
    }
    void hold_polls() {
        tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
            return never();
        };
    }
    /// Callbacks run on an executor of the test's.
    std::shared_ptr<HeldExecutor> hold_callbacks() {
        auto executor = std::make_shared<HeldExecutor>();
        options.runtime = Runtime{RuntimeOptions{
            .threads = 0, .executor = executor, .scheduler = tinker.clock, .log = silent_log()}};
        held_ = executor;
        return executor;
    }
    /// What was held back is done, so that observers hear all.
    void release_callbacks() {
        if (!held_) return;
        held_->release();
        run();
    }

    RawTinker tinker;
    std::shared_ptr<StageNotes> const notes{std::make_shared<StageNotes>()};
    ClientOptions options{tinker.options()};

private:
    std::optional<ServiceClient> client_{};
    std::vector<std::shared_ptr<void>> kept_{};
    std::shared_ptr<HeldExecutor> held_{};
};

/// How the operation of interest shall be shown.
struct Shown {
    std::string operation{};
    std::chrono::nanoseconds in_stage{};
    std::string why{};
    std::optional<std::chrono::nanoseconds> ends_in{};
    /// Taken in the middle of it; empty: what follows.
    std::optional<ServiceStatus> status{};
};

class EveryStage : public StatusTest, public ::testing::WithParamInterface<Stage> {
protected:
    /// Brings a call into a stage. No default: a stage without a case does not compile.
    Shown bring(Stage stage) {
        switch (stage) {
            case Stage::waiting_for_place:
                return place();
            case Stage::starting:
                hold("client/config");
                start(service().session_id());
                advance(2s);
                return {"session_id", 2s, "client config: waiting for an answer"};
            case Stage::waiting_for_credential:
                tinker.flags["pjwt_auth_enabled"] = true;
                hold("auth/token");
                start(service().health());
                advance(2s);
                return {"health", 2s, "a token is being asked for"};
            case Stage::creating_sampler:
                hold("create_sampling_session");
                draw(sampler());
                advance(2s);
                return {"sample", 2s, "waiting for an answer"};
            case Stage::waiting_for_slot: {
                hold_submits();
                auto const from = sampler({.max_connections = 1});
                draw(from);
                draw(from);
                advance(2s);
                return {"sample", 2s, "max_connections"};
            }
            case Stage::waiting_for_count: {
                options.dispatch.count = 1;
                hold_submits();
                auto const from = sampler();
                draw(from);
                draw(from);
                advance(2s);
                return {"sample", 2s, "1 samples are being submitted (DispatchLimits::count)"};
            }
            case Stage::throttled:
                return throttled();
            case Stage::waiting_for_bytes: {
                options.dispatch.bytes = 10;
                hold_submits();
                auto const from = sampler();
                draw(from);
                draw(from);
                advance(2s);
                return {"sample", 2s, "this one counts 30 bytes"};
            }
            case Stage::encoding: {
                auto const executor = hold_callbacks();
                auto const from = sampler();
                start(from.sampling_session_id());
                executor->held = true;
                draw(from, 10'000);
                advance(2s);
                return {"sample", 2s, "long prompt"};
            }
            case Stage::backing_off:
                tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
                    return json_reply(R"({"detail":"slow down"})", 429);
                };
                draw(sampler());
                advance(400ms);
                return {"sample", 400ms, "slow down", 600ms};
            case Stage::billing_pause:
                tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
                    return json_reply(R"({"detail":"please pay"})", 402);
                };
                draw(sampler());
                advance(400ms);
                return {"sample", 400ms, "please pay", 600ms};
            case Stage::submitting:
                hold_submits();
                draw(sampler());
                advance(2s);
                return {"sample", 2s, "the service has not answered yet"};
            case Stage::waiting_to_submit:
                tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
                    return json_reply(R"({"detail":"out of order"})", 503);
                };
                draw(sampler());
                advance(400ms);
                return {"sample", 400ms, "out of order", 600ms};
            case Stage::waiting_for_completion:
                tinker.flags["sample_use_retrieve_futures"] = true;
                hold("retrieve_futures");
                draw(sampler());
                advance(2s);
                return {"sample", 2s, "the service has not finished it"};
            case Stage::waiting_for_download: {
                tinker.flags["inflight_response_bytes_semaphore_size"] = 10;
                tinker.on_poll = [](std::string const&, std::int64_t n) -> RawTinker::Answer {
                    if (n > 0) return never();
                    return json_reply(
                        R"({"status":"complete_metadata","response_payload_size":100})");
                };
                auto const from = sampler();
                draw(from);
                draw(from);
                advance(2s);
                return {"sample", 2s, "download_bytes"};
            }
            case Stage::polling:
                hold_polls();
                draw(sampler());
                advance(2s);
                return {"sample", 2s, "the service has no result yet"};
            case Stage::waiting_to_poll:
                tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
                    return json_reply(R"({"detail":"asked too often"})", 429);
                };
                draw(sampler());
                advance(400ms);
                return {"sample", 400ms, "asked too often", 600ms};
            case Stage::decoding: {
                auto const executor = hold_callbacks();
                tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
                    return json_reply(
                        R"({"sequences":[{"stop_reason":"stop","tokens":[1]}],"note":")" +
                        std::string(20'000, 'x') + "\"}");
                };
                auto const from = sampler();
                start(from.sampling_session_id());
                executor->held = true;
                draw(from);
                advance(2s);
                return {"sample", 2s, "long result"};
            }
            case Stage::waiting_to_retry:
                tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
                    return json_reply(R"({"detail":"forgotten"})", 410);
                };
                draw(sampler({.retry_delay_base = 1s, .jitter_factor = 0}));
                advance(400ms);
                return {"sample", 400ms, "410", 600ms};
            case Stage::streaming:
                tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
                    if (!request.path.ends_with("stream_sample")) return std::nullopt;
                    Reply reply;
                    reply.headers = {{"Content-Type", "text/event-stream"}};
                    reply.body = "data: {\"token\":\"a\"}\n\ndata: {\"token\":\"b\"}\n\n";
                    reply.pieces = 4;
                    reply.piece_delay = 10s;
                    return reply;
                };
                start(sampler().sample_stream(ModelInput::from_tokens({1}), {.max_tokens = 4},
                                              [](SampleChunk const&) {}));
                advance(10s);  // the first piece
                advance(2s);
                return {"sample_stream", 2s, "the last piece"};
            case Stage::waiting_for_turn: {
                auto const client = trainer();
                tinker.on_train = [](support::TrainSubmit const&) -> RawTinker::Answer {
                    return never();
                };
                start(client.save_state("a"));
                start(client.optim_step({}));
                advance(2s);
                return {"optim_step", 2s,
                        "request 1 of the model is not submitted yet: save_state"};
            }
            case Stage::computing_loss: {
                auto const executor = hold_callbacks();
                auto const client = trainer();
                executor->held = true;
                std::vector<Datum> data(1);
                data[0].model_input = ModelInput::from_tokens({1, 2});
                data[0].loss_fn_inputs.set("target_tokens", {2, 3});
                start(client.forward_backward_custom(
                    data, [](std::span<Datum const>, std::span<TensorData const>) {
                        return CustomLossValue{};
                    }));
                advance(2s);
                return {"forward_backward_custom", 2s, "has not returned yet"};
            }
            case Stage::closing:
                start(service().session_id());
                hold("/finish");
                start(service().close(CloseReason::success));
                advance(2s);
                return {"close", 2s, "finishing the session: waiting for an answer"};
        }
        return {};
    }

    Shown throttled() {
        options.dispatch.throttled = 1;
        int refusals = 1;
        tinker.on_submit = [refusals](Submit const&) mutable -> RawTinker::Answer {
            if (refusals-- > 0) return json_reply("{}", 429);
            return std::nullopt;
        };
        auto const from = sampler();
        draw(from);
        advance(1s);
        hold_submits();
        draw(from);
        draw(from);
        advance(2s);
        return {"sample", 2s, "after a refusal for load only 1 are submitted at a time"};
    }

    /// The caller is blocked, which runs the loop, so somebody on it has to ask.
    Shown place() {
        options.max_pending = {1};
        tinker.clock->set_auto_advance(true);
        tinker.on_submit = [](Submit const& submit) -> RawTinker::Answer {
            auto reply = json_reply(R"({"request_id":"r"})");
            if (submit.seq_id == 0) reply.delay = 2s;
            return reply;
        };
        std::optional<ServiceStatus> seen;
        tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
            if (seen) return std::nullopt;
            seen.emplace();
            (void)service().status().then([&](ServiceStatus now) { seen = std::move(now); });
            return std::nullopt;
        };
        auto const from = sampler();
        auto const sample = [&] {
            return from.sample(ModelInput::from_tokens({1}), {.max_tokens = 4});
        };
        start(sample());
        start(sample());
        tinker.on_poll = {};
        return {"sample", 2s, "max_pending", std::nullopt, std::move(seen)};
    }
};

TEST_P(EveryStage, IsShownWithSinceWhenWhyAndUntilWhenAndToldToObservers) {  // R-EXT-30
    auto const stage = GetParam();
    auto const shown = bring(stage);
    auto const now = shown.status ? *shown.status : status();
    release_callbacks();
    auto const found = std::ranges::find(now.pending, stage, &OperationStatus::stage);
    ASSERT_NE(found, now.pending.end());
    EXPECT_EQ(found->operation, shown.operation);
    EXPECT_EQ(found->in_stage, shown.in_stage);
    EXPECT_GE(found->age, found->in_stage);
    EXPECT_THAT(found->why, HasSubstr(shown.why));
    EXPECT_EQ(found->ends_in, shown.ends_in);
    for (auto const& each : now.pending) EXPECT_FALSE(each.why.empty()) << to_string(each);

    auto const told = std::ranges::find_if(notes->events, [&](StageEvent const& event) {
        return event.id == found->id && event.stage == stage;
    });
    ASSERT_NE(told, notes->events.end());
    EXPECT_EQ(told->operation, shown.operation);
    EXPECT_THAT(told->why, HasSubstr(shown.why));
}

std::vector<Stage> all_stages() {
    std::vector<Stage> all;
    for (int i = 0; to_string(static_cast<Stage>(i)) != "unknown"; ++i) {
        all.push_back(static_cast<Stage>(i));
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Status, EveryStage, ::testing::ValuesIn(all_stages()),
                         [](::testing::TestParamInfo<Stage> const& which) {
                             std::string name{to_string(which.param)};
                             std::ranges::replace(name, ' ', '_');
                             return name;
                         });

TEST_F(StatusTest, ObserversHearTheSameStagesInTheirOrder) {  // R-EXT-30
    int polls = 0;
    tinker.on_submit = [n = 0](Submit const&) mutable -> RawTinker::Answer {
        return n++ == 0 ? RawTinker::Answer{json_reply("{}", 503)} : std::nullopt;
    };
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (polls++ == 0) return json_reply("{}", 429);
        return std::nullopt;
    };
    draw(sampler());
    advance(10s);
    EXPECT_THAT(notes->of("sample"),
                ElementsAre(Stage::starting, Stage::creating_sampler, Stage::submitting,
                            Stage::waiting_to_submit, Stage::submitting, Stage::polling,
                            Stage::waiting_to_poll, Stage::polling));
}

TEST_F(StatusTest, ASampleThatWaitsForATokenSaysSoWhereverThatHappens) {
    // The exchanges for: dynamic config, session, sampling session, submit, poll.
    for (int answered = 0; answered <= 5; ++answered) {
        RawTinker world;
        world.clock->set_auto_advance(false);
        world.flags["pjwt_auth_enabled"] = true;
        int left = answered;
        world.on_other = [&](SentRequest const& request) -> RawTinker::Answer {
            if (!request.path.ends_with("auth/token")) return std::nullopt;
            return left-- > 0 ? json_reply(R"({"jwt":"a.b.c"})") : never();
        };
        ServiceClient const client{world.options()};
        auto const from = client.create_sampling_client("org/tiny");
        auto pending = from.sample(ModelInput::from_tokens({1}), {.max_tokens = 4});
        world.clock->run_ready();
        world.clock->advance(3s);
        auto asked = client.status();
        world.clock->run_ready();
        auto const now = asked.get();
        if (answered == 5) {
            EXPECT_TRUE(pending.ready());
            continue;
        }
        ASSERT_EQ(now.pending.size(), 1U) << answered;
        EXPECT_EQ(now.pending[0].stage, Stage::waiting_for_credential) << answered;
        EXPECT_EQ(now.pending[0].in_stage, 3s) << answered;
        EXPECT_THAT(now.pending[0].why, HasSubstr("a token is being asked for")) << answered;
    }
}

TEST_F(StatusTest, APollThatWaitsForTheAccountToBePaidIsABillingPause) {  // R-SAMP-52
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply(R"({"detail":"pay"})", 402);
    };
    draw(sampler());
    auto const now = status();
    ASSERT_EQ(now.pending.size(), 1U);
    EXPECT_EQ(now.pending[0].stage, Stage::billing_pause);
    EXPECT_EQ(now.pending[0].ends_in, 5s);
    EXPECT_TRUE(now.billing_pause);
}

TEST_F(StatusTest, AnHttpRetryIsAWaitToSubmitAgain) {
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("healthz")) return std::nullopt;
        return json_reply(R"({"detail":"out of order"})", 503);
    };
    start(service().health());
    auto const now = status();
    ASSERT_EQ(now.pending.size(), 1U);
    EXPECT_EQ(now.pending[0].stage, Stage::waiting_to_submit);
    EXPECT_TRUE(now.pending[0].ends_in);
    EXPECT_THAT(now.pending[0].why, HasSubstr("out of order"));
}

/// Every public call that waits for the service, made at once.
struct AllCalls {
    explicit AllCalls(ServiceClient const& service)
        : sampler{service.create_sampling_client("org/tiny")} {
        auto const prompt = ModelInput::from_tokens({1, 2});
        add("health", service.health());
        add("get_server_capabilities", service.get_server_capabilities());
        add("check_access", service.check_access());
        add("whoami", service.whoami());
        add("session_id", service.session_id());
        add("sample", sampler.sample(prompt, {.max_tokens = 4}));
        add("compute_logprobs", sampler.compute_logprobs(prompt));
        add("sample_stream",
            sampler.sample_stream(prompt, {.max_tokens = 4}, [](SampleChunk const&) {}));
        add("get_base_model", sampler.get_base_model());
        add("sampling_session_id", sampler.sampling_session_id());
        add("get_sampler_handle", sampler.get_sampler_handle());
        add("export_sampler", sampler.export_sampler());
        add("stats", sampler.stats());
        add("create_lora_training_client", service.create_lora_training_client("org/tiny"));
        add("create_training_client_from_state",
            service.create_training_client_from_state("tinker://r/weights/a"));
        CopyWeightsOptions copy;
        copy.destination_project = "p";
        add("copy_weights", service.copy_weights("tinker://r/weights/a", copy));
    }
    template <class T>
    void add(std::string name, Future<T> future) {
        auto const kept = std::make_shared<Future<T>>(std::move(future));
        names.insert(std::move(name));
        cancels.push_back([kept] { kept->cancel(); });
        errors.push_back([kept]() -> std::optional<Error> {
            if (!kept->ready()) return std::nullopt;
            auto const result = kept->result();
            return result ? std::nullopt : std::optional{result.error()};
        });
    }

    SamplingClient sampler;
    std::set<std::string> names{};
    std::vector<std::function<void()>> cancels{};
    std::vector<std::function<std::optional<Error>()>> errors{};
};

TEST_F(StatusTest, EveryPublicCallIsListedUnderItsNameAndANumberOfItsOwn) {
    hold("client/config");
    AllCalls const calls{service()};
    run();
    auto const now = status();
    std::set<std::string> names;
    std::set<std::uint64_t> ids;
    for (auto const& each : now.pending) {
        names.insert(each.operation);
        ids.insert(each.id);
        EXPECT_EQ(each.stage, Stage::starting) << each.operation;
    }
    EXPECT_EQ(names, calls.names);
    EXPECT_EQ(ids.size(), now.pending.size());
    for (auto const& name : calls.names) {
        EXPECT_THAT(notes->of(name), ElementsAre(Stage::starting)) << name;
    }
    // What makes a training client holds its runtime until it ends.
    for (auto const& cancel : calls.cancels) cancel();
    run();
}

TEST_F(StatusTest, EveryPublicCallEndsAtTheDeadlineOfItsClient) {
    hold("client/config");
    options.deadline = 3s;
    AllCalls const calls{service()};
    run();
    for (auto const& each : status().pending) EXPECT_EQ(each.deadline_in, 3s) << each.operation;
    advance(3s - 1ns);
    for (auto const& error : calls.errors) EXPECT_FALSE(error());
    EXPECT_EQ(status().pending.size(), calls.names.size());
    advance(1ns);
    EXPECT_THAT(status().pending, IsEmpty());
    for (auto const& error : calls.errors) {
        auto const ended = error();
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->kind(), ErrorKind::timeout);
        EXPECT_THAT(ended->what(), HasSubstr("deadline of 3000 ms; it was"));
        EXPECT_THAT(ended->what(), HasSubstr("starting for 3.0 s"));
    }
}

TEST_F(StatusTest, ACancelledCallIsListedNoMore) {
    hold("client/config");
    AllCalls const calls{service()};
    run();
    for (auto const& cancel : calls.cancels) cancel();
    run();
    EXPECT_THAT(status().pending, IsEmpty());
}

TEST_F(StatusTest, ClosingEndsEveryCall) {  // R-SESS-21
    for (auto const* held : {"client/config", "create_sampling_session", "auth/token"}) {
        RawTinker world;
        world.clock->set_auto_advance(false);
        world.flags["pjwt_auth_enabled"] = std::string_view{held} == "auth/token";
        world.on_other = [held](SentRequest const& request) -> RawTinker::Answer {
            return request.path.ends_with(held) ? RawTinker::Answer{never()} : std::nullopt;
        };
        world.on_submit = [](Submit const&) -> RawTinker::Answer { return never(); };
        ServiceClient const client{world.options()};
        AllCalls const calls{client};
        while (world.clock->run_ready()) {
        }
        auto closing = client.close();
        world.clock->advance(10s);
        EXPECT_TRUE(closing.result()) << held;
        auto asked = client.status();
        world.clock->run_ready();
        EXPECT_THAT(asked.get().pending, IsEmpty()) << held;
        EXPECT_EQ(world.transport->open_count(), 0U) << held;
    }
}

TEST_F(StatusTest, AStreamThatIsClosedOrCancelledEnds) {
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("stream_sample")) return std::nullopt;
        Reply reply;
        reply.body = "data: {\"token\":\"a\"}\n\ndata: {\"token\":\"b\"}\n\n";
        reply.pieces = 4;
        reply.piece_delay = 10s;
        return reply;
    };
    auto const from = sampler();
    auto const stream = [&] {
        return from.sample_stream(ModelInput::from_tokens({1}), {.max_tokens = 4},
                                  [](SampleChunk const&) {});
    };
    auto cancelled = stream();
    run();
    advance(10s);
    EXPECT_EQ(status().pending.at(0).stage, Stage::streaming);
    cancelled.cancel();
    run();
    EXPECT_THAT(status().pending, IsEmpty());
    EXPECT_EQ(tinker.transport->open_count(), 0U);

    auto closed = stream();
    run();
    advance(10s);
    auto const closing = service().close();
    run();
    EXPECT_EQ(closed.result().error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(tinker.transport->open_count(), 0U);
}

TEST_F(StatusTest, ACloseSaysWhatItStillSends) {  // R-SESS-24, R-TEL-41
    options.telemetry = true;
    hold("telemetry");
    start(service().session_id());
    start(service().close());
    advance(2s);
    auto const now = status();
    ASSERT_EQ(now.pending.size(), 1U);
    EXPECT_EQ(now.pending[0].operation, "close");
    EXPECT_EQ(now.pending[0].why, "sending what is left");
    EXPECT_EQ(now.pending[0].ends_in, 3s);
    advance(3s);
    EXPECT_THAT(status().pending, IsEmpty());
}

TEST_F(StatusTest, ACloseThatMissesItsDeadlineGoesOn) {  // R-SESS-22
    options.deadline = 3s;
    int finishes = 0;
    start(service().session_id());
    tinker.on_other = [&](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("/finish")) return std::nullopt;
        return ++finishes == 1 ? json_reply("{}", 503) : never();
    };
    auto closing = service().close(CloseReason::success);
    run();
    advance(4s);
    auto const result = closing.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::timeout);
    EXPECT_THAT(result.error().what(), HasSubstr("finishing the session"));
    EXPECT_EQ(finishes, 2);
    EXPECT_EQ(tinker.transport->open_count(), 1U);
}

TEST_F(StatusTest, ABlockedCallerIsLetGoAtItsDeadline) {
    options.max_pending = {1};
    hold_polls();
    auto const from = sampler();
    draw(from);
    tinker.clock->set_auto_advance(true);
    CallOptions call;
    call.deadline = 3s;
    auto refused = from.sample(ModelInput::from_tokens({1}), {.max_tokens = 4}, {}, call);
    tinker.clock->set_auto_advance(false);
    auto const result = refused.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::timeout);
    EXPECT_THAT(result.error().what(),
                HasSubstr("sample: not done within its deadline of 3000 ms"));
    EXPECT_THAT(result.error().what(), HasSubstr("waiting for a place"));
    EXPECT_EQ(status().pending.size(), 1U);
}

TEST_F(StatusTest, OneOptionKeepsALineOnStderr) {
    options.report_pending = true;
    options.observers.clear();
    hold_submits();
    auto const from = sampler();
    auto const prompt = ModelInput::from_tokens({1});
    ::testing::internal::CaptureStderr();
    auto first = from.sample(prompt, {.max_tokens = 4});
    auto second = from.sample(prompt, {.max_tokens = 4});
    run();
    advance(5s - 1ns);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    ::testing::internal::CaptureStderr();
    advance(1ns);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "tinkxx: 2 pending; the oldest: sample #1: submitting for 5.0 s (the service has not "
              "answered yet), attempt 1, 5.0 s old\n");
    ::testing::internal::CaptureStderr();
    first.cancel();
    run();
    advance(5s);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("1 pending; the oldest: sample #2"));
    ::testing::internal::CaptureStderr();
    second.cancel();
    run();
    advance(1min);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace tinkxx
