#include "commands/manage/manage.hpp"
#include "commands/manage/paging.hpp"
#include "commands/manage/references.hpp"
#include "commands/manage/rest_json.hpp"
#include "frame/nearest.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"

#include <tinkxx/rest_client.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tinkxx::cli {
namespace {

constexpr std::int64_t page_size = 100;

struct RunListArguments {
    std::int64_t limit{20};
    std::int64_t offset{0};
    std::string access_scope{"owned"};
    std::vector<std::string> columns{"id", "model", "lora", "updated", "status"};
};

struct RunInfoArguments {
    std::string run{};
    std::string access_scope{"owned"};
};

AccessScope scope_of(std::string const& name) {
    return name == "accessible" ? AccessScope::accessible : AccessScope::owned;
}

void add_scope(CLI::App& app, std::string& scope) {
    app.add_option("--access-scope", scope, "owned: your own; accessible: all that you may see")
        ->type_name("SCOPE")
        ->check(CLI::IsMember({"owned", "accessible"}))
        ->capture_default_str();
}

std::string lora_words(TrainingRun const& run) {
    if (!run.is_lora) return "No";
    return run.lora_rank ? "Rank " + std::to_string(*run.lora_rank) : "Yes";
}

std::string status_words(TrainingRun const& run) { return run.corrupted ? "Failed" : "OK"; }

/// A column that can be chosen.
struct RunColumn {
    std::string name{};
    Column column{};
    std::string (*cell)(TrainingRun const&, Timestamp::Time now){};
};

std::vector<RunColumn> all_columns() {
    using Run = TrainingRun const&;
    using Now = Timestamp::Time;
    return {
        {"id", {.title = "ID", .least = 12}, [](Run run, Now) { return run.training_run_id; }},
        {"model", {.title = "Model", .least = 10}, [](Run run, Now) { return run.base_model; }},
        {"owner",
         {.title = "Owner", .least = 6, .spare = 1},
         [](Run run, Now) { return run.model_owner; }},
        {"lora",
         {.title = "LoRA", .least = 7, .spare = 2},
         [](Run run, Now) { return lora_words(run); }},
        {"updated",
         {.title = "Updated", .least = 8},
         [](Run run, Now now) { return time_words(run.last_request_time, now); }},
        {"status", {.title = "Status", .least = 6}, [](Run run, Now) { return status_words(run); }},
        {"checkpoint",
         {.title = "Checkpoint", .least = 10, .spare = 1},
         [](Run run, Now) {
             return run.last_checkpoint ? run.last_checkpoint->checkpoint_id : std::string{};
         }},
        {"checkpoint_time",
         {.title = "Saved", .least = 8, .spare = 1},
         [](Run run, Now now) {
             return run.last_checkpoint ? time_words(run.last_checkpoint->time, now)
                                        : std::string{};
         }},
    };
}

std::vector<RunColumn> chosen_columns(std::vector<std::string> const& names) {
    auto const all = all_columns();
    std::vector<std::string> known;
    std::string list;
    for (auto const& one : all) {
        known.push_back(one.name);
        list += (list.empty() ? "" : ", ") + one.name;
    }
    std::vector<RunColumn> chosen;
    for (auto const& name : names) {
        auto const found = std::ranges::find(all, name, &RunColumn::name);
        if (found == all.end()) {
            auto const near = nearest(name, known);
            throw BadUsage{"there is no column '" + name + "'" +
                               (near.empty() ? "" : "; did you mean " + near + "?"),
                           "choose from " + list};
        }
        chosen.push_back(*found);
    }
    return chosen;
}

Exit list_runs(RunListArguments const& arguments, Context& context) {
    auto const columns = chosen_columns(arguments.columns);
    RestClient const rest{context.client_options()};
    Paging const paging{arguments.limit, arguments.offset, page_size};
    auto const fetch = [&](std::int64_t limit, std::int64_t offset) {
        auto pending = rest.list_training_runs(
            {.limit = limit, .offset = offset, .access_scope = scope_of(arguments.access_scope)});
        auto page = pending.get();
        return PartOfList<TrainingRun>{std::move(page.training_runs), page.cursor.total_count};
    };
    if (context.json()) {
        JsonWriter json{context.out()};
        bool begun = false;
        // Nothing is printed before the first answer, so that an error leaves stdout empty.
        auto const shown = for_each_page(paging, fetch, [&](auto const& page, Shown const&) {
            if (!begun) {
                json.begin_object();
                json.begin_list("runs");
            }
            begun = true;
            for (auto const& run : page.items) {
                json.begin_object();
                write_members(json, run);
                json.end_object();
            }
        });
        json.end_list();
        json.member("total", shown.total);
        json.member("shown", shown.shown);
        json.end_object();
        return Exit::success;
    }
    std::vector<Column> heads;
    for (auto const& one : columns) heads.push_back(one.column);
    TextTable table{context.terminal, heads};
    Progress progress{context, "runs", Progress::Unit::things};
    bool titled = false;
    auto const shown = for_each_page(paging, fetch, [&](auto const& page, Shown const& so_far) {
        if (!titled) {
            context.terminal.note(title_of(paging, so_far.shown, page.total, "training run"));
        }
        titled = true;
        for (auto const& run : page.items) {
            std::vector<std::string> cells;
            for (auto const& one : columns) cells.push_back(one.cell(run, context.now()));
            table.add(std::move(cells));
        }
        show_progress(progress, paging, so_far, context);
    });
    progress.clear();
    if (shown.shown != 0) table.finish();
    return Exit::success;
}

Exit show_run(RunInfoArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    auto pending =
        rest.get_training_run(run_of(rest, arguments.run), scope_of(arguments.access_scope));
    auto const run = pending.get();
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        write_members(json, run);
        json.end_object();
        return Exit::success;
    }
    auto const now = context.now();
    std::vector<std::pair<std::string, std::string>> lines{
        {"Property", "Value"},
        {"ID", run.training_run_id},
        {"Base model", run.base_model},
        {"Owner", run.model_owner},
        {"LoRA", lora_words(run)},
        {"Status", status_words(run)},
        {"Last request", time_words(run.last_request_time, now)},
    };
    auto const add = [&](std::string name, std::optional<Checkpoint> const& checkpoint) {
        if (!checkpoint) return;
        lines.emplace_back(std::move(name),
                           checkpoint->tinker_path + ", " + time_words(checkpoint->time, now));
    };
    add("Last checkpoint", run.last_checkpoint);
    add("Last sampler weights", run.last_sampler_checkpoint);
    if (run.user_metadata) {
        for (auto const& [name, value] : *run.user_metadata) lines.emplace_back(name, value);
    }
    print_properties(context.terminal, lines);
    return Exit::success;
}

