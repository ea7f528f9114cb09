#include "commands/checkpoints/checkpoints.hpp"
#include "commands/manage/references.hpp"
#include "dialog/progress.hpp"
#include "dialog/question.hpp"
#include "frame/dates.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"
#include "output/words.hpp"

#include <tinkxx/rest_client.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

/// Requests at once.
constexpr std::size_t at_once = 32;

struct DeleteArguments {
    std::vector<std::string> paths{};
    std::string run_id{};
    std::string type{};
    std::string before{};
    std::string after{};
    bool yes{false};
    bool dry_run{false};
};

/// What is to be deleted.
struct Doomed {
    std::string path{};
    std::optional<std::int64_t> bytes{};
};

struct FailedDelete {
    std::string path{};
    std::string error{};
};

std::optional<Timestamp::Time> limit_of(std::string const& text, char const* option) {
    if (text.empty()) return std::nullopt;
    return date_of(text, option).time;
}

/// As checkpoints are listed, from what paths and people call it.
std::string type_of(std::string const& name) {
    if (name == "weights") return "training";
    if (name == "sampler_weights") return "sampler";
    if (name == "external_weights") return "external";
    return name;
}

std::vector<Doomed> chosen_of_run(DeleteArguments const& arguments, RestClient const& rest) {
    auto const before = limit_of(arguments.before, "--before");
    auto const after = limit_of(arguments.after, "--after");
    auto pending = rest.list_checkpoints(run_of(rest, arguments.run_id));
    std::vector<Doomed> chosen;
    for (auto const& one : pending.get().checkpoints) {
        if (!arguments.type.empty() && one.checkpoint_type != type_of(arguments.type)) continue;
        if (before && one.time.time >= *before) continue;
        if (after && one.time.time <= *after) continue;
        chosen.push_back({one.tinker_path, one.size_bytes});
    }
    return chosen;
}

std::vector<Doomed> chosen_by_path(DeleteArguments const& arguments, RestClient const& rest) {
    std::vector<Doomed> chosen;
    for (auto const& path : arguments.paths) {
        if (path.find("@latest") == std::string::npos) (void)written_path(path);
    }
    std::map<std::string, std::map<std::string, std::optional<std::int64_t>>> sizes;
    for (auto const& given : arguments.paths) {
        auto path = checkpoint_of(rest, given);
        if (std::ranges::find(chosen, path, &Doomed::path) != chosen.end()) continue;
        auto const run = parse_checkpoint_path(path)->training_run_id;
        if (!sizes.contains(run)) {
            auto& of_run = sizes[run];
            auto pending = rest.list_checkpoints(run);
            // A run that is not there is what the deletion will report.
            if (auto const page = pending.result(); page) {
                for (auto const& one : page->checkpoints) of_run[one.tinker_path] = one.size_bytes;
            }
        }
        auto const& of_run = sizes[run];
        auto const found = of_run.find(path);
        chosen.push_back({path, found == of_run.end() ? std::nullopt : found->second});
    }
    return chosen;
}

void print_doomed(std::vector<Doomed> const& doomed, Context& context) {
    std::int64_t total = 0;
    bool known = true;
    for (auto const& [path, bytes] : doomed) {
        total += bytes.value_or(0);
        known = known && bytes;
        context.terminal.note("  " + path + "  " + size_words(bytes));
    }
    context.terminal.note(counted(static_cast<std::int64_t>(doomed.size()), "checkpoint") +
                          (known ? ", " + size_words(total) : std::string{}));
}

std::vector<FailedDelete> delete_all(std::vector<Doomed> const& doomed, RestClient const& rest,
                                     Context& context) {
    std::vector<FailedDelete> failed;
    std::deque<std::pair<std::string, Future<void>>> pending;
    Progress progress{context, "deleting", Progress::Unit::things};
    std::int64_t done = 0;
    auto const take_one = [&] {
        auto const result = pending.front().second.result();
        if (!result) failed.push_back({pending.front().first, result.error().what()});
        pending.pop_front();
        progress.show(++done, static_cast<std::int64_t>(doomed.size()));
    };
    for (auto const& [path, bytes] : doomed) {
        if (pending.size() == at_once) take_one();
        pending.emplace_back(path, rest.delete_checkpoint(path));
    }
    while (!pending.empty()) take_one();
    return failed;
}

