#include "unit/cli/commands_fixture.hpp"

#include <gmock/gmock.h>

#include <string>

namespace tinkxx::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Lists : public CommandsTest {
protected:
    static std::string checkpoint_json(std::string const& name) {
        return R"({"checkpoint_id":"weights/)" + name +
               R"(","checkpoint_type":"training","time":"2026-01-02T09:00:00Z",)"
               R"("tinker_path":"tinker://run-a/weights/)" +
               name + R"(","size_bytes":1536,"public":false})";
    }
    static std::string run_json(std::string const& id, std::string const& more = "") {
        return R"({"training_run_id":")" + id +
               R"(","base_model":"Qwen/Qwen3-8B","model_owner":"me","is_lora":true,"lora_rank":32,)"
               R"("last_request_time":"2026-01-02T11:55:00Z")" +
               more + "}";
    }
    static std::string runs_json(std::vector<std::string> const& runs, int total) {
        std::string list;
        for (auto const& run : runs) list += (list.empty() ? "" : ",") + run;
        return R"({"training_runs":[)" + list +
               R"(],"cursor":{"offset":0,"limit":20,"total_count":)" + std::to_string(total) + "}}";
    }
};

TEST_F(Lists, ShowRunsInTheColumnsThatWereChosen) {  // R-CLI-02, R-CLI-04
    answer("GET training_runs",
           runs_json({run_json("run-a"), run_json("run-b", R"(,"corrupted":true)")}, 45));
    auto const done = run({"run", "list", "--limit", "2"});
    EXPECT_EQ(done.out,
              "ID     Model          LoRA     Updated        Status\n"
              "run-a  Qwen/Qwen3-8B  Rank 32  5 minutes ago  OK\n"
              "run-b  Qwen/Qwen3-8B  Rank 32  5 minutes ago  Failed\n");
    EXPECT_EQ(done.err, "2 training runs (43 more, see --limit and --offset)\n");
    EXPECT_THAT(asked, ElementsAre("GET training_runs?limit=2&offset=0&access_scope=owned"));
    EXPECT_EQ(run({"run", "list", "--limit", "2", "-c", "owner,id"}).out,
              "Owner  ID\nme     run-a\nme     run-b\n");
}

TEST_F(Lists, RefuseColumnsThatThereAreNot) {  // R-CLI-02
    auto const done = run({"run", "list", "-c", "id,modle"});
    EXPECT_EQ(done.exit, Exit::usage);
    EXPECT_THAT(done.err, HasSubstr("there is no column 'modle'; did you mean model?"));
    EXPECT_THAT(done.err, HasSubstr("choose from id, model, owner, lora, updated, status, "
                                    "checkpoint, checkpoint_time"));
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(Lists, PrintRunsAsJson) {  // R-CLI-12, R-CLI-04
    answer("GET training_runs",
           runs_json({run_json("run-a", R"(,"last_checkpoint":)" + checkpoint_json("x") +
                                            R"(,"user_metadata":{"k":"v"})")},
                     1));
    EXPECT_EQ(run({"run", "list", "--json"}).out, R"({
  "runs": [
    {
      "training_run_id": "run-a",
      "base_model": "Qwen/Qwen3-8B",
      "model_owner": "me",
      "is_lora": true,
      "lora_rank": 32,
      "corrupted": false,
      "last_request_time": "2026-01-02T11:55:00Z",
      "last_checkpoint": {
        "checkpoint_id": "weights/x",
        "checkpoint_type": "training",
        "time": "2026-01-02T09:00:00Z",
        "tinker_path": "tinker://run-a/weights/x",
        "size_bytes": 1536,
        "public": false,
        "expires_at": null,
        "user_metadata": null
      },
      "last_sampler_checkpoint": null,
      "user_metadata": {
        "k": "v"
      }
    }
  ],
  "total": 1,
  "shown": 1
}
)");
}

