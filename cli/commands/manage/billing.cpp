#include "commands/manage/manage.hpp"
#include "dialog/csv.hpp"
#include "frame/dates.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"
#include "output/words.hpp"

#include <tinkxx/admin_client.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

struct UsageArguments {
    std::string start{};
    std::string end{};
    std::string csv{};
    std::string sessions_csv{};
};

struct StorageArguments {
    std::string project_id{};
    std::string csv{};
};

/// A value of a row. A cost that applies and is not known is shown, unlike one that does not apply.
struct Field {
    std::string name{};
    std::string text{};
    bool unknown{false};
};
using Fields = std::vector<Field>;

void add(Fields& to, std::string name, std::optional<std::string> const& text) {
    to.push_back({std::move(name), text.value_or(std::string{})});
}

void add_cost(Fields& to, std::string name, std::optional<double> const& cost, bool applies,
              int decimals) {
    to.push_back(
        {std::move(name), cost ? fixed(*cost, decimals) : std::string{}, applies && !cost});
}

constexpr int money_decimals = 4;

Fields fields_of(BillingUsageEvent const& event) {
    auto const& info = event.event_info;
    Fields fields;
    add(fields, "bucket_start", to_string(event.bucket_start));
    add(fields, "bucket_end", to_string(event.bucket_end));
    add(fields, "type", info.type);
    add(fields, "base_model", event.base_model);
    if (info.token_count) add(fields, "token_count", std::to_string(*info.token_count));
    if (info.cached) add(fields, "cached", *info.cached ? "true" : "false");
    if (info.count) add(fields, "count", std::to_string(*info.count));
    if (info.gigabyte_hours)
        add(fields, "gigabyte_hours", fixed(*info.gigabyte_hours, money_decimals));
    for (auto const& [name, json] : info.others) add(fields, name, json);
    add_cost(fields, "estimated_cost_usd", event.estimated_cost_usd, info.type != "checkpoint",
             money_decimals);
    add_cost(fields, "effective_rate_usd_per_million_tokens",
             event.effective_rate_usd_per_million_tokens, info.token_count.has_value(),
             money_decimals);
    add_cost(fields, "effective_rate_usd_per_gigabyte_month",
             event.effective_rate_usd_per_gigabyte_month, info.gigabyte_hours.has_value(),
             money_decimals);
    add(fields, "user_name", event.user_name);
    add(fields, "user_id", event.user_id);
    add(fields, "session_id", event.session_id);
    add(fields, "project_id", event.project_id);
    return fields;
}

Fields fields_of(CheckpointStorage const& one, CheckpointStorageUsage const& usage) {
    Fields fields;
    add(fields, "project_id", one.project_id);
    add(fields, "user_name", one.user_name);
    add(fields, "user_email", one.user_email);
    add(fields, "org_user_urn", one.org_user_urn);
    add(fields, "checkpoint_count", std::to_string(one.checkpoint_count));
    add(fields, "size_bytes", std::to_string(one.size_bytes));
    add(fields, "size_gigabytes", fixed(one.size_gigabytes, money_decimals));
    add_cost(fields, "effective_rate_usd_per_gigabyte_month",
             usage.effective_rate_usd_per_gigabyte_month, true, money_decimals);
    add_cost(fields, "estimated_monthly_cost_usd", one.estimated_monthly_cost_usd, true,
             money_decimals);
    return fields;
}

/// Rows with the columns of all of them, in the order in which they first occur.
class Rows {
public:
    void add(Fields const& fields) {
        for (auto const& field : fields) {
            if (column_of(field.name) == columns_.size()) columns_.push_back(field.name);
        }
        rows_.push_back(fields);
    }

    [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

    void print(Terminal& terminal) const {
        // Columns without any value only take room.
        std::vector<bool> used(columns_.size());
        for (auto const& row : rows_) {
            for (auto const& field : row) {
                if (!field.text.empty() || field.unknown) used[column_of(field.name)] = true;
            }
        }
        std::vector<Column> heads;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            constexpr std::size_t least = 6;
            if (used[i])
                heads.push_back({.title = columns_[i],
                                 .least = least,
                                 .spare = static_cast<int>(i > 4 ? i : 0)});
        }
        TextTable table{terminal, heads};
        for (auto const& row : rows_) {
            auto const cells = cells_of(row, "null");
            std::vector<std::string> shown;
            for (std::size_t i = 0; i < cells.size(); ++i) {
                if (used[i]) shown.push_back(cells[i]);
            }
            table.add(std::move(shown));
        }
        if (!rows_.empty()) table.finish();
    }

