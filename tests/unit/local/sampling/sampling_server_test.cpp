// Samples as the server sees them: pending results, polls, cancels, limits.
#include "unit/local/raw_fixture.hpp"

#include "wire/sampling/sample.hpp"

#include <gmock/gmock.h>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SamplingServer : public RawTest {
protected:
    void begin() {
        session = new_session();
        sampler = new_sampler(session);
    }
    std::string id_of(HttpResponse const& response) { return text(json(response), "request_id"); }
    boost::json::object poll(std::int64_t cursor, std::string const& retrieved = "[]") {
        return json(post("retrieve_futures",
                         R"({"target":{"type":"sampling_session","sampling_session_id":")" +
                             sampler + R"(","cloned_sampler_id":0},"prev_cursor":)" +
                             std::to_string(cursor) + R"(,"retrieved_request_ids":)" + retrieved +
                             "}"));
    }

    std::string session{};
    std::string sampler{};
};

TEST_F(SamplingServer, PromisesOneIdForEachSequence) {
    begin();
    auto body = sample_body(sampler, 0);
    body.insert(1, R"("num_samples":2,)");
    auto const promised = json(post("asample", body));
    EXPECT_EQ(text(promised, "request_id"), sampler + ":0");
    EXPECT_THAT(promised.at("sample_sequence_ids").as_array(), SizeIs(2));
    auto const drawn = result(sampler + ":0");
    EXPECT_THAT(drawn.at("sequences").as_array(), SizeIs(2));
    EXPECT_THAT(drawn.at("sequences").at(0).at("logprobs").as_array(), SizeIs(2));
}

TEST_F(SamplingServer, RecognisesARepeatAndRefusesAnotherUnderItsNumber) {
    begin();
    auto const id = id_of(post("asample", sample_body(sampler, 4)));
    EXPECT_EQ(id_of(post("asample", sample_body(sampler, 4))), id);
    auto const other = post("asample", sample_body(sampler, 4, R"({"max_tokens":3,"seed":5})"));
    EXPECT_EQ(other.status, 409);
    EXPECT_EQ(post("asample", sample_body("S:sample:9", 0)).status, 404);
    auto no_number = sample_body(sampler, 0);
    no_number.replace(no_number.find("\"seq_id\":0,"), 11, "");
    EXPECT_EQ(post("asample", no_number).status, 400);
}

TEST_F(SamplingServer, ToldAResultStaysForThoseWhoseAnswerWasLost) {
    begin();
    auto const id = id_of(post("asample", sample_body(sampler, 0)));
    auto const once = retrieve(id).body;
    EXPECT_EQ(retrieve(id).body, once);
    clock->advance(119s);
    EXPECT_EQ(retrieve(id).body, once);
    clock->advance(10s);
    auto const late = retrieve(id);
    EXPECT_EQ(late.status, 410);
    EXPECT_THAT(detail(late), HasSubstr("send the request again"));
    EXPECT_EQ(retrieve("nobody").status, 404);
}

TEST_F(SamplingServer, AnnouncesALargeResultToThoseWhoKnowOfThat) {
    server_options.inline_result_bytes = 8;
    begin();
    auto const id = id_of(post("asample", sample_body(sampler, 0)));
    auto const asked = [&](std::string const& flag) {
        return json(post("retrieve_future",
                         R"({"request_id":")" + id + R"(","allow_metadata_only":)" + flag + "}"));
    };
    auto const announced = asked("true");
    EXPECT_EQ(text(announced, "status"), "complete_metadata");
    EXPECT_GT(announced.at("response_payload_size").as_int64(), 8);
    EXPECT_TRUE(asked("false").contains("sequences"));
    EXPECT_TRUE(result(id).contains("sequences"));  // as 0.7 asks
}

TEST_F(SamplingServer, TellsWhichSamplesAreDone) {
    begin();
    auto const empty = poll(0);
    EXPECT_THAT(empty.at("completions").as_array(), SizeIs(0));
    auto const one = id_of(post("asample", sample_body(sampler, 0)));
    auto const first = poll(empty.at("cursor").as_int64());
    ASSERT_THAT(first.at("completions").as_array(), SizeIs(1));
    EXPECT_EQ(first.at("completions").at(0).at("request_id").as_string(), one);
    EXPECT_EQ(first.at("completions").at(0).at("state").as_string(), "finished");
    // A lost answer is asked for again.
    EXPECT_EQ(poll(empty.at("cursor").as_int64()).at("completions"), first.at("completions"));
    auto const cursor = first.at("cursor").as_int64();
    auto const two = id_of(post("asample", sample_body(sampler, 1)));
    auto const second = poll(cursor, "[\"" + one + "\"]");
    ASSERT_THAT(second.at("completions").as_array(), SizeIs(1));
    EXPECT_EQ(second.at("completions").at(0).at("request_id").as_string(), two);
    // What was acknowledged is not kept.
    EXPECT_EQ(retrieve(one).status, 410);
}

