#include "unit/cli/commands_fixture.hpp"

#include "frame/nearest.hpp"

#include <gmock/gmock.h>

namespace tinkxx::cli {
namespace {

using support::json_reply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Frame : public CommandsTest {};

TEST_F(Frame, PrintsHelpWithoutAskingAnybody) {  // R-CLI-09
    for (std::vector<std::string> const& line : {std::vector<std::string>{"--help"},
                                                 {"-h"},
                                                 {"run", "--help"},
                                                 {"run", "list", "--help"}}) {
        auto const done = run(line);
        EXPECT_EQ(done.exit, Exit::success);
        EXPECT_THAT(done.out, HasSubstr("Usage:"));
        EXPECT_THAT(done.err, IsEmpty());
    }
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(Frame, ListsEveryCommandInTheHelp) {  // R-CLI-01
    auto const help = run({"--help"}).out;
    for (auto const* const command :
         {"serve", "home check", "tokenize", "run list", "run info", "checkpoint list",
          "checkpoint info", "checkpoint publish", "checkpoint unpublish", "checkpoint set-ttl",
          "checkpoint delete", "checkpoint download", "session list", "session info",
          "session export-trace", "billing usage", "billing checkpoint-storage", "model list",
          "version"}) {
        EXPECT_THAT(help, HasSubstr("  " + std::string{command} + " "));
    }
}

TEST_F(Frame, TeachesEachCommandByExamples) {
    auto const program = all_commands();
    for (auto const* const command : program.commands_of("")) {
        EXPECT_THAT(command->examples, Not(IsEmpty())) << command->path;
        EXPECT_THAT(command->summary, Not(HasSubstr("\n"))) << command->path;
        EXPECT_LT(command->summary.size(), 70U) << command->path;
        Globals globals;
        EXPECT_THAT(Program::declared(*command, globals).options->help(),
                    HasSubstr("tinkxx " + command->path));
    }
}

TEST_F(Frame, SuggestsTheCommandThatWasMeant) {
    for (auto const& [line, meant] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"serv"}, "did you mean serve?"},
             {{"sreve"}, "did you mean serve?"},
             {{"checkpoints", "list"}, "did you mean checkpoint?"},
             {{"run", "lst"}, "did you mean run list?"},
             {{"list"}, "there is run list, checkpoint list, session list, model list"},
             {{"nonsense", "--help"}, "there is no command nonsense"},
             {{"run"}, "which command of tinkxx run?"},
             {{}, "no command is given"}}) {
        auto const done = run(line);
        EXPECT_EQ(done.exit, Exit::usage);
        EXPECT_THAT(done.out, IsEmpty());
        EXPECT_THAT(done.err, HasSubstr(meant));
        EXPECT_THAT(done.err, HasSubstr("--help"));
    }
}

TEST_F(Frame, SuggestsTheOptionThatWasMeant) {
    auto done = run({"run", "list", "--limt", "5"});
    EXPECT_EQ(done.exit, Exit::usage);
    EXPECT_THAT(done.err, HasSubstr("there is no option --limt; did you mean --limit?"));
    EXPECT_THAT(done.err, HasSubstr("try: tinkxx run list --help"));
    done = run({"run", "info", "x", "--jsn"});
    EXPECT_THAT(done.err, HasSubstr("did you mean --json?"));
    // A value is no option, whatever it looks like.
    done = run({"session", "list", "--name", "--jsn"});
    EXPECT_THAT(done.err, Not(HasSubstr("there is no option")));
}

TEST_F(Frame, TakesSharedOptionsOnBothSidesOfTheCommand) {  // R-CLI-01
    answer("GET get_server_capabilities", R"({"supported_models":[]})");
    auto const expected = "{\n  \"models\": []\n}\n";
    EXPECT_EQ(run({"--format", "json", "model", "list"}).out, expected);
    EXPECT_EQ(run({"-f", "json", "model", "list"}).out, expected);
    EXPECT_EQ(run({"--json", "model", "list"}).out, expected);
    EXPECT_EQ(run({"model", "list", "--format=json"}).out, expected);
    EXPECT_EQ(run({"model", "list"}).out, "");
    auto const refused = run({"--timeout", "3", "version"});
    EXPECT_EQ(refused.exit, Exit::usage);
    EXPECT_THAT(refused.err, HasSubstr("tinkxx version takes no --timeout"));
    EXPECT_EQ(run({"model", "list", "--format", "xml"}).exit, Exit::usage);
    EXPECT_EQ(run({"model", "list", "--base-url", ""}).exit, Exit::usage);
}

TEST_F(Frame, PutsStatusesIntoWordsAndCodes) {  // R-CLI-08, R-CLI-19
    struct Case {
        int status;
        std::string headline;
        Exit exit;
    };
    for (auto const& [status, headline, exit] :
         {Case{400, "invalid request", Exit::failure}, Case{401, "authentication", Exit::failure},
          Case{402, "billing issue", Exit::retry}, Case{403, "permission", Exit::failure},
          Case{404, "not found", Exit::failure}, Case{422, "invalid data", Exit::failure},
          Case{418, "the server answered with status 418", Exit::failure}}) {
        answer("GET training_runs/" + std::string(36, 'r'), R"({"detail":"because"})", status);
        auto const done = run({"run", "info", std::string(36, 'r'), "--timeout", "1"});
        EXPECT_THAT(done.err, HasSubstr("tinkxx: " + headline)) << status;
        EXPECT_THAT(done.err, HasSubstr("  try: ")) << done.err;
        EXPECT_THAT(done.out, IsEmpty());
        EXPECT_EQ(done.exit, exit) << status << done.err;
    }
}

TEST_F(Frame, SaysThatAPageIsNoAnswer) {
    answer("GET get_server_capabilities", {{.headers = {{"content-type", "text/html"}},
                                            .body = "<html><h1>It works!</h1></html>"}});
    auto const done = run({"model", "list"});
    EXPECT_EQ(done.exit, Exit::failure);
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_THAT(done.err, HasSubstr("  try: "));
}

TEST(Nearest, CountsSwapsAndBeginnings) {
    std::vector<std::string> const known{"serve", "session", "sample", "set-ttl"};
    EXPECT_EQ(nearest("sevre", known), "serve");
    EXPECT_EQ(nearest("ses", known), "session");
    EXPECT_EQ(nearest("smaple", known), "sample");
    EXPECT_EQ(nearest("xyz", known), "");
    EXPECT_EQ(nearest("", known), "");
}

}  // namespace
}  // namespace tinkxx::cli
