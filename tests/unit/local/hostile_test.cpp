// Clients that ask for too much, or say what is not so: they get an answer, and nobody else
// suffers.
#include "raw_fixture.hpp"

#include <gmock/gmock.h>
#include <zstd.h>

#include <limits>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class Hostile : public RawTest {
protected:
    std::string id_of(HttpResponse const& response) { return text(json(response), "request_id"); }
    HttpResponse poll(std::string const& sampler, std::string const& cursor,
                      std::string const& clone = "0") {
        return post("retrieve_futures",
                    R"({"target":{"type":"sampling_session","sampling_session_id":")" + sampler +
                        R"(","cloned_sampler_id":)" + clone + R"(},"prev_cursor":)" + cursor + "}");
    }
    std::vector<std::string> completed(HttpResponse const& response) {
        std::vector<std::string> ids;
        auto const answer = json(response);
        for (auto const& one : answer.at("completions").as_array()) {
            ids.emplace_back(one.at("request_id").as_string());
        }
        return ids;
    }
    std::int64_t metric(std::string const& name) {
        auto const text = call("GET", "/metrics").body;
        auto const at = text.find("\n" + name + " ");
        return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size() + 2);
    }
};

// Numbers ---------------------------------------------------------------------------------------

TEST_F(Hostile, ACursorHidesNothingFromOthers) {
    auto const session = new_session();
    auto const theirs = new_sampler(session, 0);
    auto const mine = new_sampler(session, 1);
    auto const beyond = std::to_string(std::numeric_limits<std::int64_t>::max());
    auto const most = std::to_string((std::int64_t{1} << 53U) - 1);
    EXPECT_EQ(poll(theirs, beyond).status, 422);
    EXPECT_EQ(poll(theirs, most).status, 200);
    auto const one = id_of(post("asample", sample_body(mine, 0)));
    clock->advance(1s);
    auto const first = poll(mine, "0");
    EXPECT_THAT(completed(first), Contains(one));
    auto const cursor = std::to_string(json(first).at("cursor").as_int64());
    auto const two = id_of(post("asample", sample_body(mine, 1)));
    clock->advance(1s);
    EXPECT_THAT(completed(poll(mine, cursor)), Contains(two));
    // Nor from those who poll the same sampler.
    EXPECT_EQ(poll(mine, most).status, 200);
    EXPECT_THAT(completed(poll(mine, cursor)), Contains(two));
    EXPECT_LT(json(poll(mine, most)).at("cursor").as_int64(), (std::int64_t{1} << 53U) - 1);
    EXPECT_EQ(poll(mine, "-1").status, 422);
}

TEST_F(Hostile, PollsOfCopiesThatDoNotExistLeaveNothingBehind) {
    auto const sampler = new_sampler(new_session());
    for (int i = 1; i < 50; ++i) {
        EXPECT_EQ(poll(sampler, "0", std::to_string(i * 1'000'003)).status, 200);
    }
    EXPECT_EQ(metric("tinkxx_polls_waiting"), 0);
}

class HugeNumbers : public Hostile, public ::testing::WithParamInterface<char const*> {};
INSTANTIATE_TEST_SUITE_P(, HugeNumbers,
                         ::testing::Values("9223372036854775807", "-9223372036854775808", "-1",
                                           "18446744073709551616", "1e308", "-1e308", "0.5"));