    void write_csv(std::string const& place, Context& context) const {
        CsvFile file{place, context};
        file.row(columns_);
        for (auto const& row : rows_) file.row(cells_of(row, ""));
        file.finish();
        if (place != "-") {
            context.terminal.note(counted(static_cast<std::int64_t>(rows_.size()), "row") +
                                  " written to " + place);
        }
    }

private:
    [[nodiscard]] std::size_t column_of(std::string const& name) const {
        std::size_t i = 0;
        while (i < columns_.size() && columns_[i] != name) ++i;
        return i;
    }
    [[nodiscard]] std::vector<std::string> cells_of(Fields const& row,
                                                    std::string const& unknown) const {
        std::vector<std::string> cells(columns_.size());
        for (auto const& field : row) {
            cells[column_of(field.name)] = field.unknown ? unknown : field.text;
        }
        return cells;
    }

    std::vector<std::string> columns_{};
    std::vector<Fields> rows_{};
};

void write_json(BillingUsage const& usage, Context& context) {
    JsonWriter json{context.out()};
    json.begin_object();
    json.begin_list("data");
    for (auto const& event : usage.data) {
        json.begin_object();
        json.member("bucket_start", event.bucket_start);
        json.member("bucket_end", event.bucket_end);
        json.member("base_model", event.base_model);
        json.member("user_id", event.user_id);
        json.member("user_name", event.user_name);
        json.member("session_id", event.session_id);
        json.member("project_id", event.project_id);
        json.member("estimated_cost_usd", event.estimated_cost_usd);
        json.member("effective_rate_usd_per_million_tokens",
                    event.effective_rate_usd_per_million_tokens);
        json.member("effective_rate_usd_per_gigabyte_month",
                    event.effective_rate_usd_per_gigabyte_month);
        json.begin_object("event_info");
        json.member("type", event.event_info.type);
        if (event.event_info.token_count) json.member("token_count", *event.event_info.token_count);
        if (event.event_info.cached) json.member("cached", *event.event_info.cached);
        if (event.event_info.count) json.member("count", *event.event_info.count);
        if (event.event_info.gigabyte_hours) {
            json.member("gigabyte_hours", *event.event_info.gigabyte_hours);
        }
        for (auto const& [name, text] : event.event_info.others) json.raw_member(name, text);
        json.end_object();
        json.end_object();
    }
    json.end_list();
    json.begin_object("sessions");
    for (auto const& [id, session] : usage.sessions) {
        json.begin_object(id);
        json.member("user_metadata", session.user_metadata);
        json.end_object();
    }
    json.end_object();
    json.member("cost_data_through", usage.cost_data_through);
    json.end_object();
}

void write_sessions_csv(BillingUsage const& usage, std::string const& place, Context& context) {
    Rows rows;
    for (auto const& [id, session] : usage.sessions) {
        Fields fields{{"session_id", id}};
        if (session.user_metadata) {
            for (auto const& [name, value] : *session.user_metadata)
                fields.push_back({name, value});
        }
        rows.add(fields);
    }
    rows.write_csv(place, context);
}

Exit show_usage(UsageArguments const& arguments, Context& context) {
    auto const start = date_of(arguments.start, "START");
    auto const end = date_of(arguments.end, "END");
    if (start.time >= end.time) throw BadUsage{"START is not before END"};
    if (arguments.csv == "-" && arguments.sessions_csv == "-") {
        throw BadUsage{"only one of --csv and --sessions-csv can go to stdout"};
    }
    AdminClient const admin{context.client_options()};
    auto pending = admin.get_billing_usage(start, end);
    auto const usage = pending.get();
    if (!arguments.sessions_csv.empty()) write_sessions_csv(usage, arguments.sessions_csv, context);
    if (arguments.csv.empty() && context.json()) {
        write_json(usage, context);
        return Exit::success;
    }
    Rows rows;
    for (auto const& event : usage.data) rows.add(fields_of(event));
    if (!arguments.csv.empty()) {
        rows.write_csv(arguments.csv, context);
        return Exit::success;
    }
    if (arguments.sessions_csv == "-") return Exit::success;
    context.terminal.note(rows.size() == 0
                              ? "no usage in this time"
                              : counted(static_cast<std::int64_t>(rows.size()), "event"));
    rows.print(context.terminal);
    return Exit::success;
}

