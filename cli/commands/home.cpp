#include "commands/home.hpp"

#include "commands/default_home.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/local/home.hpp>
#include <tinkxx/log.hpp>

#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <string>

namespace tinkxx::cli {
namespace {

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

Exit check_home(HomeArguments const& arguments, Terminal& terminal) try {
    auto const folder =
        arguments.home.empty() ? default_home() : std::filesystem::path{arguments.home};
    local::HomeCheckOptions options{.repair = arguments.repair, .remove = arguments.remove};
    bool const watched = ::isatty(STDERR_FILENO) == 1;
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
    std::string const text = error.what();
    auto const cut = text.find("; ");
    terminal.complain(
        {.headline = "the home cannot be checked",
         .reason = text.substr(0, cut),
         .way_out = cut == std::string::npos ? "tinkxx home check --help" : text.substr(cut + 2)});
    return Exit::failure;
}

}  // namespace tinkxx::cli