TEST_F(SamplingServer, GivesASampleUpWhenItIsCancelled) {
    begin();
    auto const id =
        id_of(post("asample", sample_body(sampler, 0, R"({"max_tokens":120,"stop":[]})")));
    EXPECT_EQ(post("cancel_future", R"({"request_id":")" + id + R"("})").status, 200);
    auto const failed = result(id);
    EXPECT_EQ(text(failed, "category"), "user");
    EXPECT_THAT(text(failed, "error"), HasSubstr("cancelled"));
    EXPECT_EQ(post("cancel_future", R"({"request_id":")" + id + R"("})").status, 200);
    EXPECT_EQ(post("cancel_future", R"({"request_id":"x"})").status, 404);
    EXPECT_TRUE(result(id_of(post("asample", sample_body(sampler, 1)))).contains("sequences"));
}

TEST_F(SamplingServer, AsksClientsToComeAgainWhenItsQueueIsFull) {
    server_options.limits.pending_samples = 1;
    begin();
    auto const id =
        id_of(post("asample", sample_body(sampler, 0, R"({"max_tokens":120,"stop":[]})")));
    auto const full = post("asample", sample_body(sampler, 1));
    EXPECT_EQ(full.status, 429);
    EXPECT_EQ(*full.headers.find("retry-after-ms"), "1000");
    EXPECT_TRUE(result(id).contains("sequences"));
    EXPECT_EQ(post("asample", sample_body(sampler, 1)).status, 200);
}

TEST_F(SamplingServer, RefusesWhatItCannotDo) {
    begin();
    auto const refused = [&](std::string const& params, std::string const& more = {}) {
        auto body = sample_body(sampler, 0, params);
        body.insert(1, more);
        auto const response = post("asample", body);
        EXPECT_EQ(response.status, 400) << body;
        return detail(response);
    };
    EXPECT_THAT(refused(R"({"max_tokens":128})"),
                HasSubstr("prompt length plus max_tokens exceeds"));
    EXPECT_THAT(refused(R"({"max_tokens":200})"),
                HasSubstr("2 prompt tokens + 200 max_tokens > 128"));
    EXPECT_THAT(refused(R"({"max_tokens":0})"), HasSubstr("max_tokens"));
    EXPECT_THAT(refused(R"({"temperature":-1})"), HasSubstr("temperature"));
    EXPECT_THAT(refused(R"({"top_p":2})"), HasSubstr("top_p"));
    EXPECT_THAT(refused(R"({"top_k":0})"), HasSubstr("top_k"));
    EXPECT_THAT(refused(R"({"stop":""})"), HasSubstr("empty"));
    EXPECT_THAT(refused("{}", R"("num_samples":0,)"), HasSubstr("num_samples"));
    EXPECT_THAT(refused("{}", R"("num_samples":2000,)"), HasSubstr("1024"));
    EXPECT_THAT(refused("{}", R"("prompt_alt_tokens_k":1,)"), HasSubstr("not supported"));
    EXPECT_THAT(refused("{}", R"("record_stability_info":true,)"), HasSubstr("not supported"));
    EXPECT_THAT(refused("{}", R"("prompt_logprobs_last_n":1,)"),
                HasSubstr("needs prompt_logprobs"));
    EXPECT_THAT(refused("{}", R"("topk_prompt_logprobs":300,)"), HasSubstr("256"));
    auto image = post("asample",
                      R"({"sampling_session_id":")" + sampler +
                          R"(","seq_id":0,"prompt":{"chunks":[{"data":"AAAA","format":"png"}]}})");
    EXPECT_THAT(detail(image), HasSubstr("images and audio are not supported"));
    auto token = post("asample", R"({"sampling_session_id":")" + sampler +
                                     R"(","seq_id":0,"prompt":{"chunks":[{"tokens":[256]}]}})");
    EXPECT_THAT(detail(token), HasSubstr("the token 256"));
}

TEST_F(SamplingServer, StopsWhereItIsTold) {
    begin();
    auto const drawn = [&](int seq, std::string const& stop) {
        auto const id = id_of(post(
            "asample", sample_body(sampler, seq, R"({"max_tokens":126,"seed":5)" + stop + "}")));
        return result(id).at("sequences").at(0).as_object();
    };
    auto const all = drawn(0, R"(,"stop":[])");
    ASSERT_THAT(all.at("tokens").as_array(), SizeIs(126));
    EXPECT_EQ(text(all, "stop_reason"), "length");
    auto const third = all.at("tokens").at(2).as_int64();
    auto const stopped = drawn(1, R"(,"stop":[)" + std::to_string(third) + "]");
    EXPECT_LE(stopped.at("tokens").as_array().size(), 3U);
    EXPECT_EQ(text(stopped, "stop_reason"), "stop");
    EXPECT_EQ(stopped.at("tokens").as_array().back().as_int64(), third);
}

TEST_F(SamplingServer, NumbersTheCopiesOfAClient) {
    begin();
    auto const join = [&] {
        return json(
                   post("join_sampling_session", R"({"sampling_session_id":")" + sampler + R"("})"))
            .at("client_counter")
            .as_int64();
    };
    EXPECT_EQ(join(), 1);
    EXPECT_EQ(join(), 2);
    EXPECT_EQ(new_sampler(session), sampler);  // a repeat
    auto const other = post("create_sampling_session",
                            R"({"session_id":")" + session +
                                R"(","sampling_session_seq_id":1,"model_path":"tinker://x/y/z"})");
    EXPECT_EQ(other.status, 400);
    EXPECT_THAT(detail(other), HasSubstr("Invalid checkpoint tinker path"));
}

}  // namespace
}  // namespace tinkxx::local
