// What a server keeps: checkpoints, results, and what becomes of them.
#include "local/common/times.hpp"
#include "local/store/database.hpp"
#include "local/store/home.hpp"
#include "unit/local/raw_fixture.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <gmock/gmock.h>

#include <fstream>
#include <map>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Kept : public RawTest {
protected:
    std::string id_of(HttpResponse const& response) { return text(json(response), "request_id"); }
    std::string save(std::string const& what, std::string const& body) {
        return text(result(id_of(post(what, body))), "path");
    }
    boost::json::array checkpoints() {
        return json(call("GET", "checkpoints")).at("checkpoints").as_array();
    }
    std::size_t folders() {
        std::size_t count = 0;
        for (auto const& entry :
             std::filesystem::directory_iterator{server_options.home / "checkpoints"}) {
            (void)entry;
            ++count;
        }
        return count;
    }
};

TEST_F(Kept, CheckpointsAreThereAfterARestart) {
    auto session = new_session();
    auto const model = new_model(session);
    (void)post("forward_backward", pass_body(model, 1));
    (void)post("optim_step", step_body(model, 2));
    auto const path =
        save("save_weights", save_body(model, 3, "a", R"(,"user_metadata":{"k":"v"})"));
    auto const loss = [&](std::string const& of, int seq) {
        return result(id_of(post("forward_backward", pass_body(of, seq))))
            .at("metrics")
            .at("loss:sum")
            .to_number<double>();
    };
    auto const before = loss(model, 4);
    restart_server();

    EXPECT_EQ(checkpoints().at(0).at("tinker_path").as_string(), path);
    EXPECT_EQ(checkpoints().at(0).at("user_metadata").at("k").as_string(), "v");
    auto const info = json(post("weights_info", R"({"tinker_path":")" + path + R"("})"));
    EXPECT_EQ(info.at("lora_rank").as_int64(), 2);
    // The model itself is gone, and says how to go on.
    auto const gone = post("optim_step", step_body(model, 5));
    EXPECT_EQ(gone.status, 404);
    EXPECT_THAT(detail(gone), HasSubstr("from one of its checkpoints"));
    session = new_session();
    auto const loaded = post("load_weights", R"({"session_id":")" + session +
                                                 R"(","model_seq_id":0,"optimizer":true,"path":")" +
                                                 path + R"("})");
    auto const again = text(result(id_of(loaded)), "model_id");
    EXPECT_EQ(loss(again, 1), before);
}

