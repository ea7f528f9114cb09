#include "commands/server/home.hpp"

#include "commands/server/default_home.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/local/home.hpp>
#include <tinkxx/log.hpp>

#include <filesystem>
#include <ostream>
#include <string>

namespace tinkxx::cli {
namespace {

constexpr char const* about_home_check =
    "Looks whether the home of a server is whole: its marker, its database, and the checksums of\n"
    "all checkpoints. Without --repair or --remove it changes nothing. No server may run on it.";

constexpr char const* home_check_examples =
    "Examples:\n"
    "  tinkxx home check                      the home that tinkxx serve uses by default\n"
    "  tinkxx home check --home runs --json   another one, as JSON on stdout\n"
    "  tinkxx home check --repair             adopts checkpoints that the database does not know,\n"
    "                                         puts rows aside that cannot be read, and saves what\n"
    "                                         can be read of a damaged database; deletes "
    "nothing\n\n"
    "Exit codes: 0 nothing is wrong, or all of it is repaired; 1 something is wrong, or it could\n"
    "not be checked; 2 the command line is wrong.";

void add_home_options(CLI::App& app, HomeArguments& arguments) {
    app.add_option("--home", arguments.home,
                   "The folder; by default that of tinkxx serve (TINKXX_HOME)")
        ->type_name("FOLDER")
        ->check(not_empty());
    app.add_flag("--repair", arguments.repair, "Repairs what can be repaired; deletes nothing");
    app.add_flag("--remove", arguments.remove,
                 "Removes what the database does not know and what cannot be adopted");
    app.add_flag("--json", arguments.json, "One line of JSON on stdout");
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t mebi = std::uint64_t{1} << 20U;
    if (bytes < mebi) return std::to_string((bytes + 1023) / 1024) + " KiB";
    return std::to_string((bytes + mebi - 1) / mebi) + " MiB";
}

void print_json(local::HomeReport const& report, std::ostream& out) {
    out << "{\"home\":" << json_text(report.home.string()) << ",\"id\":" << json_text(report.id)
        << ",\"schema\":" << report.schema << ",\"sessions\":" << report.sessions
        << ",\"runs\":" << report.runs << ",\"checkpoints\":" << report.checkpoints
        << ",\"checkpoint_bytes\":" << report.checkpoint_bytes
        << ",\"good\":" << (report.good() ? "true" : "false") << ",\"findings\":[";
    bool first = true;
    for (auto const& [what, problem, done] : report.findings) {
        if (!first) out << ',';
        first = false;
        out << "{\"what\":" << json_text(what) << ",\"problem\":" << json_text(problem)
            << ",\"done\":" << json_text(done) << '}';
    }
    out << "]}\n";
}

void print(local::HomeReport const& report, Terminal& terminal) {
    auto& out = terminal.out();
    out << "home         " << report.home.string() << '\n';
    if (!report.id.empty()) out << "id           " << report.id << '\n';
    out << "schema       " << report.schema << '\n';
    // Of a home that was only looked at from outside, no more is known.
    if (!report.id.empty()) {
        out << "checkpoints  " << report.checkpoints << ", " << size_text(report.checkpoint_bytes)
            << '\n'
            << "sessions     " << report.sessions << ", with " << report.runs << " training runs\n";
    }
    for (auto const& [what, problem, done] : report.findings) {
        out << (done.empty() ? terminal.red("problem") : terminal.yellow("repaired")) << "  "
            << one_line(what) << "\n    " << one_line(problem) << '\n';
        if (!done.empty()) out << "    done: " << one_line(done) << '\n';
    }
    if (report.findings.empty()) out << "everything is as a server left it\n";
}

}  // namespace

Exit check_home(HomeArguments const& arguments, Context& context) try {
    auto& terminal = context.terminal;
    auto const folder = arguments.home.empty() ? default_home(context.environment)
                                               : std::filesystem::path{arguments.home};
    local::HomeCheckOptions options{.repair = arguments.repair, .remove = arguments.remove};
    bool const watched = terminal.screen().err;
    if (watched) {
        options.progress = [&terminal](std::string_view what, std::size_t done, std::size_t of) {
            terminal.err() << "\rchecking " << done + 1 << " of " << of << ": " << one_line(what)
                           << "\033[K" << std::flush;
        };
    }
    auto const report = local::check_home(folder, options);
    if (watched) terminal.err() << "\r\033[K" << std::flush;
    if (arguments.json) {
        print_json(report, terminal.out());
    } else {
        print(report, terminal);
    }
    return report.good() ? Exit::success : Exit::failure;
} catch (Error const& error) {
    auto trouble = split_message("the home cannot be checked", error.what());
    if (trouble.way_out.empty()) trouble.way_out = "tinkxx home check --help";
    context.terminal.complain(trouble);
    return Exit::failure;
}

Command home_check_command() {
    return {.path = "home check",
            .summary = "Whether what a server keeps is whole, and how to repair it",
            .about = about_home_check,
            .examples = home_check_examples,
            .declare = declare<HomeArguments>(&add_home_options, &check_home)};
}

}  // namespace tinkxx::cli
