#include "unit/cli/commands_fixture.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tinkxx::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// As long as an id of the service, so that nothing is asked to complete it.
std::string const run_id(36, 'r');

class Changes : public CommandsTest {
protected:
    Changes() {
        answer("GET training_runs/" + run_id + "/checkpoints",
               R"({"checkpoints":[)" + checkpoint_json("old", "2026-01-01T00:00:00Z", "training") +
                   "," + checkpoint_json("new", "2026-01-02T00:00:00Z", "training") + "," +
                   checkpoint_json("eval", "2026-01-02T00:00:00Z", "sampler") + "]}");
        for (auto const* const name : {"old", "new"}) {
            answer("DELETE training_runs/" + run_id + "/checkpoints/weights/" + name, "{}");
        }
        answer("DELETE training_runs/" + run_id + "/checkpoints/sampler_weights/eval", "{}");
    }

    static std::string checkpoint_json(std::string const& name, std::string const& time,
                                       std::string const& type) {
        auto const id = (type == "sampler" ? "sampler_weights/" : "weights/") + name;
        return R"({"checkpoint_id":")" + id + R"(","checkpoint_type":")" + type + R"(","time":")" +
               time + R"(","tinker_path":"tinker://)" + run_id + "/" + id +
               R"(","size_bytes":1024,"public":false})";
    }
    [[nodiscard]] std::vector<std::string> deleted() const {
        std::vector<std::string> names;
        for (auto const& line : asked) {
            if (line.starts_with("DELETE")) names.push_back(line.substr(line.rfind('/') + 1));
        }
        return names;
    }
};

TEST_F(Changes, PublishAndUnpublish) {  // R-CLI-01
    auto const path = "training_runs/" + run_id + "/checkpoints/sampler_weights/x/publish";
    answer("POST " + path, "{}");
    answer("DELETE " + path, "{}");
    auto done = run({"checkpoint", "publish", run_id + "/sampler_weights/x"});
    EXPECT_EQ(done.err,
              "tinker://" + run_id + "/sampler_weights/x can now be loaded by everybody\n");
    EXPECT_EQ(done.out, "");
    done = run({"checkpoint", "unpublish", "tinker://" + run_id + "/sampler_weights/x", "--json"});
    EXPECT_EQ(done.out, "{\n  \"checkpoint_path\": \"tinker://" + run_id +
                            "/sampler_weights/x\",\n  \"public\": false\n}\n");
    EXPECT_THAT(asked, ElementsAre("POST " + path, "DELETE " + path));
}