TEST_F(Kept, AModelThatIsGoneIsNotMadeAgainUnderItsNumber) {
    auto const session = new_session();
    (void)new_model(session);
    restart_server();
    auto const numbered = R"({"session_id":")" + session + R"(","model_seq_id":0,)";
    for (auto const& again :
         {post("create_model", numbered + R"("base_model":"test/bytes","lora_config":{"rank":2}})"),
          post("load_weights",
               numbered + R"("optimizer":false,"path":"tinker://a:train:0/weights/b"})")}) {
        EXPECT_EQ(again.status, 410);  // to be given up at once, which 409 is not (R-RETRY-80)
        EXPECT_THAT(detail(again), HasSubstr("use the next model_seq_id"));
    }
}

TEST_F(Kept, ResultsAndPromisedSamplesSurviveARestart) {
    auto const session = new_session();
    auto const model = new_model(session);
    auto const sampler = new_sampler(session);
    auto const pass = id_of(post("forward_backward", pass_body(model, 1)));
    auto const done = id_of(post("asample", sample_body(sampler, 0)));
    clock->advance(1s);  // both are done, and nobody has fetched them
    auto const pending =
        id_of(post("asample", sample_body(sampler, 1, R"({"max_tokens":100,"seed":9,"stop":[]})")));
    auto const lost = id_of(post("forward_backward", pass_body(model, 2, 98)));
    restart_server();

    EXPECT_TRUE(result(pass).contains("metrics"));
    EXPECT_THAT(result(done).at("sequences").at(0).at("tokens").as_array(), SizeIs(2));
    auto const late = result(pending);
    EXPECT_THAT(late.at("sequences").at(0).at("tokens").as_array(), SizeIs(100));
    // What was computed is what would have been computed.
    auto const same =
        id_of(post("asample", sample_body(sampler, 2, R"({"max_tokens":100,"seed":9,"stop":[]})")));
    EXPECT_EQ(result(same).at("sequences"), late.at("sequences"));
    EXPECT_EQ(retrieve(lost).status, 410);
}

TEST_F(Kept, CompletionsGoOnAfterARestart) {
    auto const session = new_session();
    auto const sampler = new_sampler(session);
    auto const poll = [&](std::int64_t cursor) {
        return json(post("retrieve_futures",
                         R"({"target":{"type":"sampling_session","sampling_session_id":")" +
                             sampler + R"("},"prev_cursor":)" + std::to_string(cursor) + "}"));
    };
    auto const one = id_of(post("asample", sample_body(sampler, 0)));
    auto const cursor = poll(0).at("cursor").as_int64();
    auto const two = id_of(post("asample", sample_body(sampler, 1)));
    restart_server();
    EXPECT_EQ(call("GET", "healthz").status, 200);
    clock->advance(1s);
    auto const after = poll(cursor).at("completions").as_array();
    std::vector<std::string> ids;
    for (auto const& each : after) ids.emplace_back(each.at("request_id").as_string());
    EXPECT_THAT(ids, ::testing::Contains(two));
}

TEST_F(Kept, WeightsWithoutANameStayAfterARestartWhateverIsSavedThen) {
    auto const save_unnamed = [&](std::string const& model, int seq, int sampler) {
        auto const body = R"({"model_id":")" + model + R"(","seq_id":)" + std::to_string(seq) +
                          R"(,"sampling_session_seq_id":)" + std::to_string(sampler) + "}";
        return text(result(id_of(post("save_weights_for_sampler", body))), "sampling_session_id");
    };
    auto const logprobs = [&](std::string const& sampler, int seq) {
        auto const drawn = result(id_of(post("asample", sample_body(sampler, seq))));
        return boost::json::serialize(drawn.at("sequences").at(0).at("logprobs"));
    };
    auto const session = new_session();
    auto const sampler = save_unnamed(new_model(session), 1, 0);
    auto const before = logprobs(sampler, 0);
    restart_server();
    auto const other = new_model(session, 1);
    (void)post("forward_backward", pass_body(other, 1));
    (void)post("optim_step", step_body(other, 2));
    auto const newer = save_unnamed(other, 3, 1);
    EXPECT_NE(logprobs(newer, 0), before);
    EXPECT_EQ(logprobs(sampler, 1), before);
}

TEST_F(Kept, ANameIsTakenUntilItIsOverwrittenOrDeleted) {
    auto const model = new_model(new_session());
    auto const path = save("save_weights", save_body(model, 1, "a"));
    EXPECT_THAT(save("save_weights_for_sampler", save_body(model, 2, "a")),
                HasSubstr("/sampler_weights/a"));
    auto const taken = result(id_of(post("save_weights", save_body(model, 3, "a"))));
    EXPECT_EQ(text(taken, "category"), "user");
    EXPECT_THAT(text(taken, "error"), HasSubstr("ResourceAlreadyExists"));
    EXPECT_EQ(save("save_weights", save_body(model, 4, "a", R"(,"overwrite":true)")), path);
    run();
    EXPECT_EQ(folders(), 2U);
    auto const name = "training_runs/" + model + "/checkpoints/weights/a";
    EXPECT_EQ(call("DELETE", name).status, 204);
    EXPECT_EQ(call("DELETE", name).status, 404);
    EXPECT_EQ(call("DELETE", "training_runs/" + model + "/checkpoints/a").status, 400);
    run();
    EXPECT_EQ(folders(), 1U);
    EXPECT_EQ(save("save_weights", save_body(model, 5, "a")), path);
    auto const bad = result(id_of(post("save_weights", save_body(model, 6, "../x"))));
    EXPECT_THAT(text(bad, "error"), HasSubstr("cannot be used"));
}

