#include "commands/serve.hpp"

#include "commands/default_home.hpp"

#include "commands/end_signals.hpp"
#include "commands/limits.hpp"

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
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tinkxx::cli {
namespace {

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

local::ServerOptions options_of(ServeArguments const& arguments) {
    local::ServerOptions options;
    options.models.push_back(local::tiny_model());
    for (auto const& one : arguments.models) options.models.push_back(model_of(one));
    options.home = arguments.home.empty() ? default_home() : fs::path{arguments.home};
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

Exit serve(ServeArguments const& arguments, Terminal& terminal) try {
    return_large_memory();
    // First and last of all: no other thread exists yet, and what follows is destroyed before it.
    EndSignals signals{time_to_end};
    // A log reader that goes away must not end the server.
    ::signal(SIGPIPE, SIG_IGN);
    prepare_limits(arguments.threads);

    auto const log = log_to(terminal);
    auto options = options_of(arguments);
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
    terminal.complain(trouble_of(error));
    return Exit::failure;
} catch (std::system_error const& error) {
    terminal.complain(trouble_of(error));
    return Exit::failure;
} catch (std::bad_alloc const&) {
    terminal.complain(trouble_of_memory());
    return Exit::failure;
}

}  // namespace tinkxx::cli