TEST_F(Lists, AreFetchedPageByPage) {  // R-CLI-06
    std::vector<std::string> page(100, run_json("run-a"));
    answer("GET training_runs?limit=100&offset=0&access_scope=owned", runs_json(page, 230));
    answer("GET training_runs?limit=100&offset=100&access_scope=owned", runs_json(page, 230));
    page.resize(30);
    answer("GET training_runs?limit=100&offset=200&access_scope=owned", runs_json(page, 230));
    auto done = run({"run", "list", "--limit", "0", "--json"});
    EXPECT_THAT(done.out, HasSubstr("\"shown\": 230"));
    EXPECT_THAT(done.err, IsEmpty());
    EXPECT_EQ(asked.size(), 3U);
    asked.clear();
    answer("GET training_runs?limit=20&offset=100&access_scope=owned",
           runs_json({page.begin(), page.begin() + 20}, 230));
    done = run({"run", "list", "--limit", "120", "--json"});
    EXPECT_THAT(done.out, HasSubstr("\"shown\": 120"));
    EXPECT_EQ(asked.size(), 2U);
}

TEST_F(Lists, PrintNothingIfThereIsNothing) {
    answer("GET training_runs", runs_json({}, 0));
    auto const done = run({"run", "list"});
    EXPECT_EQ(done.exit, Exit::success);
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(done.err, "0 training runs\n");
}

TEST_F(Lists, ShowOneRun) {  // R-CLI-03
    std::string const id(36, 'a');
    answer("GET training_runs/" + id,
           run_json(id, R"(,"last_checkpoint":)" + checkpoint_json("x")));
    EXPECT_EQ(run({"run", "info", id}).out,
              "Property         Value\n"
              "ID               " +
                  id +
                  "\n"
                  "Base model       Qwen/Qwen3-8B\n"
                  "Owner            me\n"
                  "LoRA             Rank 32\n"
                  "Status           OK\n"
                  "Last request     5 minutes ago\n"
                  "Last checkpoint  tinker://run-a/weights/x, 3 hours ago\n");
    EXPECT_THAT(run({"run", "info", id, "--json"}).out,
                HasSubstr("{\n  \"training_run_id\": \"" + id + "\",\n"));
}

TEST_F(Lists, TakeTheBeginningOfAnId) {
    answer("GET training_runs", runs_json({run_json("abc-1"), run_json("abd-2")}, 2));
    answer("GET training_runs/abc-1", run_json("abc-1"));
    answer("GET training_runs/zzz", R"({"detail":"no such run"})", 404);
    EXPECT_THAT(run({"run", "info", "abc"}).out, HasSubstr("abc-1"));
    EXPECT_THAT(run({"run", "info", "@latest"}).out, HasSubstr("abc-1"));
    auto const several = run({"run", "info", "ab"});
    EXPECT_EQ(several.exit, Exit::usage);
    EXPECT_THAT(several.err, HasSubstr("2 runs begin with ab: abc-1, abd-2"));
    auto const none = run({"run", "info", "zzz"});
    EXPECT_EQ(none.exit, Exit::failure);
    EXPECT_THAT(none.err, HasSubstr("tinkxx: not found"));
}

TEST_F(Lists, ShowCheckpointsAtAnyWidth) {  // R-CLI-03, R-CLI-05
    answer("GET checkpoints", R"({"checkpoints":[)" + checkpoint_json("step-10") + "," +
                                  checkpoint_json("final") +
                                  R"(],"cursor":{"offset":0,"limit":20,"total_count":2}})");
    auto const at = [&](std::size_t width) {
        screen = {.out = true, .width = width};
        return run({"checkpoint", "list"}).out;
    };
    EXPECT_EQ(at(200),
              "Checkpoint ID    Type        Size  Public  Created      Expires  Path\n"
              "weights/step-10  training  1.5 KB  No      3 hours ago  Never    "
              "tinker://run-a/weights/step-10\n"
              "weights/final    training  1.5 KB  No      3 hours ago  Never    "
              "tinker://run-a/weights/final\n");
    EXPECT_EQ(at(80),
              "Checkpoint ID   Type        Size  Created      Expires  Path\n"
              "weights/step-…  training  1.5 KB  3 hours ago  Never    tinker://run-a/weights/…\n"
              "weights/final   training  1.5 KB  3 hours ago  Never    tinker://run-a/weights/…\n");
    EXPECT_EQ(at(60),
              "Checkpoint ID    Size  Created      Path\n"
              "weights/step…  1.5 KB  3 hours ago  tinker://run-a/weights/…\n"
              "weights/final  1.5 KB  3 hours ago  tinker://run-a/weights/…\n");
    auto const widest = at(200);
    screen = {};
    EXPECT_EQ(run({"checkpoint", "list"}).out, widest);  // nothing is cut for programs
}

