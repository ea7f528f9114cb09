#include "commands/server/serve.hpp"

#include "commands/server/default_home.hpp"
#include "commands/server/end_signals.hpp"
#include "commands/server/limits.hpp"
#include "frame/values.hpp"

#include <tinkxx/local/listen.hpp>
#include <tinkxx/local/server.hpp>
#include <tinkxx/local/tiny_model.hpp>
#include <tinkxx/tinkxx.hpp>
#include <tinkxx/version.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tinkxx::cli {
namespace {

/// More than any machine has; a typing error otherwise.
constexpr std::uint64_t most_threads = 4096;
constexpr std::uint64_t most_mebibytes = std::uint64_t{1} << 30U;

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

void add_places(CLI::App& app, ServeArguments& arguments) {
    app.add_option("--model", arguments.models,
                   "A folder with config.json and *.safetensors, as Hugging Face has them; clients "
                   "call it by the folder's name, or by NAME. May be repeated")
        ->type_name("[NAME=]FOLDER")
        ->check(not_empty())
        ->take_all()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--home", arguments.home,
                   "Where checkpoints and results are kept; by default tinkxx in the user's folder "
                   "for data")
        ->type_name("FOLDER")
        ->check(not_empty());
    app.add_option("--threads", arguments.threads, "Threads that compute; 0 is one for each CPU")
        ->type_name("N")
        ->transform(number_up_to(most_threads))
        ->capture_default_str();
    app.add_option("--cache-mib", arguments.cache_mib,
                   "Memory for keys and values of each model, in MiB")
        ->type_name("N")
        ->transform(number_up_to(most_mebibytes))
        ->check(not_zero())
        ->capture_default_str();
}

void add_access(CLI::App& app, ServeArguments& arguments) {
    app.add_option("--host", arguments.host, "The address to listen on; 0.0.0.0 is all of them")
        ->type_name("ADDRESS")
        ->check(not_empty())
        ->capture_default_str();
    app.add_option("--port", arguments.port, "The port to listen on; 0 takes a free one")
        ->type_name("PORT")
        ->transform(number_up_to(std::numeric_limits<std::uint16_t>::max()))
        ->capture_default_str();
    app.add_option("--api-key", arguments.api_key,
                   "The key that clients must send. The official SDK wants it to begin with tml-")
        ->type_name("KEY")
        ->check(not_empty())
        ->envname("TINKXX_API_KEY");
    app.add_option("--allow-host", arguments.allowed_hosts,
                   "A name by which this machine may be called, if there is no key; addresses and "
                   "localhost always may. May be repeated")
        ->type_name("NAME")
        ->check(not_empty())
        ->take_all();
}

void add_serve_options(CLI::App& app, ServeArguments& arguments) {
    add_places(app, arguments);
    add_access(app, arguments);
    app.add_option("--chaos", arguments.chaos,
                   "Faults to make, such as 429:0.05,500:0.01,delay:50ms..2s,drop:0.01")
        ->type_name("SPEC")
        ->check(not_empty());
    app.add_option("--seed", arguments.seed, "Of the faults: the same seed makes the same ones")
        ->type_name("N")
        ->transform(number_up_to(std::numeric_limits<std::uint64_t>::max()))
        ->capture_default_str();
    app.add_flag("--json", arguments.json, "Print the address as one line of JSON on stdout");
    app.add_flag("-v,--verbose", arguments.verbose, "One line on stderr for each request");
}

namespace fs = std::filesystem;
using namespace std::chrono_literals;

[[noreturn]] void refuse(std::string_view field, std::string message) {
    Error{
        {.kind = ErrorKind::validation, .message = std::move(message), .field = std::string{field}}}
        .raise();
}

/// From the first signal to the end of the process, whatever happens. A little less than the ten
/// seconds that are promised, which is what Docker and others wait before they kill.
constexpr auto time_to_end = 9500ms;
/// For what runs to end. Each of the two takes up to a second more if the loop is stuck, and the
/// destructors take the rest.
constexpr auto time_to_finish = 7s;
/// For the last answers to leave.
constexpr auto time_to_disconnect = 1s;