TEST_F(Kept, CheckpointsGoWhenTheirTimeIsOver) {
    auto const session = new_session();
    auto const model = new_model(session);
    (void)save("save_weights", save_body(model, 1, "short", R"(,"ttl_seconds":60)"));
    (void)save("save_weights", save_body(model, 2, "long"));
    EXPECT_THAT(checkpoints(), SizeIs(2));
    clock->advance(59s);
    EXPECT_THAT(checkpoints(), SizeIs(2));
    clock->advance(1s);
    EXPECT_THAT(checkpoints(), SizeIs(1));
    clock->advance(10s);
    EXPECT_EQ(folders(), 1U);
    auto const place = "training_runs/" + model + "/checkpoints/weights/long/ttl";
    EXPECT_EQ(call("PUT", place, R"({"ttl_seconds":5})").status, 204);
    EXPECT_EQ(call("PUT", place, R"({"ttl_seconds":null})").status, 204);
    clock->advance(10s);
    EXPECT_THAT(checkpoints(), SizeIs(1));
    EXPECT_EQ(call("PUT", place, R"({"ttl_seconds":0})").status, 400);
    auto const refused =
        result(id_of(post("save_weights", save_body(model, 3, "x", R"(,"ttl_seconds":-1)"))));
    EXPECT_THAT(text(refused, "error"), HasSubstr("ttl_seconds"));
}

TEST_F(Kept, NothingHalfWrittenIsEverListed) {
    auto const model = new_model(new_session());
    (void)save("save_weights", save_body(model, 1, "whole"));
    restart_server();
    // As a save would leave it that was killed before its row was safe.
    auto const id = look_at_home(server_options.home).value().id.substr(0, 8);
    auto const place = server_options.home / "checkpoints";
    std::filesystem::create_directories(place / (".tinkxx-" + id + "-saving-99-half"));
    std::filesystem::create_directories(place / (".tinkxx-" + id + "-saving-98-half.tmp-1-0"));
    std::filesystem::create_directories(place / (".tinkxx-" + id + "-removing-97-gone"));
    EXPECT_THAT(checkpoints(), SizeIs(1));
    run();
    EXPECT_EQ(folders(), 1U);
}

TEST_F(Kept, AFailedSaveIsTheTroubleOfThatSave) {
    auto const model = new_model(new_session());
    // The place is taken by a file, as good as a disk that is full.
    std::filesystem::remove_all(server_options.home / "checkpoints");
    std::ofstream{server_options.home / "checkpoints"} << "in the way";
    auto const failed = result(id_of(post("save_weights", save_body(model, 1, "a"))));
    EXPECT_EQ(text(failed, "category"), "server");
    EXPECT_FALSE(text(failed, "error").empty());
    std::filesystem::remove(server_options.home / "checkpoints");
    std::filesystem::create_directories(server_options.home / "checkpoints");
    EXPECT_THAT(save("save_weights", save_body(model, 2, "a")), HasSubstr("/weights/a"));
}

/// Names and sizes of the files of an archive.
std::map<std::string, std::int64_t> files_of(std::string const& bytes) {
    std::map<std::string, std::int64_t> files;
    auto* const in = archive_read_new();
    archive_read_support_format_tar(in);
    EXPECT_EQ(archive_read_open_memory(in, bytes.data(), bytes.size()), ARCHIVE_OK);
    archive_entry* entry = nullptr;
    while (archive_read_next_header(in, &entry) == ARCHIVE_OK) {
        files[archive_entry_pathname(entry)] = archive_entry_size(entry);
    }
    archive_read_free(in);
    return files;
}

