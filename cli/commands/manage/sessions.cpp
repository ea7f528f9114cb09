#include "commands/manage/manage.hpp"
#include "commands/manage/references.hpp"
#include "dialog/progress.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"
#include "output/words.hpp"

#include <tinkxx/http_client.hpp>
#include <tinkxx/rest_client.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

namespace fs = std::filesystem;

struct SessionListArguments {
    std::int64_t limit{20};
    std::string name{};
    std::string access_scope{"owned"};
};

struct SessionInfoArguments {
    std::string session{};
};

struct ExportTraceArguments {
    std::string session{};
    std::string output{};
    bool url_only{false};
    bool force{false};
};

std::string state_words(std::optional<SessionStatus> const& status) {
    if (!status) return {};
    return status->reason ? status->type + ", " + *status->reason : status->type;
}

void write_members(JsonWriter& json, SessionSummary const& session) {
    json.member("session_id", session.session_id);
    json.member("owner", session.owner);
    json.member("project_id", session.project_id);
    json.member("created_at", session.created_at);
    json.member("checkpoints_count", session.checkpoints_count);
    json.member("checkpoint_storage_bytes", session.checkpoint_storage_bytes);
    json.member("display_name", session.display_name);
    json.member("user_metadata", session.user_metadata);
    if (!session.status) {
        json.raw_member("status", "null");
        return;
    }
    auto const& status = *session.status;
    json.begin_object("status");
    json.member("type", status.type);
    json.member("reason", status.reason);
    json.member("detail", status.detail);
    json.member("category", status.category);
    json.member("message", status.message);
    json.end_object();
}

Listing<SessionSummary> found(SessionListArguments const& arguments, RestClient const& rest) {
    constexpr std::int64_t most_at_once = 200;
    SessionSearch search;
    search.limit = arguments.limit == 0 ? most_at_once : std::min(arguments.limit, most_at_once);
    if (!arguments.name.empty()) search.display_name = arguments.name;
    if (arguments.access_scope == "accessible") search.owner = AccessibleSessions{};
    return rest.found_sessions(search);
}

Exit list_sessions(SessionListArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    auto sessions = found(arguments, rest);
    std::int64_t shown = 0;
    auto at = sessions.begin();  // the first answer, before anything is printed
    auto const each = [&](auto const& use) {
        while (at != sessions.end()) {
            use(*at);
            if (++shown == arguments.limit) break;
            ++at;
        }
    };
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.begin_list("sessions");
        each([&](SessionSummary const& session) {
            json.begin_object();
            write_members(json, session);
            json.end_object();
        });
        json.end_list();
        json.member("shown", shown);
        json.end_object();
        return Exit::success;
    }
    TextTable table{context.terminal,
                    {{.title = "Session ID", .least = 12},
                     {.title = "Created", .least = 8},
                     {.title = "Status", .least = 8},
                     {.title = "Name", .least = 6, .spare = 1},
                     {.title = "Checkpoints", .right = true, .least = 5, .spare = 2}}};
    each([&](SessionSummary const& session) {
        table.add({session.session_id, time_words(session.created_at, context.now()),
                   state_words(session.status), session.display_name.value_or(std::string{}),
                   std::to_string(session.checkpoints_count)});
    });
    if (shown != 0) table.finish();
    context.terminal.note(counted(shown, "session"));
    return Exit::success;
}

Exit show_session(SessionInfoArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    auto const id = session_of(rest, arguments.session);
    auto pending = rest.get_session(id);
    auto const session = pending.get();
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("session_id", id);
        json.member("display_name", session.display_name);
        json.member("training_run_ids", session.training_run_ids);
        json.member("sampler_ids", session.sampler_ids);
        json.member("user_metadata", session.user_metadata);
        json.end_object();
        return Exit::success;
    }
    std::vector<std::pair<std::string, std::string>> lines{{"Property", "Value"}, {"ID", id}};
    if (session.display_name) lines.emplace_back("Name", *session.display_name);
    for (auto const& run : session.training_run_ids) lines.emplace_back("Training run", run);
    for (auto const& sampler : session.sampler_ids) lines.emplace_back("Sampler", sampler);
    if (session.user_metadata) {
        for (auto const& [name, value] : *session.user_metadata) lines.emplace_back(name, value);
    }
    print_properties(context.terminal, lines);
    return Exit::success;
}

[[noreturn]] void cannot_write(fs::path const& file) {
    Error{{.kind = ErrorKind::validation,
           .message = "session export-trace: " + file.string() +
                      " cannot be written; name another file with --output"}}
        .raise();
}