constexpr std::string_view model_way_out =
    "name a folder with config.json and *.safetensors of a Llama, Qwen 2 or Qwen 3 model";

local::ModelSource model_of(std::string const& argument) {
    auto const equals = argument.find('=');
    local::ModelSource model;
    model.folder = equals == std::string::npos ? argument : argument.substr(equals + 1);
    if (equals != std::string::npos) model.name = argument.substr(0, equals);
    // The last part of a path that ends in a slash is empty.
    if (!model.folder.has_filename()) model.folder = model.folder.parent_path();
    if (model.folder.empty()) refuse("models", "serve: --model names no folder");
    // The server looks for weights while it already serves; without any there is nothing to wait
    // for.
    std::error_code failed;
    bool weights = false;
    for (auto const& entry : fs::directory_iterator{model.folder, failed}) {
        weights = weights || entry.path().extension() == ".safetensors";
    }
    if (failed) {
        refuse("models", "serve: the folder of the model cannot be read: " + model.folder.string() +
                             " (" + failed.message() + ")");
    }
    if (!weights) {
        refuse("models", "serve: there is no *.safetensors file in " + model.folder.string());
    }
    return model;
}

local::ServerOptions options_of(ServeArguments const& arguments, Environment const& environment) {
    local::ServerOptions options;
    options.models.push_back(local::tiny_model());
    for (auto const& one : arguments.models) options.models.push_back(model_of(one));
    options.home = arguments.home.empty() ? default_home(environment) : fs::path{arguments.home};
    options.api_key = arguments.api_key;
    auto const unsendable = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
    if (std::ranges::any_of(arguments.api_key, unsendable)) {
        refuse("api_key",
               "serve: the key holds a blank or another character that clients cannot send");
    }
    options.hosts = arguments.allowed_hosts;
    options.hosts.push_back(arguments.host);
    options.threads = arguments.threads;
    options.cache_bytes = arguments.cache_mib << 20U;
    options.chaos = arguments.chaos;
    options.chaos_seed = arguments.seed;
    return options;
}

