#include "commands/about/about.hpp"
#include "frame/nearest.hpp"
#include "frame/troubles.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

/// What is about more than one command.
struct Topic {
    std::string_view name{};
    std::string_view summary{};
    std::string_view text{};
};

constexpr Topic topics[] = {
    {"exit-codes", "What the exit code says",
     "0    done\n"
     "1    it failed, and stderr says why\n"
     "2    the command line is wrong; nothing was done\n"
     "75   it failed, and the same command may succeed later (EX_TEMPFAIL)\n"
     "130  ended by Ctrl-C\n"
     "141  in a shell: stdout was closed, as by | head\n"},
    {"ids", "How runs, sessions and checkpoints are named",
     "Where a command wants an id, its first characters will do, as long as one thing alone\n"
     "begins so; @latest is the newest one. A checkpoint is named by its path:\n\n"
     "  tinker://RUN/weights/NAME            to train on\n"
     "  tinker://RUN/sampler_weights/NAME    to sample from\n"
     "  tinker://RUN/external_weights/NAME   in the format of others\n"
     "  RUN/weights/NAME                     without tinker://, and with a short RUN\n"
     "  RUN/@latest                          the newest one of a run\n"
     "  @latest                              the newest one of all runs\n"},
    {"environment", "Variables that commands read",
     "TINKER_API_KEY          the key; before it --api-key, after it the stored one\n"
     "TINKER_BASE_URL         the address of the server\n"
     "TINKER_CREDENTIAL_CMD   a command that prints a key\n"
     "TINKXX_HOME             where tinkxx serve keeps everything\n"
     "TINKXX_PROXY, NO_PROXY  a proxy, and what is reached without it\n"
     "HF_HOME, HF_HUB_CACHE   where tokenizers are looked for\n"
     "NO_COLOR, COLUMNS       no colour; the width of tables\n\n"
     "A variable that is empty counts as not set.\n"},
    {"output", "Tables, JSON, and what goes where",
     "Results go to stdout, everything else to stderr. Tables fit the terminal; elsewhere nothing\n"
     "is cut. With --json the result is JSON with an indentation of 2, whose members do not\n"
     "change; an error leaves stdout empty. The help of each command says what it has.\n"},
};

struct HelpArguments {
    std::vector<std::string> words{};
};

std::string list_of_topics() {
    std::string text = "Topics:\n";
    constexpr std::size_t column = 16;
    for (auto const& [name, summary, content] : topics) {
        text += "  " + std::string{name} + std::string(column - name.size(), ' ') +
                std::string{summary} + '\n';
    }
    return text + "\ntinkxx help TOPIC, or tinkxx help COMMAND\n";
}

Exit help(HelpArguments const& arguments, Program const& program, Context& context) {
    if (arguments.words.empty()) {
        context.out() << program.help() << '\n' << list_of_topics();
        return Exit::success;
    }
    std::string path;
    for (auto const& word : arguments.words) path += (path.empty() ? "" : " ") + word;
    auto const* const topic = std::ranges::find(topics, path, &Topic::name);
    if (topic != std::end(topics)) {
        context.out() << topic->text;
        return Exit::success;
    }
    if (auto const* const command = program.find(path)) {
        Globals globals;
        context.out() << Program::declared(*command, globals).options->help();
        return Exit::success;
    }
    if (program.is_group(path)) {
        context.out() << program.help_of_group(path);
        return Exit::success;
    }
    std::vector<std::string> known;
    for (auto const& one : topics) known.emplace_back(one.name);
    for (auto const* const command : program.commands_of("")) known.push_back(command->path);
    auto const near = nearest(path, known);
    throw BadUsage{
        "there is no help on " + path + (near.empty() ? "" : "; did you mean " + near + "?"),
        "tinkxx help"};
}

}  // namespace

Command help_command(std::function<Program()> all) {
    return {
        .path = "help",
        .summary = "Help on a command, or on a topic",
        .about = "Help on a command, or on a topic.\n\n" + list_of_topics(),
        .examples = "Examples:\n  tinkxx help ids\n  tinkxx help checkpoint delete",
        .declare = [all = std::move(all)](CLI::App& app) -> Action {
            auto arguments = std::make_shared<HelpArguments>();
            app.add_option("topic", arguments->words, "A topic or a command")->type_name("TOPIC");
            return [arguments, all](Context& context) { return help(*arguments, all(), context); };
        }};
}

}  // namespace tinkxx::cli