TEST_F(Kept, SamplerCheckpointsAreArchivesForOthers) {
    auto const model = new_model(new_session());
    (void)save("save_weights_for_sampler", save_body(model, 1, "s"));
    auto const place = "training_runs/" + model + "/checkpoints/sampler_weights/s";
    auto const archive = call("GET", place + "/archive");
    EXPECT_EQ(archive.status, 302);
    EXPECT_TRUE(archive.headers.contains("Expires"));
    auto link = *archive.headers.find("Location");
    auto const target = link.substr(link.find("/api/"));
    auto const bytes = call("GET", target);
    EXPECT_EQ(bytes.status, 200);
    auto const files = files_of(bytes.body);
    ASSERT_EQ(files.size(), 3U);
    EXPECT_GT(files.at("adapter_config.json"), 0);
    EXPECT_GT(files.at("adapter_model.safetensors"), 0);
    EXPECT_EQ(files.at("checkpoint_complete"), 0);
    EXPECT_EQ(call("GET", target + "0").status, 403);
    clock->advance(16min);
    EXPECT_EQ(call("GET", target).status, 403);
    EXPECT_EQ(call("GET", "training_runs/" + model + "/checkpoints/s/archive").status, 302);
}

TEST_F(Kept, ExternalWeightsHaveALinkForEachFile) {
    auto const model = new_model(new_session());
    (void)save("save_weights_external", save_body(model, 1, "e"));
    auto const place = "training_runs/" + model + "/checkpoints/external_weights/e";
    auto const urls = json(call("GET", place + "/external_weights_urls")).at("urls").as_object();
    ASSERT_EQ(urls.size(), 2U);
    std::string const link{urls.at("adapter_config.json").as_string()};
    auto const config = call("GET", link.substr(link.find("/api/")));
    EXPECT_EQ(boost::json::parse(config.body).at("r").as_int64(), 2);
    // Clients that cannot read such an entry are spared it.
    EXPECT_THAT(checkpoints(), SizeIs(1));
    auto const old = call("GET", "checkpoints", {}, {{"X-Stainless-Package-Version", "0.25.0"}});
    EXPECT_THAT(json(old).at("checkpoints").as_array(), SizeIs(0));
    auto const sealed =
        result(id_of(post("save_weights_external",
                          save_body(model, 2, "f", R"(,"age_encryption_recipients":["age1x"])"))));
    EXPECT_THAT(text(sealed, "error"), HasSubstr("not encrypted"));
}

TEST_F(Kept, RunsAndSessionsAreListed) {
    auto const made =
        post("create_session",
             R"({"user_metadata":{"recipe":"sl","n":3},"display_name":"My first run"})");
    auto const session = text(json(made), "session_id");
    auto const model = new_model(session);
    (void)save("save_weights", save_body(model, 1, "c"));
    auto const run = json(call("GET", "training_runs/" + model));
    EXPECT_EQ(text(run, "base_model"), "test/bytes");
    EXPECT_EQ(run.at("lora_rank").as_int64(), 2);
    EXPECT_EQ(run.at("last_checkpoint").at("checkpoint_id").as_string(), "weights/c");
    auto const runs = json(call("GET", "training_runs?limit=1&offset=0"));
    EXPECT_EQ(runs.at("cursor").at("total_count").as_int64(), 1);
    auto const one = json(call("GET", "sessions/" + session));
    EXPECT_EQ(one.at("training_run_ids").as_array().size(), 1U);
    EXPECT_EQ(one.at("user_metadata").at("n").as_string(), "3");
    EXPECT_EQ(call("PUT", "sessions/" + session + "/project", R"({"project_id":"P"})").status, 204);
    EXPECT_EQ(json(call("GET", "training_runs?project_id=P")).at("training_runs").as_array().size(),
              1U);
    auto const found = [&](std::string const& search) {
        return json(post("sessions/search", search)).at("sessions").as_array().size();
    };
    EXPECT_EQ(found(R"({"display_name":"RUN first"})"), 1U);
    EXPECT_EQ(found(R"({"display_name":"second"})"), 0U);
    EXPECT_EQ(found(R"({"user_metadata":{"recipe":"sl"}})"), 1U);
    EXPECT_EQ(call("GET", "training_runs?limit=x").status, 400);
    auto const place = "training_runs/" + model + "/checkpoints/weights/c/publish";
    EXPECT_EQ(call("POST", place).status, 204);
    EXPECT_EQ(call("POST", place).status, 204);
    EXPECT_EQ(call("DELETE", place).status, 204);
    EXPECT_EQ(call("DELETE", place).status, 204);
    auto const day = json(call("GET", "audit")).at("entries").as_array();
    EXPECT_EQ(day.size(), 3U);  // what changed nothing is no event
    EXPECT_EQ(day.at(0).at("event").as_string(), "checkpoint_created");
    EXPECT_EQ(call("GET", "audit?event_type=cats").status, 400);
}