/// Each line with its time, as operators want it.
LogSink log_to(Terminal& terminal) {
    return [&terminal](LogLevel level, std::string_view line) {
        auto const now = std::chrono::system_clock::now();
        auto const seconds = std::chrono::system_clock::to_time_t(now);
        std::tm parts{};
        ::gmtime_r(&seconds, &parts);
        std::string time(32, '\0');
        time.resize(std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
        terminal.err() << (time + " " + std::string{to_string(level)} + " " + one_line(line) + "\n")
                       << std::flush;
    };
}

/// An option of the command line, the field of the library's options that it sets, and what to do
/// about a value that does not work, where the library does not say.
struct Flag {
    std::string_view field{};
    std::string_view name{};
    std::string_view way_out{};
};

Flag flag_of(std::string_view field) {
    for (Flag const& flag :
         {Flag{"port", "--port", "choose another one"}, Flag{"host", "--host", "use 127.0.0.1"},
          Flag{"home", "--home", "name another folder, or move what is in this one elsewhere"},
          Flag{"models", "--model", model_way_out}, Flag{"folder", "--model", model_way_out},
          Flag{"chaos", "--chaos", "429:0.05,drop:0.01 is an example"},
          Flag{"threads", "--threads", "0 takes one for each CPU"},
          Flag{"api_key", "--api-key", "choose one of letters, digits and dashes"}}) {
        if (field.starts_with(flag.field)) return flag;
    }
    return {.way_out = "tinkxx serve --help"};
}

/// From "operation: cause; way out", as all messages of the library are.
Trouble trouble_of(Error const& error) {
    std::string const text = error.what();
    auto const cut = text.find("; ");
    auto const flag = flag_of(error.field());
    Trouble trouble{
        .headline = "the server cannot start",
        .reason = text.substr(0, cut),
        .way_out = cut == std::string::npos ? std::string{flag.way_out} : text.substr(cut + 2)};
    // Files or memory that the system does not give are no fault of the folder that needed them.
    if (auto way_out = way_out_of(trouble.reason); !way_out.empty()) {
        trouble.way_out = std::move(way_out);
        return trouble;
    }
    if (!flag.name.empty() && text.find(flag.name) == std::string::npos) {
        trouble.way_out += " (" + std::string{flag.name} + ")";
    }
    return trouble;
}

void announce(ServeArguments const& arguments, local::ServerOptions const& options,
              local::Listening const& at, Terminal& terminal) {
    std::string names;
    std::string list;
    for (auto const& model : options.models) {
        auto const name = model.name.empty() ? model.folder.filename().string() : model.name;
        names += (names.empty() ? "" : ", ") + name;
        list += (list.empty() ? "" : ",") + json_text(name);
    }
    if (arguments.json) {
        terminal.out() << "{\"url\":" << json_text(at.url()) << ",\"port\":" << at.port()
                       << ",\"home\":" << json_text(options.home.string()) << ",\"models\":["
                       << list << "],\"pid\":" << ::getpid()
                       << ",\"version\":" << json_text(TINKXX_VERSION) << "}\n"
                       << std::flush;
    } else {
        auto const key = arguments.api_key.empty() ? "tml-local" : "...";
        terminal.err() << "tinkxx " << TINKXX_VERSION << " serves " << terminal.bold(names)
                       << " at " << terminal.bold(at.url()) << '\n'
                       << "  keeps  what it has in " << options.home.string() << '\n'
                       << "  use    export TINKER_BASE_URL=" << at.url()
                       << " TINKER_API_KEY=" << key << '\n'
                       << "  end    with Ctrl-C\n";
    }
    if (!at.loopback_only() && arguments.api_key.empty()) {
        terminal.warn("whoever can reach " + arguments.host +
                      " can use this server; give it a key with --api-key");
    }
    if (!arguments.api_key.empty() && !arguments.api_key.starts_with("tml-")) {
        terminal.warn("the official SDK sends only keys that begin with tml-");
    }
    if (!arguments.chaos.empty()) terminal.warn("faults are on: " + arguments.chaos);
}

}  // namespace

Exit serve(ServeArguments const& arguments, Context& context) try {
    auto& terminal = context.terminal;
    return_large_memory();
    // First and last of all: no other thread exists yet, and what follows is destroyed before it.
    EndSignals signals{time_to_end};
    // A log reader that goes away must not end the server.
    ::signal(SIGPIPE, SIG_IGN);
    prepare_limits(arguments.threads);

    auto const log = log_to(terminal);
    auto options = options_of(arguments, context.environment);
    options.log = [log, least = arguments.verbose ? LogLevel::info : LogLevel::warning](
                      LogLevel level, std::string_view line) {
        if (level >= least) log(level, line);
    };
    Runtime const runtime{{.log = log}};
    local::Server const server{options, runtime};
    auto const listening = local::listen(
        server,
        {.host = arguments.host, .port = arguments.port, .log_requests = arguments.verbose});
    signals.serving();
    announce(arguments, options, listening, terminal);

    signals.wait();
    if (!arguments.json) terminal.err() << "ending: what runs is finished and kept\n" << std::flush;
    server.stop(time_to_finish);
    listening.stop(time_to_disconnect);
    return Exit::success;
} catch (Error const& error) {
    context.terminal.complain(trouble_of(error));
    return Exit::failure;
} catch (std::system_error const& error) {
    context.terminal.complain(trouble_of(error));
    return Exit::failure;
} catch (std::bad_alloc const&) {
    context.terminal.complain(trouble_of_memory());
    return Exit::failure;
}

Command serve_command() {
    return {.path = "serve",
            .summary = "A Tinker server on this machine: no key, no network, no GPU",
            .about = about_serve,
            .examples = serve_examples,
            .declare = declare<ServeArguments>(&add_serve_options, &serve)};
}

}  // namespace tinkxx::cli
