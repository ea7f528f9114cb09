#include "commands/manage/manage.hpp"
#include "frame/troubles.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"
#include "output/words.hpp"

#include <tinkxx/rest_client.hpp>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::cli {
namespace {

struct ModelListArguments {
    std::string part{};
};

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    return text;
}

std::string words_of(std::optional<bool> const& value) {
    return value ? yes_or_no(*value) : std::string{"N/A"};
}

Exit list_models(ModelListArguments const& arguments, Context& context) {
    RestClient const rest{context.client_options()};
    auto pending = rest.get_server_capabilities();
    auto models = pending.get().supported_models;
    auto const part = lower(arguments.part);
    std::erase_if(models, [&](SupportedModel const& one) {
        return lower(one.model_name.value_or(std::string{})).find(part) == std::string::npos;
    });
    if (models.empty() && !part.empty()) {
        context.terminal.complain({.headline = "no model has '" + arguments.part + "' in its name",
                                   .way_out = "tinkxx model list"});
        return Exit::failure;
    }
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.begin_list("models");
        for (auto const& one : models) {
            json.begin_object();
            json.member("model_name", one.model_name);
            json.member("max_context_length", one.max_context_length);
            json.member("trainable", one.trainable);
            json.member("sampleable", one.sampleable);
            json.end_object();
        }
        json.end_list();
        json.end_object();
        return Exit::success;
    }
    TextTable table{context.terminal,
                    {{.title = "Model", .least = 12},
                     {.title = "Max Context", .right = true, .least = 11},
                     {.title = "Trainable", .least = 9, .spare = 1},
                     {.title = "Sampleable", .least = 10, .spare = 1}}};
    for (auto const& one : models) {
        table.add({one.model_name.value_or(std::string{}),
                   one.max_context_length ? std::to_string(*one.max_context_length) : "N/A",
                   words_of(one.trainable), words_of(one.sampleable)});
    }
    if (!models.empty()) table.finish();
    return Exit::success;
}

void add_model_list_options(CLI::App& app, ModelListArguments& arguments) {
    app.add_option("part", arguments.part, "Only models with this in their name, in any case")
        ->type_name("SUBSTRING");
}

}  // namespace

Command model_list_command() {
    return {.path = "model list",
            .summary = "The models that the server offers",
            .examples =
                "Examples:\n"
                "  tinkxx model list\n"
                "  tinkxx model list qwen --json\n\n"
                "With --json: {\"models\":[{\"model_name\":\"...\","
                "\"max_context_length\":N,\n\"trainable\":true,\"sampleable\":true}]}. "
                "Exit code 1 if no name fits.",
            .takes = Takes::client,
            .declare = declare<ModelListArguments>(&add_model_list_options, &list_models)};
}

}  // namespace tinkxx::cli