TEST_P(HugeNumbers, AreAnsweredWhereverTheyStand) {
    std::string const number{GetParam()};
    auto const session = new_session();
    auto const sampler = new_sampler(session);
    auto const model = new_model(session);
    std::vector<HttpResponse> answers;
    for (auto const* name : {"max_tokens", "seed", "temperature", "top_k", "top_p"}) {
        answers.push_back(post("asample", sample_body(sampler, static_cast<int>(answers.size()),
                                                      R"({")" + std::string{name} + R"(":)" +
                                                          number + R"(,"stop":[]})")));
    }
    for (auto const* name : {"num_samples", "topk_prompt_logprobs", "topk_sample_logprobs",
                             "prompt_logprobs_last_n", "seq_id"}) {
        answers.push_back(
            post("asample", R"({"sampling_session_id":")" + sampler +
                                R"(","seq_id":99,"prompt":{"chunks":[{"tokens":[97]}]},)" +
                                R"("sampling_params":{"max_tokens":1},")" + name + R"(":)" +
                                number + "}"));
    }
    answers.push_back(post("asample", R"({"sampling_session_id":")" + sampler +
                                          R"(","seq_id":98,"prompt":{"chunks":[{"tokens":[)" +
                                          number + R"(]}]},"sampling_params":{"max_tokens":1}})"));
    answers.push_back(post("create_sampling_session",
                           R"({"session_id":")" + session + R"(","sampling_session_seq_id":)" +
                               number + R"(,"base_model":"test/bytes"})"));
    answers.push_back(post("create_model", R"({"session_id":")" + session +
                                               R"(","base_model":"test/bytes","model_seq_id":)" +
                                               number + R"(,"lora_config":{"rank":)" + number +
                                               "}}"));
    answers.push_back(post("optim_step", R"({"model_id":")" + model + R"(","seq_id":)" + number +
                                             R"(,"adam_params":{"learning_rate":)" + number +
                                             "}}"));
    answers.push_back(post(
        "forward_backward",
        R"({"model_id":")" + model + R"(","seq_id":1,"forward_backward_input":{"data":[)" +
            R"({"model_input":{"chunks":[{"tokens":[97]}]},"loss_fn_inputs":{"target_tokens":)" +
            R"({"data":[98],"dtype":"int64","shape":[)" + number + R"(,)" + number +
            R"(]}}}],"loss_fn":"cross_entropy"}})"));
    answers.push_back(poll(sampler, number, number));
    answers.push_back(call("GET", "training_runs?limit=" + number + "&offset=" + number));
    answers.push_back(call("PUT", "training_runs/" + model + "/checkpoints/weights/x/ttl",
                           R"({"ttl_seconds":)" + number + "}"));
    for (auto const& answer : answers) {
        EXPECT_GE(answer.status, 200) << answer.body;
        EXPECT_LT(answer.status, 500) << answer.body;
    }
    // And the server goes on for everybody else.
    auto const other = new_sampler(new_session());
    EXPECT_TRUE(result(id_of(post("asample", sample_body(other, 0)))).contains("sequences"));
}

// Sizes -----------------------------------------------------------------------------------------

TEST_F(Hostile, WhatASampleAsksForIsCheckedBeforeMemoryIsTaken) {
    server_options.limits.result_cells = 1000;
    auto const sampler = new_sampler(new_session());
    auto const ask = [&](std::string const& more) {
        return post("asample",
                    R"({"sampling_session_id":")" + sampler +
                        R"(","seq_id":1,"prompt":{"chunks":[{"tokens":[97,98,99,100]}]},)" +
                        R"("sampling_params":{"max_tokens":100},)" + more + "}");
    };
    EXPECT_THAT(detail(ask(R"("topk_prompt_logprobs":256)")),
                AllOf(HasSubstr("1024 log-probabilities, and the limit is 1000")));
    EXPECT_EQ(ask(R"("num_samples":10,"topk_sample_logprobs":2)").status, 400);
    EXPECT_EQ(ask(R"("topk_prompt_logprobs":200,"topk_sample_logprobs":2)").status, 200);
}

