#include "commands/checkpoints/checkpoints.hpp"
#include "commands/manage/paging.hpp"
#include "commands/manage/references.hpp"
#include "commands/manage/rest_json.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"

#include <tinkxx/rest_client.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

constexpr std::int64_t page_size = 1000;

struct CheckpointListArguments {
    std::string run_id{};
    std::int64_t limit{20};
    std::int64_t offset{0};
};

struct CheckpointInfoArguments {
    std::string path{};
};

/// The page of a list that the server gives as a whole.
PartOfList<Checkpoint> part_of(std::vector<Checkpoint> const& all, std::int64_t limit,
                               std::int64_t offset) {
    auto const count = static_cast<std::int64_t>(all.size());
    auto const first = std::min(offset, count);
    auto const last = std::min(count, first + std::min(limit, count));
    return {.items = {all.begin() + first, all.begin() + last}, .total = count};
}

template <class Fetch>
void write_json(CheckpointListArguments const& arguments, std::string const& run,
                Paging const& paging, Fetch const& fetch, Context& context) {
    JsonWriter json{context.out()};
    bool begun = false;
    auto const shown = for_each_page(paging, fetch, [&](auto const& page, Shown const&) {
        if (!begun) {
            json.begin_object();
            if (!arguments.run_id.empty()) json.member("run_id", run);
            json.begin_list("checkpoints");
        }
        begun = true;
        for (auto const& one : page.items) {
            json.begin_object();
            write_members(json, one);
            json.end_object();
        }
    });
    json.end_list();
    json.member("total", shown.total ? *shown.total : shown.shown);
    json.member("shown", shown.shown);
    json.end_object();
}

template <class Fetch>
void print_table(Paging const& paging, Fetch const& fetch, Context& context) {
    TextTable table{context.terminal,
                    {{.title = "Checkpoint ID", .least = 12},
                     {.title = "Type", .least = 8, .spare = 1},
                     {.title = "Size", .right = true, .least = 8},
                     {.title = "Public", .least = 6, .spare = 2},
                     {.title = "Created", .least = 8},
                     {.title = "Expires", .least = 7, .spare = 1},
                     {.title = "Path", .least = 24}}};
    Progress progress{context, "checkpoints", Progress::Unit::things};
    bool titled = false;
    auto const shown = for_each_page(paging, fetch, [&](auto const& page, Shown const& so_far) {
        if (!titled)
            context.terminal.note(title_of(paging, so_far.shown, page.total, "checkpoint"));
        titled = true;
        auto const now = context.now();
        for (auto const& one : page.items) {
            table.add({one.checkpoint_id, one.checkpoint_type, size_words(one.size_bytes),
                       yes_or_no(one.is_public), time_words(one.time, now),
                       expiry_words(one.expires_at, now), one.tinker_path});
        }
        show_progress(progress, paging, so_far, context);
    });
    progress.clear();
    if (shown.shown != 0) table.finish();
}

Exit list_checkpoints(CheckpointListArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    Paging const paging{arguments.limit, arguments.offset, page_size};
    std::string run;
    std::vector<Checkpoint> of_run;
    if (!arguments.run_id.empty()) {
        run = run_of(rest, arguments.run_id);
        auto pending = rest.list_checkpoints(run);
        of_run = pending.get().checkpoints;
    }
    auto const fetch = [&](std::int64_t limit, std::int64_t offset) {
        if (!run.empty()) return part_of(of_run, limit, offset);
        auto pending = rest.list_user_checkpoints({.limit = limit, .offset = offset});
        auto page = pending.get();
        PartOfList<Checkpoint> part{.items = std::move(page.checkpoints)};
        if (page.cursor) part.total = page.cursor->total_count;
        return part;
    };
    if (context.json()) {
        write_json(arguments, run, paging, fetch, context);
    } else {
        print_table(paging, fetch, context);
    }
    return Exit::success;
}