void add_run_list_options(CLI::App& app, RunListArguments& arguments) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    app.add_option("--limit", arguments.limit, "At most so many; 0: all")
        ->type_name("N")
        ->transform(number_up_to(most))
        ->capture_default_str();
    app.add_option("--offset", arguments.offset, "Leave out so many at the beginning")
        ->type_name("N")
        ->transform(number_up_to(most))
        ->capture_default_str();
    add_scope(app, arguments.access_scope);
    app.add_option("-c,--columns", arguments.columns,
                   "Of the table: id, model, owner, lora, updated, status, checkpoint, "
                   "checkpoint_time; with commas in between")
        ->type_name("NAMES")
        ->delimiter(',')
        ->take_all();
}

void add_run_info_options(CLI::App& app, RunInfoArguments& arguments) {
    app.add_option("run", arguments.run, "The id of the run, or the path of one of its checkpoints")
        ->type_name("RUN")
        ->required();
    add_scope(app, arguments.access_scope);
}

}  // namespace

Command run_list_command() {
    return {.path = "run list",
            .summary = "Your training runs, the one used last first",
            .examples =
                "Examples:\n"
                "  tinkxx run list                            the last 20\n"
                "  tinkxx run list --limit 0 --json >runs.json     all of them\n"
                "  tinkxx run list -c id,model,checkpoint\n\n"
                "With --json: {\"runs\":[...],\"total\":N,\"shown\":N}, each run as of "
                "tinkxx run info.",
            .takes = Takes::client,
            .declare = declare<RunListArguments>(&add_run_list_options, &list_runs)};
}

Command run_info_command() {
    return {.path = "run info",
            .summary = "One training run",
            .examples = std::string{"Examples:\n"
                                    "  tinkxx run info @latest\n"
                                    "  tinkxx run info 5f3c --json\n\n"} +
                        id_words,
            .takes = Takes::client,
            .declare = declare<RunInfoArguments>(&add_run_info_options, &show_run)};
}

}  // namespace tinkxx::cli