void write_report(std::vector<Doomed> const& doomed, std::vector<FailedDelete> const& failed,
                  bool dry_run, Context& context) {
    JsonWriter json{context.out()};
    json.begin_object();
    if (dry_run) {
        json.member("dry_run", true);
        json.begin_list("would_delete");
        for (auto const& one : doomed) json.value(one.path);
        json.end_list();
    }
    json.member("deleted_count", dry_run ? 0 : doomed.size() - failed.size());
    json.begin_list("failed");
    for (auto const& [path, error] : failed) {
        json.begin_object();
        json.member("tinker_path", path);
        json.member("error", error);
        json.end_object();
    }
    json.end_list();
    json.end_object();
}

void check(DeleteArguments const& arguments) {
    bool const filtered =
        !arguments.type.empty() || !arguments.before.empty() || !arguments.after.empty();
    if (!arguments.paths.empty() && !arguments.run_id.empty()) {
        throw BadUsage{"paths and --run-id exclude each other"};
    }
    if (arguments.paths.empty() && arguments.run_id.empty()) {
        throw BadUsage{
            filtered ? "--type, --before and --after need --run-id" : "nothing to delete is named",
            "name paths, or a run with --run-id"};
    }
    if (!arguments.paths.empty() && filtered) {
        throw BadUsage{"--type, --before and --after need --run-id"};
    }
    (void)limit_of(arguments.before, "--before");
    (void)limit_of(arguments.after, "--after");
}

Exit delete_checkpoints(DeleteArguments const& arguments, Context& context) {
    check(arguments);
    RestClient const rest{context.client_options()};
    auto const doomed =
        arguments.paths.empty() ? chosen_of_run(arguments, rest) : chosen_by_path(arguments, rest);
    if (arguments.dry_run || doomed.empty()) {
        print_doomed(doomed, context);
        if (context.json()) write_report(doomed, {}, arguments.dry_run, context);
        return Exit::success;
    }
    if (!arguments.yes) {
        print_doomed(doomed, context);
        context.terminal.warn("what is deleted cannot be restored");
        if (!ask("Delete?", "--yes", context)) {
            context.terminal.note("cancelled");
            return Exit::success;
        }
    }
    auto const failed = delete_all(doomed, rest, context);
    if (context.json()) {
        write_report(doomed, failed, false, context);
    } else {
        context.terminal.note(
            counted(static_cast<std::int64_t>(doomed.size() - failed.size()), "checkpoint") +
            " deleted");
    }
    if (failed.empty()) return Exit::success;
    for (auto const& [path, error] : failed) {
        context.terminal.complain(split_message(path + " is not deleted", error));
    }
    return Exit::failure;
}

void add_delete_options(CLI::App& app, DeleteArguments& arguments) {
    app.add_option("paths", arguments.paths, "Paths of checkpoints")->type_name("PATH");
    app.add_option("--run-id", arguments.run_id, "The checkpoints of this run instead")
        ->type_name("RUN")
        ->check(not_empty());
    app.add_option("--type", arguments.type,
                   "Only those of a type: training, sampler or external (or as paths have it)")
        ->type_name("TYPE")
        ->check(CLI::IsMember(
            {"training", "sampler", "external", "weights", "sampler_weights", "external_weights"}));
    app.add_option("--before", arguments.before, "Only those that were saved before")
        ->type_name("DATE")
        ->check(not_empty());
    app.add_option("--after", arguments.after, "Only those that were saved after")
        ->type_name("DATE")
        ->check(not_empty());
    app.add_flag("-y,--yes", arguments.yes, "Do not ask");
    app.add_flag("--dry-run", arguments.dry_run, "Say what would be deleted, and delete nothing");
}

}  // namespace

Command checkpoint_delete_command() {
    return {
        .path = "checkpoint delete",
        .summary = "Delete checkpoints for good",
        .examples =
            std::string{"Examples:\n"
                        "  tinkxx checkpoint delete tinker://RUN/weights/step-10\n"
                        "  tinkxx checkpoint delete --run-id RUN --type training --before "
                        "2026-01-31 --dry-run\n"
                        "  tinkxx checkpoint delete --run-id RUN --yes --json\n\n"
                        "Dates are ISO 8601; one without a time of day is midnight in UTC.\n"
                        "With --json: {\"deleted_count\":N,\"failed\":[{\"tinker_path\":\"...\","
                        "\"error\":\"...\"}]}.\n"
                        "Exit code 1 if any could not be deleted.\n\n"} +
            id_words,
        .takes = Takes::client,
        .declare = declare<DeleteArguments>(&add_delete_options, &delete_checkpoints)};
}

}  // namespace tinkxx::cli