void print_info(Checkpoint const& checkpoint, WeightsInfo const& info, Context& context) {
    auto const now = context.now();
    std::vector<std::pair<std::string, std::string>> lines{
        {"Property", "Value"},
        {"Checkpoint ID", checkpoint.checkpoint_id},
        {"Type", checkpoint.checkpoint_type},
        {"Path", checkpoint.tinker_path},
        {"Size", size_words(checkpoint.size_bytes)},
        {"Public", yes_or_no(checkpoint.is_public)},
        {"Created", time_words(checkpoint.time, now)},
        {"Expires", expiry_words(checkpoint.expires_at, now)},
        {"Base model", info.base_model},
        {"LoRA", yes_or_no(info.is_lora)},
    };
    if (info.lora_rank) lines.emplace_back("LoRA rank", std::to_string(*info.lora_rank));
    auto const flag = [&](char const* name, std::optional<bool> const& value) {
        if (value) lines.emplace_back(name, yes_or_no(*value));
    };
    flag("Trains MLP", info.train_mlp);
    flag("Trains attention", info.train_attn);
    flag("Trains unembedding", info.train_unembed);
    if (checkpoint.user_metadata) {
        for (auto const& [name, value] : *checkpoint.user_metadata) lines.emplace_back(name, value);
    }
    print_properties(context.terminal, lines);
}

Exit show_checkpoint(CheckpointInfoArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    auto const path = checkpoint_of(rest, arguments.path);
    auto const run = parse_checkpoint_path(path)->training_run_id;
    auto listed = rest.list_checkpoints(run);
    auto asked = rest.get_weights_info(path);
    auto const page = listed.get();
    auto const found = std::ranges::find(page.checkpoints, path, &Checkpoint::tinker_path);
    if (found == page.checkpoints.end()) {
        Error{{.kind = ErrorKind::status,
               .message = "checkpoint info: the run has no checkpoint " + path +
                          "; tinkxx checkpoint list --run-id " + run + " shows those it has",
               .http_status = 404}}
            .raise();
    }
    auto const info = asked.get();
    if (!context.json()) {
        print_info(*found, info, context);
        return Exit::success;
    }
    JsonWriter json{context.out()};
    json.begin_object();
    write_members(json, *found);
    json.member("base_model", info.base_model);
    json.member("is_lora", info.is_lora);
    json.member("lora_rank", info.lora_rank);
    json.member("train_mlp", info.train_mlp);
    json.member("train_attn", info.train_attn);
    json.member("train_unembed", info.train_unembed);
    json.end_object();
    return Exit::success;
}

void add_list_options(CLI::App& app, CheckpointListArguments& arguments) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    app.add_option("--run-id", arguments.run_id, "Only the checkpoints of this run")
        ->type_name("RUN")
        ->check(not_empty());
    app.add_option("--limit", arguments.limit, "At most so many; 0: all")
        ->type_name("N")
        ->transform(number_up_to(most))
        ->capture_default_str();
    app.add_option("--offset", arguments.offset, "Leave out so many at the beginning")
        ->type_name("N")
        ->transform(number_up_to(most))
        ->capture_default_str();
}

void add_info_options(CLI::App& app, CheckpointInfoArguments& arguments) {
    app.add_option("path", arguments.path, "The path of the checkpoint")
        ->type_name("PATH")
        ->required();
}

}  // namespace

Command checkpoint_list_command() {
    return {.path = "checkpoint list",
            .summary = "Your checkpoints, newest first",
            .examples =
                "Examples:\n"
                "  tinkxx checkpoint list\n"
                "  tinkxx checkpoint list --run-id @latest\n"
                "  tinkxx checkpoint list --limit 0 --json | jq -r "
                "'.checkpoints[].tinker_path'\n\n"
                "With --json: {\"run_id\":\"...\",\"checkpoints\":[...],\"total\":N,"
                "\"shown\":N};\nrun_id is there with --run-id.",
            .takes = Takes::client,
            .declare = declare<CheckpointListArguments>(&add_list_options, &list_checkpoints)};
}

Command checkpoint_info_command() {
    return {.path = "checkpoint info",
            .summary = "One checkpoint, and what a model must be like to load it",
            .examples = std::string{"Examples:\n"
                                    "  tinkxx checkpoint info @latest\n"
                                    "  tinkxx checkpoint info 5f3c/weights/step-10 --json\n\n"} +
                        id_words,
            .takes = Takes::client,
            .declare = declare<CheckpointInfoArguments>(&add_info_options, &show_checkpoint)};
}

}  // namespace tinkxx::cli