TEST_F(Kept, UsageIsCountedInTokens) {
    auto const session = new_session();
    auto const model = new_model(session);
    auto const sampler = new_sampler(session);
    (void)result(id_of(post("forward_backward", pass_body(model, 1))));
    (void)result(id_of(post("asample", sample_body(sampler, 0, R"({"max_tokens":5,"stop":[]})"))));
    (void)save("save_weights", save_body(model, 2, "c"));
    auto const usage =
        json(call("GET", "billing/usage/events?starting_on=" + iso_time(clock->wall() - 2h) +
                             "&ending_before=" + iso_time(clock->wall() + 2h)));
    std::map<std::string, std::int64_t> counted;
    for (auto const& event : usage.at("data").as_array()) {
        std::string const type{event.at("event_info").at("type").as_string()};
        counted[type] += event.at("event_info").at("token_count").as_int64();
    }
    EXPECT_EQ(counted["training"], 2);
    EXPECT_EQ(counted["sampling_prefill"], 2);
    EXPECT_EQ(counted["sampling_sample"], 5);
    auto const storage = json(call("GET", "billing/usage/checkpoints/current"));
    EXPECT_EQ(storage.at("data").at(0).at("checkpoint_count").as_int64(), 1);
    EXPECT_EQ(call("GET", "billing/usage/events?starting_on=x&ending_before=y").status, 400);
    auto const metrics = call("GET", "/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("tinkxx_sampled_tokens_total 5\n"));
    EXPECT_THAT(metrics, HasSubstr("# TYPE tinkxx_models_loaded gauge\ntinkxx_models_loaded 1\n"));
}

TEST_F(Kept, ACopyIsMadeOnceForEachKey) {
    auto const model = new_model(new_session());
    auto const path = save("save_weights", save_body(model, 1, "c"));
    auto const copy = [&](std::string const& key) {
        return text(json(call("POST", "copy_weights",
                              R"({"source_path":")" + path + R"(","destination_project_id":"P"})",
                              {{"X-Idempotency-Key", key}})),
                    "tinker_path");
    };
    auto const one = copy("k1");
    EXPECT_NE(one, path);
    EXPECT_EQ(copy("k1"), one);
    EXPECT_NE(copy("k2"), one);
    auto const info = post("weights_info", R"({"tinker_path":")" + one + R"("})");
    EXPECT_EQ(info.status, 200);
    EXPECT_THAT(checkpoints(), SizeIs(3));
}

TEST(LocalHome, IsForOneServerAtATime) {
    TemporaryFolder const folder;
    auto const first = Home::open(folder.path(), "0123456789abcdef");
    ASSERT_TRUE(first);
    auto const second = Home::open(folder.path(), "0123456789abcdef");
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().what(), HasSubstr("in use by another server (process "));
    EXPECT_THAT(second.error().what(), HasSubstr("name another"));
    auto const nowhere = Home::open("/proc/nothing/here", "0123456789abcdef");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().field(), "home");
}