TEST_F(Lists, ShowCheckpointsOfOneRun) {  // R-CLI-12
    answer("GET training_runs", runs_json({run_json("run-a")}, 1));
    answer("GET training_runs/run-a/checkpoints",
           R"({"checkpoints":[)" + checkpoint_json("a") + "," + checkpoint_json("b") + "]}");
    auto const done = run({"checkpoint", "list", "--run-id", "run", "--limit", "1", "--json"});
    EXPECT_THAT(done.out, HasSubstr("{\n  \"run_id\": \"run-a\",\n  \"checkpoints\": [\n"));
    EXPECT_THAT(done.out, HasSubstr("\"total\": 2,\n  \"shown\": 1\n"));
}

TEST_F(Lists, ShowOneCheckpointAndItsModel) {  // R-CLI-03, R-CLI-12
    answer("GET checkpoints", R"({"checkpoints":[)" + checkpoint_json("x") + "]}");
    answer("GET training_runs", runs_json({run_json("run-a")}, 1));
    answer("GET training_runs/run-a/checkpoints",
           R"({"checkpoints":[)" + checkpoint_json("x") + "]}");
    answer("POST weights_info",
           R"({"base_model":"Qwen/Qwen3-8B","is_lora":true,"lora_rank":8,"train_mlp":false})");
    EXPECT_EQ(run({"checkpoint", "info", "@latest"}).out,
              "Property       Value\n"
              "Checkpoint ID  weights/x\n"
              "Type           training\n"
              "Path           tinker://run-a/weights/x\n"
              "Size           1.5 KB\n"
              "Public         No\n"
              "Created        3 hours ago\n"
              "Expires        Never\n"
              "Base model     Qwen/Qwen3-8B\n"
              "LoRA           Yes\n"
              "LoRA rank      8\n"
              "Trains MLP     No\n");
    auto const json = run({"checkpoint", "info", "run-a/weights/x", "--json"}).out;
    EXPECT_THAT(json, HasSubstr(R"(  "base_model": "Qwen/Qwen3-8B",
  "is_lora": true,
  "lora_rank": 8,
  "train_mlp": false,
  "train_attn": null,
  "train_unembed": null
})"));
    auto const missing = run({"checkpoint", "info", "run-a/weights/y"});
    EXPECT_EQ(missing.exit, Exit::failure);
    EXPECT_THAT(missing.err, HasSubstr("tinkxx: not found"));
    EXPECT_EQ(run({"checkpoint", "info", "x/y"}).exit, Exit::usage);
}

TEST_F(Lists, ShowModelsByPartOfTheirName) {  // R-CLI-16
    answer("GET get_server_capabilities",
           R"({"supported_models":[{"model_name":"Qwen/Qwen3-8B","max_context_length":32768,)"
           R"("trainable":true,"sampleable":false},{"model_name":"tinkxx/tiny"}]})");
    EXPECT_EQ(run({"model", "list"}).out,
              "Model          Max Context  Trainable  Sampleable\n"
              "Qwen/Qwen3-8B        32768  Yes        No\n"
              "tinkxx/tiny            N/A  N/A        N/A\n");
    EXPECT_EQ(run({"model", "list", "QWEN", "--json"}).out, R"({
  "models": [
    {
      "model_name": "Qwen/Qwen3-8B",
      "max_context_length": 32768,
      "trainable": true,
      "sampleable": false
    }
  ]
}
)");
    auto const none = run({"model", "list", "llama"});
    EXPECT_EQ(none.exit, Exit::failure);
    EXPECT_THAT(none.out, IsEmpty());
}

TEST_F(Lists, ShowSessions) {
    answer("POST sessions/search",
           R"({"sessions":[{"session_id":"s-1","owner":"me","project_id":"p",)"
           R"("created_at":"2026-01-02T11:00:00Z","checkpoints_count":3,"display_name":"night",)"
           R"("status":{"type":"client_finished","reason":{"type":"success"}}}],)"
           R"("next_cursor":null})");
    auto const done = run({"session", "list"});
    EXPECT_THAT(done.out, HasSubstr("Session ID  Created     Status"));
    EXPECT_THAT(done.out, HasSubstr("s-1         1 hour ago"));
    EXPECT_EQ(done.err, "1 session\n");
    auto const json = run({"session", "list", "--json"}).out;
    EXPECT_THAT(json, HasSubstr("\"session_id\": \"s-1\""));
    EXPECT_THAT(json, HasSubstr("\"shown\": 1\n"));
}

