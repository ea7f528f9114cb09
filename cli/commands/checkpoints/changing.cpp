#include "commands/checkpoints/checkpoints.hpp"
#include "commands/manage/references.hpp"
#include "frame/troubles.hpp"
#include "output/json_writer.hpp"
#include "output/words.hpp"

#include <tinkxx/rest_client.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::cli {
namespace {

struct PublishArguments {
    std::string path{};
};

struct TtlArguments {
    std::string path{};
    std::string ttl{};
    bool remove{false};
};

void add_publish_options(CLI::App& app, PublishArguments& arguments) {
    app.add_option("path", arguments.path, "The path of the checkpoint")
        ->type_name("PATH")
        ->required();
}

Exit set_public(PublishArguments const& arguments, Context& context, bool on) {
    RestClient const rest{context.client_options()};
    auto const path = checkpoint_of(rest, arguments.path);
    auto pending = on ? rest.publish_checkpoint(path) : rest.unpublish_checkpoint(path);
    pending.get();
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("checkpoint_path", path);
        json.member("public", on);
        json.end_object();
    } else {
        context.terminal.note(
            path + (on ? " can now be loaded by everybody" : " can no longer be loaded by others"));
    }
    return Exit::success;
}

Exit publish(PublishArguments const& arguments, Context& context) {
    return set_public(arguments, context, true);
}

Exit unpublish(PublishArguments const& arguments, Context& context) {
    return set_public(arguments, context, false);
}

/// "3600", "90m", "24h", "7d".
std::chrono::seconds ttl_of(std::string const& text) {
    std::int64_t number = 0;
    auto const* const end = text.data() + text.size();
    auto const [rest, failed] = std::from_chars(text.data(), end, number);
    std::int64_t factor = 0;
    std::string_view const unit{rest, end};
    if (unit.empty() || unit == "s") factor = 1;
    if (unit == "m") factor = 60;
    if (unit == "h") factor = 3600;
    if (unit == "d") factor = 86'400;
    constexpr std::int64_t longest = 10 * std::int64_t{366} * 86'400;
    if (failed != std::errc{} || factor == 0 || number < 1 || number > longest / factor) {
        throw BadUsage{"'" + text + "' is not a time to live",
                       "give seconds, or a number with m, h or d, such as 24h; the hosted service "
                       "takes 1 hour to 10 years"};
    }
    return std::chrono::seconds{number * factor};
}

Exit set_ttl(TtlArguments const& arguments, Context& context) {
    std::optional<std::chrono::seconds> ttl;
    if (!arguments.remove) ttl = ttl_of(arguments.ttl);
    RestClient const rest{context.client_options()};
    auto const path = checkpoint_of(rest, arguments.path);
    auto pending = rest.set_checkpoint_ttl(path, ttl);
    pending.get();
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("checkpoint_path", path);
        json.member("ttl_seconds", ttl ? std::optional{ttl->count()} : std::nullopt);
        json.end_object();
    } else if (ttl) {
        Timestamp const end{.time = context.now() + *ttl};
        context.terminal.note(path + " expires " + time_words(end, context.now()));
    } else {
        context.terminal.note(path + " never expires");
    }
    return Exit::success;
}

void add_ttl_options(CLI::App& app, TtlArguments& arguments) {
    app.add_option("path", arguments.path, "The path of the checkpoint")
        ->type_name("PATH")
        ->required();
    auto* const how = app.add_option_group("time");
    how->add_option("--ttl", arguments.ttl,
                    "Delete it after so long: seconds, or a number with m, h or d. The hosted "
                    "service takes 1 hour to 10 years")
        ->type_name("TIME");
    how->add_flag("--remove", arguments.remove, "Keep it until it is deleted");
    how->require_option(1);
}

}  // namespace

Command checkpoint_publish_command() {
    return {.path = "checkpoint publish",
            .summary = "Let everybody load a checkpoint",
            .examples =
                "Example:\n  tinkxx checkpoint publish tinker://RUN/sampler_weights/final\n\n"
                "With --json: {\"checkpoint_path\":\"...\",\"public\":true}.",
            .takes = Takes::client,
            .declare = declare<PublishArguments>(&add_publish_options, &publish)};
}

Command checkpoint_unpublish_command() {
    return {.path = "checkpoint unpublish",
            .summary = "Let nobody else load a checkpoint",
            .examples =
                "Example:\n  tinkxx checkpoint unpublish tinker://RUN/sampler_weights/final\n\n"
                "With --json: {\"checkpoint_path\":\"...\",\"public\":false}.",
            .takes = Takes::client,
            .declare = declare<PublishArguments>(&add_publish_options, &unpublish)};
}

Command checkpoint_set_ttl_command() {
    return {.path = "checkpoint set-ttl",
            .summary = "Have a checkpoint deleted after some time, or keep it",
            .examples =
                "Examples:\n"
                "  tinkxx checkpoint set-ttl RUN/weights/step-10 --ttl 7d\n"
                "  tinkxx checkpoint set-ttl @latest --remove\n\n"
                "With --json: {\"checkpoint_path\":\"...\",\"ttl_seconds\":604800}; null "
                "with --remove.",
            .takes = Takes::client,
            .declare = declare<TtlArguments>(&add_ttl_options, &set_ttl)};
}

}  // namespace tinkxx::cli