TEST(LocalHome, WithoutANameIsGoneInTheEnd) {
    std::filesystem::path place;
    {
        auto const home = Home::open({}, "0123456789abcdef");
        ASSERT_TRUE(home);
        place = (*home)->folder();
        EXPECT_TRUE(std::filesystem::exists(place));
    }
    EXPECT_FALSE(std::filesystem::exists(place));
}

TEST(LocalDatabase, ChangesAllOrNothing) {
    TemporaryFolder const folder;
    DatabaseOptions const options{.durability = Durability::process, .home_id = "0123456789abcdef"};
    auto database = Database::open(folder.path() / "db", options).value();
    database->commit(std::vector<Change>{{Table::run, "b", "2"}, {Table::run, "a", "1"}}).value();
    database->commit(std::vector<Change>{{Table::run, "b", std::nullopt}, {Table::run, "a", "3"}})
        .value();
    EXPECT_THAT(database->all(Table::run).value(), ElementsAre(::testing::Pair("a", "3")));
    EXPECT_FALSE(database->find(Table::run, "b").value().has_value());
    std::ofstream{folder.path() / "noise"} << std::string(4096, 'x');
    auto const broken = Database::open(folder.path() / "noise", options);
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().what(), HasSubstr("not a database"));
}

/// Why a server does not start; empty if it does.
std::string refused(ServerOptions options) {
    Runtime const runtime{RuntimeOptions{.threads = 0}};
    try {
        Server const server{std::move(options), runtime};
    } catch (ValidationError const& error) {
        return error.what();
    }
    return {};
}

TEST(LocalServer, DoesNotStartWithAModelThatCannotBeRead) {
    TemporaryFolder const folder;
    auto const place = folder.path() / "copy";
    std::filesystem::copy(byte_model(), place);
    auto options = tiny_server();
    options.models.front().folder = place;
    auto const file = place / "model.safetensors";
    EXPECT_EQ(refused(options), "");
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    EXPECT_THAT(refused(options),
                AllOf(HasSubstr("is no model that can be served"), HasSubstr("model.safetensors")));
    std::filesystem::remove(file);
    EXPECT_THAT(refused(options), HasSubstr("is no model that can be served"));
}

TEST_F(LocalTest, AModelWithoutNumbersIsRefusedToWhomItIsAskedFor) {
    TemporaryFolder const folder;
    auto const place = folder.path() / "copy";
    std::filesystem::copy(byte_model(), place);
    std::fstream file{place / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(-1, std::ios::end);
    file.put('\x7f');  // with the byte before it: not a number
    file.seekp(-2, std::ios::end);
    file.put('\xff');
    file.close();
    server_options.models.front().folder = place;
    (void)server();
    run();
    auto const result = service().create_lora_training_client("test/bytes", 2).result();
    ASSERT_FALSE(result);
    EXPECT_FALSE(result.error().retryable());
    EXPECT_THAT(result.error().what(),
                AllOf(HasSubstr("test/bytes could not be loaded"), HasSubstr("NaN")));
}

TEST(LocalServer, SaysWhatIsWrongWithItsOptions) {
    ServerOptions options;
    EXPECT_THAT(refused(options), HasSubstr("no model to serve"));
    options.models = {{.folder = "/nowhere"}};
    EXPECT_THAT(refused(options), HasSubstr("/nowhere is no model"));
    options = tiny_server();
    options.models.push_back(options.models.front());
    EXPECT_THAT(refused(options), HasSubstr("two models are called test/bytes"));
    options = tiny_server();
    options.chaos = "429";
    EXPECT_THAT(refused(options), HasSubstr("chaos"));
}

}  // namespace
}  // namespace tinkxx::local
