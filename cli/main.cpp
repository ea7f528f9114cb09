// The command line of tinkxx. Help and version start no thread and open no connection.
#include "commands/home.hpp"
#include "commands/serve.hpp"
#include "commands/text_options.hpp"
#include "commands/version.hpp"
#include "output/terminal.hpp"

#include <tinkxx/version.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

namespace tinkxx::cli {
namespace {

constexpr char const* about =
    "Trains and samples language models with the Tinker API, on this machine or elsewhere.\n\n"
    "  tinkxx serve                 a Tinker server on this machine: no key, no network, no GPU\n"
    "  tinkxx tokenize              the tokens of a text, for any model\n"
    "  tinkxx detokenize            the text of tokens\n"
    "  tinkxx render                a conversation as the tokens that a model learns from\n"
    "  tinkxx home check            whether what a server keeps is whole, and how to repair it\n"
    "  tinkxx COMMAND --help        what a command does, with examples";

constexpr char const* codes =
    "Exit codes: 0 done; 1 it failed, and stderr says why; 2 the command line is wrong.\n"
    "Data goes to stdout, all else to stderr. NO_COLOR turns colour off.";

constexpr char const* about_serve =
    "Serves the Tinker API from this machine: trains LoRA adapters and samples, on its CPU.\n\n"
    "It listens on 127.0.0.1 and takes any key until it is told otherwise. What it keeps survives\n"
    "its end: checkpoints, runs, and results that nobody has fetched yet. Ctrl-C ends it.";

constexpr char const* serve_examples =
    "Examples:\n"
    "  tinkxx serve                                  the built-in model tinkxx/tiny, port 8080\n"
    "  tinkxx serve --model ~/models/Qwen3-0.6B      and a model from Hugging Face\n"
    "  tinkxx serve --port 0 --json                  a free port, told in JSON on stdout\n"
    "  tinkxx serve --host 0.0.0.0 --api-key tml-x   for other machines, with a key\n"
    "  tinkxx serve --chaos 429:0.05,drop:0.01 --seed 7   with faults, to test a client\n\n"
    "Then, in the shell of any Tinker client:\n"
    "  export TINKER_BASE_URL=http://127.0.0.1:8080 TINKER_API_KEY=tml-local\n\n"
    "Environment: TINKXX_HOME is the default of --home, TINKXX_API_KEY of --api-key; an empty one\n"
    "counts as not set.\n\n"
    "SIGTERM or SIGINT (Ctrl-C) ends it within ten seconds: steps that run are finished, and "
    "samples\n"
    "that are not done are computed after the next start. A second signal ends it at once. "
    "Nothing\n"
    "that it acknowledged is lost either way.\n\n"
    "Exit codes: 0 ended by SIGTERM or SIGINT, be it during its start; 1 it could not start, or "
    "had\n"
    "to be cut off because something did not stop in ten seconds; 2 the command line is wrong;\n"
    "143 or 130 (in a shell) ended by a second SIGTERM or SIGINT.";

/// More than any machine has; a typing error otherwise.
constexpr std::uint64_t most_threads = 4096;
constexpr std::uint64_t most_mebibytes = std::uint64_t{1} << 30U;

/// An empty value is mostly a variable of a script that was never set. Taken as it stands, it would
/// mean a free port, or a server without a key.
CLI::Validator not_empty() {
    return {[](std::string& text) {
                return text.empty() ? std::string{"the value is empty; leave the option out for its "
                                                  "default"}
                                    : std::string{};
            },
            ""};
}

CLI::Validator not_zero() {
    return {[](std::string& text) {
                return text == "0" ? std::string{"it must be 1 or more"} : std::string{};
            },
            ""};
}

/// Digits only, in base ten: CLI11 reads an empty text as 0, and 010 as 8. To be used with
/// `transform`, since it takes leading zeros away.
CLI::Validator number_up_to(std::uint64_t most) {
    return {[most](std::string& text) {
                std::uint64_t value = 0;
                auto const* const end = text.data() + text.size();
                auto const [rest, error] = std::from_chars(text.data(), end, value);
                if (error == std::errc{} && rest == end && value <= most) {
                    text = std::to_string(value);
                    return std::string{};
                }
                return "'" + text + "' is not a number from 0 to " + std::to_string(most);
            },
            ""};
}

void add_serve(CLI::App& app, ServeArguments& arguments) {
    auto* const serve = app.add_subcommand("serve", about_serve);
    serve->footer(serve_examples);
    serve
        ->add_option(
            "--model", arguments.models,
            "A folder with config.json and *.safetensors, as Hugging Face has them; clients "
            "call it by the folder's name, or by NAME. May be repeated")
        ->type_name("[NAME=]FOLDER")
        ->check(not_empty())
        ->take_all()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    serve->add_option("--host", arguments.host, "The address to listen on; 0.0.0.0 is all of them")
        ->type_name("ADDRESS")
        ->check(not_empty())
        ->capture_default_str();
    serve->add_option("--port", arguments.port, "The port to listen on; 0 takes a free one")
        ->type_name("PORT")
        ->transform(number_up_to(std::numeric_limits<std::uint16_t>::max()))
        ->capture_default_str();
    serve
        ->add_option(
            "--home", arguments.home,
            "Where checkpoints and results are kept; by default tinkxx in the user's folder "
            "for data")
        ->type_name("FOLDER")
        ->check(not_empty());
    serve
        ->add_option("--api-key", arguments.api_key,
                     "The key that clients must send. The official SDK wants it to begin with tml-")
        ->type_name("KEY")
        ->check(not_empty())
        ->envname("TINKXX_API_KEY");
    serve
        ->add_option(
            "--allow-host", arguments.allowed_hosts,
            "A name by which this machine may be called, if there is no key; addresses and "
            "localhost always may. May be repeated")
        ->type_name("NAME")
        ->check(not_empty())
        ->take_all();
    serve->add_option("--threads", arguments.threads, "Threads that compute; 0 is one for each CPU")
        ->type_name("N")
        ->transform(number_up_to(most_threads))
        ->capture_default_str();
    serve
        ->add_option("--cache-mib", arguments.cache_mib,
                     "Memory for keys and values of each model, in MiB")
        ->type_name("N")
        ->transform(number_up_to(most_mebibytes))
        ->check(not_zero())
        ->capture_default_str();
    serve
        ->add_option("--chaos", arguments.chaos,
                     "Faults to make, such as 429:0.05,500:0.01,delay:50ms..2s,drop:0.01")
        ->type_name("SPEC")
        ->check(not_empty());
    serve->add_option("--seed", arguments.seed, "Of the faults: the same seed makes the same ones")
        ->type_name("N")
        ->transform(number_up_to(std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str();
    serve->add_flag("--json", arguments.json, "Tell in one line of JSON on stdout where it serves");
    serve->add_flag("-v,--verbose", arguments.verbose, "One line on stderr for each request");
}

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

CLI::App* add_home(CLI::App& app, HomeArguments& arguments) {
    auto* const home = app.add_subcommand("home", "Looks after the folder that a server keeps");
    home->require_subcommand(1);
    auto* const check = home->add_subcommand("check", about_home_check);
    check->footer(home_check_examples);
    check
        ->add_option("--home", arguments.home,
                     "The folder; by default that of tinkxx serve (TINKXX_HOME)")
        ->type_name("FOLDER")
        ->check(not_empty());
    check->add_flag("--repair", arguments.repair, "Repairs what can be repaired; deletes nothing");
    check->add_flag("--remove", arguments.remove,
                    "Removes what the database does not know and what cannot be adopted");
    check->add_flag("--json", arguments.json, "One line of JSON on stdout");
    return check;
}

Exit run(int argc, char** argv, Terminal& terminal) {
    CLI::App app{about, "tinkxx"};
    app.footer(codes);
    app.set_version_flag("--version", std::string{"tinkxx "} + TINKXX_VERSION,
                         "The version of tinkxx");
    app.require_subcommand(1);

    ServeArguments serve_arguments;
    add_serve(app, serve_arguments);
    HomeArguments home_arguments;
    auto const* const home_command = add_home(app, home_arguments);
    TextCommands const text_commands{app};
    VersionArguments version_arguments;
    auto* const version_command = app.add_subcommand("version", "Prints the version of tinkxx");
    version_command->add_flag("--json", version_arguments.json, "As JSON");

    try {
        app.parse(argc, argv);
    } catch (CLI::Success const& asked) {  // help, or the version
        app.exit(asked, terminal.out(), terminal.err());
        return Exit::success;
    } catch (CLI::ParseError const& error) {
        auto const chosen = app.get_subcommands();
        auto command = chosen.empty() ? std::string{} : " " + chosen.front()->get_name();
        if (!chosen.empty() && !chosen.front()->get_subcommands().empty()) {
            command += " " + chosen.front()->get_subcommands().front()->get_name();
        }
        // CLI11 says no more than that a command is missing.
        bool const unknown = chosen.empty() && argc > 1 && *argv[1] != '-';
        terminal.complain({.headline = "the command line is wrong",
                           .reason = unknown ? std::string{"there is no command "} + argv[1]
                                             : std::string{error.what()},
                           .way_out = "tinkxx" + command + " --help"});
        return Exit::usage;
    }
    if (version_command->parsed()) return version(version_arguments, terminal);
    if (home_command->parsed()) return check_home(home_arguments, terminal);
    if (text_commands.parsed()) return text_commands.run(terminal);
    return serve(serve_arguments, terminal);
}

}  // namespace
}  // namespace tinkxx::cli

int main(int argc, char** argv) {
    auto terminal = tinkxx::cli::Terminal::standard();
    try {
        return static_cast<int>(tinkxx::cli::run(argc, argv, terminal));
    } catch (std::exception const& error) {
        terminal.complain({.headline = "something went wrong", .reason = error.what()});
        return static_cast<int>(tinkxx::cli::Exit::failure);
    }
}