TEST_F(Changes, SetTheTimeToLive) {  // R-CLI-01
    answer("PUT training_runs/" + run_id + "/checkpoints/weights/x/ttl", "{}");
    auto const line = [](std::vector<std::string> const& more) {
        std::vector<std::string> all{"checkpoint", "set-ttl", run_id + "/weights/x"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    EXPECT_THAT(run(line({"--ttl", "3600"})).err, HasSubstr("expires in 1 hour"));
    EXPECT_EQ(sent.back().body, R"({"ttl_seconds":3600})");
    EXPECT_THAT(run(line({"--ttl", "7d", "--json"})).out, HasSubstr("\"ttl_seconds\": 604800"));
    EXPECT_EQ(sent.back().body, R"({"ttl_seconds":604800})");
    EXPECT_THAT(run(line({"--remove"})).err, HasSubstr("never expires"));
    EXPECT_EQ(sent.back().body, R"({"ttl_seconds":null})");
    auto const count = sent.size();
    for (auto const& wrong :
         {line({}), line({"--ttl", "1", "--remove"}), line({"--ttl", "x"}), line({"--ttl", "-5"}),
          line({"--ttl", "5y"}), line({"--ttl", "0"}), line({"--ttl", "99999999999999999999d"})}) {
        EXPECT_EQ(run(wrong).exit, Exit::usage);
    }
    EXPECT_EQ(sent.size(), count);
}

TEST_F(Changes, DeleteAsksFirstAndShowsWhat) {  // R-CLI-07
    screen = {.err = true, .in = true};
    typed = "n\n";
    std::vector<std::string> const line{"checkpoint", "delete", run_id + "/weights/old",
                                        run_id + "/weights/new"};
    auto done = run(line);
    EXPECT_EQ(done.exit, Exit::success);
    EXPECT_EQ(done.err,
              "  tinker://" + run_id + "/weights/old  1.0 KB\n  tinker://" + run_id +
                  "/weights/new  1.0 KB\n2 checkpoints, 2.0 KB\n"
                  "warning: what is deleted cannot be restored\nDelete? [y/N] cancelled\n");
    EXPECT_THAT(deleted(), IsEmpty());
    typed = "";
    EXPECT_EQ(run(line).exit, Exit::success);
    EXPECT_THAT(deleted(), IsEmpty());
    typed = "y\n";
    done = run(line);
    EXPECT_THAT(done.err, HasSubstr("2 checkpoints deleted\n"));
    EXPECT_THAT(deleted(), ElementsAre("old", "new"));
}

TEST_F(Changes, DeleteAsksNobodyWithoutATerminal) {  // R-CLI-07
    std::vector<std::string> line{"checkpoint", "delete", run_id + "/weights/old"};
    auto const done = run(line);
    EXPECT_EQ(done.exit, Exit::usage);
    EXPECT_THAT(done.err, HasSubstr("add --yes"));
    EXPECT_THAT(deleted(), IsEmpty());
    line.emplace_back("--yes");
    EXPECT_EQ(run(line).exit, Exit::success);
    EXPECT_THAT(deleted(), ElementsAre("old"));
}

TEST_F(Changes, DeleteChoosesByTypeAndDate) {  // R-CLI-07
    auto const chosen = [&](std::vector<std::string> const& more) {
        std::vector<std::string> line{"checkpoint", "delete",    "--run-id",
                                      run_id,       "--dry-run", "--json"};
        line.insert(line.end(), more.begin(), more.end());
        auto const done = run(line);
        EXPECT_EQ(done.exit, Exit::success) << done.err;
        std::string names;
        for (auto const* const name : {"old", "new", "eval"}) {
            if (done.out.find(std::string{"/"} + name + '"') != std::string::npos) names += name;
        }
        return names;
    };
    EXPECT_EQ(chosen({}), "oldneweval");
    EXPECT_EQ(chosen({"--type", "training"}), "oldnew");
    EXPECT_EQ(chosen({"--type", "sampler_weights"}), "eval");
    EXPECT_EQ(chosen({"--before", "2026-01-02"}), "old");  // strictly
    EXPECT_EQ(chosen({"--after", "2026-01-01"}), "neweval");
    EXPECT_EQ(chosen({"--after", "2026-01-02T00:00:00Z"}), "");
    EXPECT_EQ(chosen({"--before", "2026-01-02T01:00:00+02:00"}), "old");
    EXPECT_THAT(deleted(), IsEmpty());
}

TEST_F(Changes, DeleteRefusesWhatIsNotClear) {  // R-CLI-07
    for (std::vector<std::string> const& more :
         {std::vector<std::string>{},
          {run_id + "/weights/old", "--run-id", run_id},
          {"--type", "training"},
          {run_id + "/weights/old", "--before", "2026-01-01"},
          {"--run-id", run_id, "--before", "soon"},
          {"--run-id", run_id, "--type", "all"},
          {run_id + "/weights/old", "nonsense"},
          {run_id + "/other/old"}}) {
        std::vector<std::string> line{"checkpoint", "delete", "--yes"};
        line.insert(line.end(), more.begin(), more.end());
        auto const done = run(line);
        EXPECT_EQ(done.exit, Exit::usage) << done.err;
        EXPECT_THAT(done.err, HasSubstr("  try: "));
    }
    EXPECT_THAT(asked, IsEmpty());  // all paths are looked at before anything is asked
}

TEST_F(Changes, DeleteReportsWhatFailed) {  // R-CLI-07
    answer("DELETE training_runs/" + run_id + "/checkpoints/weights/new",
           R"({"detail":"no such checkpoint"})", 404);
    auto const done = run({"checkpoint", "delete", "--run-id", run_id, "--yes", "--json"});
    EXPECT_EQ(done.exit, Exit::failure);
    EXPECT_THAT(done.out, HasSubstr("{\n  \"deleted_count\": 2,\n  \"failed\": [\n    {\n      "
                                    "\"tinker_path\": \"tinker://" +
                                    run_id + "/weights/new\",\n      \"error\": \""));
    EXPECT_THAT(done.err, HasSubstr("weights/new is not deleted"));
}

TEST_F(Changes, DeleteSendsManyAtOnce) {  // R-CLI-07
    std::vector<std::string> line{"checkpoint", "delete", "--yes"};
    for (int i = 0; i < 100; ++i) {
        auto const id = "weights/n" + std::to_string(i);
        line.push_back(run_id + "/" + id);
        answer("DELETE training_runs/" + run_id + "/checkpoints/" + id, "{}");
    }
    EXPECT_THAT(run(line).err, HasSubstr("100 checkpoints deleted"));
    EXPECT_EQ(deleted().size(), 100U);
}

class Downloads : public Changes {
protected:
    Downloads() {
        char made[] = "/tmp/tinkxx-cli-XXXXXX";
        folder = ::mkdtemp(made);
        answer(
            "GET training_runs/" + run_id + "/checkpoints/external_weights/x/external_weights_urls",
            R"({"urls":{"a.txt":"http://files.test/a"},"expires":"2099-01-01T00:00:00Z"})");
        answer("GET /a",
               std::vector{testing::Reply{.headers = {{"etag", "\"1\""}}, .body = "hello"}});
    }
    ~Downloads() override { fs::remove_all(folder); }

    fs::path folder{};
    std::string const path{run_id + "/external_weights/x"};
    std::string const name{run_id + "_external_weights_x"};
};

TEST_F(Downloads, MakeAFolderNamedForThePath) {  // R-CLI-10, R-CLI-12, R-CLI-17
    auto const done = run({"checkpoint", "download", path, "-o", folder.string(), "--json"});
    ASSERT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_EQ(done.out,
              "{\n  \"checkpoint_path\": \"tinker://" + path + "\",\n  \"destination\": \"" +
                  (folder / name).string() +
                  "\",\n  \"file_size_bytes\": 5,\n  \"files\": [\n    {\n      \"name\": "
                  "\"a.txt\",\n      \"bytes\": 5\n    }\n  ]\n}\n");
    std::ifstream file{folder / name / "a.txt"};
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>{file}, {}), "hello");
}

TEST_F(Downloads, ReplaceOnlyIfTold) {  // R-CLI-10
    fs::create_directory(folder / name);
    std::ofstream{folder / name / "mine"} << "mine";
    std::vector<std::string> line{"checkpoint", "download", path, "-o", folder.string()};
    auto done = run(line);
    EXPECT_EQ(done.exit, Exit::usage);
    EXPECT_THAT(done.err, HasSubstr("--force"));
    EXPECT_TRUE(fs::exists(folder / name / "mine"));
    line.emplace_back("--force");
    done = run(line);
    EXPECT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_FALSE(fs::exists(folder / name / "mine"));
    EXPECT_EQ(done.out, (folder / name / "a.txt").string() + "\n");
}

TEST_F(Downloads, RemoveALinkAndNotWhatItLeadsTo) {
    fs::create_directory(folder / "precious");
    std::ofstream{folder / "precious" / "mine"} << "mine";
    fs::create_directory_symlink(folder / "precious", folder / name);
    auto const done = run({"checkpoint", "download", path, "-o", folder.string(), "--force"});
    EXPECT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_TRUE(fs::exists(folder / "precious" / "mine"));
}

TEST_F(Downloads, FetchATrace) {  // R-CLI-12
    std::string const session(36, 's');
    answer("GET sessions/" + session + "/trace_export",
           R"({"status":"ready","url":"http://files.test/a"})");
    EXPECT_EQ(run({"session", "export-trace", session, "--url-only"}).out, "http://files.test/a\n");
    auto const file = (folder / "trace").string();
    auto const done = run({"session", "export-trace", session, "-o", file, "--json"});
    EXPECT_EQ(done.exit, Exit::success) << done.err;
    EXPECT_EQ(done.out, "{\n  \"session_id\": \"" + session + "\",\n  \"destination\": \"" + file +
                            "\",\n  \"file_size_bytes\": 5\n}\n");
    EXPECT_EQ(sent.back().header("X-API-Key"), "");  // the key stays with the service
    EXPECT_EQ(run({"session", "export-trace", session, "-o", file}).exit, Exit::usage);
    EXPECT_EQ(run({"session", "export-trace", session, "-o", file, "--url-only"}).exit,
              Exit::usage);
    auto const lost = run({"session", "export-trace", session, "-o", "/nowhere/trace"});
    EXPECT_EQ(lost.exit, Exit::failure);
    EXPECT_THAT(lost.err, HasSubstr("/nowhere/trace cannot be written"));
}

}  // namespace
}  // namespace tinkxx::cli
