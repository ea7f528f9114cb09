// Training requests: by number, once, and with reasons.
#include "unit/local/raw_fixture.hpp"

#include "wire/training/training.hpp"

#include <gmock/gmock.h>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TrainingOrder : public RawTest {
protected:
    std::string session{new_session()};
    std::string model{new_model(session)};

    double loss(std::string const& request_id) {
        return result(request_id).at("metrics").at("loss:sum").to_number<double>();
    }
    std::string id_of(HttpResponse const& response) { return text(json(response), "request_id"); }
};

TEST_F(TrainingOrder, HoldsBackWhatCameTooEarly) {
    auto const early = id_of(post("optim_step", step_body(model, 2)));
    auto const waiting = result(early);
    EXPECT_EQ(text(waiting, "type"), "try_again");
    EXPECT_EQ(text(waiting, "queue_state"), "active");
    EXPECT_THAT(text(waiting, "queue_state_reason"), HasSubstr("waiting for request 1"));
    auto const first = id_of(post("forward_backward", pass_body(model, 1)));
    EXPECT_GT(loss(first), 0);
    // The step came first and was carried out second: it had gradients to apply.
    EXPECT_GT(result(early).at("metrics").at("unclipped_grad_l2:mean").to_number<double>(), 0);
}

TEST_F(TrainingOrder, CarriesOutARepeatOnce) {
    auto const one = id_of(post("forward_backward", pass_body(model, 1)));
    auto const step = id_of(post("optim_step", step_body(model, 2)));
    EXPECT_EQ(id_of(post("optim_step", step_body(model, 2))), step);
    EXPECT_EQ(id_of(post("forward_backward", pass_body(model, 1))), one);
    auto const after = id_of(post("forward_backward", pass_body(model, 3)));
    // One step of the loss, not two.
    auto const other = new_model(session, 1);
    (void)post("forward_backward", pass_body(other, 1));
    (void)post("optim_step", step_body(other, 2));
    EXPECT_EQ(loss(after), loss(id_of(post("forward_backward", pass_body(other, 3)))));
}

TEST_F(TrainingOrder, RefusesANumberForSomethingElse) {
    (void)post("forward_backward", pass_body(model, 1));
    auto const other = post("forward_backward", pass_body(model, 1, 100));
    EXPECT_EQ(other.status, 409);
    EXPECT_THAT(detail(other), HasSubstr("reused"));
    EXPECT_EQ(post("optim_step", step_body(model, 1)).status, 409);
    EXPECT_EQ(post("optim_step", step_body(model, 0)).status, 400);
}

TEST_F(TrainingOrder, IsNotHeldUpByWhatCannotBeRead) {
    EXPECT_EQ(
        post("optim_step", R"({"adam_params":7,"model_id":")" + model + R"(","seq_id":1})").status,
        422);
    auto const next = id_of(post("forward_backward", pass_body(model, 2)));
    EXPECT_GT(loss(next), 0);
    // The refused one may come again in another form, as clients do that try protobuf first.
    auto const again = post("optim_step", step_body(model, 1));
    EXPECT_EQ(again.status, 200);
    EXPECT_TRUE(result(id_of(again)).contains("metrics"));
}

TEST_F(TrainingOrder, GoesOnOnceAMissingRequestMustHaveBeenGivenUp) {
    auto const held = id_of(post("forward_backward", pass_body(model, 3)));
    auto const before = clock->now();
    auto answer = result(held);
    while (answer.contains("type")) answer = result(held);
    EXPECT_TRUE(answer.contains("metrics"));
    EXPECT_GE(clock->now() - before, 330s);
    auto const late = post("forward_backward", pass_body(model, 2));
    EXPECT_EQ(late.status, 409);
    EXPECT_THAT(detail(late), HasSubstr("too late"));
}

TEST_F(TrainingOrder, TakesTheOneWhoseTurnItIsHoweverManyWait) {
    restart_server();
    server_options.limits.pending_steps = 2;
    session = new_session();
    model = new_model(session);
    EXPECT_EQ(post("optim_step", step_body(model, 2)).status, 200);
    EXPECT_EQ(post("optim_step", step_body(model, 3)).status, 200);
    auto const full = post("optim_step", step_body(model, 4));
    EXPECT_EQ(full.status, 429);
    EXPECT_TRUE(full.headers.contains("retry-after-ms"));
    auto const first = post("forward_backward", pass_body(model, 1));
    EXPECT_EQ(first.status, 200);
    EXPECT_GT(loss(id_of(first)), 0);
}

TEST_F(TrainingOrder, AsksClientsToWaitWithMoreDataThanItHolds) {
    restart_server();
    server_options.limits.pending_bytes = 300;
    session = new_session();
    model = new_model(session);
    EXPECT_EQ(post("forward_backward", pass_body(model, 2)).status, 200);
    EXPECT_EQ(post("forward_backward", pass_body(model, 3)).status, 429);
    // Whoever waits for the first one is not kept waiting by that.
    auto const first = post("forward_backward", pass_body(model, 1));
    EXPECT_EQ(first.status, 200);
    EXPECT_GT(loss(id_of(first)), 0);
    EXPECT_GT(loss(model + ":2"), 0);
    EXPECT_EQ(post("forward_backward", pass_body(model, 3)).status, 200);
}