Exit show_storage(StorageArguments const& arguments, Context& context) {
    AdminClient const admin{context.client_options()};
    auto pending = arguments.project_id.empty()
                       ? admin.get_current_checkpoint_storage_usage()
                       : admin.get_current_checkpoint_storage_usage(arguments.project_id);
    auto const usage = pending.get();
    if (context.json() && arguments.csv.empty()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("effective_rate_usd_per_gigabyte_month",
                    usage.effective_rate_usd_per_gigabyte_month);
        json.begin_list("data");
        for (auto const& one : usage.data) {
            json.begin_object();
            json.member("project_id", one.project_id);
            json.member("org_user_urn", one.org_user_urn);
            json.member("user_email", one.user_email);
            json.member("user_name", one.user_name);
            json.member("checkpoint_count", one.checkpoint_count);
            json.member("size_bytes", one.size_bytes);
            json.member("size_gigabytes", one.size_gigabytes);
            json.member("estimated_monthly_cost_usd", one.estimated_monthly_cost_usd);
            json.end_object();
        }
        json.end_list();
        json.end_object();
        return Exit::success;
    }
    Rows rows;
    for (auto const& one : usage.data) rows.add(fields_of(one, usage));
    if (!arguments.csv.empty()) {
        rows.write_csv(arguments.csv, context);
        return Exit::success;
    }
    context.terminal.note(rows.size() == 0 ? "no checkpoints are stored"
                                           : "Current checkpoint storage");
    rows.print(context.terminal);
    return Exit::success;
}

void add_usage_options(CLI::App& app, UsageArguments& arguments) {
    app.add_option("start", arguments.start, "From this hour")->type_name("START")->required();
    app.add_option("end", arguments.end, "Until before this hour")->type_name("END")->required();
    app.add_option("--csv", arguments.csv, "Write the events to a file as CSV; -: to stdout")
        ->type_name("FILE")
        ->check(not_empty());
    app.add_option("--sessions-csv", arguments.sessions_csv,
                   "Write the metadata of their sessions to a file as CSV; -: to stdout")
        ->type_name("FILE")
        ->check(not_empty());
}

void add_storage_options(CLI::App& app, StorageArguments& arguments) {
    app.add_option("--project-id", arguments.project_id, "Of this project only")
        ->type_name("PROJECT")
        ->check(not_empty());
    app.add_option("--csv", arguments.csv, "Write a file as CSV; -: to stdout")
        ->type_name("FILE")
        ->check(not_empty());
}

}  // namespace

Command billing_usage_command() {
    return {.path = "billing usage",
            .summary = "What your organization has used, hour by hour",
            .examples =
                "Examples:\n"
                "  tinkxx billing usage 2026-07-13 2026-07-14\n"
                "  tinkxx billing usage 2026-07-13T08:00:00Z 2026-07-13T10:00:00Z --csv -\n\n"
                "Whole hours in UTC, two weeks at most on the hosted service. Costs are "
                "gross estimates;\nnull where one is not known yet.\n"
                "With --json: {\"data\":[...],\"sessions\":{...},"
                "\"cost_data_through\":\"...\"}.",
            .takes = Takes::client,
            .declare = declare<UsageArguments>(&add_usage_options, &show_usage)};
}

Command billing_checkpoint_storage_command() {
    return {.path = "billing checkpoint-storage",
            .summary = "What checkpoints take now, and what that costs",
            .examples =
                "Examples:\n"
                "  tinkxx billing checkpoint-storage\n"
                "  tinkxx billing checkpoint-storage --project-id PROJECT --csv storage.csv\n\n"
                "With --json: {\"effective_rate_usd_per_gigabyte_month\":N,"
                "\"data\":[...]}.",
            .takes = Takes::client,
            .declare = declare<StorageArguments>(&add_storage_options, &show_storage)};
}

}  // namespace tinkxx::cli