TEST_F(Lists, ShowUsageInTheColumnsThatOccur) {  // R-CLI-13, R-CLI-18
    answer("GET billing/usage/events",
           R"({"data":[{"bucket_start":"2026-01-01T00:00:00Z","bucket_end":"2026-01-01T01:00:00Z",)"
           R"("base_model":"m","estimated_cost_usd":null,)"
           R"("effective_rate_usd_per_million_tokens":0.5,)"
           R"("event_info":{"type":"training","token_count":5}},)"
           R"({"bucket_start":"2026-01-01T00:00:00Z","bucket_end":"2026-01-01T01:00:00Z",)"
           R"("session_id":"s,1","event_info":{"type":"checkpoint","count":2}}],)"
           R"("sessions":{"s,1":{"user_metadata":{"k":"v"}}},)"
           R"("cost_data_through":"2026-01-01T00:00:00Z"})");
    std::vector<std::string> const line{"billing", "usage", "2026-01-01", "2026-01-02"};
    auto const done = run(line);
    EXPECT_EQ(
        done.out,
        "bucket_start          bucket_end            type        base_model  token_count  "
        "estimated_cost_usd  effective_rate_usd_per_million_tokens  session_id  count\n"
        "2026-01-01T00:00:00Z  2026-01-01T01:00:00Z  training    m           5            "
        "null                0.5000\n"
        "2026-01-01T00:00:00Z  2026-01-01T01:00:00Z  checkpoint"
        "                                                                                      "
        "s,1         2\n");
    auto csv = line;
    csv.insert(csv.end(), {"--csv", "-"});
    EXPECT_EQ(
        run(csv).out,
        "bucket_start,bucket_end,type,base_model,token_count,estimated_cost_usd,"
        "effective_rate_usd_per_million_tokens,effective_rate_usd_per_gigabyte_month,user_name,"
        "user_id,session_id,project_id,count\r\n"
        "2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,training,m,5,,0.5000,,,,,,\r\n"
        "2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,checkpoint,,,,,,,,\"s,1\",,2\r\n");
    auto json = line;
    json.push_back("--json");
    EXPECT_THAT(run(json).out, HasSubstr("\"event_info\": {\n        \"type\": \"checkpoint\",\n"
                                         "        \"count\": 2\n      }"));
    EXPECT_THAT(run(json).out, HasSubstr("\"cost_data_through\": \"2026-01-01T00:00:00Z\"\n"));
}

TEST_F(Lists, RefuseDatesThatAreNone) {
    for (auto const* const date : {"yesterday", "2026-13-01", "20260101", "1767225600", ""}) {
        auto const done = run({"billing", "usage", date, "2026-01-02"});
        EXPECT_EQ(done.exit, Exit::usage) << date;
        EXPECT_THAT(done.err, HasSubstr("is not a date")) << date;
    }
    EXPECT_THAT(run({"billing", "usage", "2026-01-02", "2026-01-01"}).err,
                HasSubstr("START is not before END"));
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(Lists, ShowWhatCheckpointsTake) {  // R-CLI-18
    answer("GET billing/usage/checkpoints/current",
           R"({"effective_rate_usd_per_gigabyte_month":0.02,"data":[{"project_id":"p",)"
           R"("checkpoint_count":3,"size_bytes":2048,"size_gigabytes":1.5,)"
           R"("estimated_monthly_cost_usd":null}]})");
    auto const done = run({"billing", "checkpoint-storage"});
    EXPECT_EQ(done.err, "Current checkpoint storage\n");
    EXPECT_EQ(done.out,
              "project_id  checkpoint_count  size_bytes  size_gigabytes  "
              "effective_rate_usd_per_gigabyte_month  estimated_monthly_cost_usd\n"
              "p           3                 2048        1.5000          "
              "0.0200                                 null\n");
    answer("GET billing/usage/checkpoints/current",
           R"({"effective_rate_usd_per_gigabyte_month":null,"data":[]})");
    EXPECT_EQ(run({"billing", "checkpoint-storage"}).err, "no checkpoints are stored\n");
}

}  // namespace
}  // namespace tinkxx::cli