TEST_F(Hostile, ManyOrLongStopTextsAreRefused) {
    auto const sampler = new_sampler(new_session());
    std::string many = R"({"max_tokens":1,"stop":["a")";
    for (int i = 0; i < 1000; ++i) many += R"(,"b")";  // and the end of a sequence
    EXPECT_THAT(detail(post("asample", sample_body(sampler, 0, many + "]}"))),
                HasSubstr("stop has 1002 entries"));
    auto const longest = std::string(70'000, 'x');
    EXPECT_EQ(
        post("asample", sample_body(sampler, 0, R"({"max_tokens":1,"stop":")" + longest + R"("})"))
            .status,
        400);
}

TEST_F(Hostile, BodiesThatWaitToBeReadAreBounded) {
    server_options.limits.reading_bytes = 100'000;
    auto const sampler = new_sampler(new_session());
    auto const padded = [&](int seq) {
        return sample_body(sampler, seq) + std::string(80'000, ' ');
    };
    auto first = start("POST", "asample", padded(0));
    auto second = start("POST", "asample", padded(1));
    EXPECT_EQ(first.get().status, 200);
    auto const full = second.get();
    EXPECT_EQ(full.status, 503);
    EXPECT_TRUE(full.headers.contains("retry-after-ms"));
    EXPECT_THAT(detail(full), HasSubstr("wait to be read"));
    EXPECT_EQ(post("asample", padded(1)).status, 200);
    EXPECT_EQ(metric("tinkxx_body_bytes_reading"), 0);
}

TEST_F(Hostile, ALargeSampleIsTheSameAsASmallOne) {
    auto const sampler = new_sampler(new_session());
    auto const plain = result(id_of(post("asample", sample_body(sampler, 0))));
    auto const padded =
        result(id_of(post("asample", sample_body(sampler, 1) + std::string(40'000, '\n'))));
    EXPECT_EQ(plain.at("sequences"), padded.at("sequences"));
    // A repeat is recognised whatever its form.
    EXPECT_EQ(post("asample", sample_body(sampler, 1)).status, 200);
    EXPECT_EQ(post("asample", sample_body(sampler, 1, R"({"max_tokens":3})")).status, 409);
    // And so is one that was packed.
    auto const body = sample_body(sampler, 2);
    std::string packed(ZSTD_compressBound(body.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), 1));
    EXPECT_EQ(call("POST", "asample", packed, {{"Content-Encoding", "zstd"}}).status, 200);
    EXPECT_EQ(post("asample", body).status, 200);
}

TEST_F(Hostile, JsonBeyondItsLimitIsRefusedBeforeItIsRead) {
    server_options.limits.json_bytes = 50'000;
    auto const model = new_model(new_session());
    auto const large = std::string(60'000, ' ');
    EXPECT_EQ(post("forward_backward", pass_body(model, 1) + large).status, 413);
    std::string packed(ZSTD_compressBound(large.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), large.data(), large.size(), 1));
    auto const bomb = call("POST", "forward_backward", packed, {{"Content-Encoding", "zstd"}});
    EXPECT_EQ(bomb.status, 400);
    EXPECT_THAT(detail(bomb), HasSubstr("exceeds the limit of 50000"));
}

TEST_F(Hostile, PendingSamplesCountWhatTheyMayHold) {
    server_options.limits.pending_sample_bytes = 20'000;
    auto const sampler = new_sampler(new_session());
    auto const many = [&](int seq) {
        return post("asample", R"({"sampling_session_id":")" + sampler + R"(","seq_id":)" +
                                   std::to_string(seq) +
                                   R"(,"num_samples":16,"prompt":{"chunks":[{"tokens":[97]}]},)" +
                                   R"("sampling_params":{"max_tokens":100,"stop":[]}})");
    };
    EXPECT_EQ(many(0).status, 200);
    EXPECT_EQ(many(1).status, 429);
    (void)result(sampler + ":0");
    EXPECT_EQ(many(1).status, 200);
    (void)result(sampler + ":1");
    EXPECT_EQ(metric("tinkxx_sample_bytes_pending"), 0);
}

// Many ------------------------------------------------------------------------------------------

TEST_F(Hostile, OneSessionLeavesRoomForOthers) {
    server_options.limits.pending_samples = 200;
    auto const hog = new_sampler(new_session());
    auto const other = new_sampler(new_session());
    auto const slow = std::string{R"({"max_tokens":120,"stop":[]})"};
    int taken = 0;
    while (post("asample", sample_body(hog, taken, slow)).status == 200) ++taken;
    EXPECT_EQ(taken, 100);
    for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(post("asample", sample_body(other, i, slow)).status, 200) << i;
    }
    EXPECT_TRUE(result(other + ":0").contains("sequences"));
}

TEST_F(Hostile, MetadataOfASessionIsBounded) {
    auto const large = std::string(70'000, 'x');
    auto const refused = post("create_session", R"({"user_metadata":{"k":")" + large + R"("}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(detail(refused), AllOf(HasSubstr("70001 bytes"), HasSubstr("limit is 65536")));
    auto const session = new_session();
    EXPECT_EQ(
        call("PUT", "sessions/" + session + "/project", R"({"project_id":")" + large + R"("})")
            .status,
        400);
    EXPECT_EQ(post("create_session", std::string(2'000'000, ' ')).status, 413);
}

TEST_F(Hostile, SessionsAreBoundedAndTheSilentGoFirst) {
    server_options.limits.sessions = 10;
    auto const used = new_session();
    (void)new_sampler(used);
    auto const silent = new_session();
    clock->advance(1s);
    for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(post("create_session", "{}").status, 200);
        clock->advance(100ms);
    }
    EXPECT_EQ(metric("tinkxx_sessions_active"), 10);
    auto const beat = [&](std::string const& id) {
        return post("session_heartbeat", R"({"session_id":")" + id + R"("})").status;
    };
    EXPECT_EQ(beat(used), 200);
    EXPECT_EQ(beat(silent), 410);
}

TEST_F(Hostile, SessionsThatEndedAreForgottenUnlessTheyHaveACheckpoint) {
    server_options.limits.ended_sessions = 5;
    auto const keeper = new_session();
    auto const model = new_model(keeper);
    (void)result(id_of(post("save_weights", save_body(model, 1, "kept"))));
    for (int i = 0; i < 20; ++i) (void)new_sampler(new_session());
    clock->advance(10min);  // all of them have expired
    auto const left = json(call("GET", "sessions")).at("sessions").as_array();
    EXPECT_EQ(left.size(), 6U);
    EXPECT_EQ(call("GET", "sessions/" + keeper).status, 200);
    restart_server();
    EXPECT_EQ(json(call("GET", "sessions")).at("sessions").as_array().size(), 6U);
    EXPECT_EQ(json(call("GET", "checkpoints")).at("checkpoints").as_array().size(), 1U);
    clock->advance(std::chrono::hours{24 * 31});
    EXPECT_EQ(json(call("GET", "sessions")).at("sessions").as_array().size(), 1U);
}

TEST_F(Hostile, SamplersOfASessionAreBounded) {
    server_options.limits.session_parts = 3;
    auto const session = new_session();
    for (int i = 0; i < 3; ++i) (void)new_sampler(session, i);
    auto const refused = post("create_sampling_session",
                              R"({"session_id":")" + session +
                                  R"(","sampling_session_seq_id":3,"base_model":"test/bytes"})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(detail(refused), HasSubstr("has 3 samplers, which is the limit"));
}

TEST_F(Hostile, ResultsThatNobodyFetchesLeaveTheMemory) {
    server_options.limits.result_bytes = 1000;
    auto const sampler = new_sampler(new_session());
    auto const params = std::string{R"({"max_tokens":100,"seed":5,"stop":[]})"};
    for (int i = 0; i < 20; ++i) (void)post("asample", sample_body(sampler, i, params));
    clock->advance(10s);
    auto const first = result(sampler + ":0");
    for (int i = 1; i < 20; ++i) {
        EXPECT_EQ(result(sampler + ":" + std::to_string(i)).at("sequences"), first.at("sequences"));
    }
}

TEST_F(Hostile, ResultsThatNobodyFetchesAreBounded) {
    server_options.limits.results = 5;
    auto const sampler = new_sampler(new_session());
    for (int i = 0; i < 20; ++i) (void)post("asample", sample_body(sampler, i));
    clock->advance(10s);
    EXPECT_EQ(metric("tinkxx_results_kept"), 5);
    EXPECT_EQ(retrieve(sampler + ":0").status, 410);  // so that its client samples it again
    for (int i = 15; i < 20; ++i)
        EXPECT_EQ(retrieve(sampler + ":" + std::to_string(i)).status, 200);
    // Those that were fetched are bounded by themselves, and can be fetched once more.
    for (int i = 20; i < 25; ++i) (void)post("asample", sample_body(sampler, i));
    clock->advance(1s);
    EXPECT_EQ(metric("tinkxx_results_kept"), 10);
    for (int i = 20; i < 25; ++i)
        EXPECT_EQ(retrieve(sampler + ":" + std::to_string(i)).status, 200);
    EXPECT_EQ(retrieve(sampler + ":24").status, 200);
    clock->advance(10s);
    EXPECT_EQ(metric("tinkxx_results_kept"), 5);
}

TEST_F(Hostile, WeightsThatNobodySamplesFromLeaveTheMemory) {
    server_options.weights_keep = 60s;
    auto const session = new_session();
    auto const model = new_model(session);
    auto const path =
        text(result(id_of(post("save_weights_for_sampler", save_body(model, 1, "s")))), "path");
    auto const sampler =
        text(json(post("create_sampling_session",
                       R"({"session_id":")" + session +
                           R"(","sampling_session_seq_id":0,"model_path":")" + path + R"("})")),
             "sampling_session_id");
    auto const without = metric("tinkxx_adapter_bytes");
    auto const sampled = [&](int seq) {
        return result(id_of(post("asample", sample_body(sampler, seq)))).at("sequences");
    };
    auto const first = sampled(0);
    auto const with = metric("tinkxx_adapter_bytes");
    EXPECT_GT(with, without);
    clock->advance(50s);
    EXPECT_EQ(metric("tinkxx_adapter_bytes"), with);
    clock->advance(20s);
    EXPECT_EQ(metric("tinkxx_adapter_bytes"), without);
    EXPECT_EQ(sampled(1), first);
    EXPECT_EQ(metric("tinkxx_adapter_bytes"), with);
}

TEST_F(Hostile, AnOldResultThatNobodyFetchesHoldsNoOthers) {
    auto const sampler = new_sampler(new_session());
    (void)post("asample", sample_body(sampler, 0));
    for (int i = 1; i < 40; ++i) {
        (void)post("asample", sample_body(sampler, i));
        clock->advance(1s);
        EXPECT_EQ(retrieve(sampler + ":" + std::to_string(i)).status, 200);
    }
    clock->advance(10min);
    EXPECT_EQ(metric("tinkxx_results_kept"), 1);
    clock->advance(std::chrono::hours{25});
    EXPECT_EQ(metric("tinkxx_results_kept"), 0);
}

TEST_F(Hostile, WhatIsRememberedOfAllSessionsIsBounded) {
    server_options.limits.kept_bytes = 100'000;
    auto const session = R"({"user_metadata":{"k":")" + std::string(10'000, 'x') + R"("}})";
    std::vector<std::string> made;
    HttpResponse last;
    for (int i = 0; i < 20; ++i) {
        last = post("create_session", session);
        if (last.status == 200) made.push_back(text(json(last), "session_id"));
    }
    EXPECT_EQ(made.size(), 9U);
    EXPECT_EQ(last.status, 429);
    EXPECT_THAT(detail(last), AllOf(HasSubstr("limit is 100000"), HasSubstr("finish sessions")));
    EXPECT_LE(metric("tinkxx_kept_bytes"), 100'000);
    // Once some have ended there is room, and those that are active stay.
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(
            post("sessions/" + made[i] + "/finish", R"({"reason":{"type":"success"}})").status,
            200);
    }
    clock->advance(11s);
    EXPECT_EQ(post("create_session", session).status, 200);
    EXPECT_EQ(call("GET", "sessions/" + made[8]).status, 200);
    EXPECT_EQ(call("GET", "sessions/" + made[0]).status, 404);
    // One that is silent and has nothing ends earlier than usual while room is scarce.
    for (int i = 0; i < 20; ++i) last = post("create_session", session);
    EXPECT_EQ(last.status, 429);
    auto const keeper = made[8];
    (void)new_sampler(keeper, 1000);
    clock->advance(80s);
    EXPECT_EQ(post("create_session", session).status, 200);
    // Models and samplers count too.
    for (int i = 0; i < 300; ++i) {
        last = post("create_sampling_session",
                    R"({"session_id":")" + keeper + R"(","sampling_session_seq_id":)" +
                        std::to_string(i) + R"(,"base_model":"test/bytes"})");
    }
    EXPECT_EQ(last.status, 429);
}

TEST_F(Hostile, LongListsAreMadeInPieces) {
    // More than one piece of a list has, and of a walk over rows.
    constexpr int many = 2500;
    server_options.limits.sessions = many + 10;
    std::vector<std::string> made;
    for (int i = 0; i < many; ++i) {
        made.push_back(text(json(post("create_session", R"({"user_metadata":{"k":")" +
                                                            std::string(300, 'x') + R"("}})")),
                            "session_id"));
    }
    auto long_list = start("GET", "sessions?limit=10000");
    auto const health = start("GET", "healthz");
    auto const listed = json(long_list.get()).at("sessions").as_array();
    ASSERT_EQ(listed.size(), made.size());
    EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), made.size());
    auto const page = json(call("GET", "sessions?limit=3&offset=1200")).at("sessions").as_array();
    ASSERT_EQ(page.size(), 3U);
    EXPECT_EQ(page[0], listed[1200]);
    EXPECT_EQ(page[2], listed[1202]);
    // The pages of a search follow each other without a gap.
    std::vector<std::string> found;
    std::string cursor;
    for (int pages = 0; pages < 100; ++pages) {
        auto const answer = json(post("sessions/search", R"({"limit":200)" + cursor + "}"));
        for (auto const& one : answer.at("sessions").as_array()) {
            found.push_back(std::string{one.at("session_id").as_string()});
        }
        if (answer.at("next_cursor").is_null()) break;
        cursor = R"(,"cursor":)" + boost::json::serialize(answer.at("next_cursor"));
    }
    ASSERT_EQ(found.size(), made.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], listed[i].as_string());
}

// Messages --------------------------------------------------------------------------------------

TEST_F(Hostile, NoMessageBeginsWithAPattern) {
    for (auto const* path :
         {"training_runs/x", "training_runs/x/checkpoints/weights/y", "samplers/x",
          "training_runs/x/checkpoints/weights/y/files/z", "training_runs/x/checkpoints/y"}) {
        for (auto const* method : {"GET", "DELETE"}) {
            auto const answer = call(method, path);
            if (answer.status < 400) continue;
            EXPECT_EQ(detail(answer).find('{'), std::string::npos) << detail(answer);
        }
    }
}

}  // namespace
}  // namespace tinkxx::local