TEST_F(TrainingOrder, AnswersInTheFormThatIsAskedFor) {
    auto const id = id_of(post("forward_backward", pass_body(model, 1)));
    auto const proto = retrieve(id, {{"Accept", "application/x-protobuf"}});
    EXPECT_EQ(*proto.headers.find("Content-Type"), "application/x-protobuf");
    auto const as_proto = wire::decode_forward_backward_proto("forward_backward", proto.body);
    auto const plain = retrieve(id);
    auto const as_json = wire::decode_forward_backward_json("forward_backward", plain.body);
    ASSERT_TRUE(as_proto && as_json);
    EXPECT_EQ(*as_proto, *as_json);
    EXPECT_EQ(as_json->loss_fn_output_type, "CrossEntropyLossReturn");
    EXPECT_EQ(as_json->loss_fn_outputs.at(0).at("logprobs").shape->at(0), 2);
}

TEST_F(TrainingOrder, MakesAModelOnceForEachNumber) {
    auto const body = [&](std::string const& rank) {
        return R"({"session_id":")" + session +
               R"(","model_seq_id":0,"base_model":"test/bytes","lora_config":{"rank":)" + rank +
               R"(,"seed":1}})";
    };
    EXPECT_EQ(id_of(post("create_model", body("2"))), model + ":0");
    EXPECT_EQ(post("create_model", body("4")).status, 409);
    auto refused = post("create_model", R"({"session_id":")" + session +
                                            R"(","model_seq_id":9,"base_model":"no/such"})");
    EXPECT_EQ(refused.status, 404);
    EXPECT_THAT(detail(refused), HasSubstr("this server has test/bytes"));
    refused = post(
        "create_model",
        R"({"session_id":")" + session +
            R"(","model_seq_id":9,"base_model":"test/bytes","optimizer_config":{"type":"dimuon"}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(detail(refused), HasSubstr("use adamw"));
}

TEST_F(TrainingOrder, UnloadsAModelAndSaysSoLater) {
    auto const gone = post("unload_model", R"({"model_id":")" + model + R"("})");
    EXPECT_EQ(text(result(id_of(gone)), "model_id"), model);
    auto const late = post("optim_step", step_body(model, 1));
    EXPECT_EQ(late.status, 404);
    EXPECT_THAT(detail(late), HasSubstr("not in memory any more"));
    EXPECT_EQ(post("get_info", R"({"model_id":")" + model + R"("})").status, 404);
}

TEST_F(TrainingOrder, AnswersARepeatedUnloadAsTheFirst) {
    auto const body = R"({"model_id":")" + model + R"("})";
    auto const first = post("unload_model", body);
    auto const again = post("unload_model", body);
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(id_of(again), id_of(first));
    EXPECT_EQ(text(result(id_of(again)), "model_id"), model);
}

TEST_F(TrainingOrder, ACleanStopWaitsForWhatAnUnloadedModelStillDoes) {
    auto const pass = id_of(post("forward_backward", pass_body(model, 1)));
    (void)post("unload_model", R"({"model_id":")" + model + R"("})");
    server().stop(10s);
    restart_server();
    EXPECT_EQ(retrieve(pass).status, 200);
}

TEST_F(TrainingOrder, RefusesMoreAdaptersThanFit) {
    restart_server();
    server_options.limits.adapter_bytes = std::size_t{64} << 10U;
    session = new_session();
    auto const refused =
        post("create_model",
             R"({"session_id":")" + session +
                 R"(","model_seq_id":0,"base_model":"test/bytes","lora_config":{"rank":64}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(detail(refused), HasSubstr("smaller rank"));
}

TEST_F(TrainingOrder, EndsWithItsSession) {
    EXPECT_EQ(post("session_heartbeat", R"({"session_id":")" + session + R"("})").status, 200);
    clock->advance(299s);
    EXPECT_EQ(post("session_heartbeat", R"({"session_id":")" + session + R"("})").status, 200);
    clock->advance(306s);
    auto const expired = post("session_heartbeat", R"({"session_id":")" + session + R"("})");
    EXPECT_EQ(expired.status, 410);
    EXPECT_THAT(detail(expired), HasSubstr("no sign of life for 300 s"));
    auto const late = post("optim_step", step_body(model, 1));
    EXPECT_EQ(late.status, 404);
    EXPECT_THAT(detail(late), HasSubstr("its session has ended"));
}

TEST_F(TrainingOrder, KeepsTheFirstReasonOfAFinishedSession) {
    auto const finish = [&](std::string const& reason) {
        return post("sessions/" + session + "/finish",
                    R"({"reason":{"type":")" + reason + R"("},"detail":null})");
    };
    EXPECT_EQ(finish("success").status, 200);
    EXPECT_EQ(finish("errored").status, 200);
    EXPECT_EQ(post("session_heartbeat", R"({"session_id":")" + session + R"("})").status, 410);
    auto const found = json(post("sessions/search", R"({"user_metadata":{}})"));
    auto const& status = found.at("sessions").at(0).at("status");
    EXPECT_EQ(status.at("reason").at("type").as_string(), "success");
    EXPECT_EQ(finish("gone").status, 422);
}

}  // namespace
}  // namespace tinkxx::local