/// Fetches a file to its place, under another name until it is whole.
std::int64_t fetch(std::string const& url, fs::path const& target, Context& context) {
    fs::path partial = target;
    partial += ".partial";
    std::ofstream file{partial, std::ios::binary | std::ios::trunc};
    if (!file) cannot_write(target);
    Progress progress{context, "downloading", Progress::Unit::bytes};
    std::int64_t bytes = 0;
    context.globals.timeout = 0;
    auto options = context.client_options();
    HttpClient const http{options};
    auto pending = http.stream({.path = url}, [&](std::span<char const> data) {
        file.write(data.data(), static_cast<std::streamsize>(data.size()));
        bytes += static_cast<std::int64_t>(data.size());
        progress.show(bytes, std::nullopt);
    });
    auto const done = pending.result();
    file.close();
    std::error_code failed;
    if (!done || !file) fs::remove(partial, failed);
    if (!done) done.error().raise();
    if (!file) cannot_write(target);
    fs::rename(partial, target, failed);
    if (failed) cannot_write(target);
    return bytes;
}

Exit export_trace(ExportTraceArguments const& arguments, Context& context) {
    auto options = context.client_options();
    options.deadline = std::chrono::milliseconds{0};  // the server takes the time that it takes
    RestClient const rest{options};
    auto const id = session_of(rest, arguments.session);
    auto target = fs::path{arguments.output.empty() ? id + ".trace" : arguments.output};
    std::error_code ignored;
    if (!arguments.url_only && !arguments.force && fs::exists(target, ignored)) {
        throw BadUsage{target.string() + " is there already",
                       "--force replaces it, and --output names another file"};
    }
    auto pending = rest.export_session_trace(id);
    auto const url = pending.get();
    std::int64_t bytes = 0;
    if (!arguments.url_only) bytes = fetch(url, target, context);
    if (!context.json()) {
        context.out() << (arguments.url_only ? url : target.string()) << '\n';
        return Exit::success;
    }
    JsonWriter json{context.out()};
    json.begin_object();
    json.member("session_id", id);
    if (arguments.url_only) {
        json.member("url", url);
    } else {
        json.member("destination", target.string());
        json.member("file_size_bytes", bytes);
    }
    json.end_object();
    return Exit::success;
}

void add_session_list_options(CLI::App& app, SessionListArguments& arguments) {
    app.add_option("--limit", arguments.limit, "At most so many; 0: all")
        ->type_name("N")
        ->transform(number_up_to(std::numeric_limits<std::int64_t>::max()))
        ->capture_default_str();
    app.add_option("--name", arguments.name, "Only those with these words in their name")
        ->type_name("WORDS")
        ->check(not_empty());
    app.add_option("--access-scope", arguments.access_scope,
                   "owned: your own; accessible: all that you may see")
        ->type_name("SCOPE")
        ->check(CLI::IsMember({"owned", "accessible"}))
        ->capture_default_str();
}

void add_session_info_options(CLI::App& app, SessionInfoArguments& arguments) {
    app.add_option("session", arguments.session, "The id of the session")
        ->type_name("SESSION")
        ->required();
}

void add_export_options(CLI::App& app, ExportTraceArguments& arguments) {
    app.add_option("session", arguments.session, "The id of the session")
        ->type_name("SESSION")
        ->required();
    auto* const output =
        app.add_option("-o,--output", arguments.output, "The file; by default SESSION.trace")
            ->type_name("FILE")
            ->check(not_empty());
    app.add_flag("--url-only", arguments.url_only,
                 "Print where it can be fetched, for about an hour, and fetch nothing")
        ->excludes(output);
    app.add_flag("--force", arguments.force, "Replace a file that is there already");
}

}  // namespace

Command session_list_command() {
    return {.path = "session list",
            .summary = "Your sessions, newest first",
            .examples =
                "Examples:\n"
                "  tinkxx session list\n"
                "  tinkxx session list --name 'nightly eval' --json\n\n"
                "With --json: {\"sessions\":[...],\"shown\":N}.",
            .takes = Takes::client,
            .declare = declare<SessionListArguments>(&add_session_list_options, &list_sessions)};
}

Command session_info_command() {
    return {.path = "session info",
            .summary = "What was made in a session",
            .examples = std::string{"Example:\n  tinkxx session info @latest\n\n"} + id_words,
            .takes = Takes::client,
            .declare = declare<SessionInfoArguments>(&add_session_info_options, &show_session)};
}

Command session_export_trace_command() {
    return {.path = "session export-trace",
            .summary = "Fetch the trace of a session",
            .examples = std::string{"Examples:\n"
                                    "  tinkxx session export-trace @latest -o trace.bin\n"
                                    "  curl -o trace.bin \"$(tinkxx session export-trace SESSION "
                                    "--url-only)\"\n\n"
                                    "With --json: {\"session_id\":\"...\",\"destination\":\"...\","
                                    "\"file_size_bytes\":N}, or url\nwith --url-only.\n\n"} +
                        id_words,
            .takes = Takes::client,
            .declare = declare<ExportTraceArguments>(&add_export_options, &export_trace)};
}

}  // namespace tinkxx::cli
